"""Lesson: a trained Transformer translates a sentence, step by step."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from regard.decode import Beam, score
from regard.lessons.engine.builder import Input, LessonBuilder, value
from regard.lessons.engine.exercises import Exercise
from regard.lessons.engine.reading import Reading
from regard.lessons.engine.translator import LessonTranslator
from regard.models.transformer import TransformerEncoder
from regard.sequence import Tokens
from regard.trace import Trace

TOP = 5

INPUTS = (
    Input("sentence", "je suis étudiant", "source sentence"),
    Input("limit", 12, "most words to generate", bounds=(1, 60)),
    Input("shown", 6, "components shown of each vector; the model has more", bounds=(1, 64)),
    Input("model", "", "a run of your own; default: a small model, trained once"),
)


def compute(page: LessonBuilder) -> None:
    """Words, vectors, positions, the encoder layers, then the decoder word by word."""
    reader = LessonTranslator.load(page.data("model"), "transformer", page.data("sentence"))
    target = reader.model.vocabularies.target
    choices, trace = reader.search(Beam(1, eos=target.eos), page.data("limit"))
    output = [int(choice.tokens[0]) for choice in choices]
    _embedding(page, reader, trace)
    _encoder(page, reader, trace)
    logs = torch.stack([seen.data[0] for seen in trace.find("logits")]).double().log_softmax(-1)
    _decoder(page, reader, trace, output, logs)
    forced = score(reader.model.module, reader.source, Tokens.pad([[target.sos, *output]])).tokens[0]
    log_probs = logs.gather(1, torch.tensor(output)[:, None])[:, 0]
    page.compare("log-probabilities, decoded and teacher-forced", forced, log_probs, 1e-4)
    sums = torch.cat([seen.data.sum(-1).flatten() for seen in trace.records if seen.name.endswith("weights")])
    page.compare("the sum of each row of weights and 1", 0.0, float((sums - 1).abs().max()))


def _embedding(page: LessonBuilder, reader: LessonTranslator, trace: Trace) -> None:
    encoder: TransformerEncoder = reader.model.module.encoder  # type: ignore[assignment]
    labels, width, shown = {"word": reader.words}, encoder.width, page.data("shown")
    with torch.no_grad():
        vectors = encoder.embed(reader.source.data)[0]
        places = encoder.input_embedding.positions(torch.arange(len(reader.words))[None])[0]
    entered = trace.find("encoder.residual")[0].data[0]
    page.step(
        "Words become ids",
        "Each word is an index into the vocabulary; <EOS> marks the end of the sentence.",
        "",
        "sentence model",
        value("ids", reader.source.data[0], "word", r"\text{ids}", labels),
    )
    page.step(
        "Ids become vectors",
        f"A row of the embedding table of {reader.model.vocabularies.source.size:,} words. Each has {width} "
        "components; only the first are shown.",
        "e = E_{\\text{word}}",
        "ids shown",
        value("e", vectors[:, :shown], "word width", labels=labels),
    )
    page.step(
        "Positions are added",
        f"The vector times the square root of {width}, so that the position does not dominate, plus the position "
        "vector.",
        r"x = \sqrt{d} \, e + P",
        "e shown",
        value("P", places[:, :shown], "word width", labels=labels),
        value("x", entered[:, :shown], "word width", labels=labels),
    )
    page.compare("the formula and the input of the encoder", vectors * math.sqrt(width) + places, entered, 1e-5)


def _encoder(page: LessonBuilder, reader: LessonTranslator, trace: Trace) -> None:
    words, using = reader.words, "x"
    layers = len(reader.model.module.encoder.layers)  # type: ignore[arg-type]
    heads = reader.model.recipe.model.heads  # type: ignore[union-attr]
    for layer in range(layers):
        weights = trace.find(f"encoder.layers.{layer}.attention.weights")[0].data[0].mean(0)
        states = trace.find(f"encoder.layers.{layer}.residual")[0].data[0, :, : page.data("shown")]
        page.step(
            f"Encoder self-attention{f', layer {layer + 1} of {layers}' if layers > 1 else ''}",
            "Every word attends to all words, in parallel"
            + (f"; the mean of {heads} heads. " if heads > 1 else ". ")
            + "Then a feed-forward network processes each word separately; residual connections add the inputs.",
            r"A = \softmax(\frac{Q K^\top}{\sqrt{d}}) \quad x \to x + A V W^O \quad x \to x + \text{FFN}(x)",
            f"{using} sentence shown",
            value(f"A_{layer}", weights, "query key", "A", {"query": words, "key": words}, "weights"),
            value(f"x_{layer}", states, "word width", "x", {"word": words}),
        )
        using = f"x_{layer}"


def _decoder(page: LessonBuilder, reader: LessonTranslator, trace: Trace, output: list[int], logs: Tensor) -> None:
    last = len(reader.model.module.encoder.layers) - 1  # type: ignore[arg-type]
    own, cross = (
        [seen.data[0, :, -1].mean(0) for seen in trace.find(f"decoder.layers.{last}.{name}.weights")]
        for name in ("attention", "cross")
    )
    inputs, outputs = ["<SOS>", *reader.target_words(output[:-1])], reader.target_words(output)
    source = {"source": reader.words}
    using = f"x_{last}"
    for t, (word, log_V) in enumerate(zip(outputs, logs), 1):
        best = log_V.topk(min(TOP, len(log_V)))
        top = {"word": reader.target_words(best.indices.tolist())}
        page.step(
            f"Step {t}: after {inputs[t - 1]}",
            "The decoder attends to the words generated so far and to the whole source; the last vector is multiplied "
            "by the embedding of every word of the vocabulary, and the softmax gives probabilities. The most probable "
            "word is generated, and is the input of the next step."
            if t == 1
            else "",
            r"p = \softmax(E x)" if t == 1 else "",
            f"{using} sentence",
            value(f"self_{t}", own[t - 1], "target", r"\text{self-attention}", {"target": inputs[:t]}, "weights"),
            value(f"cross_{t}", cross[t - 1], "source", r"\text{cross-attention}", source, "weights"),
            value(f"p_{t}", best.values.exp(), "word", "p", top, "weights"),
            value(f"y_{t}", word, "", f"y_{{{t}}}"),
        )
        using = f"x_{last} y_{t}"
    ended = output[-1] == reader.model.vocabularies.target.eos
    page.step(
        "The output",
        "It ended by itself, with <EOS>." if ended else "The limit was reached before <EOS>.",
        "",
        f"y_{len(output)} limit sentence",
        value("output", reader.text(output), "", r"\text{output}"),
        value("cross", torch.stack(cross), "target source", r"\text{cross-attention}", {"target": outputs, **source},
              "weights"),
    )  # fmt: skip


FIGURE = "sentence > ids > e > x > encoder > decoder > y_1 > decoder#2"
EXERCISES = (
    Exercise(
        "With limit=1, how many words does the decoder generate?",
        lambda lesson: sum(value.name.startswith("y_") for step in lesson.steps for value in step.results),
        {"limit": 1},
        hint="one step, one word",
    ),
    Exercise(
        "What is the sum of the cross-attention weights of the first step?",
        lambda lesson: sum(lesson.value("cross_1").data),
        hint="a softmax",
    ),
)
READING = Reading(
    "The encoder-decoder step by step",
    ("encoder", "decoder", "embedding", "greedy decoding", "teacher forcing"),
    ("Vaswani et al. 2017, Attention is all you need, section 3 and figure 1",),
)
