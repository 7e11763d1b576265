"""Texts for encoders that read words by their characters (ELMo): no word is unknown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from regard.data import ColumnKind, Shards
from regard.data.splitmix import splitmix64_uniform
from regard.nn.spelling import BYTES, CHARACTERS, spell, spell_text
from regard.sequence import PAD, Tokens
from regard.spaces import SpelledInput
from regard.tasks.base import check_lines
from regard.tasks.classify.inputs import COLUMN, EncodedInput, TextInput


@dataclass(frozen=True)
class SpelledTextInput(TextInput):
    """Encodes a text as words with their spellings.

    A row holds, for each word, CHARACTERS plus its id, then the ids of its spelling.
    """

    def space(self) -> SpelledInput:  # type: ignore[override]  # no Words: it has no head
        return SpelledInput(self.tokenizer.size)

    def column(self) -> ColumnKind:
        return CHARACTERS + self.tokenizer.size

    def encode(self, lines: Sequence[str], first_line: int = 1) -> list[EncodedInput]:
        check_lines(lines, first_line)
        return [self.encode_text(text.strip()) for text in lines]

    def encode_whole(self, text: str) -> Sequence[Any]:
        return replace(self, max_tokens=len(text)).encode_text(text).row

    def encode_text(self, text: str) -> EncodedInput:
        """The words of one text that are kept."""
        found = self.tokenizer.encode(text)
        words = list(zip(found.ids, self.tokenizer.known_and_unknown(found, text), strict=True))
        kept = words[: self.max_tokens] if self.keep == "beginning" else words[-self.max_tokens :]
        row = [id for number, word in kept for id in (CHARACTERS + number, *spell_text(word))]
        return EncodedInput(row, len(words) - len(kept))

    def lengths(self, shards: Shards) -> np.ndarray:  # type: ignore[override]
        """Words of each text, and the special tokens around them."""
        ends = np.cumsum(shards.lengths(COLUMN)[np.arange(len(shards))])
        words = np.concatenate([[0], np.cumsum(shards.flat(COLUMN) >= CHARACTERS)])
        return np.diff(words[ends], prepend=0) + self.add_sos + self.add_eos

    def collate(self, rows: Sequence[Any]) -> Tokens:
        return Tokens.pad(self.pad_words([self.split_words(self.with_special(row)) for row in rows]))

    def with_special(self, row: Sequence[Any]) -> np.ndarray:
        """A row with the special tokens around it."""
        before, after = (
            [id for number in part for id in (CHARACTERS + number, *spell(self.tokenizer.vocabulary[number]))]
            for part in (self.prefix, self.suffix)
        )
        return np.concatenate([before, row, after]).astype(np.int64)

    @staticmethod
    def split_words(row: np.ndarray) -> list[np.ndarray]:
        """A row cut before each word, whose first number becomes its id."""
        starts = np.flatnonzero(row >= CHARACTERS)
        whole = np.where(row >= CHARACTERS, row - CHARACTERS, row)
        return np.split(whole, starts[1:]) if len(starts) else []

    @staticmethod
    def pad_words(rows: Sequence[Sequence[np.ndarray]]) -> list[np.ndarray]:
        """Words of equal size: (L, 1 + C) for each text."""
        longest = max((len(word) for row in rows for word in row), default=1)
        found = [np.full((len(row), longest), PAD, np.int64) for row in rows]
        for table, row in zip(found, rows, strict=True):
            for line, word in zip(table, row, strict=True):
                line[: len(word)] = word
        return found

    def token_texts(self, row: Sequence[Any]) -> list[str]:
        words = self.split_words(self.with_special(row))
        special = {*self.prefix, *self.suffix}
        return [self.tokenizer.vocabulary[word[0]] if word[0] in special else unspell(word[1:]) for word in words]

    def drop_words(self, rows: Sequence[Any], seeds: np.ndarray, share: float) -> list[np.ndarray]:
        """Word dropout of the ids; the spellings stay, since every word has one."""
        found = []
        for row, seed in zip(rows, seeds, strict=True):
            at = np.flatnonzero(np.asarray(row) >= CHARACTERS)
            dropped = np.array(row, np.int64)
            dropped[at[splitmix64_uniform(seed, len(at)) < share]] = CHARACTERS + self.tokenizer.unk
            found.append(dropped)
        return found


def unspell(ids: Iterable[int]) -> str:
    """The word of a spelling; bytes that are cut off in the middle of a character are replaced.

    >>> unspell(spell_text("Straße"))
    'Straße'
    """
    return bytes(int(id) - 1 for id in ids if 0 < id <= BYTES).decode(errors="replace")
