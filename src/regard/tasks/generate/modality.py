"""What a sequence is made of: how it is kept, what is asked of a model, and how what it says is written down."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from regard.data import Shards
from regard.decode import DecodeConfig
from regard.metrics import Score
from regard.spaces import Space, Words
from regard.tasks.generate.predict import Generator, Writer
from regard.tasks.generate.prepare import COLUMN, encoded
from regard.text import Tokenizer

OPENING = 16
"""places of the validation text that a sample goes on from, where no prompt is set"""


class Script(ABC):
    """What stands at each place of a sequence: a token of a text, or numbers.

    >>> from regard.text import TokenizerConfig
    >>> script: Script = Letters(Tokenizer.train(["Anna"], TokenizerConfig(kind="char")))
    >>> script.size, script.space().size
    ('7', 7)
    """

    @property
    @abstractmethod
    def size(self) -> str:
        """How much there is to choose from at a place, for people."""

    @abstractmethod
    def space(self, smoothing: float = 0.0) -> Space:
        """What is read and said."""

    @abstractmethod
    def sequence(self, shards: Shards) -> np.ndarray:
        """What preparation has kept, as one sequence."""

    @abstractmethod
    def read(self, data: Any, split: str) -> tuple[np.ndarray, Mapping[str, int]]:
        """A split of raw data as one sequence, and what was counted on the way."""

    @abstractmethod
    def metrics(self, found: Mapping[str, float], counts: Mapping[str, int]) -> Mapping[str, float]:
        """What validation tells, of the loss and the perplexity."""

    @abstractmethod
    def scores(self, found: Score, counts: Mapping[str, int]) -> list[Score]:
        """What an evaluation tells, of the perplexity."""

    @abstractmethod
    def writer(self, model: Any, config: DecodeConfig, reach: int | None) -> Writer:
        """What writes with a model."""

    @abstractmethod
    def opening(self, sequence: np.ndarray) -> str:
        """What a sample goes on from: the beginning of a sequence."""

    @abstractmethod
    def spell(self) -> Mapping[str, Callable[[int], str]]:
        """Of each side whose ids are recorded: id -> token."""

    @staticmethod
    @abstractmethod
    def told(split: str, counts: Mapping[str, int]) -> str:
        """What preparation counted in a split, in a line."""


@dataclass(frozen=True)
class Letters(Script):
    """Tokens of a text.

    >>> from regard.text import TokenizerConfig
    >>> Letters(Tokenizer.train(["abc"], TokenizerConfig(kind="char"))).space().size
    7
    """

    tokenizer: Tokenizer
    ends: bool = False
    """whether texts end, and so begin"""

    @classmethod
    def load(cls, folder: Path, ends: bool) -> Letters:
        """What preparation wrote."""
        return cls(Tokenizer.load(folder / "tokenizer.json"), ends)

    @property
    def size(self) -> str:
        return f"{self.tokenizer.size:,}"

    def space(self, smoothing: float = 0.0) -> Words:
        return Words(self.tokenizer.size, smoothing)

    def sequence(self, shards: Shards) -> np.ndarray:
        return shards.flat(COLUMN)

    def read(self, data: Any, split: str) -> tuple[np.ndarray, Mapping[str, int]]:
        counts: Counter[str] = Counter()
        ids = chain.from_iterable(encoded(data.pieces(split), self.tokenizer, counts))
        return np.fromiter(ids, np.int64), counts

    def metrics(self, found: Mapping[str, float], counts: Mapping[str, int]) -> Mapping[str, float]:
        return {**found, "bits": bits(found["loss"], counts)}

    def scores(self, found: Score, counts: Mapping[str, int]) -> list[Score]:
        value, low, high = (bits(math.log(number), counts) for number in (found.value, found.low, found.high))
        signature = found.signature.replace("unit:token", "unit:character")
        return [found, Score("bits", value, low, high, signature, found.n)]

    def writer(self, model: Any, config: DecodeConfig, reach: int | None) -> Generator:
        return Generator(model, self.tokenizer, config, self.ends, reach)

    def opening(self, sequence: np.ndarray) -> str:
        known = sequence[sequence != self.tokenizer.unk][:OPENING].tolist()
        return "" if self.ends else self.tokenizer.decode(known) or self.tokenizer.vocabulary[-1]

    def spell(self) -> Mapping[str, Callable[[int], str]]:
        return {"target": self.tokenizer.vocabulary.__getitem__}

    @staticmethod
    def told(split: str, counts: Mapping[str, int]) -> str:
        each = counts["characters"] / max(1, counts["tokens"])
        texts = f" in {counts['texts']:,} texts" if counts["texts"] else ""
        return (
            f"{split:<10}  {counts['characters']:,} characters{texts}, {counts['tokens']:,} tokens, "
            f"{each:.2f} characters a token, {counts['unknown']:,} unknown"
        )


def bits(nats: float, counts: Mapping[str, int]) -> float:
    """Bits a character, of nats a token: the figure that models with other tokens can be compared by.

    >>> bits(math.log(2), {"tokens": 1, "characters": 4})
    0.25
    """
    return nats / math.log(2) * counts["tokens"] / max(1, counts["characters"])
