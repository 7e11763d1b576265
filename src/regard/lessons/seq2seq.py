"""Lesson: a sentence goes through one vector, and comes out in another language, word by word."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache

import torch
from torch import Tensor

from regard.decode import Beam, decode, score
from regard.errors import ConfigError
from regard.lessons.engine.builder import Page
from regard.lessons.engine.inputs import Input, Plan, Work
from regard.lessons.engine.lesson import Value
from regard.lessons.proverbs import ENGLISH, SPANISH, WordList
from regard.models.base import Encoder, EncoderDecoder
from regard.models.seq2seq import Seq2SeqConfig
from regard.sequence import EOS, SOS, Memory, Tokens
from regard.spaces import Words
from regard.tasks.translate.prepare import tokens_of
from regard.trace import record

value = Page.value
WIDTH, STEPS, SHOWN = 12, 120, 4

INPUTS = (
    Input("sentence", SPANISH[0], "what is read; the model knows the words of the four proverbs"),
    Input("scale", 1.0, "the context is multiplied by it: 0 takes it away", bounds=(-10, 10)),
    Input("limit", 12, "words that may be said at most", bounds=(1, 50)),
)


def _work(given: Mapping[str, Value]) -> Work:
    """Read, hand over, say until <EOS>: with the package's encoder-decoder and its one decoding loop."""
    page = Page(given)
    source, target, trained = learnt()
    ids = source.ids(given["sentence"].data)
    if not ids:
        raise ConfigError("sentence: expected some words, got none")
    model = EncoderDecoder(Scaled(trained.encoder, given["scale"].data), trained.decoder)
    read, words = Tokens.of([ids]), source.words(ids)
    with record(model) as trace, torch.no_grad():
        memory = model.encoder(read)
    states = torch.cat([seen.data for seen in trace.find("encoder.inner.*.hidden")])
    _reading(page, words, states, memory.final[0][0][0])
    said, steps = _saying(page, target, model, read, given["limit"].data)
    if said[-1] == EOS:
        forced = score(model, read, Tokens.of([[SOS, *said]])).tokens[0]
        page.agree("said word by word and read at once, log-probabilities", forced, steps.double(), 1e-4)
    page.lecture("the proverb in English", [*ENGLISH[0].split(), "<EOS>"], "said")
    return page.work()


def _reading(page: Page, words: list[str], states: Tensor, context: Tensor) -> None:
    page.step(
        "The encoder reads",
        f"A GRU of {WIDTH} units, trained on the four proverbs alone, just now. After each word its state holds "
        "something of all words so far; whatever the sentence's length, it is as long.",
        "h_t = f(h_{t-1}, x_t)",
        "sentence",
        value("h_all", states, "word unit", "h_t", {"word": words}),
    )
    page.step(
        "The context",
        "Its last state is all that the decoder gets: a whole sentence in so many numbers.",
        r"c = \text{scale} \cdot h_T",
        "h_all scale",
        value("context", context, "unit", "c"),
    )


def _saying(page: Page, target: WordList, model: EncoderDecoder, read: Tokens, limit: int) -> tuple[list[int], Tensor]:
    said: list[int] = []
    with record(model) as trace:
        for choice in decode(model, read, Tokens.of([[SOS]]), Beam(1), torch.tensor([limit])):
            said.append(int(choice.tokens.flatten()[0]))
    logs = torch.stack([seen.data[0].log_softmax(-1) for seen in trace.find("logits")])
    states = torch.stack([seen.data[0, -1] for seen in trace.find("decoder.features")])
    before = "context"
    for t, (word, log_V, state_D) in enumerate(zip(said, logs, states), 1):
        best = log_V.topk(SHOWN)
        heard = "<SOS>" if t == 1 else target.words(said[t - 2 : t - 1])[0]
        page.step(
            f"Step {t}: after {heard}",
            "The decoder's state goes on from the context, and from what was said. The likeliest words by it, and the "
            "one that is said; it is what is read next."
            if t == 1
            else "",
            r"s_t = f(s_{t-1}, y_{t-1}), s_0 = c \quad p(y_t) = \softmax(W s_t)" if t == 1 else "",
            before,
            value(f"s_{t}", state_D, "unit", f"s_{{{t}}}"),
            value(f"p_{t}", best.values.exp(), "word", "p", {"word": target.words(best.indices.tolist())}, "weights"),
            value(f"y_{t}", target.words([word])[0], "", f"y_{{{t}}}"),
        )
        before = f"s_{t} y_{t}"
    page.agree("softmax(W s), and the p that was said by", model.readout(states).softmax(-1), logs.exp(), 1e-5)
    page.step(
        "What was said",
        "It ends by itself, with <EOS>." if said[-1] == EOS else "The limit came before <EOS>.",
        "",
        f"y_{len(said)} limit",
        value("said", target.words(said), "place", r"\text{said}"),
    )
    return said, logs.gather(1, torch.tensor(said)[:, None])[:, 0]


class Scaled(Encoder):
    """An encoder whose last states are made larger or smaller before they are handed over.

    >>> Scaled(learnt()[2].encoder, 0.0)(Tokens.of([[4, 5]])).final[0][0].abs().max().item()
    0.0
    """

    def __init__(self, inner: Encoder, factor: float) -> None:
        super().__init__()
        self.inner, self.factor, self.width, self.final = inner, factor, inner.width, inner.final

    def forward(self, source: Tokens) -> Memory:
        memory = self.inner(source)
        return replace(memory, final=tuple(tuple(part * self.factor for part in layer) for layer in memory.final))


@cache
def learnt() -> tuple[WordList, WordList, EncoderDecoder]:
    """A small encoder-decoder that has learnt the four proverbs by heart; it takes about a second.

    >>> learnt()[1].size
    23
    """
    source, target = WordList.of(SPANISH), WordList.of(ENGLISH)
    read = Tokens.of([source.ids(sentence) for sentence in SPANISH])
    heard, wanted_BT, real_BT = tokens_of([target.ids(s) for s in ENGLISH], (SOS,), (EOS,)).shifted()
    with torch.random.fork_rng(devices=[]), torch.enable_grad():
        torch.manual_seed(1)
        words = Words(target.size)
        model = Seq2SeqConfig(layers=1, width=WIDTH, cell="gru", reverse=False).build(Words(source.size), words)
        optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
        for _ in range(STEPS):
            loss = words.loss(model.readout(model(read, heard)[real_BT]), wanted_BT[real_BT])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return source, target, model.eval().requires_grad_(False)


PLAN = Plan(INPUTS, _work)
