"""Lesson: the stack of a Transformer, layer by layer: x to z to r, and keys and values for every decoder layer."""

from __future__ import annotations

from functools import cache

import torch
from torch import Tensor
from torch.nn import functional as F

from regard.lessons.engine.builder import MAX_NUMBER, Input, LessonBuilder, value
from regard.lessons.engine.exercises import Exercise
from regard.lessons.engine.layers import max_difference
from regard.lessons.engine.reading import Reading
from regard.lessons.proverbs import WordList
from regard.models.base import EncoderDecoder, parameters
from regard.models.presets import PRESETS
from regard.models.transformer import TransformerConfig
from regard.sequence import SOS, Tokens
from regard.spaces import Words
from regard.trace import Trace, record

WIDTH, INNER, HEADS, MAX_LAYERS = 4, 8, 2, 6
TARGET = "je pense"

INPUTS = (
    Input("sentence", "Thinking Machines", "source sentence"),
    Input("layers", 2, "layers of the encoder, and of the decoder", bounds=(1, MAX_LAYERS)),
    Input("norm", "post", "where the normalization stands", choices=("post", "pre")),
    Input("seed", 1, "random seed of the weights", bounds=(0, MAX_NUMBER)),
)


def compute(page: LessonBuilder) -> None:
    """An untrained Transformer of the package: all values between its sublayers, recorded."""
    sentence, layers, norm = page.words("sentence"), page.data("layers"), page.data("norm")
    source, target = WordList.of([page.data("sentence")]), WordList.of([TARGET])
    size = max(source.size, target.size)
    model = random_transformer(size, layers, norm, page.data("seed"))
    read = Tokens.pad([source.ids(page.data("sentence"))])
    with record(model) as trace, torch.no_grad():
        model(read, Tokens.pad([[SOS, *target.ids(TARGET)]]))
    labels = {"word": sentence}
    x = trace.find("encoder.residual")[0].data[0]
    page.step(
        "The input of the stack",
        f"Embedding plus position: a vector of width {WIDTH} per word. The model is not trained; its weights are "
        "random, and what is shown is what happens to the vectors.",
        "x = e + P",
        "sentence seed norm layers",
        value("x", x, "word width", labels=labels, look="signed"),
    )
    worst = _encoder(page, trace, model, x, labels)
    _decoder(page, trace)
    _spread(page, trace)
    _count(page)
    page.compare("each layer by its formula and as recorded", 0.0, worst, 1e-5)


