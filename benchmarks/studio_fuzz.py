"""Random requests to the studio over hostile folders: python benchmarks/studio_fuzz.py [--requests 10000] [--seed 1]

The folder has a trained run of four tasks beside 496 damaged or hostile ones: NaN and infinity in state.json and
metrics.jsonl, names that are not UTF-8, links to themselves and to the folder, FIFOs and folders instead of files,
recipes that are nested too deep or have values of other types. Requests are drawn from all routes with real, random
and hostile ids, queries and bodies. Limits: no answer of 500 or above, and every usable run stays in the list.
Left out are the two requests that start a training: POST /example, and POST of a lesson that needs a model.
"""

import argparse
import http.client
import json
import os
import random
import shutil
import sys
import tempfile
import threading
import time
from collections import Counter
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import quote, urlencode

import regard
from regard.lessons.catalogue import LESSONS
from regard.studio.server import StudioServer, bind_socket, server_config
from regard.studio.service import Studio

TRAIN = ["train.steps=4", "train.validate_every=4", "train.batch_tokens=256", "train.best_metric=loss"]
HEADS = ["model.layers=1", "model.width=16", "model.heads=2"]
RUNS = {
    "translator": (
        "data.kind=phrases", "data.count=200", "text.vocab_size=150", "model.kind=transformer", *HEADS,
        "model.ffn_width=32", "task.bleu_sentences=0", "decode.max_extra_tokens=6",
    ),
    "classifier": (
        "task.kind=classify", "data.kind=tsv", "data.train={}/reviews.tsv", "model.kind=recurrent", "model.width=8",
    ),
    "forecaster": (
        "task.kind=forecast", "task.horizon=3", "task.window=8", "data.kind=csv", "data.train={}/load.csv",
        "model.kind=recurrent", "model.width=8",
    ),
    "generator": (
        "task.kind=generate", "data.kind=text", "data.train={}/book.txt", "task.samples=0", "task.length=40",
        "task.window=24", "model.kind=gpt", "model.max_positions=24", *HEADS,
    ),
}  # fmt: skip
HOSTILE = 496
"""damaged or hostile runs"""
DAMAGE = {
    1: ("metrics.jsonl", b'{"step": NaN}\n[1]\n{"event": 1e999}\n\xff\xfe\n' * 50),
    2: ("recipe.toml", b"x = " + b"[" * 50_000),
    4: ("samples.jsonl", b'{"text": 5}\n{"text": "\\ud800"}\n{"prompt": [1]}\n{"text": NaN}\n'),
    5: ("recipe.toml", b'[task]\nkind = ["x"]\n[model]\nkind = {a = 1}\n[decode]\nbeam = nan\n'),
    8: ("recipe.toml", b'[task]\nkind = "forecast"\n[data]\nkind = "csv"\ntrain = "/dev/zero"\n'),
    9: ("recipe.toml", b"\xff\xfe\x00"),
}
"""files of a run that are written over, by the kind of damage"""
STATE = b'{"regard": "0", "state": {"step": NaN, "best": {"loss": 1e999, "x": {}}}}'
ENDS = [b"", b"\xff\xfe", "é🙂".encode(), b" " * 9, b"n" * 200]
"""ends of the names of hostile runs"""
TEXTS = [
    "", " ", "je suis étudiant", "[MASK]", "a\tb", "\0", "\ud83d", "é" * 3000, "date,load\n1,2\n3,nan\n", "1,2,3",
    "🙂" * 40, "../../etc/passwd", "digits#test/7", "<script>", "x" * 100_000, "\u202eabc", "1e999,NaN",
    "load,price\n" + "1,2\n" * 20, "The wind", "it is fine",
]  # fmt: skip
VALUES = [None, True, -1, 0, 1, 3, 10**30, 1e308, 0.5, [], {}, [[]], "x", ["a"], {"kind": []}, {"kind": "head"}]
WORDS = [
    "kind", "beam", "model", "text", "decode", "image", "change", "tensor", "head", "step", "id", "weights", "query",
]  # fmt: skip
QUERY = [
    "slice", "name", "format", "tensor", "head", "view", "since", "version", "cursor", "word", "sum", "words", "side",
    "count", "tab",
]  # fmt: skip
ROUTES = [
    "GET /", "GET /page/{file}", "GET /api/v1/info", "GET /api/v1/models", "GET /api/v1/models/{model}",
    "GET /api/v1/models/{model}/example", "POST /api/v1/models/{model}/load", "GET /api/v1/runs/{model}/metrics",
    "GET /api/v1/runs/{model}/events", "POST /api/v1/runs/{model}/control", "GET /api/v1/runs/{model}/probe/{step}",
    "GET /api/v1/runs/{model}/probe/{step}/tensors/{tensor}", "GET /api/v1/line", "GET /api/v1/lessons",
    "GET /api/v1/lessons/{lesson}", "POST /api/v1/lessons/{lesson}", "GET /api/v1/embeddings/{model}/neighbors",
    "GET /api/v1/embeddings/{model}/analogy", "GET /api/v1/embeddings/{model}/map", "POST /api/v1/tokenize",
    "GET /api/v1/traces", "POST /api/v1/traces", "GET /api/v1/traces/{trace}", "POST /api/v1/traces/{trace}/fork",
    "GET /api/v1/traces/{trace}/gradients", "GET /api/v1/traces/{trace}/saliency",
    "GET /api/v1/traces/{trace}/tensors/{tensor}", "GET /api/v1/traces/{trace}/export", "PUT /api/v1/traces",
    "GET /{file}", "DELETE /api/v1/models/{model}",
]  # fmt: skip
RARE = {"GET /api/v1/models", "GET /api/v1/line", "GET /api/v1/runs/{model}/events", "POST /api/v1/lessons/{lesson}"}
"""routes that read all runs, wait for events or compute a lesson: a tenth as often"""


