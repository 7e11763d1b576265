"""Lesson: sentences of unequal length as one batch, and models that ignore the padding."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from regard.errors import ConfigError
from regard.lessons.engine.builder import MAX_NUMBER, Input, LessonBuilder, value
from regard.lessons.engine.exercises import Exercise
from regard.lessons.engine.layers import max_difference
from regard.lessons.engine.reading import Reading
from regard.lessons.proverbs import ENGLISH, SPANISH, WordList
from regard.models.base import Encoder
from regard.models.seq2seq import Seq2SeqConfig
from regard.models.transformer import TransformerConfig
from regard.sequence import EOS, SOS, Tokens
from regard.spaces import Words

WIDTH = 4

INPUTS = (
    Input("sentences", SPANISH, "source sentences", ("sentence",)),
    Input("targets", ENGLISH, "target sentences", ("sentence",)),
    Input("row", 4, "the sentence that is also encoded alone, from 1", bounds=(1, 64)),
    Input("seed", 1, "random seed of the models' weights", bounds=(0, MAX_NUMBER)),
)

ENCODERS: dict[str, Callable[[Words], Encoder]] = {
    "RNN": lambda words: Seq2SeqConfig(layers=1, width=WIDTH, cell="tanh").build_encoder(words),
    "LSTM, both ways": lambda words: Seq2SeqConfig(layers=2, width=WIDTH, bidirectional=True).build_encoder(words),
    "GRU": lambda words: Seq2SeqConfig(layers=2, width=WIDTH, cell="gru").build_encoder(words),
    "Transformer": lambda words: (
        TransformerConfig(layers=2, width=WIDTH, ffn_width=8, heads=2).build(words, words).encoder
    ),
}
"""small encoders of the package"""


def compute(page: LessonBuilder) -> None:
    """Words, ids, the padded batch and its mask; then one sentence alone and in the batch."""
    sentences, row = page.data("sentences"), page.data("row")
    for number, sentence in enumerate(sentences, 1):
        if not sentence.split():
            raise ConfigError(f"sentences: expected words in each, and number {number} has none")
    if row > len(sentences):
        raise ConfigError(f"row: expected a sentence from 1 to {len(sentences)}, got {row}")
    words = WordList.of(sentences)
    rows = [words.ids(sentence) for sentence in sentences]
    _batch(page, words, Tokens.pad(rows))
    _targets(page, page.data("targets"))
    masked, unmasked = _differences(rows, row - 1, words, page.data("seed"))
    page.step(
        f"Sentence {row}, alone and in the batch",
        "This package's encoders read it alone, then in the batch. The largest difference of any of their outputs for "
        "its words: only rounding.",
        r"\max |\text{alone} - \text{batch}|",
        "batch row seed",
        value("differences", list(masked.values()), "model", r"\text{difference}", {"model": list(masked)}),
    )
    page.step(
        "If <PAD> were read like a word",
        "The same without the lengths. A short sentence would then depend on the longest sentence of its batch.",
        r"\max |\text{alone} - \text{careless}|",
        "batch row seed",
        value("careless", list(unmasked.values()), "model", r"\text{difference}", {"model": list(unmasked)}),
    )
    page.compare("the sentence alone and in the batch", 0.0, max(masked.values()))
    page.expect("the fourth row", ["Que", "sera,", "sera", "<PAD>", "<PAD>"], "last_row")


def _batch(page: LessonBuilder, words: WordList, batch: Tokens) -> None:
    labels = {"place": [str(i + 1) for i in range(batch.data.shape[1])]}
    page.step(
        "Words become ids",
        "Split at spaces and numbered from 4; 0 to 3 are <PAD>, <UNK>, <SOS> and <EOS>.",
        "",
        "sentences",
        value("lengths", batch.lengths, "sentence", r"\text{lengths}"),
        value("vocabulary", words.size, "", r"\text{vocabulary}"),
    )
    page.step(
        "One rectangle",
        "As wide as the longest sentence; shorter ones are padded with <PAD> on the right.",
        "",
        "sentences",
        value("padded", [words.words(row) for row in batch.data.tolist()], "sentence place", r"\text{words}"),
        value("last_row", words.words(batch.data[-1].tolist()), "place", r"\text{last row}"),
        value("batch", batch.data, "sentence place", labels=labels),
    )
    page.step(
        "The mask",
        "It comes from the lengths, never from the id 0: a model attends to positions with a real word (1).",
        r"m_{ij} = 1 \text{ where } j < \text{length}_i",
        "lengths",
        value("mask", batch.mask.long(), "sentence place", "m"),
    )


def _targets(page: LessonBuilder, sentences: list[str]) -> None:
    words = WordList.of(sentences)
    batch = Tokens.pad([words.ids(sentence) for sentence in sentences], (SOS,), (EOS,))
    page.step(
        "The targets",
        "The target side of the batch, between <SOS>, the first input of the decoder, and <EOS>, which ends a "
        "sentence.",
        "",
        "targets",
        value("target_rows", [words.words(row) for row in batch.data.tolist()], "sentence place", r"\text{targets}"),
    )


def _differences(
    rows: list[list[int]], which: int, words: WordList, seed: int
) -> tuple[dict[str, float], dict[str, float]]:
    """Differences of a sentence alone and in the batch, per encoder: with the lengths, and with <PAD> as a word."""
    alone, batch, length = Tokens.pad([rows[which]]), Tokens.pad(rows), len(rows[which])
    masked, unmasked = {}, {}
    for name, make in ENCODERS.items():
        with torch.random.fork_rng(devices=[]), torch.no_grad():
            torch.manual_seed(seed)
            encoder = make(Words(words.size)).double().eval()
            expected = _outputs(encoder, alone, 0, length)
            masked[name] = max_difference(expected, _outputs(encoder, batch, which, length))
            unmasked[name] = max_difference(expected, _outputs(encoder, Tokens.full(batch.data), which, length))
    return masked, unmasked


def _outputs(encoder: Encoder, batch: Tokens, row: int, length: int) -> Tensor:
    """All outputs of an encoder for a sentence: the states of its words, and the final states."""
    memory = encoder(batch)
    final = [part[row] for layer in memory.final for part in layer]
    return torch.cat([memory.states.data[row, :length].flatten(), *final])


FIGURE = "sentences > lengths > mask; sentences > batch > differences; mask > differences"
EXERCISES = (
    Exercise(
        "What are the lengths of the four source sentences, in words? Four numbers.",
        "lengths",
        hint="words are split at spaces",
    ),
    Exercise(
        "How many positions of the source batch are padding?",
        lambda lesson: sum(row.count(0) for row in lesson.value("mask").data),
        hint="four rows as wide as the longest sentence, minus all words",
    ),
)
READING = Reading(
    "The four proverbs in one padded batch",
    ("padding", "padding mask", "batch", "special tokens"),
    (
        "Sutskever, Vinyals and Le 2014, Sequence to sequence learning with neural networks, section 3.4 "
        "(batches of similar length)",
    ),
)