@cache
def random_transformer(words: int, layers: int, norm: str, seed: int) -> EncoderDecoder:
    """A Transformer with random weights."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        config = TransformerConfig(
            layers=layers,
            width=WIDTH,
            ffn_width=INNER,
            heads=HEADS,
            dropout=0.0,
            norm=norm,  # type: ignore[arg-type]
        )
        return config.build(Words(words), Words(words)).eval().requires_grad_(False)


def _encoder(
    page: LessonBuilder, trace: Trace, model: EncoderDecoder, x: Tensor, labels: dict[str, list[str]]
) -> float:
    using, worst = "x", 0.0
    post = page.data("norm") == "post"
    for i, layer in enumerate(model.encoder.layers):  # type: ignore[arg-type]
        path = f"encoder.layers.{i}"
        sums = trace.find(f"{path}.attention_norm.residual_sum")[0].data[0]
        middle = trace.find(f"{path}.attention_norm.norm.normalized")[0].data[0] if post else sums
        final = trace.find(f"{path}.ffn_norm.residual_sum")[0].data[0]
        out = trace.find(f"{path}.residual")[0].data[0]
        attended = sums - x
        page.step(
            f"Encoder layer {i + 1}: self-attention, add and norm",
            "Every word attends to all words: z. It is added to x, and the sum is normalized."
            if post
            else "The normalized words attend to each other: z. It is added to x, which is not normalized itself.",
            r"z = \text{Attention}(x) \quad n = \text{LayerNorm}(x + z)"
            if post
            else r"n = x + \text{Attention}(\text{LayerNorm}(x))",
            f"{using} sentence norm seed",
            value(f"z_{i + 1}", attended, "word width", f"z^{{{i + 1}}}", labels),
            value(f"n_{i + 1}", middle, "word width", f"n^{{{i + 1}}}", labels),
        )
        page.step(
            f"Encoder layer {i + 1}: feed-forward network, add and norm",
            "Each word by itself. The result r is as wide as x was, so the next layer can read it." if i == 0 else "",
            r"r = \text{LayerNorm}(n + \text{FFN}(n))" if post else r"r = n + \text{FFN}(\text{LayerNorm}(n))",
            f"n_{i + 1} norm seed",
            value(f"r_{i + 1}", out, "word width", f"r^{{{i + 1}}}", labels, "signed"),
        )
        ffn = layer.ffn(middle[None] if post else layer.ffn_norm.norm(middle[None]))[0]
        written = middle + ffn
        written = (
            F.layer_norm(written, (WIDTH,), layer.ffn_norm.norm.weight, layer.ffn_norm.norm.bias) if post else written
        )
        worst = max(worst, max_difference(written, out), max_difference(middle + ffn, final))
        x, using = out, f"r_{i + 1}"
    return worst


def _decoder(page: LessonBuilder, trace: Trace) -> None:
    layers = page.data("layers")
    keys = torch.stack([trace.find(f"decoder.layers.{i}.cross.keys")[0].data[0, 0] for i in range(layers)])
    words = {"word": page.data("sentence").split()}
    page.step(
        "Keys and values for every decoder layer",
        "All layers of the decoder get the output of the last encoder layer, and each makes keys and values of its own "
        "from it, once per sentence. First head of each.",
        r"K = r W_K^\top \quad V = r W_V^\top",
        f"r_{layers} sentence seed norm layers",
        *(value(f"K_{i + 1}", keys[i], "word width", f"K^{{{i + 1}}}", words) for i in range(layers)),
    )


def _spread(page: LessonBuilder, trace: Trace) -> None:
    layers = page.data("layers")
    rows = [trace.find("encoder.residual")[0], *(trace.find(f"encoder.layers.{i}.residual")[0] for i in range(layers))]
    spread = [float(seen.data[0].std(-1, correction=0).mean()) for seen in rows]
    page.step(
        "Size of the vectors",
        "Mean deviation of a word's numbers, before the first layer and after each. Post-norm ends every layer with a "
        "deviation of 1; pre-norm lets it grow and needs one more norm at the end of the stack.",
        r"\sigma",
        f"x r_{layers} norm",
        value("spread", spread, "layer", r"\sigma", {"layer": [str(i) for i in range(layers + 1)]}, "line"),
    )


def _count(page: LessonBuilder) -> None:
    with torch.device("meta"):
        built = TransformerConfig(layers=page.data("layers")).build(Words(37_000), Words(37_000))
    page.step(
        "The paper's stack",
        "A Transformer of the paper's base width, 512, with as many layers as above and one tied vocabulary of 37,000 "
        "words; the paper has 6 + 6 layers.",
        "",
        "layers",
        value("count", parameters(built), "", r"\text{parameters}"),
        value("paper", PRESETS["transformer-base"].parameters, "", r"\text{parameters of 6 + 6 layers}"),
    )


FIGURE = (
    "x > self-attention > z_1 > add > LayerNorm > n_1 > feed-forward > add#2 > LayerNorm#2 > r_1 > layer 2 > K and V > "
    "decoder layers; "
    "x > add; n_1 > add#2"
)
EXERCISES = (
    Exercise(
        "After a post-norm layer, what is the mean deviation of a word's numbers?",
        lambda lesson: lesson.value("spread").data[-1],
        hint="the norm divides by it, and gain and shift are still 1 and 0",
    ),
    Exercise(
        "How many parameters has the paper's base model with 6 layers on each side and one vocabulary of 37,000 words?",
        "count",
        {"layers": 6},
        hint="regard lesson stack layers=6",
        tolerance=0.5,
    ),
)
READING = Reading(
    "The stack of encoders and decoders, post-norm as in the slides",
    ("encoder stack", "decoder stack", "sublayer", "post-norm", "cross-attention"),
    (
        "Vaswani et al. 2017, Attention is all you need, section 3.1 and figure 1",
        "Xiong et al. 2020, On layer normalization in the Transformer architecture",
    ),
)
