"""Activation patching between two texts: which layer and position carries what makes an output probable.

The pass of one text is run again with the value of one layer at one position taken from the pass of another text, for
every layer and position, and the change of the log-probability of the chosen output is shown (Meng et al. 2022,
"Locating and Editing Factual Associations in GPT"). Patched are residual streams, and hidden states of recurrent layers
(an LSTM's cell is not patched). Both texts have the same number of tokens; the answer that is read is the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from regard.errors import ConfigError, ModelError
from regard.look import svg
from regard.look.color_scales import DivergingScale
from regard.look.decoding_path import layer_number
from regard.look.matrix import Matrix
from regard.look.replay import Replacement, Replay
from regard.look.states import is_backwards
from regard.look.terminal import heat_map
from regard.look.tokens import token_label
from regard.look.view import View
from regard.trace import Record

KINDS = ("residual", "hidden")
ROWS = 32
"""positions that are patched in one pass, each in a copy of the input"""


@dataclass(frozen=True)
class PatchGrid:
    """Changes of the log-probability for one side: a row per layer, a column per position."""

    side: str
    tokens: list[str]
    other: list[str]
    """tokens of the other text"""
    layers: list[str]
    changes: np.ndarray
    """(layers, positions)"""

    def matrix(self, title: str, top: float) -> Matrix:
        """The changes as a heat map; a position at which the texts differ names both tokens."""
        pairs = zip(self.tokens, self.other, strict=True)
        columns = tuple(one if one == two else f"{one} ← {two}" for one, two in pairs)
        return Matrix(
            self.changes, tuple(self.layers), columns, title, "layer", self.side, color_scale=DivergingScale(top),
            summary_words=("numbers", "changes most at"),
        )  # fmt: skip


@dataclass(frozen=True, eq=False)
class PatchingView(View):
    """Change of an output's log-probability by each layer and position that is taken from the other text."""

    title: str
    grids: list[PatchGrid]
    log_prob: float
    """of the output after its own text"""
    other_log_prob: float
    """of the same output after the other text"""

    @property
    def top(self) -> float:
        """The largest absolute change."""
        return max((float(np.abs(grid.changes).max(initial=0.0)) for grid in self.grids), default=0.0)

    @property
    def note(self) -> str:
        return f"log-probability {self.log_prob:.4f}; after the other text {self.other_log_prob:.4f}"

    def text(self, *args: Any, **options: Any) -> str:
        """A heat map per side."""
        maps = [heat_map(grid.matrix(self.title, self.top), *args, **options) for grid in self.grids]
        return "\n".join([*maps, self.note])

    def svg(self) -> str:
        """The heat map of the side with the largest change."""
        best = max(self.grids, key=lambda grid: float(np.abs(grid.changes).max(initial=0.0)))
        return svg.heat_map(best.matrix(f"{self.title}; {self.note}", self.top))

    def to_dict(self) -> dict[str, Any]:
        grids = [
            {
                **vars(grid),
                "changes": grid.changes.tolist(),
                "tokens": [token_label(token) for token in grid.tokens],
                "other": [token_label(token) for token in grid.other],
            }
            for grid in self.grids
        ]
        return self._fields("title", "log_prob", "other_log_prob") | {"grids": grids}


def patching_steps(replay: Replay, other: Replay, at: int = 0) -> Iterator[tuple[int, int] | PatchingView]:
    """(passes done, passes in all), and the view at the end; `other` is the same pass over the other text."""
    output = replay.check(at)
    check_lengths(replay, other)
    trace, _ = other.record()
    values = {name: records for name, records in _by_name(trace.records).items() if _is_stream(records)}
    if not values:
        raise ModelError("activation patching needs layers with a residual stream or hidden states, and found none")
    before, elsewhere = (one.log_probs()[0, at].item() for one in (replay, other))
    sizes = {name: _positions(records) for name, records in values.items()}
    total, done = sum(-(-size // ROWS) for size in sizes.values()), 0
    rows: dict[str, dict[str, np.ndarray]] = {}
    for name, records in values.items():
        changes = np.zeros(sizes[name])
        for start in range(0, sizes[name], ROWS):
            places = torch.arange(start, min(start + ROWS, sizes[name]))
            found = replay.log_probs({name: patch(records, places)}, rows=len(places))[:, at]
            changes[start : start + ROWS] = (found - before).cpu().numpy()
            done += 1
            yield done, total
        side = "source" if name.startswith("encoder") else "target"
        rows.setdefault(side, {})[_layer_title(name)] = changes[::-1] if is_backwards(records[0]) else changes
    title = f"log-probability of {token_label(output.token)}: change by patching each layer and position"
    grids = [_grid(side, found, replay, other) for side, found in rows.items()]
    yield PatchingView(title, grids, before, elsewhere)


def patch(records: Sequence[Record], places_R: Tensor) -> Replacement:
    """Row r of a value gets the recorded one at position `places_R[r]`; a recurrent layer is tapped per position."""
    rows, call = torch.arange(len(places_R)), 0

    def replace(value: Tensor) -> Tensor:
        nonlocal call
        changed = value.clone()
        if "position" in records[0].axes:
            changed[rows, places_R] = records[0].data[0, places_R].to(value)
        elif call < len(records):
            changed[places_R == call] = records[call].data[0].to(value)
        call += 1
        return changed

    return replace


def check_lengths(replay: Replay, other: Replay) -> None:
    """Refuse two texts with different numbers of tokens: their positions do not correspond."""
    lengths: Callable[[Replay], tuple[int, int]] = lambda one: (_length(one.source), len(one.read or ()))  # noqa: E731
    here, there = lengths(replay), lengths(other)
    if here != there:
        at = 0 if here[0] != there[0] else 1
        raise ConfigError(
            f"patching needs two texts with the same number of tokens; this one has {here[at]}, the other {there[at]}: "
            "change one word for another of the same length in tokens"
        )


def _length(source: Any) -> int:
    data = getattr(source, "data", None)
    return 0 if data is None else int(data.shape[1])


def _by_name(records: Sequence[Record]) -> dict[str, list[Record]]:
    found: dict[str, list[Record]] = {}
    for record in records:
        found.setdefault(record.name, []).append(record)
    return found


def _is_stream(records: Sequence[Record]) -> bool:
    """Whether records are a layer's output at each position."""
    first = records[0]
    if first.name.rpartition(".")[2] not in KINDS or not _positions(records):
        return False
    return first.axes == ("batch", "position", "width") or (first.axes == ("batch", "width") and len(records) > 0)


def _positions(records: Sequence[Record]) -> int:
    return records[0].data.shape[1] if "position" in records[0].axes else len(records)


def _layer_title(name: str) -> str:
    number, backward = layer_number(name), " backward" if "backward" in name else ""
    if number is not None:
        return f"layer {number}{backward}"
    return f"input{backward}" if name.count(".") == 1 else f"layer{backward}"


def _grid(side: str, rows: dict[str, np.ndarray], replay: Replay, other: Replay) -> PatchGrid:
    size = max(len(row) for row in rows.values())
    kept = {name: row for name, row in rows.items() if len(row) == size}
    tokens, others = (_labels(one.tokens.get(side, ()), size) for one in (replay, other))
    return PatchGrid(side, tokens, others, list(kept), np.stack(list(kept.values())))


def _labels(tokens: Sequence[str], size: int) -> list[str]:
    return [*tokens[:size], *(str(i + 1) for i in range(len(tokens[:size]), size))]