def make_runs(root: Path) -> list[str]:
    """Train the usable runs; returns their names."""
    lines = (f"it is {word} {i}\t{label}\n" for i in range(30) for word, label in (("fine", "+"), ("bad", "-")))
    (root / "reviews.tsv").write_text(f"text\tlabel\n{''.join(lines)}", encoding="utf-8")
    rows = "".join(f"{i % 7 + i / 50},{i % 3}\n" for i in range(200))
    (root / "load.csv").write_text(f"load,price\n{rows}", encoding="utf-8")
    (root / "book.txt").write_text("The wind blew north, and the sea said nothing.\n" * 80, encoding="utf-8")
    for name, settings in RUNS.items():
        recipe = regard.Recipe.read(None, [*(one.format(root.as_posix()) for one in settings), *TRAIN])
        regard.Run(root / "runs" / name).train(recipe)
    return list(RUNS)


def make_hostile_runs(runs: Path, draw: random.Random) -> None:
    """Damaged or hostile folders beside the usable runs."""
    recipe = (runs / "translator" / "recipe.toml").read_bytes()
    for number in range(HOSTILE):
        name = os.fsdecode(f"{number:03}".encode() + draw.choice(ENDS))
        run = runs / name
        if number % 10 == 0:
            shutil.copytree(runs / "translator", run, symlinks=True)
        else:
            run.mkdir()
            (run / "recipe.toml").write_bytes(recipe)
        damage(run, number % 12, runs)
    (runs / "itself").symlink_to(runs)
    (runs / "loop").symlink_to(runs / "loop")


def damage(run: Path, kind: int, runs: Path) -> None:
    """One kind of damage to a run."""
    if kind in DAMAGE:
        name, content = DAMAGE[kind]
        (run / name).write_bytes(content)
    elif kind == 0 and (run / "last").exists():
        (run / "last" / "state.json").write_bytes(STATE)
    elif kind in (3, 10):
        fifo = run / ("recipe.toml" if kind == 3 else "samples.jsonl")
        fifo.unlink(missing_ok=True)
        os.mkfifo(fifo)
    elif kind == 6 and not (run / "best").exists():
        (run / "best").symlink_to(run)
        (run / "probe").symlink_to(runs)
    elif kind == 7:
        for name in ("samples.jsonl", "metrics.jsonl"):
            (run / name).mkdir()


