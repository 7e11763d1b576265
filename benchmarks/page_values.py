"""Numbers on the studio's page beside NumPy: values read in Chromium, and the same in float64 from the safetensors.

    python benchmarks/page_values.py --runs FOLDER [--values 300]

FOLDER has trained runs. Each value is computed from what the layer read, as recorded, and from the weights in the
checkpoint's model.safetensors, without torch and without regard's models. Prints the largest differences per family.
"""

from __future__ import annotations

import argparse
import http.client
import json
import math
import random
import re
import shutil
import tempfile
import threading
import time
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from safetensors.numpy import load_file

TEXTS = {
    "critic": "it is great", "bert": "it is great", "tagger": "Ada lives in Rome", "gpt": "The wind blew",
    "llama": "The wind blew", "rnnlm": "The wind blew", "long": "The wind blew", "fill": "the cat eats [MASK] today .",
    "teller": "date,load,price\n" + "".join(f"2024-01-{day:02},{20 + day % 7},{day % 5}\n" for day in range(1, 25)),
}  # fmt: skip
TEXT = "je suis étudiant"
IMAGES = {"clips": "clips#test/3", "position": "clips#test/3", "caption": "shapes#test/3"}
"""rendered inputs, by run; other models of images read a rendered digit"""
BROWSERS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
Numbers = Mapping[str, np.ndarray]


@dataclass(frozen=True)
class PageValue:
    """One number: as the page shows it, and as NumPy computes it."""

    family: str
    tensor: str
    shown: float
    expected: float
    scale: float

    @property
    def relative(self) -> float:
        """Difference relative to the largest number of the tensor."""
        return abs(self.shown - self.expected) / max(self.scale, 1e-3)


def linear(x: np.ndarray, weights: Numbers, name: str) -> np.ndarray:
    """x W^T + b."""
    out = x @ weights[f"{name}.weight"].T
    return out + weights[f"{name}.bias"] if f"{name}.bias" in weights else out


def softmax(x: np.ndarray) -> np.ndarray:
    """Softmax of the last axis."""
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def expected_values(
    tensors: Numbers, weights: Numbers, reversed_layers: Collection[str]
) -> Iterator[tuple[str, np.ndarray]]:
    """(name, numbers) of every tensor whose inputs were recorded, by the equations of its layer."""
    for base in sorted({name.rpartition(".")[0] for name in tensors}):
        own = {name.rpartition(".")[2]: data for name, data in tensors.items() if name.rpartition(".")[0] == base}
        for rule in (_attention, _feedforward, _norm, _alignment, _convolution, _batch_norm):
            for last, numbers in rule(base, own, tensors, weights):
                yield f"{base}.{last}".removeprefix("."), numbers
        for last, numbers in _recurrent(base, own, tensors, weights, base in reversed_layers):
            yield f"{base}.{last}", numbers
    yield from _heads(tensors, weights)


Pairs = Iterator[tuple[str, np.ndarray]]


def _attention(base: str, own: Numbers, tensors: Numbers, weights: Numbers) -> Pairs:
    if "products" not in own:
        return
    yield "products", own["queries"] @ own["keys"].swapaxes(-1, -2)
    yield "scores", own["products"] / math.sqrt(own["queries"].shape[-1])
    visible = np.where(own["weights"] > 0, own["scores"], -np.inf)
    yield "weights", softmax(visible)
    yield "context", np.nan_to_num(own["weights"]) @ own["values"]
    joined = own["context"].swapaxes(0, 1).reshape(own["context"].shape[1], -1)
    if f"{base}.out.weight" in weights:
        yield "output", linear(joined, weights, f"{base}.out")
    layer = base.rpartition(".")[0]
    before = _norm_before(base, layer, tensors)
    if before is not None and f"{base}.qkv.weight" in weights and f"{layer}.ffn.gate.weight" not in weights:
        parts = np.split(linear(before, weights, f"{base}.qkv"), 3, -1)
        heads = own["queries"].shape[0]
        for last, part in zip(("queries", "keys", "values"), parts, strict=True):
            yield last, part.reshape(len(part), heads, -1).swapaxes(0, 1)


def _norm_before(base: str, layer: str, tensors: Numbers) -> np.ndarray | None:
    """Input of self-attention with a norm before it (GPT, ViT); of others None."""
    return tensors.get(f"{layer}.norm1.normalized") if _reads_norm(base, layer, tensors) else None


def _reads_norm(base: str, layer: str, tensors: Numbers) -> bool:
    names = list(tensors)
    first = f"{layer}.norm1.normalized"
    return first in tensors and names.index(first) < names.index(f"{base}.queries")


