"""States view: values of a layer's units after each token: hidden states, cells, gates, residual streams, contexts.

A recurrent layer gives one record per position, a Transformer's one for all; both become (tokens, units). States that
were computed backwards are reversed, so that they align with their tokens. The initial state of a decoder is one
vector, before any token.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from regard.errors import ConfigError, ModelError
from regard.look import decoding_path, terminal
from regard.look.color_scales import ColorScale, DivergingScale, LinearScale
from regard.look.highlighted_text import HighlightedText
from regard.look.matrix import Matrix
from regard.look.terminal import ColorDepth
from regard.look.view import MatrixView
from regard.trace import Record

KINDS = ("hidden", "residual", "features")
"""Default kinds of states: the first that was recorded is shown."""
DEFAULT_UNITS = 12
"""number of units that are shown by default"""
START = "(start)"
"""label of a decoder's initial state, in place of a token"""


@dataclass(frozen=True, eq=False)
class StatesView(MatrixView):
    """Values of some units of a layer after each token.

    >>> values = np.array([[0.5, -0.5], [-1.0, 0.0]])
    >>> view = StatesView("decoder.hidden", values, ["je", "suis"], [3, 7], width=8, max_abs=1.0)
    >>> view.title
    'decoder.hidden, 2 of 8 units'
    >>> print(view.text(width=60, color="none").splitlines()[3])
    je    ▒+0.50 ▒-0.50
    """

    name: str
    """of the record, such as "decoder.stack.layers.0.hidden\""""
    values: np.ndarray
    """(tokens, units), as the model used them"""
    tokens: list[str]
    """input tokens"""
    units: list[int]
    """indices of the units"""
    width: int
    """number of units of the layer"""
    max_abs: float
    """value of the strongest colors: the largest absolute value of all units over these tokens; 1 for gates and where
    that is nearly 1, as in states that a tanh bounds"""
    gate: str | None = None
    """name of the gate, such as "forget"; None: not a gate"""
    layer: int | None = None
    side: str = "target"
    """sequence of the tokens"""
    signed: bool = True
    """whether values may be below 0; those of a sigmoid are not"""

    @property
    def title(self) -> str:
        units = f"unit {self.units[0]}" if len(self.units) == 1 else f"{len(self.units)}"
        return f"{self._stem}, {units} of {self.width}{' units' if len(self.units) != 1 else ''}"

    @property
    def _stem(self) -> str:
        return f"{self.name}, {self.gate} gate" if self.gate else self.name

    @property
    def scale(self) -> ColorScale:
        return DivergingScale(self.max_abs) if self.signed else LinearScale(self.max_abs)

    @property
    def matrix(self) -> Matrix:
        """A row per unit, a column per token: time runs to the right."""
        return Matrix(
            self.values.T, tuple(map(str, self.units)), tuple(self.tokens), self.title, "unit", self.side,
            color_scale=self.scale, summary_words=("values", "is highest"),
        )  # fmt: skip

    def text(self, width: int | None = None, color: ColorDepth | None = None) -> str:
        """The states in characters, a line per token: texts are long, and terminals scroll down."""
        rows, columns = tuple(self.tokens), tuple(map(str, self.units))
        transposed = Matrix(self.values, rows, columns, self.title, self.side, "unit", color_scale=self.scale)
        return terminal.heat_map(transposed, width, color)

    def highlight(self, unit: int | None = None) -> HighlightedText:
        """The text on the colors of one unit's values (Karpathy et al. 2015); by default of the first unit."""
        unit = self.units[0] if unit is None else unit
        if unit not in self.units:
            raise ConfigError(f"unit: this view has the units {', '.join(map(str, self.units))}, got {unit}")
        title, values = f"{self._stem}, unit {unit} of {self.width}", self.values[:, self.units.index(unit)]
        largest = float(np.abs(values[np.isfinite(values)]).max(initial=0.0))
        if self.gate or self.max_abs == 1 or not largest:
            return HighlightedText(title, list(self.tokens), values, self.scale)
        # on the scale of all units one that hardly moves would be blank
        scale, note = replace(self, max_abs=largest).scale, f"colors range over the values of this unit, ±{largest:.4g}"
        return HighlightedText(title, list(self.tokens), values, scale, note)

    def to_dict(self) -> dict[str, Any]:
        limits = {"range": list(self.scale.limits)}
        names = ("name", "layer", "gate", "side", "tokens", "units", "width")
        return self._fields(*names) | limits | self._fields("values")

    def __repr__(self) -> str:
        return f"StatesView({self.title!r}, {len(self.tokens)} tokens)"


