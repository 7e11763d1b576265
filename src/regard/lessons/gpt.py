"""Lesson: one decoder block of a GPT by hand, the causal mask, and why a KV cache changes no result."""

from __future__ import annotations

import torch
from torch import Tensor

from regard.lessons.engine.builder import Input, LessonBuilder, value
from regard.lessons.engine.exercises import Exercise
from regard.lessons.engine.layers import max_difference
from regard.lessons.engine.reading import Reading
from regard.lessons.engine.small_gpt import Pass, multiplications, package_model, read_tokens, recompute
from regard.models.base import EncoderDecoder

INNER = 4
"""width of the feed-forward network over the model's width, as in GPT"""
GPT2 = {"layers": 12, "width": 768, "words": 50_257}

INPUTS = (
    Input("text", "the cat sat on the", "the text so far; try dog instead of cat"),
    Input("vocabulary", ["the", "cat", "dog", "sat", "on", "mat", "rug", "."], "all words", ("word",)),
    Input(
        "E",
        [[-1.5, 0.5, -2, 2.5], [2, 0, -1, 0], [1.5, -1, -1, 0.5], [1.5, -2, 2, -0.5], [0.5, 2, -0.5, -2.5],
         [-3, 2, 0.5, 0.5], [-1.5, 0.5, 2.5, -1.5], [-2, -1.5, 2, 2]],
        "word embeddings; also the output layer", ("word", "width"),
    ),
    Input(
        "P",
        [[0.0, -0.5, 0, 0.5], [-1, 0, 2, -0.5], [0, 1.5, -3, 1], [-0.5, -0.5, 0.5, 1], [-0.5, 1, 0, -0.5],
         [0, -0.5, 0.5, 0.5]],
        "position embeddings: as many as the context is long", ("place", "width"),
    ),
    Input("WQ", [[0.0, 0.5, 1, -1.5], [0.5, 0.5, -0.5, -0.5], [0, 0, 0, 0], [0, 0.5, -1, 0]], "query weights",
          ("out", "width"), "W_Q"),
    Input("WK", [[0.5, 0.5, -1, 0.5], [1, -0.5, -0.5, -0.5], [0, 0, 0, 0], [0.5, -0.5, 0.5, 0]], "key weights",
          ("out", "width"), "W_K"),
    Input("WV", [[0.0, 0.5, 0, -0.5], [1, 0.5, -1, 0], [0.5, 0.5, 0, -1], [0, 0, 0, 0]], "value weights",
          ("out", "width"), "W_V"),
    Input("WO", [[-0.5, -0.5, -0.5, 0], [0, -1, 0.5, 0], [-0.5, 0.5, -0.5, 0], [0.5, 1, 0.5, 0]], "output weights",
          ("width", "out"), "W_O"),
    Input(
        "W1",
        [[-1.0, 0, 1, 0], [-0.5, 1.5, 0, -0.5], [-0.5, 0.5, 0, -0.5], [0, 0, 0, 0], [0, -1, -0.5, 0.5],
         [-0.5, 1, 0, -0.5], [0, 0, 0, 0], [0.5, 1, -1.5, 0], [0, 0.5, 0.5, -0.5], [0, -0.5, 0, 0.5],
         [0.5, -0.5, -1, 0.5], [0, 0, 0, 0], [0, 0.5, 0.5, -0.5], [-0.5, 0, 0.5, 0], [0.5, 0, -0.5, -0.5],
         [-0.5, 0.5, 0.5, -0.5]],
        "feed-forward weights, to four times the width", ("inner", "width"), "W_1",
    ),
    Input(
        "W2",
        [[0.0, 0, 0, 0, 1, 0, 0, -0.5, 0, 0.5, 1, 0, 0, 0, 0, 0],
         [0.5, -1, -0.5, 0, 0, -1, 0, 1, -0.5, 0, 0.5, 0, -0.5, 0, 0.5, -0.5],
         [-1, 1, 0.5, 0, -0.5, 1, 0, 0.5, 0, -0.5, 0, 0, 0, -0.5, -0.5, 0],
         [0.5, 0, 0, 0, 0, -0.5, 0, -1, 0.5, 0, -0.5, 0, 0.5, 0.5, 0, 1]],
        "and back", ("width", "inner"), "W_2",
    ),
    Input("n", 64, "tokens to generate, for the count of multiplications", bounds=(1, 1024)),
)  # fmt: skip


