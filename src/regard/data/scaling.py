"""Standardization of numeric columns: mean 0 and standard deviation 1 on the training data."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from regard.config import plain
from regard.data.tables import NumericTable
from regard.errors import DataError, ModelError
from regard.files import parse_json, write_text_atomically
from regard.manifest import read_kept

SCALE_FILE = "scale.json"
FIELDS: dict[str, Any] = {"names": str, "mean": float, "scale": float}


@dataclass(frozen=True)
class StandardScaler:
    """Standardizes the columns of a table by the mean and standard deviation of the training data.

    >>> scaler = StandardScaler.fit(NumericTable(("load",), np.array([[1.0], [3.0]])))
    >>> scaler.transform(np.array([[5.0]])), scaler.inverse_transform(np.array([[3.0]]))
    (array([[3.]], dtype=float32), array([[5.]]))
    """

    names: tuple[str, ...]
    mean: tuple[float, ...]
    scale: tuple[float, ...]
    """standard deviation of each column; 1 if the column is constant"""

    @classmethod
    def fit(cls, table: NumericTable) -> StandardScaler:
        """The scaler of a table's columns."""
        scale = table.values.std(0)
        scale[scale == 0] = 1.0
        return cls(table.names, tuple(table.values.mean(0).tolist()), tuple(scale.tolist()))

    def transform(self, values: np.ndarray) -> np.ndarray:
        """Standardize rows; one with a number that overflows float32 is refused."""
        with np.errstate(over="ignore"):
            found: np.ndarray = ((values - np.array(self.mean)) / np.array(self.scale)).astype(np.float32)
        if np.isinf(found).any():
            row, column = (int(at[0]) for at in np.nonzero(np.isinf(found)))
            raise DataError(
                f"{values[row, column]:g} in column {self.names[column]} is too large: the mean in training was "
                f"{self.mean[column]:g}, the standard deviation {self.scale[column]:g}"
            )
        return found

    def inverse_transform(self, values: np.ndarray) -> np.ndarray:
        """Undo `transform`."""
        return values * np.array(self.scale) + np.array(self.mean)

    def save(self, path: Path) -> None:
        """Write a JSON file."""
        write_text_atomically(path, json.dumps(plain(self), indent=1) + "\n")

    @classmethod
    def load(cls, path: Path) -> StandardScaler:
        """Read the file that `save` wrote."""
        try:
            found = parse_json(read_kept(path))
            names, mean, scale = (tuple(map(kind, found[key])) for key, kind in FIELDS.items())
            if not len(names) == len(mean) == len(scale):
                raise ValueError
            return cls(names, mean, scale)
        except (OSError, ValueError, KeyError, TypeError):
            raise ModelError(f"{path} cannot be read: expected names, mean and scale of each column") from None
