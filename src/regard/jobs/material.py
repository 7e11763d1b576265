"""What a sequence is made of: where the job of generating differs between text and numbers, and nowhere else."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from regard.data.series import Numbers
from regard.data.texts import Shakespeare, Texts
from regard.errors import ConfigError
from regard.jobs.base import Preparation
from regard.tasks.generate import TextPreparation
from regard.tasks.numbers import Figures, NumberPreparation
from regard.tasks.script import Letters, Script
from regard.text import TokenizerConfig


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