def compute(page: LessonBuilder) -> None:
    """A pre-norm block of one head on a short text, then a token more, with and without the cache."""
    words, vocabulary = page.words("text"), page.data("vocabulary")
    ids = _ids(page, words, vocabulary)
    model = package_model({name: page.tensor(name) for name in ("E", "P", "WQ", "WK", "WV", "WO", "W1", "W2")})
    seen = read_tokens(model, ids)
    formula = recompute({name: page.tensor(name) for name in ("E", "P", "WQ", "WK", "WV", "WO", "W1", "W2")}, ids)
    labels = {"position": words}
    _input(page, formula, labels)
    _attention(page, formula, seen, words)
    _feed_forward(page, formula, seen, labels)
    _logits(page, seen, words)
    _append(page, model, seen, ids)
    _count(page, page.tensor("E"))
    page.compare("the block by its formulas, and the package's GPT: logits", formula.logits, seen.logits, 1e-9)
    page.expect("what follows: the cat sat on the", "mat", "next", 0)
    page.expect("weight of cat for the last word", 0.9220, "on_cat", 5e-5)
    page.expect("multiplications with the cache", 30_976, "with_cache", 0)


def _ids(page: LessonBuilder, words: list[str], vocabulary: list[str]) -> list[int]:
    """Rows of the embedding table; an error where the inputs do not fit each other."""
    E, P, WQ, W1 = page.tensors("E P WQ W1")
    if unknown := [word for word in words if word not in vocabulary]:
        raise page.error(f'text: expected words of {", ".join(vocabulary)}, got "{unknown[0]}"')
    if len(words) >= len(P):
        raise page.error(
            f"text: expected at most {len(P) - 1} words, since one more is appended and P has {len(P)} positions; "
            f"got {len(words)}"
        )
    if WQ.shape[0] != WQ.shape[1]:
        raise page.error(f"WQ: expected as many rows as columns, since there is one head; got {len(WQ)} rows")
    if len(W1) != INNER * E.shape[1]:
        raise page.error(f"W1: expected {INNER * E.shape[1]} rows, four times the width, got {len(W1)}")
    return [vocabulary.index(word) for word in words]


def _tidy(x: Tensor) -> Tensor:
    """Rounding errors around 0 are shown as 0."""
    return x.round(decimals=12) + 0.0


def _input(page: LessonBuilder, formula: Pass, labels: dict[str, list[str]]) -> None:
    page.step(
        "Embedding plus position",
        "The smallest GPT with a use: one block, one head, width 4, weights that are multiples of a half, found by "
        "training on two sentences (the cat sat on the mat, the dog sat on the rug). Each word selects a row of E, "
        "each position a row of P; their sum enters the residual stream.",
        "x_t = E_{w_t} + P_t",
        "text vocabulary E P",
        value("x", formula.x, "position width", labels=labels),
    )
    page.step(
        "Layer normalization comes first",
        "GPT-2 is pre-norm: what attention reads is normalized to mean 0 and variance 1, and the residual stream "
        "itself is left as it is. Gains are 1 and biases 0 here; a trained GPT-2 learns them.",
        r"n_t = \frac{x_t - \text{mean}(x_t)}{\sqrt{\text{variance}(x_t) + 10^{-5}}}",
        "x",
        value("normed", formula.normed, "position width", "n", labels),
    )
    page.step(
        "Queries, keys and values",
        "Three matrices give each position a query, a key and a value. Each is computed from its own position alone.",
        r"Q = n W_Q^\top \quad K = n W_K^\top \quad V = n W_V^\top",
        "normed WQ WK WV",
        value("Q", _tidy(formula.queries), "position out", labels=labels),
        value("K", _tidy(formula.keys), "position out", labels=labels),
        value("V", _tidy(formula.values), "position out", labels=labels),
    )


