"""Packing: documents fill windows one after the other, and no token attends to another document than its own.

A document is read from an <EOS> of its own to its last token, and predicts from its first token to the <EOS> that ends
it; the <EOS> at its end predicts nothing. A document that is cut by the border of a window is continued in the next
without what was before. Positions count from 0 in each document and in each window.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from regard.errors import ConfigError


@dataclass(frozen=True)
class PackedDocuments:
    """Documents that end with <EOS> in one row, as if an <EOS> also stood before each of them.

    >>> row = PackedDocuments(np.array([5, 6, 3, 7, 3]), eos=3)
    >>> len(row), row.at(np.arange(7))
    (7, (array([3, 5, 6, 3, 3, 7, 3]), array([0, 0, 0, 0, 1, 1, 1]), array([0, 1, 2, 3, 0, 1, 2])))
    """

    ids: np.ndarray
    """(N,)"""
    eos: int

    @cached_property
    def begins(self) -> np.ndarray:
        """Position of the <EOS> before each document."""
        ends = np.flatnonzero(self.ids == self.eos)
        starts = np.concatenate([[0], ends + 1])
        starts = starts[starts < len(self.ids)]
        return starts + np.arange(len(starts))

    def __len__(self) -> int:
        return len(self.ids) + len(self.begins)

    @property
    def targets(self) -> int:
        """Number of tokens that are predicted: all of them, ends included."""
        return len(self.ids)

    def at(self, positions: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Ids at these positions, the number of the document of each, and its position in the document."""
        documents = np.searchsorted(self.begins, positions, side="right") - 1
        inside = positions - self.begins[documents]
        ids = self.ids[(positions - documents - 1).clip(0)]
        return np.where(inside == 0, self.eos, ids), documents, inside


TokenRow = np.ndarray | PackedDocuments
"""A running text, as one row of ids or numbers, or as packed documents."""


def target_count(row: TokenRow) -> int:
    """Number of positions that are predicted."""
    return row.targets if isinstance(row, PackedDocuments) else len(row) - 1


def check_packing(packing: str, data: Any, kind: str, is_recurrent: bool) -> None:
    """Refuse packed documents without documents, and for a model that does not attend."""
    if packing == "blocks":
        return
    if getattr(data, "unit", "file") == "file":
        raise ConfigError(
            f'task.packing = "{packing}" needs texts that end, and data.kind = "{data.kind}" is one running text here; '
            'set data.unit = "line", "paragraph" or "document", or task.packing = "blocks"'
        )
    if is_recurrent:
        raise ConfigError(
            f'task.packing = "{packing}": model.kind = "{kind}" has a hidden state, which would run on from one '
            'document into the next; use a model that attends (gpt, llama), or task.packing = "blocks"'
        )
