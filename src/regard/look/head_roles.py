"""Head roles by measured statistics: how much of a head's weight goes to the previous token, to duplicates, and so on.

Each statistic is a mean over the queries that it applies to, of one recorded text, so a short text says little: a head
without a query that repeats a token has no number for duplicates and induction. A role is the statistic with the
largest number, if that is at least `ROLE`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from regard.errors import ModelError
from regard.look.head_importance import WEIGHTS, AttentionHead
from regard.look.matrix import Matrix
from regard.look.terminal import ColorDepth
from regard.look.view import MatrixView
from regard.trace import Record

ROLE = 0.5
"""smallest number that makes a role"""
MIN_KEYS = 4
"""fewest keys with which a head can have a role"""
STATISTICS = {
    "previous token": "mean weight of each query on the token before it",
    "current token": "mean weight of each query on its own position",
    "next token": "mean weight of each query on the token after it",
    "first token": "mean weight of each query but the first on the first token",
    "duplicate token": "mean weight on other positions with the query's own token, over queries whose token is "
    "repeated",
    "induction": "mean weight on the token that followed an earlier occurrence of the query's token, over queries "
    "whose token occurred before (Olsson et al. 2022)",
    "diagonal alignment": "correlation of query and key positions, each pair weighted by its attention: 1 if the text "
    "is aligned in order, 0 if position says nothing, below 0 if the order is reversed",
}
"""name -> definition"""
SELF = ("previous token", "current token", "next token", "first token", "duplicate token", "induction")
CROSS = ("first token", "diagonal alignment")


@dataclass(frozen=True)
class HeadRole:
    """The statistics of one head."""

    head: AttentionHead
    statistics: dict[str, float]
    """those that apply; NaN where no query of this text has one"""
    keys: int = MIN_KEYS
    """number of keys: among few, even equal weights are large"""

    @property
    def role(self) -> str:
        """The statistic with the largest number, if that is large enough; else empty."""
        known = {name: value for name, value in self.statistics.items() if value == value}
        best = max(known, key=known.__getitem__, default="")
        return best if best and known[best] >= ROLE and self.keys >= MIN_KEYS else ""

    def to_dict(self) -> dict[str, Any]:
        """Plain data; a number that does not apply is None."""
        numbers = {name: value if value == value else None for name, value in self.statistics.items()}
        return {"name": self.head.name, "head": self.head.head, "role": self.role, "statistics": numbers}


@dataclass(frozen=True, eq=False)
class HeadRolesView(MatrixView):
    """Statistics (columns) of all heads (rows), with their roles."""

    heads: list[HeadRole]

    @property
    def matrix(self) -> Matrix:
        numbers = np.array([[one.statistics.get(name, np.nan) for name in STATISTICS] for one in self.heads])
        rows = tuple(f"{one.head.label}{f': {one.role}' if one.role else ''}" for one in self.heads)
        return Matrix(
            numbers, rows, tuple(STATISTICS), "head roles: mean weights and correlations", "head", "statistic",
            summary_words=("numbers", "has most"),
        )  # fmt: skip

    def text(self, width: int | None = None, color: ColorDepth | None = None) -> str:
        """A line per head: its role and its numbers, and the definitions below."""
        wide = max(len(one.head.label) for one in self.heads)
        head = " ".join(f"{name.split()[0]:>9}" for name in STATISTICS)
        lines = [f"{'head roles':{wide}} {head}  role"]
        for one in self.heads:
            values = [one.statistics.get(name, np.nan) for name in STATISTICS]
            numbers = " ".join("        –" if value != value else f"{value:9.2f}" for value in values)
            lines.append(f"{one.head.label:{wide}} {numbers}  {one.role}".rstrip())
        return "\n".join([*lines, *(f"{name}: {text}" for name, text in STATISTICS.items())])

    def to_dict(self) -> dict[str, Any]:
        return {"definitions": STATISTICS, "heads": [one.to_dict() for one in self.heads]}


def head_roles(records: Sequence[Record]) -> list[HeadRole]:
    """Statistics of all heads of condensed records, in the order of computation."""
    found = []
    for record in records:
        if record.name.rpartition(".")[2] != WEIGHTS or record.axes != ("batch", "head", "query", "key"):
            continue
        labels = [record.labels.get(axis) for axis in ("query", "key")]
        same = labels[0] is labels[1] and record.data.shape[2] == record.data.shape[3]
        tokens = list(labels[0][0]) if same and labels[0] is not None else []
        for head, weights in enumerate(record.data[0].double().numpy()):
            names = SELF if same else CROSS
            values = {name: STATISTIC[name](weights, tokens) for name in names}
            found.append(HeadRole(AttentionHead(record.name, head, record.data.shape[1]), values, weights.shape[1]))
    return found


def head_roles_view(records: Sequence[Record]) -> HeadRolesView:
    """The view behind Recording.head_roles()."""
    found = head_roles(records)
    if not found:
        raise ModelError("head roles need attention heads, and this model has none; use --view states")
    return HeadRolesView(found)


def _mean_diagonal(weights_TL: np.ndarray, tokens: Sequence[str], by: int) -> float:
    diagonal = np.diagonal(weights_TL, by)
    return float(diagonal.mean()) if diagonal.size else np.nan


def _first(weights_TL: np.ndarray, tokens: Sequence[str]) -> float:
    return float(weights_TL[1:, 0].mean()) if len(weights_TL) > 1 else np.nan


def _mean_where(weights_TL: np.ndarray, target_TL: np.ndarray) -> float:
    """Mean over the queries that have a target, of the weight on all of its targets."""
    rows = target_TL.any(1)
    return float((weights_TL * target_TL).sum(1)[rows].mean()) if rows.any() else np.nan


def _equal(tokens: Sequence[str]) -> np.ndarray:
    words = np.array(tokens, dtype=object)
    return (words[:, None] == words[None]).astype(bool)


def _duplicate(weights_TL: np.ndarray, tokens: Sequence[str]) -> float:
    if len(tokens) != len(weights_TL):
        return np.nan
    visible = weights_TL > 0  # a masked key is no duplicate that could be seen
    return _mean_where(weights_TL, _equal(tokens) & ~np.eye(len(tokens), dtype=bool) & visible)


def _induction(weights_TL: np.ndarray, tokens: Sequence[str]) -> float:
    if len(tokens) != len(weights_TL):
        return np.nan
    earlier = np.tril(_equal(tokens), -1)  # query i, earlier position j with the same token
    target = np.zeros_like(earlier)
    target[:, 1:] = earlier[:, :-1]  # the token after it
    return _mean_where(weights_TL, target)


def _alignment(weights_TL: np.ndarray, tokens: Sequence[str]) -> float:
    """Correlation of two positions under the weights."""
    total = weights_TL.sum()
    if min(weights_TL.shape) < 2 or total <= 0:
        return np.nan
    share = weights_TL / total
    rows, columns = (np.arange(size) for size in share.shape)
    of_row, of_column = share.sum(1), share.sum(0)
    row_mean, column_mean = of_row @ rows, of_column @ columns
    variances = (of_row @ (rows - row_mean) ** 2, of_column @ (columns - column_mean) ** 2)
    if min(variances) < 1e-12:
        return np.nan
    return float((rows - row_mean) @ share @ (columns - column_mean) / np.sqrt(variances[0] * variances[1]))


STATISTIC = {
    "previous token": lambda weights, tokens: _mean_diagonal(weights, tokens, -1),
    "current token": lambda weights, tokens: _mean_diagonal(weights, tokens, 0),
    "next token": lambda weights, tokens: _mean_diagonal(weights, tokens, 1),
    "first token": _first,
    "duplicate token": _duplicate,
    "induction": _induction,
    "diagonal alignment": _alignment,
}
"""name -> statistic of the weights (queries, keys) of a head over a text"""
