"""Lesson: sentences of unequal length as one batch, and models that never see the filling."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import Tensor

from regard.errors import ConfigError
from regard.lessons.engine.builder import Page
from regard.lessons.engine.inputs import LARGEST, Input, Plan, Work
from regard.lessons.engine.layers import apart
from regard.lessons.engine.lesson import Value
from regard.lessons.proverbs import ENGLISH, SPANISH, WordList
from regard.models.base import Encoder
from regard.models.seq2seq import Seq2SeqConfig
from regard.models.transformer import TransformerConfig
from regard.sequence import EOS, SOS, Tokens
from regard.spaces import Words
from regard.tasks.translate.prepare import tokens_of

value = Page.value
WIDTH = 4

INPUTS = (
    Input("sentences", SPANISH, "what is read", ("sentence",)),
    Input("targets", ENGLISH, "what is to be said", ("sentence",)),
    Input("row", 4, "the sentence that is also read alone, from 1 on", bounds=(1, 64)),
    Input("seed", 1, "the weights of the models are drawn by it", bounds=(0, LARGEST)),
)

READERS: dict[str, Callable[[Words], Encoder]] = {
    "RNN": lambda words: Seq2SeqConfig(layers=1, width=WIDTH, cell="tanh").build_encoder(words),
    "LSTM, both ways": lambda words: Seq2SeqConfig(layers=2, width=WIDTH, bidirectional=True).build_encoder(words),
    "GRU": lambda words: Seq2SeqConfig(layers=2, width=WIDTH, cell="gru").build_encoder(words),
    "Transformer": lambda words: TransformerConfig(layers=2, width=WIDTH, inner=8, heads=2).build(words, words).encoder,
}
"""Encoders of the package, each tiny."""


def _work(given: Mapping[str, Value]) -> Work:
    """Words, numbers, the padded batch and its mask; then one sentence alone and in the batch."""
    page = Page(given)
    sentences, row = given["sentences"].data, given["row"].data
    for number, sentence in enumerate(sentences, 1):
        if not sentence.split():
            raise ConfigError(f"sentences: expected words in each, and number {number} has none")
    if row > len(sentences):
        raise ConfigError(f"row: expected a sentence from 1 to {len(sentences)}, got {row}")
    words = WordList.of(sentences)
    rows = [words.ids(sentence) for sentence in sentences]
    batch = Tokens.of(rows)
    _numbers(page, words, batch)
    _targets(page, given["targets"].data)
    differences, careless = _alone_and_together(rows, row - 1, words, given["seed"].data)
    page.step(
        f"Sentence {row}, alone and among the others",
        "Encoders of this package read it alone, then in the batch. The largest difference of any number that they "
        "say about its words: nothing but rounding.",
        r"\max |\text{alone} - \text{batch}|",
        "batch row seed",
        value("differences", list(differences.values()), "model", r"\text{difference}", {"model": list(differences)}),
    )
    page.step(
        "If <PAD> were read like a word",
        "The same, where nobody says how long the sentences are. A short sentence would then depend on its longest "
        "neighbour.",
        r"\max |\text{alone} - \text{careless}|",
        "batch row seed",
        value("careless", list(careless.values()), "model", r"\text{difference}", {"model": list(careless)}),
    )
    page.agree("the sentence alone and in the batch", 0.0, max(differences.values()))
    page.lecture("the fourth row", ["Que", "sera,", "sera", "<PAD>", "<PAD>"], "last_row")
    return page.work()


def _numbers(page: Page, words: WordList, batch: Tokens) -> None:
    places = [str(i + 1) for i in range(batch.data.shape[1])]
    page.step(
        "Words become numbers",
        "Cut at the spaces and counted from 4 on; 0 to 3 are <PAD>, <UNK>, <SOS> and <EOS>.",
        "",
        "sentences",
        value("lengths", batch.lengths, "sentence", r"\text{lengths}"),
        value("vocabulary", words.size, "", r"\text{vocabulary}"),
    )
    page.step(
        "One rectangle",
        "As wide as the longest sentence; shorter ones are filled up with <PAD> on the right.",
        "",
        "sentences",
        value("padded", [words.words(row) for row in batch.data.tolist()], "sentence place", r"\text{words}"),
        value("last_row", words.words(batch.data[-1].tolist()), "place", r"\text{last row}"),
        value("batch", batch.data, "sentence place", labels={"place": places}),
    )
    page.step(
        "What is real",
        "The lengths say it, and never the number 0: a model looks at places where there is something (1).",
        r"m_{ij} = 1 \text{ where } j < \text{length}_i",
        "lengths",
        value("mask", batch.mask.long(), "sentence place", "m"),
    )


def _targets(page: Page, sentences: list[str]) -> None:
    words = WordList.of(sentences)
    batch = tokens_of([words.ids(sentence) for sentence in sentences], (SOS,), (EOS,))
    page.step(
        "What is to be said",
        "The other side of the batch, between <SOS>, with which saying begins, and <EOS>, with which it ends.",
        "",
        "targets",
        value("said", [words.words(row) for row in batch.data.tolist()], "sentence place", r"\text{targets}"),
    )


def _alone_and_together(
    rows: list[list[int]], which: int, words: WordList, seed: int
) -> tuple[dict[str, float], dict[str, float]]:
    """Of each reader: differences when it knows the lengths, and when it takes <PAD> for a word."""
    alone, batch = Tokens.of([rows[which]]), Tokens.of(rows)
    careless, known = {}, {}
    for name, make in READERS.items():
        with torch.random.fork_rng(devices=[]), torch.no_grad():
            torch.manual_seed(seed)
            reader = make(Words(words.size)).double().eval()
            wanted = _said(reader, alone, 0, len(rows[which]))
            known[name] = apart(wanted, _said(reader, batch, which, len(rows[which])))
            careless[name] = apart(wanted, _said(reader, Tokens.full(batch.data), which, len(rows[which])))
    return known, careless


def _said(reader: Encoder, batch: Tokens, row: int, length: int) -> Tensor:
    """All that an encoder says about a sentence: its words' states, and what it hands on."""
    memory = reader(batch)
    handed = [part[row] for layer in memory.final for part in layer]
    return torch.cat([memory.states.data[row, :length].flatten(), *handed])


PLAN = Plan(INPUTS, _work)