def _attention(page: LessonBuilder, formula: Pass, seen: Pass, words: list[str]) -> None:
    labels, square = {"position": words}, {"query": words, "key": words}
    mask = torch.ones(len(words), len(words)).tril()
    page.step(
        "The causal mask",
        "A position may attend to itself and to earlier positions (1), never to later ones (0): those are what it has "
        "to predict. So one pass over a text trains every position at once, without any of them seeing its answer.",
        r"\text{mask}_{ts} = 1 \text{ if } s \le t",
        "text",
        value("mask", mask.int(), "query key", r"\text{mask}", square),
    )
    page.step(
        "Attention weights",
        "Scores where the mask is 0 become minus infinity, and the softmax makes them 0. The last word attends to the "
        "animal, which decides what comes next.",
        r"A = \softmax(\frac{Q K^\top}{\sqrt{d}} + \log \text{mask})",
        "Q K mask vocabulary",
        value("A", seen.weights, "query key", "A", square, "weights"),
        value("on_cat", seen.weights[-1, min(1, len(words) - 1)], "", r"\text{last row, second word}"),
    )
    page.step(
        "Output, and the residual connection",
        "The weighted sum of the values, through the output matrix, is added to what was there before.",
        r"x' = x + A V W_O^\top",
        "x A V WO",
        value("x_mid", formula.middle, "position width", "x'", labels),
    )
    page.compare("the formulas and the package's attention: weights", formula.weights, seen.weights, 1e-9)
    page.compare("the weights of each row sum to 1", 0.0, max_difference(seen.weights.sum(1), torch.ones(len(words))))


def _feed_forward(page: LessonBuilder, formula: Pass, seen: Pass, labels: dict[str, list[str]]) -> None:
    page.step(
        "The feed-forward network",
        "The second half of the block, for each position separately: normalize, widen four times, GELU, back, add.",
        r"x'' = x' + W_2 \, \text{GELU}(W_1 \, \text{norm}(x'))",
        "x_mid W1 W2",
        value("inner", formula.inner, "position inner", r"\text{GELU}", labels, "signed"),
        value("x_out", seen.out, "position width", "x''", labels),
    )


def _logits(page: LessonBuilder, seen: Pass, words: list[str]) -> None:
    vocabulary = page.data("vocabulary")
    labels = {"position": words, "word": vocabulary}
    page.step(
        "Logits: one score per word",
        "A last normalization, then the product with every row of the embedding table, which is used a second time. "
        "The softmax turns each row into probabilities of the next word: after the first word cat and dog are nearly "
        "even, and the last row decides.",
        r"p = \softmax(\text{norm}(x'') E^\top)",
        "x_out E vocabulary",
        value("logits", seen.logits, "position word", r"\text{logits}", labels),
        value("p", seen.logits.softmax(1), "position word", "p", labels, "weights"),
        value("next", vocabulary[int(seen.logits[-1].argmax())], "", r"\text{next word}"),
    )


def _append(page: LessonBuilder, model: EncoderDecoder, seen: Pass, ids: list[int]) -> None:
    vocabulary, words = page.data("vocabulary"), page.words("text")
    more = [*ids, int(seen.logits[-1].argmax())]
    longer, stepwise = read_tokens(model, more), read_tokens(model, more, one_by_one=True)
    labels = {"position": [*words, page.data("next")]}
    page.step(
        "A word is appended",
        "The predicted word becomes input, and everything is computed again. The causal mask hides it from all earlier "
        "positions: their keys and values are the same as before. Only the last row is new.",
        r"K_t, V_t \text{ depend on } w_1 \ldots w_t \text{ only}",
        "text next K V",
        value("K_longer", _tidy(longer.keys), "position out", "K", labels),
        value("V_longer", _tidy(longer.values), "position out", "V", labels),
        value("K_moved", max_difference(longer.keys[:-1], seen.keys), "", r"\text{K: largest change}"),
        value("V_moved", max_difference(longer.values[:-1], seen.values), "", r"\text{V: largest change}"),
    )
    page.step(
        "So they are kept: the KV cache",
        "With the old keys and values in memory, a step reads one word: one query, one new key, one new value. The "
        "package's GPT, word by word with its cache, gives the same logits as the whole text at once.",
        r"q_t \text{ against } [K_{\text{cache}}; k_t]",
        "K_longer V_longer E vocabulary",
        value("recomputed", longer.logits[-1], "word", r"\text{recomputed}", {"word": vocabulary}),
        value("cached", stepwise.logits[-1], "word", r"\text{with the cache}", {"word": vocabulary}),
        value("after_next", vocabulary[int(stepwise.logits[-1].argmax())], "", r"\text{and then}"),
    )
    moved = max(page.data("K_moved"), page.data("V_moved"))
    page.compare("keys and values of earlier positions, before and after", 0.0, moved, 1e-12)
    page.compare("logits of all positions, recomputed and with the cache", longer.logits, stepwise.logits, 1e-9)