def _feedforward(base: str, own: Numbers, tensors: Numbers, weights: Numbers) -> Pairs:
    if "activations" not in own:
        return
    yield "output", linear(own["activations"], weights, f"{base}.down")
    if "linear" in own:
        yield "activations", own["preactivations"] * sigmoid(own["preactivations"]) * own["linear"]
    elif (own["activations"] == np.maximum(own["preactivations"], 0)).all():
        yield "activations", np.maximum(own["preactivations"], 0)
    else:
        x = own["preactivations"]
        exact = np.vectorize(math.erf)(x / math.sqrt(2))
        formed = np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))  # GPT's GELU
        yield "activations", x * (1 + (formed if base.startswith("decoder") else exact)) / 2
    layer = base.rpartition(".")[0]
    before = tensors.get(f"{layer}.norm2.normalized")
    if before is not None and "linear" not in own and f"{layer}.ffn_residual" not in tensors:
        yield "preactivations", linear(before, weights, f"{base}.up")


def _norm(base: str, own: Numbers, tensors: Numbers, weights: Numbers) -> Pairs:
    inner = base.removesuffix(".norm")
    before = tensors.get(f"{inner}.residual_sum")
    if "normalized" not in own or before is None or f"{base}.bias" not in weights:
        return
    names = list(tensors)
    if names.index(f"{inner}.residual_sum") > names.index(f"{base}.normalized"):  # the norm comes before its sublayer
        return
    centered = before - before.mean(-1, keepdims=True)
    deviation = np.sqrt((centered**2).mean(-1, keepdims=True) + 1e-5)
    yield "normalized", centered / deviation * weights[f"{base}.weight"] + weights[f"{base}.bias"]


def _recurrent(base: str, own: Numbers, tensors: Numbers, weights: Numbers, backward: bool) -> Pairs:
    gates = own.get("gates")
    if gates is None or gates.ndim != 3:
        return
    hidden = own["hidden"]
    before = np.roll(hidden, -1 if backward else 1, 0)
    inside = slice(0, -1) if backward else slice(1, None)
    if gates.shape[1] == 4:  # LSTM: input, forget, candidate, output
        cell = np.roll(own["cell"], -1 if backward else 1, 0)
        yield "hidden", gates[:, 3] * np.tanh(own["cell"])
        updated = gates[:, 1] * cell + gates[:, 0] * gates[:, 2]
        yield "cell", _only(updated, inside)
    elif "decoder.unit.gates.weight" in weights and base == "decoder.unit":  # Cho's unit
        yield "hidden", _only((1 - gates[:, 1]) * before + gates[:, 1] * own["candidate"], inside)
    else:  # GRU: reset, update
        yield "hidden", _only(own["candidate"] + gates[:, 1] * (before - own["candidate"]), inside)
    read = tensors.get(f"{base.partition('.')[0]}.embedding")
    lowest = base.endswith(("layers.0", "layer.forward_layer", "layers.0.forward_layer", "layers.0.backward_layer"))
    first = f"{base}.rnn.weight_ih_l0"
    plain = "decoder.input_feed.weight" not in weights or base.startswith("encoder")
    if read is None or not lowest or not plain or first not in weights or weights[first].shape[1] != read.shape[1]:
        return
    of_input = read @ weights[first].T + weights[f"{base}.rnn.bias_ih_l0"]
    of_state = before @ weights[f"{base}.rnn.weight_hh_l0"].T + weights[f"{base}.rnn.bias_hh_l0"]
    width, sums = hidden.shape[1], of_input + of_state
    if len(read) != len(hidden):
        return
    if gates.shape[1] == 4:
        i, f, g, o = np.split(sums, 4, 1)
        yield "gates", _only(np.stack([sigmoid(i), sigmoid(f), np.tanh(g), sigmoid(o)], 1), inside)
    else:
        yield "gates", _only(np.stack([sigmoid(sums[:, :width]), sigmoid(sums[:, width : 2 * width])], 1), inside)
        new = of_input[:, 2 * width :] + gates[:, 0] * of_state[:, 2 * width :]
        yield "candidate", _only(np.tanh(new), inside)


def _only(numbers: np.ndarray, inside: slice) -> np.ndarray:
    """NaN where the state before the first step would be needed."""
    out = np.full_like(numbers, np.nan)
    out[inside] = numbers[inside]
    return out


def _alignment(base: str, own: Numbers, tensors: Numbers, weights: Numbers) -> Pairs:
    if "scores" not in own or "products" in own or "weights" not in own:
        return
    yield "weights", softmax(own["scores"])
    states = tensors.get("encoder.residual")
    v, hidden = weights.get(f"{base}.score.v.weight"), tensors.get("decoder.unit.hidden")
    if states is not None and states.ndim == 2 and len(states) == own["weights"].shape[-1]:
        yield "context", own["weights"] @ states
        if v is not None and hidden is not None:  # additive: the query is the state of the step before
            query = np.roll(hidden, 1, 0) @ weights[f"{base}.score.query.weight"].T
            keys = states @ weights[f"{base}.score.key.weight"].T
            scores = np.tanh(query[:, None] + keys[None]) @ v[0]
            yield "scores", _only(scores, slice(1, None))[None]


