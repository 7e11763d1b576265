"""Lesson: an encoder-decoder translates a proverb through one vector, word by word."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import torch
from torch import Tensor

from regard.decode import Beam, decode, score
from regard.lessons.engine.builder import Input, LessonBuilder, value
from regard.lessons.engine.exercises import Exercise
from regard.lessons.engine.reading import Reading
from regard.lessons.proverbs import ENGLISH, SPANISH, WordList
from regard.models.base import Encoder, EncoderDecoder
from regard.models.seq2seq import Seq2SeqConfig
from regard.sequence import EOS, SOS, Memory, Tokens
from regard.spaces import Words
from regard.trace import record

WIDTH, STEPS, TOP = 12, 120, 4

INPUTS = (
    Input("sentence", SPANISH[0], "source sentence; the vocabulary is that of the four proverbs"),
    Input("scale", 1.0, "factor of the context: 0 removes it", bounds=(-10, 10)),
    Input("limit", 12, "most words to generate", bounds=(1, 50)),
)


def compute(page: LessonBuilder) -> None:
    """Encode, pass on the final state, decode until <EOS>, with the package's model and decoding loop."""
    source, target, trained = train_on_proverbs()
    page.words("sentence")
    ids = source.ids(page.data("sentence"))
    model = EncoderDecoder(ScaledEncoder(trained.encoder, page.data("scale")), trained.decoder)
    read = Tokens.pad([ids])
    with record(model) as trace, torch.no_grad():
        memory = model.encoder(read)
    states = torch.cat([seen.data for seen in trace.find("encoder.inner.*.hidden")])
    page.step(
        "The encoder reads",
        f"A GRU of {WIDTH} units, trained just now on the four proverbs only. After each word its hidden state "
        "summarizes all words so far; its size does not depend on the length of the sentence.",
        "h_t = f(h_{t-1}, x_t)",
        "sentence",
        value("h_all", states, "word unit", "h_t", {"word": source.words(ids)}),
    )
    page.step(
        "The context",
        "The last hidden state is all that the decoder gets: a whole sentence in a fixed number of values.",
        r"c = \text{scale} \cdot h_T",
        "h_all scale",
        value("context", memory.final[0][0][0], "unit", "c"),
    )
    output, log_probs = _decode(page, target, model, read)
    if output[-1] == EOS:
        forced = score(model, read, Tokens.pad([[SOS, *output]])).tokens[0]
        page.compare("log-probabilities, decoded and teacher-forced", forced, log_probs.double(), 1e-4)
    page.expect("the proverb in English", [*ENGLISH[0].split(), "<EOS>"], "output")


def _decode(page: LessonBuilder, target: WordList, model: EncoderDecoder, read: Tokens) -> tuple[list[int], Tensor]:
    """Generated ids and their log-probabilities."""
    output: list[int] = []
    with record(model) as trace:
        for choice in decode(model, read, Tokens.pad([[SOS]]), Beam(1), torch.tensor([page.data("limit")])):
            output.append(int(choice.tokens.flatten()[0]))
    logs = torch.stack([seen.data[0].log_softmax(-1) for seen in trace.find("logits")])
    states = torch.stack([seen.data[0, -1] for seen in trace.find("decoder.features")])
    using = "context"
    for t, (word, log_V, state_D) in enumerate(zip(output, logs, states), 1):
        best = log_V.topk(TOP)
        previous = "<SOS>" if t == 1 else target.words(output[t - 2 : t - 1])[0]
        page.step(
            f"Step {t}: after {previous}",
            "The decoder's hidden state is computed from the context and the previous word. The most probable words, "
            "and the one that is generated; it is the input of the next step."
            if t == 1
            else "",
            r"s_t = f(s_{t-1}, y_{t-1}), s_0 = c \quad p(y_t) = \softmax(W s_t)" if t == 1 else "",
            using,
            value(f"s_{t}", state_D, "unit", f"s_{{{t}}}"),
            value(f"p_{t}", best.values.exp(), "word", "p", {"word": target.words(best.indices.tolist())}, "weights"),
            value(f"y_{t}", target.words([word])[0], "", f"y_{{{t}}}"),
        )
        using = f"s_{t} y_{t}"
    page.compare("softmax(W s) and the p of each step", model.readout(states).softmax(-1), logs.exp(), 1e-5)
    page.step(
        "The output",
        "It ends by itself, with <EOS>." if output[-1] == EOS else "The limit was reached before <EOS>.",
        "",
        f"y_{len(output)} limit",
        value("output", target.words(output), "place", r"\text{output}"),
    )
    return output, logs.gather(1, torch.tensor(output)[:, None])[:, 0]


class ScaledEncoder(Encoder):
    """An encoder whose final states are multiplied by a factor."""

    def __init__(self, inner: Encoder, factor: float) -> None:
        super().__init__()
        self.inner, self.factor, self.width, self.final = inner, factor, inner.width, inner.final

    def forward(self, source: Tokens) -> Memory:
        memory = self.inner(source)
        return replace(memory, final=tuple(tuple(part * self.factor for part in layer) for layer in memory.final))


def train_on_proverbs() -> tuple[WordList, WordList, EncoderDecoder]:
    """A small encoder-decoder trained on the four proverbs, in about a second; and its vocabularies."""
    return train_pairs(tuple(SPANISH), tuple(ENGLISH))


@cache
def train_pairs(sources: tuple[str, ...], targets: tuple[str, ...]) -> tuple[WordList, WordList, EncoderDecoder]:
    """A small encoder-decoder trained on a few pairs of sentences, and its vocabularies."""
    source, target = WordList.of(sources), WordList.of(targets)
    read = Tokens.pad([source.ids(sentence) for sentence in sources])
    inputs, targets_BT, real_BT = Tokens.pad([target.ids(s) for s in targets], (SOS,), (EOS,)).shift()
    with torch.random.fork_rng(devices=[]), torch.enable_grad():
        torch.manual_seed(1)
        words = Words(target.size)
        model = Seq2SeqConfig(layers=1, width=WIDTH, cell="gru", reverse=False).build(Words(source.size), words)
        optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
        for _ in range(STEPS):
            loss = words.loss(model.readout(model(read, inputs)[real_BT]), targets_BT[real_BT])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return source, target, model.eval().requires_grad_(False)


FIGURE = "sentence > h_all > context > s_1 > y_1 > s_2 > y_2"
EXERCISES = (
    Exercise(
        "How many numbers does the context have, for a sentence of five words?",
        lambda lesson: len(lesson.value("context").data),
        hint="as many as the GRU has units",
    ),
    Exercise(
        "And for a sentence of three words, Que sera, sera?",
        lambda lesson: len(lesson.value("context").data),
        {"sentence": "Que sera, sera"},
        hint="its size does not depend on the sentence",
    ),
)
READING = Reading(
    "Unaligned Seq2Seq with LSTMs: through one vector, until <EOS>",
    ("encoder-decoder", "context vector", "autoregressive decoding", "bottleneck"),
    (
        "Sutskever, Vinyals and Le 2014, Sequence to sequence learning with neural networks",
        "Cho et al. 2014, Learning phrase representations using RNN encoder-decoder",
    ),
)