def _count(page: LessonBuilder, E: Tensor) -> None:
    n, (words, width) = page.data("n"), E.shape
    rows = {cached: [multiplications(t, width, words, cached) for t in range(1, n + 1)] for cached in (False, True)}
    labels = {"method": ["recomputed", "with cache"], "step": [str(t) for t in range(1, n + 1)]}
    page.step(
        "What the cache saves",
        "Multiplications of matrices at step t, for a text of t words: 12 d^2 for the six matrices and 2 d t for "
        "scores and sums at each position that is computed, and d for each word of the output layer. Without a cache "
        "all t positions are computed again at every step.",
        r"\sum_{s \le t} (12 d^2 + 2 d s) + d \cdot \text{words} \quad 12 d^2 + 2 d t + d \cdot \text{words}",
        "E n",
        value("per_step", [rows[False], rows[True]], "method step", r"\text{multiplications}", labels, "line"),
        value("without_cache", sum(rows[False]), "", r"\text{in all, recomputed}"),
        value("with_cache", sum(rows[True]), "", r"\text{in all, with the cache}"),
        value("factor", sum(rows[False]) / sum(rows[True]), "", r"\text{recomputed} / \text{cache}"),
    )
    big = [sum(multiplications(t, **GPT2, cached=cached) for t in range(1, n + 1)) for cached in (False, True)]
    held = 2 * GPT2["layers"] * GPT2["width"]
    page.step(
        "The same for GPT-2",
        "Its smallest size: 12 layers of width 768 and 50,257 words. The price is memory: two vectors per layer and "
        "token, here as bytes in float32.",
        r"2 \cdot \text{layers} \cdot d \cdot 4 \text{ bytes}",
        "n",
        value("gpt2_without", big[0], "", r"\text{multiplications, recomputed}"),
        value("gpt2_with", big[1], "", r"\text{with the cache}"),
        value("gpt2_factor", big[0] / big[1], "", r"\text{recomputed} / \text{cache}"),
        value("gpt2_held", held, "", r"\text{numbers in the cache per token}"),
        value("gpt2_bytes", 4 * held * n, "", r"\text{bytes after n tokens}"),
    )


FIGURE = (
    "x > normed > Q > A; normed > K > A; normed > V > x_mid; A > x_mid; x > x_mid > inner > x_out > "
    "logits > p > next; x_mid > x_out"
)
EXERCISES = (
    Exercise(
        'After "the dog sat on the", which word is next?',
        "next",
        {"text": "the dog sat on the"},
        hint="not mat",
    ),
    Exercise(
        "With n = 2 generated words, how many times fewer products does the cache need? Two decimals.",
        "factor",
        {"n": 2},
        hint="the products of all steps without the cache, divided by those with it",
    ),
)
READING = Reading(
    "One GPT block by hand: causal mask, logits, and the KV cache",
    ("decoder-only Transformer", "causal mask", "KV cache", "pre-norm", "language model"),
    (
        "Radford et al. 2018, Improving language understanding by generative pre-training",
        "Radford et al. 2019, Language models are unsupervised multitask learners",
    ),
)
