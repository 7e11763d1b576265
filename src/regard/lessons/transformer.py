"""Lesson: an encoder-decoder played step by step: a trained Transformer reads a sentence and says another."""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch
from torch import Tensor

from regard.decode import Beam, score
from regard.lessons.engine.builder import Page
from regard.lessons.engine.inputs import Input, Plan, Work
from regard.lessons.engine.lesson import Value
from regard.lessons.engine.views import Reader
from regard.models.transformer import TransformerEncoder
from regard.sequence import Tokens
from regard.trace import Trace

value = Page.value
LIKELIEST = 5

INPUTS = (
    Input("sentence", "je suis étudiant", "what is read"),
    Input("limit", 12, "words that may be said at most", bounds=(1, 60)),
    Input("shown", 6, "numbers shown of each vector; the model has more", bounds=(1, 64)),
    Input("model", "", "a run of your own; nothing: a small one, trained once"),
)


def _work(given: Mapping[str, Value]) -> Work:
    """Words, vectors, places, the encoder's layers, then the decoder word by word."""
    page = Page(given)
    reader = Reader.of(given["model"].data, "transformer", given["sentence"].data)
    theirs = reader.model.vocabularies.target
    choices, trace = reader.search(Beam(1, eos=theirs.eos), given["limit"].data)
    said = [int(choice.tokens[0]) for choice in choices]
    few = given["shown"].data
    _entrance(page, reader, trace, few)
    _encoder(page, reader, trace, few)
    logs = torch.stack([seen.data[0] for seen in trace.find("logits")]).double().log_softmax(-1)
    _decoder(page, reader, trace, said, logs)
    forced = score(reader.model.module, reader.source, Tokens.of([[theirs.sos, *said]])).tokens[0]
    steps = logs.gather(1, torch.tensor(said)[:, None])[:, 0]
    page.agree("said word by word and read at once, log-probabilities", forced, steps, 1e-4)
    rows = [seen.data.sum(-1) for seen in trace.records if seen.name.endswith("weights")]
    page.agree(
        "the sum of each row of weights and 1", 0.0, float((torch.cat([r.flatten() for r in rows]) - 1).abs().max())
    )
    return page.work()


def _entrance(page: Page, reader: Reader, trace: Trace, few: int) -> None:
    encoder: TransformerEncoder = reader.model.module.encoder  # type: ignore[assignment]
    along, width = {"word": reader.words}, encoder.width
    with torch.no_grad():
        vectors = encoder.embed(reader.source.data)[0]
        places = encoder.entrance.positions(torch.arange(len(reader.words))[None])[0]
    entered = trace.find("encoder.residual")[0].data[0]
    page.step(
        "Words become numbers",
        "Each word is a place in the vocabulary; <EOS> says where the sentence ends.",
        "",
        "sentence model",
        value("ids", reader.source.data[0], "word", r"\text{numbers}", along),
    )
    page.step(
        "Numbers become vectors",
        f"A row of the table of {reader.model.vocabularies.source.size:,} words. Each has {width} numbers; only the "
        "first are shown.",
        "e = E_{\\text{word}}",
        "ids shown",
        value("e", vectors[:, :few], "word width", labels=along),
    )
    page.step(
        "Places are added",
        f"The vector times the root of {width}, so that the place does not drown it, plus the vector of the place.",
        r"x = \sqrt{d} \, e + P",
        "e shown",
        value("P", places[:, :few], "word width", labels=along),
        value("x", entered[:, :few], "word width", labels=along),
    )
    page.agree("the formula and what the encoder was given", vectors * math.sqrt(width) + places, entered, 1e-5)


def _mean(trace: Trace, name: str) -> Tensor:
    """Weights of one layer, the mean of its heads: (query, key)."""
    return trace.find(name)[0].data[0].mean(0)


def _encoder(page: Page, reader: Reader, trace: Trace, few: int) -> None:
    words, before = reader.words, "x"
    both = {"query": words, "key": words}
    layers = len(reader.model.module.encoder.layers)  # type: ignore[arg-type]
    heads = reader.model.recipe.model.heads  # type: ignore[union-attr]
    for layer in range(layers):
        of = f" {layer + 1} of {layers}" if layers > 1 else ""
        page.step(
            f"The encoder looks{f', layer{of}' if of else ''}",
            "Every word asks all words, all at once"
            + (f"; the mean of {heads} heads. " if heads > 1 else ". ")
            + "Then a small network works on each word by itself, and what came in is added again.",
            r"A = \softmax(\frac{Q K^\top}{\sqrt{d}}) \quad x \to x + A V W^O \quad x \to x + \text{FFN}(x)",
            f"{before} sentence shown",
            value(f"A_{layer}", _mean(trace, f"encoder.layers.{layer}.attention.weights"), "query key", "A", both,
                  "weights"),
            value(f"x_{layer}", trace.find(f"encoder.layers.{layer}.residual")[0].data[0, :, :few], "word width", "x",
                  {"word": words}),
        )  # fmt: skip
        before = f"x_{layer}"


def _decoder(page: Page, reader: Reader, trace: Trace, said: list[int], logs: Tensor) -> None:
    layers = len(reader.model.module.encoder.layers) - 1  # type: ignore[arg-type]
    own, cross = (trace.find(f"decoder.layers.{layers}.{name}.weights") for name in ("attention", "cross"))
    heard, spoken = ["<SOS>", *reader.said(said[:-1])], reader.said(said)
    before = f"x_{layers}"
    for t, (word, log_V) in enumerate(zip(spoken, logs), 1):
        best = log_V.topk(min(LIKELIEST, len(log_V)))
        page.step(
            f"Step {t}: after {heard[t - 1]}",
            "The decoder looks at what was said so far and at the whole source; the last vector meets every word of "
            "the vocabulary, and the softmax makes shares. The likeliest word is said, and read at the next step."
            if t == 1
            else "",
            r"p = \softmax(E x)" if t == 1 else "",
            f"{before} sentence",
            value(f"self_{t}", own[t - 1].data[0, :, -1].mean(0), "said", r"\text{looks at said}",
                  {"said": heard[:t]}, "weights"),
            value(f"cross_{t}", cross[t - 1].data[0, :, -1].mean(0), "source", r"\text{looks at read}",
                  {"source": reader.words}, "weights"),
            value(f"p_{t}", best.values.exp(), "word", "p", {"word": reader.said(best.indices.tolist())}, "weights"),
            value(f"y_{t}", word, "", f"y_{{{t}}}"),
        )  # fmt: skip
        before = f"x_{layers} y_{t}"
    ended = said[-1] == reader.model.vocabularies.target.eos
    looked = torch.stack([seen.data[0, :, -1].mean(0) for seen in cross])
    page.step(
        "What was said",
        "It ended by itself, with <EOS>." if ended else "The limit came before <EOS>.",
        "",
        f"y_{len(said)} limit sentence",
        value("said", reader.text(said), "", r"\text{said}"),
        value("cross", looked, "target source", r"\text{where it looked}",
              {"target": spoken, "source": reader.words}, "weights"),
    )  # fmt: skip


PLAN = Plan(INPUTS, _work)