class Fuzzer:
    """Draws requests, and remembers the ids of traces that were made."""

    def __init__(self, models: list[str], draw: random.Random) -> None:
        self.models, self.draw, self.traces = models, draw, list[str]()
        self.lessons = [name for name, entry in LESSONS.items() if not entry.needs]
        self.tensors = ["logits", "decoder.layers.0.cross.weights", "decoder.layers.0.attention.weights", "pixels"]

    def noise(self) -> str:
        """A text that is no valid id."""
        letters = "".join(chr(self.draw.randrange(1, 0x3000)) for _ in range(8))
        return self.draw.choice([*TEXTS[:8], letters, "%00", "a" * 500])

    def part(self, name: str) -> str:
        """A value of a path parameter, most of them valid."""
        known = {
            "model": self.models, "trace": self.traces[-40:], "tensor": self.tensors, "lesson": self.lessons,
            "step": ["0", "4", "-1", "9" * 30], "file": ["main.js", "core/dom.js", "../app.py", "index.html"],
        }[name]  # fmt: skip
        value = self.draw.choice(known) if known and self.draw.random() < 0.8 else self.noise()
        return quote(value.encode("utf-8", "surrogatepass"))

    def query(self) -> str:
        """A query with some known names."""
        slices = ["head:0", "query:0-2", "head:9", "step:undefined", "vocabulary:0-99", "head:0-0,key:1", ":::"]
        values = [*slices, "html", "json", "csv", "svg", "png", "safetensors", "saliency", *self.tensors, *TEXTS[:8]]
        chosen = {name: self.draw.choice(values) for name in self.draw.sample(QUERY, self.draw.randrange(4))}
        return urlencode(chosen, errors="surrogatepass")

    def value(self, depth: int = 0) -> object:
        """A random JSON value."""
        if depth < 2 and self.draw.random() < 0.3:
            return {self.draw.choice(WORDS): self.value(depth + 1) for _ in range(self.draw.randrange(4))}
        return self.draw.choice([*VALUES, *TEXTS[:8]])

    def body(self, route: str) -> bytes:
        """A body: valid, with one field of another kind, or no JSON at all."""
        draw = self.draw
        if draw.random() < 0.1:
            return draw.choice([b"", b"{", b"NaN", b"[" * 5000, b"\xff", b'{"a": 1e999}', b"{}" * 99, b'"x"'])
        weights = draw.choice(self.tensors)
        kinds = [
            {"kind": "head", "tensor": weights, "head": draw.randrange(-1, 3)},
            {"kind": "row", "tensor": weights, "head": 0, "query": draw.randrange(3), "weights": [0.5, 0.5, 0.0]},
            {"kind": "token", "step": draw.randrange(4), "id": draw.randrange(60), "label": "x"},
            {"kind": "positions"}, {"kind": "mask"},
        ]  # fmt: skip
        table: dict[str, object] = {"model": draw.choice(self.models), "text": draw.choice(TEXTS)}
        if route.endswith("fork"):
            table = {"change": draw.choice(kinds)}
        elif route.endswith("control"):
            table = {"command": draw.choice(["save", "stop", "x"])}
        elif "lessons" in route:
            table = {"changes": {}}
        elif draw.random() < 0.3:
            table["decode"] = {"beam": draw.choice([1, 2, 4, 0, "x", True])}
        if draw.random() < 0.15:
            table["image"] = draw.choice(["digits#test/7", "data:image/png;base64,AAAA", "data:", [], ["x"] * 300, 5])
        if draw.random() < 0.4:
            table[draw.choice([*table, *WORDS])] = self.value()
        return json.dumps(table, allow_nan=True).encode("utf-8", "surrogatepass")

    def request(self) -> tuple[str, str, bytes | None, dict[str, str]]:
        """Method, path, body and headers."""
        route = self.draw.choice(ROUTES)
        if route in RARE and self.draw.random() < 0.9:
            return self.request()
        method, _, path = route.partition(" ")
        for name in ("model", "trace", "tensor", "lesson", "step", "file"):
            if f"{{{name}}}" in path:
                path = path.replace(f"{{{name}}}", self.part(name))
        query = self.query() if self.draw.random() < 0.6 else ""
        headers = {"content-type": self.draw.choice(["application/json"] * 9 + ["text/plain"])}
        if self.draw.random() < 0.02:
            headers["last-event-id"] = self.draw.choice(["x", "-1", "9" * 40])
        return method, f"{path}?{query}" if query else path, self.body(route) if method == "POST" else None, headers


@contextmanager
def serve(root: Path):
    """The port of a studio over the runs."""
    studio = Studio(root / "runs", root / "cache")
    with bind_socket(0) as listening:
        server = StudioServer(studio, server_config(studio))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
        thread.start()
        while not server.started:
            time.sleep(0.01)
        yield listening.getsockname()[1]
        server.should_exit = True
        thread.join(20)


def send(port: int, method: str, path: str, body: bytes | None, headers: dict[str, str]) -> tuple[int, bytes]:
    """Status and body of an answer; of a stream of events only the status."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    try:
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        is_stream = "event-stream" in (answer.getheader("content-type") or "")
        return answer.status, b"" if is_stream else answer.read()
    finally:
        connection.close()


def listed_models(port: int) -> dict[str, str]:
    """Ids of the usable models by name."""
    status, content = send(port, "GET", "/api/v1/models", None, {})
    assert status == 200, content[:300]
    return {model["name"]: model["id"] for model in json.loads(content)["models"] if model["usable"]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--requests", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    draw, counts, faults = random.Random(options.seed), Counter[int](), list[str]()
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        names = make_runs(root)
        make_hostile_runs(root / "runs", draw)
        with serve(root) as port:
            models, began = listed_models(port), time.perf_counter()
            fuzzer = Fuzzer(list(models.values()), draw)
            for number in range(options.requests):
                request = fuzzer.request()
                status, content = send(port, *request)
                counts[status // 100 * 100] += 1
                if status >= 500:
                    faults.append(f"{status} {request[0]} {request[1][:200]} {str(request[2])[:200]} {content[:200]!r}")
                if status == 201:
                    with suppress(ValueError, KeyError):
                        fuzzer.traces.append(json.loads(content)["id"])
                if (number + 1) % 500 == 0:
                    print(f"{number + 1:,} requests, {time.perf_counter() - began:.0f} s", file=sys.stderr, flush=True)
            missing = set(names) - set(listed_models(port))
    answers = ", ".join(f"{count:,} of {status}" for status, count in sorted(counts.items()))
    print(f"{options.requests:,} requests over {HOSTILE} hostile runs: {answers}; {len(faults)} at or above 500")
    for fault in dict.fromkeys(faults):
        print(fault)
    sys.exit("a limit was exceeded" if faults or missing else 0)


if __name__ == "__main__":
    main()
