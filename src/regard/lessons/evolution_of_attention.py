"""Lesson: from a small network that scores encoder states to a matrix product; one sentence through both."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from regard.errors import ConfigError, ModelError
from regard.lessons.attention import single_query_attention
from regard.lessons.bahdanau import SOURCE, additive_attention
from regard.lessons.engine.builder import Input, LessonBuilder, value
from regard.lessons.engine.cached_models import train_missing
from regard.lessons.engine.exercises import Exercise, item
from regard.lessons.engine.layers import max_difference
from regard.lessons.engine.reading import Reading
from regard.lessons.engine.translator import load_translator
from regard.look.attention import AttentionView
from regard.look.decoding_path import is_cross_attention
from regard.run import record

INPUTS = (
    Input("sentence", "je suis étudiant", "source sentence of both models"),
    Input(
        "H",
        [[1.0, 0.0], [0.0, 1.0], [-1.0, 1.0], [0.0, -1.0]],
        "encoder states, one per word",
        ("source", "unit"),
        labels={"source": SOURCE},
    ),
    Input("s", [1.0, 0.5], "a decoder state", ("state",)),
    Input("W1", [[2.0, 0.0], [0.0, 2.0], [1.0, -1.0]], "of the small network", ("inner", "state"), "W_1"),
    Input("W2", [[2.0, 0.0], [0.0, 2.0], [-1.0, 1.0]], "of the small network", ("inner", "unit"), "W_2"),
    Input("v", [1.0, 1.0, -1.0], "of the small network", ("inner",)),
    Input("WQ", [[2.0, 0.0], [0.0, 2.0]], "query weights", ("width", "state"), "W_Q"),
    Input("WK", [[1.0, 1.0], [0.0, 1.0]], "key weights", ("width", "unit"), "W_K"),
    Input("WV", [[1.0, 0.0], [0.0, 0.5]], "value weights", ("out", "unit"), "W_V"),
    Input("models", [], "two runs of your own; default: two small models, trained once", ("model",)),
)


def compute(page: LessonBuilder) -> None:
    """Small numbers first, then a sentence through two trained models."""
    H, s, W1, W2, v, WQ, WK, WV = page.tensors("H s W1 W2 v WQ WK WV")
    _additive(page, additive_attention(H, s, W1, W2, v))
    _dot_product(page, WQ @ s, H @ WK.T, H @ WV.T)
    formula = torch.softmax(H @ WK.T @ WQ @ s / math.sqrt(len(WQ)), 0) @ H @ WV.T
    page.compare("the formula and the package's attention", formula, page.tensor("z"))
    _compare_models(page, list(page.data("models")))


def _additive(page: LessonBuilder, seen: Mapping[str, Tensor]) -> None:
    page.step(
        "RNNsearch: the encoder states are keys and values",
        "The encoder states are compared as they are, by a small network with a tanh, one decoder state after the "
        "other; and they are summed up.",
        r"\alpha_s = \softmax(v \cdot \tanh(W_1 s + W_2 \bar{h}_s)) \quad c = \sum_s \alpha_s \bar{h}_s",
        "H s W1 W2 v",
        value("alpha", seen["weights"], "source", r"\alpha", page.labels("H"), "weights"),
        value("c", seen["context"], "unit"),
    )


def _dot_product(page: LessonBuilder, query: Tensor, keys: Tensor, values: Tensor) -> None:
    seen, labels = single_query_attention(query, keys, values), page.labels("H")
    page.step(
        "Separate keys, queries and values",
        "Three matrices instead: the vector that is compared and the vector that is summed need not be the same.",
        r"q = W_Q s \quad K = H W_K^\top \quad V = H W_V^\top",
        "H s WQ WK WV",
        value("q", query, "width"),
        value("K", keys, "source width", labels=labels),
        value("V", values, "source out", labels=labels),
    )
    page.step(
        "One product instead of the network",
        "Without a tanh between query and key, all queries are compared with all keys in one matrix product: no step "
        "waits for the previous one.",
        r"a = \softmax(\frac{q K^\top}{\sqrt{d}}) \quad z = a V",
        "q K V",
        value("a", seen["weights"], "source", "a", labels, "weights"),
        value("z", seen["context"], "out"),
    )


def _compare_models(page: LessonBuilder, paths: list[str]) -> None:
    page.words("sentence")
    if paths and len(paths) != 2:
        raise ConfigError(f"models: expected two runs, got {len(paths)}")
    found = [
        trace_translation(path, page.data("sentence")) for path in paths or train_missing(["rnnsearch", "transformer"])
    ]
    same = found[0].kind == found[1].kind
    names = [f"{i}: {one.kind}" if same else one.kind for i, one in enumerate(found, 1)]
    outputs, matrices = [], []
    for number, (one, name) in enumerate(zip(found, names), 1):
        labels, symbol = {"target": one.view.rows, "source": one.view.columns}, rf"\text{{{name}}}"
        outputs.append(value(f"output_{number}", one.output, "", symbol))
        weights = one.view.weights.tolist()
        matrices.append(value(f"weights_{number}", weights, "target source", symbol, labels, "weights"))
        wrong = float(np.abs(one.view.weights.sum(1) - 1).max())
        page.compare(f"{name}: the sum of each row of weights and 1", 0.0, wrong, 1e-5)
        if one.difference is not None:
            page.compare(f"{name}: weights times values, and the model's context", 0.0, one.difference, 1e-5)
    page.step(
        "One sentence through both",
        "Two trained models: one row per generated word, one column per source word. These are the attention weights "
        "used to generate the words.",
        "",
        "sentence models",
        *outputs,
        *matrices,
    )


@dataclass(frozen=True)
class TracedTranslation:
    """A model's translation and its cross-attention."""

    kind: str
    output: str
    view: AttentionView
    difference: float | None
    """between weights times values and the model's context; None: the model does not trace its values"""


def trace_translation(path: Path | str, sentence: str) -> TracedTranslation:
    """Translate one sentence greedily with the model of a run, tracing everything."""
    model = load_translator(path)
    with record(model) as trace:
        output = model.translate(sentence, beam=1)
    if not any(is_cross_attention(seen) for seen in trace.records if seen.name.endswith("weights")):
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
        difference = max(max_difference(w.data @ first, c.data) for w, c in zip(weights, contexts))
    return TracedTranslation(model.recipe.model.kind, output, view, difference)


FIGURE = "H > alpha > c; s > alpha; s > q > a; H > K > a; H > V > z; a > z"
EXERCISES = (
    Exercise(
        "With v = [0, 0, 0], what is the weight of each of the four states by the small network?",
        item("alpha", 0),
        {"v": [0, 0, 0]},
        hint="equal scores",
    ),
    Exercise(
        "With W_Q = 0, what is the weight of each state by the matrix product?",
        item("a", 0),
        {"WQ": [[0, 0], [0, 0]]},
        hint="all products are 0",
    ),
)
READING = Reading(
    "The evolution of attention",
    ("alignment network", "query, key, value", "cross-attention"),
    (
        "Bahdanau, Cho and Bengio 2015, section 3.1",
        "Vaswani et al. 2017, Attention is all you need, section 3.2",
    ),
)
