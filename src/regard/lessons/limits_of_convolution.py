"""Lesson: limits of convolution over a sequence: a receptive field that grows layer by layer, a length that stays."""

from __future__ import annotations

import math
from functools import cache

import torch
from torch import Tensor

from regard.lessons.engine.builder import MAX_NUMBER, Input, LessonBuilder, value
from regard.lessons.engine.exercises import Exercise
from regard.lessons.engine.reading import Reading
from regard.models.base import Encoder
from regard.models.convolution import ConvolutionConfig
from regard.models.transformer import TransformerConfig
from regard.sequence import Tokens
from regard.spaces import Words
from regard.trace import record

WIDTH = 8
ATTENTION = TransformerConfig(layers=1, width=WIDTH, ffn_width=WIDTH, heads=1, dropout=0.0)

INPUTS = (
    Input("words", 13, "words of a sentence", bounds=(2, 40)),
    Input("layers", 2, "stacked convolutions", bounds=(1, 8)),
    Input("kernel", 3, "words that one filter sees, an odd number", bounds=(1, 15)),
    Input("distance", 20, "distance of two words that belong together", bounds=(1, 100_000)),
    Input("seed", 1, "random seed of the weights", bounds=(0, MAX_NUMBER)),
)


def compute(page: LessonBuilder) -> None:
    """Which words an output depends on, by its gradient; layers that are needed; the length of the output."""
    words, layers, kernel = (page.data(name) for name in ("words", "layers", "kernel"))
    if kernel % 2 == 0:
        raise page.error(f"kernel: expected an odd number, so that a window has a middle; got {kernel}")
    convolution = ConvolutionConfig(layers=layers, width=WIDTH, kernel=kernel, units="gated", dropout=0.0)
    seen = _influence(convolution.build_encoder, words, page.data("seed"))
    full = _influence(ATTENTION.build_encoder, words, page.data("seed"))
    labels = {key: [str(i + 1) for i in range(words)] for key in ("output", "word")}
    middle = words // 2
    page.step(
        "What an output depends on",
        "The package's convolutional encoder, with random weights: the norm of the derivative of each output with "
        "respect to each word. Outside of a band it is exactly 0: what stands there cannot matter.",
        r"\| \frac{\partial y_i}{\partial x_j} \|",
        "words layers kernel seed",
        value("influence", seen, "output word", r"\text{convolution}", labels, "signed"),
        value("field", int((seen[middle] > 0).sum()), "", r"\text{words that reach the middle output}"),
    )
    reach = layers * (kernel - 1) + 1
    page.step(
        "The receptive field",
        "Each layer adds half a kernel on either side. It does not depend on the words.",
        r"\text{layers} \times (\text{kernel} - 1) + 1",
        "layers kernel",
        value("reach", reach, "", r"\text{receptive field}"),
    )
    page.step(
        "One layer of self-attention",
        "Every output depends on every word, whatever their distance.",
        r"\| \frac{\partial y_i}{\partial x_j} \|",
        "words seed",
        value("influence_attention", full, "output word", r"\text{attention}", labels, "signed"),
        value("field_attention", int((full[middle] > 0).sum()), "", r"\text{words that reach the middle output}"),
    )
    _depth(page)
    page.step(
        "The length stays",
        "A convolution gives one output per word: as many as there were words. A translation may be shorter or longer, "
        "and its length is not known before it ends. So a convolution can encode, tag or classify; to generate a "
        "sequence of another length it needs a decoder that stops by itself.",
        r"\text{length}(y) = \text{length}(x)",
        "words layers kernel seed",
        value("length", len(seen), "", r"\text{outputs}"),
    )
    wide = min(words, 2 * (min(middle, words - 1 - middle)) + 1)
    if reach <= wide:
        page.compare("the formula and the measured receptive field", reach, page.data("field"), 0)
    page.compare("words and outputs", words, len(seen), 0)


def _depth(page: LessonBuilder) -> None:
    distance, kernel = page.data("distance"), page.data("kernel")
    plain = math.ceil(2 * distance / (kernel - 1)) if kernel > 1 else math.inf
    dilated = math.ceil(math.log(2 * distance + 1, kernel) - 1e-9) if kernel > 1 else math.inf
    page.step(
        "Layers for a long distance",
        "How many layers until a word can see one at this distance: by plain convolutions it grows with the distance, "
        "by dilated ones (each layer skips more words) with its logarithm; attention needs one.",
        r"\frac{n}{(k - 1) / 2} \quad \log_k (2 n + 1) \quad 1",
        "distance kernel",
        value(
            "depth",
            [_layer_count(plain), _layer_count(dilated), "1"],
            "model",
            r"\text{layers}",
            {"model": ["plain", "dilated", "attention"]},
        ),
    )


def _layer_count(layers: float) -> str:
    return "never" if math.isinf(layers) else str(int(layers))


@cache
def _influence(build: object, words: int, seed: int) -> Tensor:
    """Norms of the derivatives of all outputs with respect to all embeddings."""
    with torch.random.fork_rng(devices=[]), torch.enable_grad():
        torch.manual_seed(seed)
        encoder: Encoder = build(Words(words + 4)).double().eval()  # type: ignore[operator]
        with record(encoder, gradients=True) as trace:
            out = encoder(Tokens.full(torch.arange(4, words + 4)[None])).states.data[0]
        entered = trace.find("*embedding")[0].data
        rows = []
        for i in range(words):
            squares = torch.zeros(words, dtype=torch.float64)
            for unit in range(out.shape[1]):
                (grad,) = torch.autograd.grad(out[i, unit], entered, retain_graph=True)
                squares += grad[0].square().sum(-1)
            rows.append(squares.sqrt())
    return torch.stack(rows).detach()


FIGURE = (
    "words > convolution > influence > field; layers > convolution; kernel > convolution; "
    "words > attention > influence_attention > field_attention"
)
EXERCISES = (
    Exercise(
        "Three layers with a kernel of 5: how many words does an output depend on at most?",
        "reach",
        {"layers": 3, "kernel": 5},
        hint="layers x (kernel - 1) + 1",
    ),
    Exercise(
        "With a kernel of 3, how many plain layers does it take until a word sees one at a distance of 12?",
        lambda lesson: float(lesson.value("depth").data[0]),
        {"distance": 12},
        hint="one word further per layer",
    ),
)
READING = Reading(
    "Limits of convolution: receptive field and fixed length",
    ("receptive field", "kernel size", "dilated convolution", "maximum path length"),
    (
        "Vaswani et al. 2017, Attention is all you need, section 4 and table 1",
        "Gehring et al. 2017, A convolutional encoder model for neural machine translation",
        "Kalchbrenner et al. 2016, Neural machine translation in linear time",
    ),
)
