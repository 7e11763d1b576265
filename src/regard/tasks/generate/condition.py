"""Conditions of a language model, the x of p(y | x): a class or a row of numbers, from a user's text to a source."""

from __future__ import annotations

import difflib
import json
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from regard.data import ColumnKind
from regard.data.scaling import StandardScaler
from regard.data.tables import NumericTable, is_number
from regard.errors import ConfigError, DataError, ModelError, RegardError
from regard.files import parse_json, write_text_atomically
from regard.manifest import read_kept
from regard.sequence import Tokens
from regard.spaces import Classes, Space, Values

CONDITION_FILE = "condition.json"
MAX_LISTED = 12
"""classes that a message lists"""
Value = str | float | Sequence[float]
"""A condition as a user gives it: the name of a class, or numbers, also as text with commas."""


class Condition(ABC):
    """What the texts of a model are conditioned on."""

    @property
    @abstractmethod
    def summary(self) -> str:
        """What is expected, in a few words."""

    @abstractmethod
    def space(self) -> Space:
        """The input space of the encoder."""

    @abstractmethod
    def column(self) -> ColumnKind:
        """Kind of the shard column that holds the conditions."""

    @abstractmethod
    def encode(self, value: Value, where: str, error: type[RegardError] = DataError) -> np.ndarray:
        """A condition as a row of the shards."""

    @abstractmethod
    def describe(self, row: np.ndarray) -> str:
        """A row of the shards as a user would write it."""

    @abstractmethod
    def source(self, rows: Sequence[np.ndarray]) -> Tokens:
        """Rows as the source of a model, one position each."""

    @abstractmethod
    def plain(self) -> dict[str, Any]:
        """What condition.json holds."""

    def save(self, folder: Path) -> None:
        """Write condition.json."""
        write_text_atomically(folder / CONDITION_FILE, json.dumps(self.plain(), ensure_ascii=False, indent=1) + "\n")


@dataclass(frozen=True)
class ClassCondition(Condition):
    """One of the classes of the training data, in alphabetical order.

    >>> condition = ClassCondition.count(["verse", "prose", "verse"], "poems.csv")
    >>> condition.source([condition.encode("verse", "line 1")]).data
    tensor([[1]])
    """

    names: tuple[str, ...]
    counts: tuple[int, ...]
    """training texts of each class"""

    @classmethod
    def count(cls, names: Sequence[str], where: str) -> ClassCondition:
        """The classes of training texts."""
        counts = Counter(names)
        if 2 * len(counts) > max(counts.total(), 20):
            raise DataError(
                f"{where}: there are {len(counts):,} different classes for {counts.total():,} texts, such as "
                f'"{next(iter(counts))[:40]}"; is it the column of the class?'
            )
        return cls(tuple(sorted(counts)), tuple(counts[name] for name in sorted(counts)))

    @property
    def summary(self) -> str:
        more = f", and {len(self.names) - MAX_LISTED} more" if len(self.names) > MAX_LISTED else ""
        return f"one of {', '.join(self.names[:MAX_LISTED])}{more}"

    def space(self) -> Space:
        return Classes(len(self.names))

    def column(self) -> ColumnKind:
        return len(self.names)

    def encode(self, value: Value, where: str, error: type[RegardError] = DataError) -> np.ndarray:
        name = " ".join(str(value).split())
        if name not in self.names:
            close = difflib.get_close_matches(name, self.names, n=1)
            guess = f"; did you mean {close[0]}?" if close else ""
            raise error(f'{where}: expected {self.summary}, got "{name[:40]}"{guess}')
        return np.array([self.names.index(name)])

    def describe(self, row: np.ndarray) -> str:
        return self.names[int(row[0])]

    def source(self, rows: Sequence[np.ndarray]) -> Tokens:
        return Tokens.full(torch.from_numpy(np.array(rows, np.int64).reshape(len(rows), 1)))

    def plain(self) -> dict[str, Any]:
        return {"kind": "class", "names": list(self.names), "counts": list(self.counts)}


@dataclass(frozen=True)
class NumberCondition(Condition):
    """A row of numbers, standardized by the training data.

    >>> condition = NumberCondition(StandardScaler(("x", "y"), (1.0, 0.0), (2.0, 1.0)))
    >>> condition.encode("5, 3", "--condition"), condition.describe(condition.encode((5, 3), ""))
    (array([2., 3.], dtype=float32), '5, 3')
    """

    scaler: StandardScaler

    @property
    def summary(self) -> str:
        names = self.scaler.names
        return f"{len(names)} numbers ({', '.join(names)})" if len(names) > 1 else f"a number ({names[0]})"

    def space(self) -> Space:
        return Values(len(self.scaler.names))

    def column(self) -> ColumnKind:
        return "float32"

    def encode(self, value: Value, where: str, error: type[RegardError] = DataError) -> np.ndarray:
        if isinstance(value, str):
            cells: Sequence[Any] = value.replace(",", " ").replace(";", " ").split()
        else:
            cells = [value] if isinstance(value, int | float) else list(value)
        wrong = [str(cell) for cell in cells if isinstance(cell, bool) or not is_number(str(cell))]
        if wrong:
            raise error(f'{where}: expected {self.summary}, and "{wrong[0][:40]}" is not a number')
        if len(cells) != len(self.scaler.names):
            raise error(f"{where}: expected {self.summary}, got {len(cells)}")
        return self.scaler.transform(np.array([[float(cell) for cell in cells]]))[0]

    def describe(self, row: np.ndarray) -> str:
        exact = self.scaler.inverse_transform(row[None].astype(np.float64))[0]
        digits = [5 - int(np.floor(np.log10(scale))) for scale in self.scaler.scale]  # float32 has no more
        return ", ".join(f"{round(number, places):.6g}" for number, places in zip(exact.tolist(), digits, strict=True))

    def source(self, rows: Sequence[np.ndarray]) -> Tokens:
        return Tokens.full(torch.from_numpy(np.array(rows, np.float32).reshape(len(rows), 1, -1)))

    def plain(self) -> dict[str, Any]:
        scaler = self.scaler
        return {"kind": "numbers", "names": list(scaler.names), "mean": list(scaler.mean), "scale": list(scaler.scale)}


def fit_condition(values: Sequence[Any], names: Sequence[str], where: str) -> Condition:
    """The condition of training texts: the numbers of these names, or without names a class."""
    if not values:
        raise DataError(f"{where}: there is no text to train on; lower data.valid_share, or give more rows")
    if not names:
        return ClassCondition.count(values, where)
    return NumberCondition(StandardScaler.fit(NumericTable(tuple(names), np.array(values, np.float64))))


def load_condition(folder: Path) -> Condition:
    """Read condition.json."""
    try:
        found = parse_json(read_kept(folder / CONDITION_FILE))
        names = tuple(map(str, found["names"]))
        if found["kind"] == "class":
            return ClassCondition(names, tuple(map(int, found["counts"])))
        mean, scale = tuple(map(float, found["mean"])), tuple(map(float, found["scale"]))
        if not len(names) == len(mean) == len(scale):
            raise ValueError
        return NumberCondition(StandardScaler(names, mean, scale))
    except (OSError, ValueError, KeyError, TypeError):
        raise ModelError(
            f"{folder / CONDITION_FILE} cannot be read: expected the names of classes, or of numbers and their scale"
        ) from None


def require_no_condition(value: Value | None) -> None:
    """Refuse a condition for a model that has none."""
    if value is not None:
        raise ConfigError(
            f'--condition "{value}": this model was trained without a condition; leave it out, or train one with '
            'data.kind = "conditioned" and model.condition = "start" or "every"'
        )