def states_view(
    records: Sequence[Record],
    id_to_token: decoding_path.IdToToken,
    which: tuple[str | None, int | None],
    units: Sequence[int] | None,
    where: tuple[int, Sequence[int] | None],
) -> StatesView:
    """The view behind Recording.states(): `which` is (name, layer), `where` is (row, hypothesis)."""
    name, gate = choose_state(records, *which)
    traced, source = decoding_path.find_sentence(name, records, where[0])
    path = traced.path(source, where[1])
    values, record = _join_steps(path, gate), path[0][0]
    tokens = _tokens(path[0], traced.answer_tokens(source, where[1], id_to_token), len(values), id_to_token)
    values = values[: len(tokens)]
    values = values[::-1] if is_backwards(record) else values
    chosen = most_variable_units(values) if units is None else _check_units(units, values.shape[1], name)
    signed = bool((values < 0).any()) or gate is None
    largest = float(np.abs(values[np.isfinite(values)]).max(initial=0.0))
    max_abs = 1.0 if gate is not None or 0.5 < largest <= 1 else largest
    return StatesView(
        name, values[:, chosen], tokens, chosen, values.shape[1], max_abs, gate, decoding_path.layer_number(name),
        decoding_path.input_side(record), signed,
    )  # fmt: skip


def choose_state(
    records: Sequence[Record],
    pattern: str | None = None,
    layer: int | None = None,
    side: str = "source",
    default: int = -1,
) -> tuple[str, str | None]:
    """Name of the record and of the gate that match a pattern of names, a kind ("cell") or a gate ("forget").

    A gate is named like its record, with its own name at the end: "decoder.*.forget" is a pattern too. States along a
    text come before initial states, and those over the `side` sequence before the other's; without a layer, `default`
    is the index of the layer, -1 for the last.
    """
    found = _state_names(records)
    if not found:
        others = len({r.name for r in records})
        hint = "did the model run inside the block?"
        if any("channel" in r.axes for r in records):
            hint = "a convolutional network has feature maps: maps(), or --view maps"
        raise ModelError(f"no states were recorded, only {others} other names; {hint}")
    if pattern is None:
        whole = [name for name, (_, gate) in found.items() if gate is None]
        read = [name for name in whole if decoding_path.input_side(found[name][0]) == side]
        matches = preferred_kind(read) or preferred_kind(whole)
    else:
        named = [n for n in found if fnmatch.fnmatchcase(n, pattern) or n.rpartition(".")[2] == pattern]
        matches = preferred_kind(named)
    if not matches:
        raise ConfigError(f"name: no state and no gate is called {pattern!r}; there are {', '.join(found)}")
    matches = [name for name in matches if not is_initial(found[name][0])] or matches
    nearer = [name for name in matches if decoding_path.input_side(found[name][0]) == side] or matches
    if layer is None or layer == -1:
        layer = decoding_path.layer_number(nearer[default if layer is None else -1])
    layers: dict[int | None, str] = {}
    for name in (*nearer, *matches):
        layers.setdefault(decoding_path.layer_number(name), name)  # of two directions the forward one is first
    record, gate = found[decoding_path.name_in_layer(layers, layer, "those states")]
    return record.name, gate


