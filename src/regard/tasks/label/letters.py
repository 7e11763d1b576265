"""What a word's letters say beside the word itself: settings, and the space of words that are spelled."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
import torch
from torch import Tensor, nn

from regard.errors import ConfigError
from regard.nn.char_encoder import LetterConvolution, LetterLSTM, Letters, Spelled
from regard.sequence import PAD, Tokens
from regard.spaces import Readable, Words
from regard.tasks.label.targets import padded, ragged
from regard.text.word_vocab import Spelling


@dataclass(frozen=True)
class NoLetters:
    """A word is its own vector, and nothing else.

    >>> NoLetters().width
    0
    """

    kind: Literal["none"] = "none"
    """words have no letters"""

    @property
    def width(self) -> int:
        return 0


@dataclass(frozen=True)
class ConvolvedLetters:
    """A convolution over a word's letters, and of each filter the highest value (Ma and Hovy 2016).

    >>> ConvolvedLetters().build(letters=90).width
    50
    """

    kind: Literal["convolution"] = "convolution"
    """filters over windows of letters"""
    width: int = 50
    """filters: so many of the model's numbers are the letters', the others are the word's own"""
    embedding: int = 30
    """width of a letter's vector"""
    kernel: int = 3
    """letters in a window"""

    def __post_init__(self) -> None:
        if min(self.width, self.embedding, self.kernel) < 1:
            raise ConfigError(
                f"width = {self.width}, embedding = {self.embedding} and kernel = {self.kernel} must be at least 1"
            )
        if self.kernel % 2 == 0:
            raise ConfigError(
                f"kernel = {self.kernel} must be odd, so that a window has its letter in the middle; "
                f"try {self.kernel - 1} or {self.kernel + 1}"
            )

    def build(self, letters: int) -> Letters:
        """A reader of this many letters with fresh weights."""
        return LetterConvolution(letters, self.embedding, self.kernel, self.width)


@dataclass(frozen=True)
class RecurrentLetters:
    """An LSTM over a word's letters in both directions (Lample et al. 2016).

    >>> RecurrentLetters(width=5)
    Traceback (most recent call last):
    regard.errors.ConfigError: width = 5 must be even: each direction has half of it
    """

    kind: Literal["lstm"] = "lstm"
    """an LSTM over the letters, in both directions"""
    width: int = 50
    """so many of the model's numbers are the letters', half from each direction; the others are the word's own"""
    embedding: int = 25
    """width of a letter's vector"""

    def __post_init__(self) -> None:
        if min(self.width, self.embedding) < 1:
            raise ConfigError(f"width = {self.width} and embedding = {self.embedding} must be at least 1")
        if self.width % 2:
            raise ConfigError(f"width = {self.width} must be even: each direction has half of it")

    def build(self, letters: int) -> Letters:
        """A reader of this many letters with fresh weights."""
        return LetterLSTM(letters, self.embedding, self.width)


LettersConfig = NoLetters | ConvolvedLetters | RecurrentLetters


@dataclass(frozen=True)
class SpelledWords(Readable):
    """Words with their letters, read and never said: a word's id and those of its letters, at each place.

    >>> SpelledWords(9, 5, ConvolvedLetters(width=4)).embed(10).words
    Embedding(9, 6)
    """

    words: int
    letters: int
    config: ConvolvedLetters | RecurrentLetters

    def embed(self, width: int) -> nn.Module:
        if width <= self.config.width:
            raise ConfigError(
                f"task.letters.width = {self.config.width} leaves nothing of model.width = {width} for the word itself"
            )
        return Spelled(self.words, self.config.build(self.letters), width)


def space_of(spelling: Spelling, config: LettersConfig) -> Readable:
    """What goes in: words, with their letters if they have any.

    >>> space_of(Spelling(("a", "b"), ()), NoLetters()).size
    4
    """
    if isinstance(config, NoLetters):
        return Words(spelling.size)
    return SpelledWords(spelling.size, spelling.letter_size, config)


@dataclass(frozen=True, eq=False)
class Types:
    """Different words, each as a row of ids: its own, then those of its letters, then padding.

    >>> types = Types.of(["is", "Rome"], Spelling(("is",), ("R", "i", "s")))
    >>> types.table_TC
    array([[2, 3, 4, 0, 0],
           [1, 2, 1, 1, 1]])
    >>> types.tokens([np.array([1, 0]), np.array([0])]).data[1]
    tensor([[2, 3, 4, 0, 0],
            [0, 0, 0, 0, 0]])
    """

    table_TC: np.ndarray

    @classmethod
    def of(cls, words: Iterable[str], spelling: Spelling) -> Types:
        """The rows of words."""
        return cls.of_rows([np.array(spelling.row(word)) for word in words])

    @classmethod
    def of_rows(cls, rows: Sequence[np.ndarray]) -> Types:
        """The rows as one table."""
        return cls(padded([row.astype(np.int64) for row in rows])[0])

    def tokens(self, sentences: Sequence[np.ndarray]) -> Tokens:
        """Sentences of numbers of words as a batch: (B, L, 1 + C) ids, or (B, L) where words have no letters."""
        numbers_BL, lengths = padded([np.asarray(row, np.int64) for row in sentences])
        if self.table_TC.shape[1] < 2:
            ids_BL = self.table_TC[:, 0][numbers_BL] if len(self.table_TC) else numbers_BL
            data = np.where(_real(numbers_BL, lengths), ids_BL, PAD)
        else:
            most = int(self._letters[numbers_BL].max(initial=0))
            data = np.where(_real(numbers_BL, lengths)[..., None], self.table_TC[:, : 1 + most][numbers_BL], PAD)
        return Tokens(torch.from_numpy(data), lengths, ragged(lengths))

    @cached_property
    def _letters(self) -> np.ndarray:
        return (self.table_TC[:, 1:] != PAD).sum(1)


def _real(numbers_BL: np.ndarray, lengths: Tensor) -> np.ndarray:
    return np.arange(numbers_BL.shape[1]) < lengths.numpy()[:, None]
