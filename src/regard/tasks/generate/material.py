"""What a sequence is made of: where the job of generating differs between text and numbers, and nowhere else."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from regard.data.series import Numbers
from regard.data.texts import Shakespeare, Texts
from regard.decode import DecodeConfig
from regard.errors import ConfigError, DataError
from regard.tasks.base import Preparation
from regard.tasks.generate.modality import Letters, Script
from regard.tasks.generate.numbers import Figures, NumberPreparation
from regard.tasks.generate.prepare import TextPreparation
from regard.text import TokenizerConfig
from regard.text.tokenizer import EOS, UNK

NOUNS = {"char": "characters", "word": "words"}
"""what tokens of a kind are called; the others are tokens"""
OF_TOKENS = ("top_k", "top_p", "min_p", "repetition", "no_repeat")
"""settings of drawing that choose among tokens"""


class Material(ABC):
    """What a sequence is made of: where the job differs between text and numbers, and nowhere else.

    >>> Written(Texts(train="book.txt"), TokenizerConfig(kind="char")).unit, Measured(Numbers(train="load.csv")).unit
    ('char', 'numbers')
    """

    @property
    @abstractmethod
    def unit(self) -> str:
        """What stands at a place, in a word."""

    @abstractmethod
    def preparation(self) -> Preparation:
        """How raw data becomes what training reads."""

    @abstractmethod
    def script(self, run: Path) -> Script:
        """What stands at each place, as preparation found it."""

    @abstractmethod
    def told(self, split: str, counts: Mapping[str, int]) -> str:
        """What preparation counted, for people."""

    def check_select(self, select: str) -> None:
        """Refuse a score that validation does not give."""
        return

    def check_drawn(self, decode: DecodeConfig) -> None:
        """Refuse what means nothing where this is drawn."""
        return

    def unread(self, name: str, counts: Mapping[str, int], met: Collection[str]) -> Sequence[str]:
        """What a score has to tell of what the model cannot read; if that is everything, there is no score."""
        return ()


@dataclass(frozen=True)
class Written(Material):
    """Text, cut into tokens.

    >>> Written(Shakespeare(), TokenizerConfig(kind="char")).preparation().text.kind
    'char'
    """

    data: Texts | Shakespeare
    text: TokenizerConfig

    @property
    def unit(self) -> str:
        return self.text.kind

    def preparation(self) -> TextPreparation:
        return TextPreparation(self.data, self.text)

    def script(self, run: Path) -> Script:
        return Letters.load(run, self.data.unit == "line")

    def told(self, split: str, counts: Mapping[str, int]) -> str:
        return Letters.told(split, counts)

    def unread(self, name: str, counts: Mapping[str, int], met: Collection[str]) -> Sequence[str]:
        unknown, there = counts["unknown"], counts["tokens"] - counts["texts"]
        if not unknown:
            return ()
        noun = NOUNS.get(self.text.kind, "tokens")
        if not any(character.isalnum() for token in set(met) - {*UNK, *EOS} for character in token):
            raise DataError(
                f"{name}: {unknown:,} of {there:,} {noun} are unknown to this model, and not one letter or digit is "
                "known; score it on text like that which it has learnt from"
            )
        return (f"{unknown:,} of {there:,} {noun} are unknown to this model; each is scored as <UNK>",)


@dataclass(frozen=True)
class Measured(Material):
    """Numbers, one or several a place.

    >>> Measured(Numbers(train="load.csv")).check_select("ppl")
    Traceback (most recent call last):
    regard.errors.ConfigError: train.select: numbers have a loss and nothing else, got 'ppl'
    """

    data: Numbers

    @property
    def unit(self) -> str:
        return "numbers"

    def preparation(self) -> NumberPreparation:
        return NumberPreparation(self.data)

    def script(self, run: Path) -> Script:
        return Figures.load(run)

    def told(self, split: str, counts: Mapping[str, int]) -> str:
        return Figures.told(split, counts)

    def check_select(self, select: str) -> None:
        if select != "loss":
            raise ConfigError(f"train.select: numbers have a loss and nothing else, got {select!r}")

    def check_drawn(self, decode: DecodeConfig) -> None:
        usual = DecodeConfig()
        for name in OF_TOKENS:
            if getattr(decode, name) != getattr(usual, name):
                given = f"{name} = {getattr(decode, name)}"
                raise ConfigError(f"{given} chooses among tokens, and this model writes numbers; leave it out")