def _state_names(records: Sequence[Record]) -> dict[str, tuple[Record, str | None]]:
    """All states and gates by name, with the first record of each."""
    found: dict[str, tuple[Record, str | None]] = {}
    for record in filter(is_state, records):
        if "gate" not in record.axes:
            found.setdefault(record.name, (record, None))
            continue
        for gate in gate_names(record):
            found.setdefault(f"{record.name}.{gate}", (record, gate))
    return found


def gate_names(record: Record) -> list[str]:
    """Names along the gate axis, numbers if there are none."""
    names = record.labels.get("gate")
    return list(names) if names else [str(i) for i in range(record.data.shape[record.axes.index("gate")])]


def is_state(record: Record) -> bool:
    """Whether a record holds one vector per position, per gate and position, or one initial vector."""
    axes = set(record.axes)
    if axes == {"batch", "head", "query", "width"}:
        return record.data.shape[record.axes.index("head")] == 1
    along = "position" in axes or "position" in record.context or is_initial(record)
    return along and {"batch", "width"} <= axes <= {"batch", "position", "gate", "width"}


def is_initial(record: Record) -> bool:
    """Whether a record is an initial state of a decoder: one vector, before the first token."""
    return bool(record.context.get("begins"))


def is_backwards(record: Record) -> bool:
    """Whether a record is of positions that are read from the last to the first, in this order."""
    return bool(record.context.get("backwards")) and not record.context.get("condensed")


def preferred_kind(names: Sequence[str]) -> list[str]:
    """The names of the first default kind that is among them, else those of the last name's kind."""
    kinds = [name.rpartition(".")[2] for name in names]
    kind = next((kind for kind in KINDS if kind in kinds), kinds[-1] if kinds else "")
    return [name for name, own in zip(names, kinds) if own == kind]


def _join_steps(path: Sequence[tuple[Record, int]], gate: str | None) -> np.ndarray:
    """(positions, units), in the order of reading."""
    parts = []
    for record, row in path:
        tensor, axes = record.data.detach()[row].cpu(), list(record.axes)
        axes.remove("batch")
        if gate is not None:
            tensor = tensor.select(axes.index("gate"), gate_names(record).index(gate))
            axes.remove("gate")
        tensor = tensor.float() if tensor.dtype in (torch.bfloat16, torch.float16) else tensor
        numbers = tensor.reshape(-1, tensor.shape[-1]).numpy()
        parts.append(numbers[: decoding_path.prompt_length(record, row) if {"position", "query"} & set(axes) else None])
    return np.concatenate(parts)


def _tokens(
    first: tuple[Record, int], answer: list[str] | None, length: int, id_to_token: decoding_path.IdToToken
) -> list[str]:
    """Input tokens: those that were given, or the prompt and the answer; numbers if they are not known."""
    record, row = first
    if is_initial(record):
        return [START]
    read = decoding_path.input_tokens(record, row, id_to_token)
    if answer is not None and decoding_path.input_side(record) == "target":
        read = [*(read or []), *answer][:length]
    if read is None:
        return [str(i + 1) for i in range(length)]
    if len(read) > length:
        raise ModelError(f"{record.name}: {len(read)} tokens for {length} positions; are they the tokens of this pass?")
    return read


def most_variable_units(values: np.ndarray, most: int = DEFAULT_UNITS) -> list[int]:
    """The units with the largest standard deviation over the tokens; with the largest value if there is one token."""
    finite = np.nan_to_num(values.astype(np.float64))
    spread = finite.std(0) if len(finite) > 1 else np.abs(finite).sum(0)
    return np.argsort(-spread, kind="stable")[:most].tolist()


def _check_units(units: Sequence[int], width: int, name: str) -> list[int]:
    wrong = [unit for unit in units if not 0 <= unit < width]
    if wrong or not units:
        raise ConfigError(f"unit: {name} has the units 0 to {width - 1}, got {wrong[0] if wrong else 'none'}")
    return list(units)
