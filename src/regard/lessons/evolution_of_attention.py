"""Lesson: from a small network that scores states to a product of matrices; one sentence through both."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from regard.errors import ConfigError, ModelError
from regard.lessons.attention import attended as by_product
from regard.lessons.bahdanau import attended as by_network
from regard.lessons.engine.builder import Page
from regard.lessons.engine.cached_models import trained
from regard.lessons.engine.inputs import Input, Plan, Work
from regard.lessons.engine.layers import apart, tensor
from regard.lessons.engine.lesson import Value
from regard.look.attention import AttentionView
from regard.look.decoding_path import crosses
from regard.run import load, record
from regard.tasks.translate.recipe import TranslationModel

value = Page.value
SOURCE = ["je", "suis", "étudiant", "<EOS>"]

INPUTS = (
    Input("sentence", "je suis étudiant", "what both models read"),
    Input(
        "H",
        [[1.0, 0.0], [0.0, 1.0], [-1.0, 1.0], [0.0, -1.0]],
        "the encoder's states, one a word",
        ("source", "unit"),
        labels={"source": SOURCE},
    ),
    Input("s", [1.0, 0.5], "a state of the decoder", ("state",)),
    Input("W1", [[2.0, 0.0], [0.0, 2.0], [1.0, -1.0]], "of the small network", ("inner", "state"), "W_1"),
    Input("W2", [[2.0, 0.0], [0.0, 2.0], [-1.0, 1.0]], "of the small network", ("inner", "unit"), "W_2"),
    Input("v", [1.0, 1.0, -1.0], "of the small network", ("inner",)),
    Input("WQ", [[2.0, 0.0], [0.0, 2.0]], "makes queries", ("width", "state"), "W_Q"),
    Input("WK", [[1.0, 1.0], [0.0, 1.0]], "makes keys", ("width", "unit"), "W_K"),
    Input("WV", [[1.0, 0.0], [0.0, 0.5]], "makes values", ("out", "unit"), "W_V"),
    Input("models", [], "two runs of your own; none: two small ones, trained once", ("model",)),
)


def _work(given: Mapping[str, Value]) -> Work:
    """Small numbers first, then a sentence through two trained models."""
    page = Page(given)
    H, s, W1, W2, v = (tensor(given[name]) for name in ("H", "s", "W1", "W2", "v"))
    WQ, WK, WV = (tensor(given[name]) for name in ("WQ", "WK", "WV"))
    along = dict(given["H"].labels)
    _network(page, by_network(H, s, W1, W2, v), along)
    _product(page, by_product(WQ @ s, H @ WK.T, H @ WV.T), H @ WK.T, WQ @ s, H @ WV.T, along)
    by_hand = torch.softmax(H @ WK.T @ WQ @ s / math.sqrt(len(WQ)), 0) @ H @ WV.T
    page.agree("the formula and the package's attention", by_hand, tensor(page["z"]))
    _through_both(page, given["sentence"].data, list(given["models"].data))
    return page.work()


def _network(page: Page, seen: Mapping[str, Tensor], along: Mapping[str, list[str]]) -> None:
    page.step(
        "RNNsearch: keys and values are the states themselves",
        "The encoder's states are compared as they are, by a small network with a tanh inside, one decoder state after "
        "the other; and they are what is summed up.",
        r"\alpha_s = \softmax(v \cdot \tanh(W_1 s + W_2 \bar{h}_s)) \quad c = \sum_s \alpha_s \bar{h}_s",
        "H s W1 W2 v",
        value("alpha", seen["weights"], "source", r"\alpha", along, "weights"),
        value("c", seen["context"], "unit"),
    )


def _product(
    page: Page, seen: Mapping[str, Tensor], keys: Tensor, query: Tensor, values: Tensor, along: Mapping[str, list[str]]
) -> None:
    page.step(
        "Keys, queries and values of their own",
        "Three matrices instead: what a state is found by and what it gives need not be the same any more.",
        r"q = W_Q s \quad K = H W_K^\top \quad V = H W_V^\top",
        "H s WQ WK WV",
        value("q", query, "width"),
        value("K", keys, "source width", labels=along),
        value("V", values, "source out", labels=along),
    )
    page.step(
        "One product instead of the network",
        "No tanh is left between query and key, so all queries meet all keys in one product of matrices: nothing "
        "waits for the step before.",
        r"a = \softmax(\frac{q K^\top}{\sqrt{d}}) \quad z = a V",
        "q K V",
        value("a", seen["weights"], "source", "a", along, "weights"),
        value("z", seen["context"], "out"),
    )


def _through_both(page: Page, sentence: str, paths: list[str]) -> None:
    if not sentence.split():
        raise ConfigError("sentence: expected some words, got none")
    if paths and len(paths) != 2:
        raise ConfigError(f"models: expected two runs, got {len(paths)}")
    seen = [looked(path, sentence) for path in paths or trained(["rnnsearch", "transformer"])]
    names = [
        f"{i}: {kind}" if seen[0].kind == seen[1].kind else kind for i, kind in enumerate((s.kind for s in seen), 1)
    ]
    matrices = []
    for number, (one, name) in enumerate(zip(seen, names), 1):
        labels = {"target": one.view.rows, "source": one.view.columns}
        weights, symbol = one.view.weights.tolist(), rf"\text{{{name}}}"
        matrices.append(value(f"weights_{number}", weights, "target source", symbol, labels, "weights"))
        wrong = float(np.abs(one.view.weights.sum(1) - 1).max())
        page.agree(f"{name}: the sum of each row of weights and 1", 0.0, wrong, 1e-5)
        if one.difference is not None:
            page.agree(f"{name}: weights times values, and the context that was used", 0.0, one.difference, 1e-5)
    page.step(
        "One sentence through both",
        "Two trained models: a row for each word that was said, a column for each that was read. These are the weights "
        "that the words were said with.",
        "",
        "sentence models",
        *(value(f"said_{i}", one.said, "", rf"\text{{{name}}}") for i, (one, name) in enumerate(zip(seen, names), 1)),
        *matrices,
    )


@dataclass(frozen=True)
class Looked:
    """What a model said, where it looked, and how far weights times values are from the context that it used.

    >>> view = AttentionView("cross.weights", np.array([[0.25, 0.75]]), ["i"], ["je", "suis"])
    >>> Looked("rnnsearch", "i", view, 0.0).view.columns
    ['je', 'suis']
    """

    kind: str
    said: str
    view: AttentionView
    difference: float | None
    """None: the model does not show its values"""


def looked(path: Path | str, sentence: str) -> Looked:
    """One sentence through the model of a run, greedily, with everything that was seen on the way.

    >>> looked("runs/none", "je suis")
    Traceback (most recent call last):
    regard.errors.ModelError: runs/none is not a run: there is no such directory
    """
    model = load(path)
    if not isinstance(model, TranslationModel):
        raise ModelError(f"{path} was trained to {model.recipe.kind()}; this lesson looks into translators")
    with record(model) as trace:
        said = model.translate(sentence, beam=1)
    if not any(crosses(seen) for seen in trace.records if seen.name.endswith("weights")):
        raise ModelError(
            f"{path} is a model of the kind {model.recipe.model.kind}, whose decoder does not attend to its source; "
            "this lesson needs one that does, such as rnnsearch, luong or transformer"
        )
    view = trace.attention()
    stem = view.name.removesuffix("weights")
    weights, contexts = trace.find(view.name), trace.find(f"{stem}context")
    values = trace.find(f"{stem}values") or trace.find("encoder.residual")
    difference = None
    if values and len(weights) == len(contexts):
        first = values[0].data if values[0].data.ndim == 4 else values[0].data[:, None]
        difference = max(apart(w.data @ first, c.data) for w, c in zip(weights, contexts))
    return Looked(model.recipe.model.kind, said, view, difference)


PLAN = Plan(INPUTS, _work)