def convolve(x_CYX: np.ndarray, weights_OCIJ: np.ndarray) -> np.ndarray:
    """3 x 3 convolution with a border of zeros."""
    padded = np.pad(x_CYX, ((0, 0), (1, 1), (1, 1)))
    windows_CYXIJ = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (1, 2))
    return np.einsum("cyxij,ocij->oyx", windows_CYXIJ, weights_OCIJ)


def max_pool(x_CYX: np.ndarray) -> np.ndarray:
    """The largest number of each window of 2 x 2; at an odd end of fewer."""
    rows, columns = (size % 2 for size in x_CYX.shape[1:])
    even = np.pad(x_CYX, ((0, 0), (0, rows), (0, columns)), constant_values=-np.inf)
    return even.reshape(len(even), even.shape[1] // 2, 2, even.shape[2] // 2, 2).max((2, 4))


def _convolution(base: str, own: Numbers, tensors: Numbers, weights: Numbers) -> Pairs:
    """Feature maps of the small CNN, from the maps below."""
    place = re.fullmatch(r"(encoder\.stages)\.(\d+)\.convs\.(\d+)", base)
    if place is None or "convolution" not in own or own["convolution"].ndim != 3:
        return
    stage, number = int(place[2]), int(place[3])
    below = tensors["encoder.image"]
    if number:
        below = np.maximum(tensors[f"{place[1]}.{stage}.convs.{number - 1}.norm"], 0)
    elif stage:
        below = max_pool(tensors[f"{place[1]}.{stage - 1}.feature_map"])
    yield "convolution", convolve(below, weights[f"{base}.conv.weight"])


def batch_norm_parts(weights: Numbers, base: str) -> list[np.ndarray]:
    """Mean, variance, gain and bias of a batch normalization, per channel."""
    return [weights[f"{base}.{name}"][:, None, None] for name in ("running_mean", "running_var", "weight", "bias")]


def _batch_norm(base: str, own: Numbers, tensors: Numbers, weights: Numbers) -> Pairs:
    if f"{base}.norm.running_mean" in weights and own.get("convolution", np.zeros(0)).ndim == 3:
        mean, variance, gain, bias = batch_norm_parts(weights, f"{base}.norm")
        yield "norm", (own["convolution"] - mean) / np.sqrt(variance + 1e-5) * gain + bias


def _heads(tensors: Numbers, weights: Numbers) -> Pairs:
    """Output layers: logits, numbers and forecasts."""
    for features, readout in (("decoder.features", "decoder.readout"), ("features", "readout")):
        tied = f"{readout}.weight" if f"{readout}.weight" in weights else "decoder.embed.weight"
        x, logits = tensors.get(features), tensors.get("logits")
        if x is None or logits is None or tied not in weights or weights[tied].shape[1] != x.shape[-1]:
            continue
        out = x @ weights[tied].T + weights.get(f"{readout}.bias", 0.0)
        if out.shape[-1] == logits.shape[-1]:
            yield "logits", out[-len(logits) :] if logits.ndim > 1 else out


def read_weights(run: Path) -> dict[str, np.ndarray]:
    """Weights of the newest checkpoint in float64."""
    files = sorted(run.glob("checkpoints/*/model.safetensors"))
    return {name: data.astype(np.float64) for name, data in load_file(files[-1]).items()}


def read_tensors(server: Any, trace: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """All tensors of a trace in float64."""
    found = {}
    for tensor in trace["tensors"]:
        body = server.get(f"/api/v1/traces/{trace['id']}/tensors/{tensor['name']}").body
        kind = "<f4" if tensor["dtype"] == "f4" else "<i4"
        found[tensor["name"]] = np.frombuffer(body, kind).reshape(tensor["shape"]).astype(np.float64)
    return found


def compare(page: Any, server: Any, run: Path, name: str, text: str, count: int) -> list[PageValue]:
    """Read values of a model from the page and compute them by NumPy."""
    trace = server.trace(name, text)
    tensors, weights = read_tensors(server, trace), read_weights(run)
    backwards = {t["name"].rpartition(".")[0] for t in trace["tensors"] if t["backwards"]}
    with np.errstate(all="ignore"):
        made = expected_values(tensors, weights, backwards)
        expected = {name: numbers for name, numbers in made if numbers.shape == tensors[name].shape}
    draw, found = random.Random(count), list[PageValue]()
    names = sorted(expected)
    for number in range(4 * count):
        tensor = names[number % len(names)] if names else ""
        if not names or len(found) == count:
            break
        index = tuple(draw.randrange(size) for size in expected[tensor].shape)
        value = float(expected[tensor][index])
        if not math.isfinite(value):
            continue
        axes = next(t["axes"] for t in trace["tensors"] if t["name"] == tensor)
        shown = read_page(page, server, trace, tensor, dict(zip(axes, index, strict=True)))
        scale = float(np.nanmax(np.abs(tensors[tensor][np.isfinite(tensors[tensor])])))
        found.append(PageValue(name, tensor, shown, value, scale))
    return found


READ = """async ([id, name, place]) => {
    const { openTrace } = await import("/page/trace/server-source.js");
    const { Drawer } = await import("/page/widgets/drawer.js");
    const drawer = new Drawer(await openTrace(id));
    document.body.append(drawer.node);
    await drawer.open(name, place);
    const exact = drawer.node.querySelector(".big").dataset.exact;
    const off = drawer.node.querySelector(".agreement")?.dataset.off ?? null;
    drawer.node.remove();
    return [exact, off];
}"""


def read_page(page: Any, server: Any, trace: Mapping[str, Any], tensor: str, place: Mapping[str, int]) -> float:
    """The number that the drawer of the page shows; its explanation must agree with it."""
    if not page.url.startswith(server.address):
        page.goto(server.address)
    exact, off = page.evaluate(READ, [trace["id"], tensor, dict(place)])
    assert off is None or float(off) < 1e-3, (tensor, place, off)
    return float(exact)


class LocalStudio:
    """A studio on a free port of this machine, in a thread of this process."""

    def __init__(self, root: Path, cache: Path) -> None:
        from regard.studio.server import StudioServer, bind_socket, server_config
        from regard.studio.service import Studio

        studio = Studio(root, cache)
        listening = bind_socket(0)
        self.port = listening.getsockname()[1]
        self.address = f"http://127.0.0.1:{self.port}"
        self.server = StudioServer(studio, server_config(studio))
        threading.Thread(target=self.server.run, kwargs={"sockets": [listening]}, daemon=True).start()
        while not self.server.started:
            time.sleep(0.01)

    def get(self, path: str) -> SimpleNamespace:
        """A response with its body."""
        return self._request("GET", path, None)

    def trace(self, name: str, text: str) -> Any:
        """The header of a new trace."""
        models = json.loads(self.get("/api/v1/models").body)["models"]
        model = next(one for one in models if one["name"] == name)
        image = {"image": text if "#" in text else IMAGES.get(name, "digits#test/7")}
        table = {"model": model["id"], **(image if model["image"] else {"text": text})}
        return json.loads(self._request("POST", "/api/v1/traces", json.dumps(table).encode()).body)

    def _request(self, method: str, path: str, body: bytes | None) -> SimpleNamespace:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        connection.request(method, path, body, {"content-type": "application/json"})
        answer = connection.getresponse()
        found = SimpleNamespace(status=answer.status, body=answer.read())
        connection.close()
        assert found.status < 300, found.body[:300]
        return found


def main() -> None:
    from playwright.sync_api import sync_playwright

    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=Path, required=True, help="folder with trained runs")
    parser.add_argument("--values", type=int, default=300, help="numbers to read, over all runs")
    options = parser.parse_args()
    runs = sorted(path for path in options.runs.iterdir() if list(path.glob("checkpoints/*/model.safetensors")))
    browser = next(filter(None, map(shutil.which, BROWSERS)))
    found: list[PageValue] = []
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as cache:
        studio = LocalStudio(options.runs, Path(cache))
        chromium = playwright.chromium.launch(executable_path=browser, args=["--no-sandbox", "--disable-gpu"])
        page = chromium.new_page()
        for number, run in enumerate(runs):
            left = -(-(options.values - len(found)) // (len(runs) - number))
            values = compare(page, studio, run, run.name, TEXTS.get(run.name, TEXT), left)
            found += values
            worst = max(values, key=lambda one: one.relative, default=None)
            far = (
                "nothing to compare" if worst is None else f"largest difference {worst.relative:.1e} at {worst.tensor}"
            )
            print(f"{run.name:12} {len(values):4} values, {far}", flush=True)
        chromium.close()
        studio.server.should_exit = True
    wrong = sum(one.relative > 2e-5 for one in found)
    print(f"{len(found)} values, {wrong} wrong, largest difference {max(one.relative for one in found):.1e}")
    raise SystemExit(int(wrong > 0))


if __name__ == "__main__":
    main()
