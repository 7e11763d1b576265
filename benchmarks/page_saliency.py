"""Saliency on the studio's page beside finite differences of a forward pass in NumPy, from the safetensors.

    python benchmarks/page_saliency.py --texts RUN --images RUN

The first run is a classifier of texts by a bidirectional LSTM with mean pooling, the second one of images by a small
CNN. Saliency is gradient x input of the predicted label's log-odds, so for a token or a pixel it is the derivative of
the log-odds when its vector, or its normalized value, grows in proportion. It is read from the page, and for all pixels
from the file that the page exports; NumPy computes it in float64, without torch and without regard's models.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

sys.path.append(str(Path(__file__).parent))
from page_values import (
    BROWSERS,
    LocalStudio,
    Numbers,
    convolve,
    linear,
    max_pool,
    read_tensors,
    read_weights,
    sigmoid,
    softmax,
)

TEXTS = ("it is great", "the film was so bad", "a story , very lovely")
IMAGES = ("digits#test/3", "digits#test/7")
STEP = 1e-6
"""relative change of an input"""
SMOOTH = 1e-5
"""largest difference of the slopes up and down where there is a derivative, relative to the largest slope"""
ROUNDING = 5.1e-5
"""the page shows four decimals"""
EXACT = 1e-5
"""difference relative to the largest saliency in an exported file"""


def lstm(x_LD: np.ndarray, weights: Numbers, layer: str) -> np.ndarray:
    """Hidden states of one direction."""
    hidden = cell = np.zeros(weights[f"{layer}.rnn.weight_hh_l0"].shape[1])
    states = []
    for x_D in x_LD:
        of_input = weights[f"{layer}.rnn.weight_ih_l0"] @ x_D + weights[f"{layer}.rnn.bias_ih_l0"]
        of_state = weights[f"{layer}.rnn.weight_hh_l0"] @ hidden + weights[f"{layer}.rnn.bias_hh_l0"]
        i, f, g, o = np.split(of_input + of_state, 4)
        cell = sigmoid(f) * cell + sigmoid(i) * np.tanh(g)
        hidden = sigmoid(o) * np.tanh(cell)
        states.append(hidden)
    return np.array(states)


def text_logits(x_LD: np.ndarray, weights: Numbers) -> np.ndarray:
    """Logits of the classifier of texts, from its embeddings."""
    base = "encoder.stack.layers.0"
    forward = lstm(x_LD, weights, f"{base}.forward_layer")
    backward = lstm(x_LD[::-1], weights, f"{base}.backward_layer")[::-1]
    return linear(np.concatenate([forward, backward], 1).mean(0), weights, "readout")


def image_logits(x_CYX: np.ndarray, weights: Numbers) -> np.ndarray:
    """Logits of the classifier of images, from its normalized pixels."""
    stages = {name.split(".")[2] for name in weights if name.startswith("encoder.stages.")}
    for stage in range(len(stages)):
        base = f"encoder.stages.{stage}.convs"
        x_CYX = max_pool(x_CYX) if stage else x_CYX
        for conv in range(len({name.split(".")[4] for name in weights if name.startswith(f"{base}.")})):
            parts = (
                weights[f"{base}.{conv}.norm.{name}"] for name in ("running_mean", "running_var", "weight", "bias")
            )
            mean, variance, gain, bias = (part[:, None, None] for part in parts)
            x_CYX = convolve(x_CYX, weights[f"{base}.{conv}.conv.weight"])
            x_CYX = np.maximum((x_CYX - mean) / np.sqrt(variance + 1e-5) * gain + bias, 0)
    return linear(x_CYX.mean((1, 2)), weights, "readout")


def saliency(logits: Callable[[np.ndarray], np.ndarray], x: np.ndarray, places: list[Any]) -> np.ndarray:
    """Derivatives of the predicted label's log-odds when the numbers of a place grow in proportion.

    NaN where there is none: max pooling of equal pixels, such as a plain background, has one slope up and another down.
    """
    best = int(logits(x).argmax())

    def log_odds(change: np.ndarray) -> float:
        share = softmax(logits(change))[best]
        return float(np.log(share) - np.log1p(-share))

    slopes, middle = [], log_odds(x)
    for place in places:
        step = np.zeros_like(x)
        step[place] = STEP * x[place]
        slopes.append(((log_odds(x + step) - middle) / STEP, (middle - log_odds(x - step)) / STEP))
    up, down = np.array(slopes).T
    return np.where(np.abs(up - down) < SMOOTH * np.abs(up).max(), (up + down) / 2, np.nan)


def read_tokens(page: Any, studio: LocalStudio, trace: Any) -> np.ndarray:
    """The saliency of each token, as the page shows it."""
    page.goto("about:blank")  # the address below is then loaded anew
    page.goto(f"{studio.address}/#/t/{trace['id']}?tab=saliency")
    page.locator("table.candidates tbody tr").first.wait_for()
    cells = page.locator("table.candidates tbody tr td:first-of-type").all_inner_texts()
    return np.array([float(cell.replace("−", "-")) for cell in cells])


def read_pixels(page: Any, studio: LocalStudio, trace: Any) -> tuple[np.ndarray, list[float]]:
    """The saliency of each pixel in the exported file, and the smallest and largest that the page names."""
    page.goto("about:blank")
    page.goto(f"{studio.address}/#/t/{trace['id']}")
    page.locator("[aria-label^='saliency of']").first.wait_for()
    words = page.locator(".legend", has_text="smallest").first.inner_text().replace(",", " ").split()
    named = [float(words[words.index(name) + 1].replace("−", "-")) for name in ("smallest", "largest")]
    table = json.loads(studio.get(f"/api/v1/traces/{trace['id']}/export?view=saliency&format=json").body)
    return np.array(table["scores"], np.float64).ravel(), named


def report(what: str, shown: np.ndarray, expected: np.ndarray, limit: float) -> bool:
    """Print the largest difference; whether it is within a limit."""
    there = np.isfinite(expected)
    off = float(np.abs(shown - expected)[there].max())
    print(f"{what}: {there.sum()} of {shown.size} values, largest difference {off:.1e} (limit {limit:.1e})", flush=True)
    return off <= limit


def main() -> None:
    from playwright.sync_api import sync_playwright

    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--texts", type=Path, required=True, help="run of a classifier of texts")
    parser.add_argument("--images", type=Path, required=True, help="run of a classifier of rendered digits")
    options = parser.parse_args()
    browser, passed = next(filter(None, map(shutil.which, BROWSERS))), True
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as cache:
        studio = LocalStudio(options.texts.parent, Path(cache))
        chromium = playwright.chromium.launch(executable_path=browser, args=["--no-sandbox", "--disable-gpu"])
        page = chromium.new_page()
        weights = read_weights(options.texts)
        for text in TEXTS:
            trace = studio.trace(options.texts.name, text)
            x_LD = read_tensors(studio, trace)["encoder.embedding"]
            found = saliency(lambda x: text_logits(x, weights), x_LD, [np.s_[i] for i in range(len(x_LD))])
            passed &= report(text, read_tokens(page, studio, trace), found, ROUNDING)
        weights = read_weights(options.images)
        for image in IMAGES:
            trace = studio.trace(options.images.name, image)
            x_CYX = read_tensors(studio, trace)["encoder.image"]
            places = [np.s_[:, y, x] for y in range(x_CYX.shape[1]) for x in range(x_CYX.shape[2])]
            found = saliency(lambda x: image_logits(x, weights), x_CYX, places)
            shown, named = read_pixels(page, studio, trace)
            passed &= report(image, shown, found, EXACT * np.abs(shown).max())
            passed &= report(f"{image}, on the page", np.array(named), np.array([shown.min(), shown.max()]), ROUNDING)
        chromium.close()
        studio.server.should_exit = True
    raise SystemExit(int(not passed))


if __name__ == "__main__":
    main()
