"""What a layer held after each token, unit by unit: hidden states, cells, gates, residual streams, contexts.

A recurrent layer gives one record a position, a Transformer's one for all; both become (token, unit). What was read
backwards is turned, so that it stands under the token it was read at. What a decoder begins from is one vector, before
any token.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from regard.errors import ConfigError, ModelError
from regard.look import decoding_path, svg, terminal
from regard.look.color_scales import Scale, Share, Signed
from regard.look.highlighted_text import ColouredText
from regard.look.matrix import Matrix
from regard.look.terminal import Colour
from regard.trace import Record

KINDS = ("hidden", "residual", "features")
"""What is shown unless told, the first that was recorded."""
DRAWN = 12
"""units that are drawn unless told"""
START = "(start)"
"""stands where a token would, under what a decoder begins from"""


@dataclass(frozen=True, eq=False)
class StatesView:
    """The numbers that some units held after each token.

    >>> values = np.array([[0.5, -0.5], [-1.0, 0.0]])
    >>> view = StatesView("decoder.hidden", values, ["je", "suis"], [3, 7], width=8, reach=1.0)
    >>> view.title
    'decoder.hidden, 2 of 8 units'
    >>> print(view.text(width=60, colour="none").splitlines()[3])
    je    ▒+0.50 ▒-0.50
    """

    name: str
    """of the record, such as "decoder.stack.layers.0.hidden\""""
    values: np.ndarray
    """(tokens, units), as the model used them"""
    tokens: list[str]
    """what was read"""
    units: list[int]
    """which units these are"""
    width: int
    """how many units the layer has"""
    reach: float
    """what the strongest colours stand for: the largest absolute value of all units over these tokens; 1 where that is
    nearly 1, as in states that a tanh bounds, and of gates"""
    gate: str | None = None
    """which gate, such as "forget"; None: not a gate"""
    layer: int | None = None
    side: str = "target"
    """whose tokens they are"""
    signed: bool = True
    """whether values may be below 0; those of a sigmoid are not"""

    @property
    def title(self) -> str:
        gate = f", {self.gate} gate" if self.gate else ""
        units = f"unit {self.units[0]}" if len(self.units) == 1 else f"{len(self.units)}"
        return f"{self.name}{gate}, {units} of {self.width}{' units' if len(self.units) != 1 else ''}"

    @property
    def scale(self) -> Scale:
        """How values become colours."""
        return Signed(self.reach) if self.signed else Share(self.reach)

    @property
    def matrix(self) -> Matrix:
        """A row a unit, a column a token: time runs to the right."""
        rows, spoken = tuple(map(str, self.units)), ("values", "is highest")
        return Matrix(
            self.values.T, rows, tuple(self.tokens), self.title, "unit", self.side, given=self.scale, spoken=spoken
        )

    def svg(self) -> str:
        """The picture as one SVG text; it needs no other file."""
        return svg.picture(self.matrix)

    def text(self, width: int | None = None, colour: Colour | None = None) -> str:
        """The picture in characters, a line a token: texts are long, and terminals scroll down."""
        columns = tuple(map(str, self.units))
        turned = Matrix(self.values, tuple(self.tokens), columns, self.title, self.side, "unit", given=self.scale)
        return terminal.heat_map(turned, width, colour)

    def coloured(self, unit: int | None = None) -> ColouredText:
        """The text, each token on the colour of one unit's value (Karpathy et al. 2015); the first unit unless told."""
        unit = self.units[0] if unit is None else unit
        if unit not in self.units:
            raise ConfigError(f"unit: this view has the units {', '.join(map(str, self.units))}, got {unit}")
        at, gate = self.units.index(unit), f", {self.gate} gate" if self.gate else ""
        title = f"{self.name}{gate}, unit {unit} of {self.width}"
        values = self.values[:, at]
        largest = float(np.abs(values[np.isfinite(values)]).max(initial=0.0))
        if self.gate or self.reach == 1 or not largest:
            return ColouredText(title, list(self.tokens), values, self.scale)
        # on the scale of all units one that hardly moves would be blank
        scale, told = replace(self, reach=largest).scale, f"colours reach as far as this unit does, ±{largest:.4g}"
        return ColouredText(title, list(self.tokens), values, scale, told)

    def to_dict(self) -> dict[str, Any]:
        """Plain data that JSON can hold."""
        return {
            "name": self.name,
            "layer": self.layer,
            "gate": self.gate,
            "side": self.side,
            "tokens": list(self.tokens),
            "units": list(self.units),
            "width": self.width,
            "range": list(self.scale.ends),
            "values": self.values.tolist(),
        }

    def _repr_html_(self) -> str:
        return self.svg()

    def __repr__(self) -> str:
        return f"StatesView({self.title!r}, {len(self.tokens)} tokens)"


def view(
    records: Sequence[Record],
    spell: decoding_path.Spell,
    which: tuple[str | None, int | None],
    units: Sequence[int] | None,
    where: tuple[int, Sequence[int] | None],
) -> StatesView:
    """The states that Recording.states() is asked for: `which` (name, layer), `where` (row, said).

    >>> seen = Record("encoder.hidden", ("batch", "width"), torch.tensor([[0.5]]), {}, {"position": 0})
    >>> view([seen], {}, (None, None), None, (0, None)).values
    array([[0.5]], dtype=float32)
    """
    name, gate = choose(records, *which)
    found, source = decoding_path.sentence(name, records, where[0])
    path = found.path(source, where[1])
    values, record = _joined(path, gate), path[0][0]
    tokens = _tokens(path[0], decoding_path.told(found, source, where[1], spell), len(values), spell)
    values = _in_order(values[: len(tokens)], record)
    chosen = moving(values) if units is None else _checked(units, values.shape[1], name)
    signed = bool((values < 0).any()) or gate is None
    largest = float(np.abs(values[np.isfinite(values)]).max(initial=0.0))
    reach = 1.0 if gate is not None or 0.5 < largest <= 1 else largest
    return StatesView(
        name, values[:, chosen], tokens, chosen, values.shape[1], reach, gate, decoding_path.layer(name),
        decoding_path.reader(record), signed,
    )  # fmt: skip


def choose(
    records: Sequence[Record],
    pattern: str | None = None,
    layer: int | None = None,
    reader: str = "source",
    unless: int = -1,
) -> tuple[str, str | None]:
    """The record and the gate that are meant by a pattern of names, a kind ("cell") or a gate ("forget").

    A gate is called as its record, with its own name at the end: "decoder.*.forget" is a pattern too. Of several that
    fit, those along a text before what a decoder begins from, and those that the `reader` side read before the other's;
    with no layer that of the layers that `unless` counts to, -1 the last.

    >>> seen = Record("encoder.cell", ("batch", "width"), torch.ones(1, 1), {}, {"position": 0})
    >>> choose([seen], "cell")
    ('encoder.cell', None)
    """
    found = _named(records)
    if not found:
        raise ModelError(
            f"no states were recorded, only {len({r.name for r in records})} other names; did the model read something "
            "inside the block?"
        )
    if pattern is None:
        whole = [name for name, (_, gate) in found.items() if gate is None]
        read = [name for name in whole if decoding_path.reader(found[name][0]) == reader]
        fitting = preferred(read) or preferred(whole)
    else:
        fits = [n for n in found if fnmatch.fnmatchcase(n, pattern) or n.rpartition(".")[2] == pattern]
        fitting = preferred(fits)
    if not fitting:
        raise ConfigError(f"name: no state and no gate is called {pattern!r}; there are {', '.join(found)}")
    fitting = [name for name in fitting if not begins(found[name][0])] or fitting
    nearer = [name for name in fitting if decoding_path.reader(found[name][0]) == reader] or fitting
    number = decoding_path.layer(nearer[unless if layer is None else -1]) if layer is None or layer == -1 else layer
    numbered: dict[int | None, str] = {}
    for name in (*nearer, *fitting):
        numbered.setdefault(decoding_path.layer(name), name)  # of two directions the one that reads onward is first
    record, gate = found[decoding_path.numbered(numbered, number, "those states")]
    return record.name, gate


def _named(records: Sequence[Record]) -> dict[str, tuple[Record, str | None]]:
    """All states and gates by name, the first record of each."""
    found: dict[str, tuple[Record, str | None]] = {}
    for record in filter(is_state, records):
        if "gate" not in record.axes:
            found.setdefault(record.name, (record, None))
            continue
        for gate in gates(record):
            found.setdefault(f"{record.name}.{gate}", (record, gate))
    return found


def gates(record: Record) -> list[str]:
    """The names along the gate axis; numbers where nobody named them.

    >>> gates(Record("gates", ("batch", "gate", "width"), torch.ones(1, 2, 3), {"gate": ("reset", "update")}, {}))
    ['reset', 'update']
    """
    named = record.labels.get("gate")
    return list(named) if named else [str(i) for i in range(record.data.shape[record.axes.index("gate")])]


def is_state(record: Record) -> bool:
    """Whether a record holds one vector a position, one a gate and position, or one before the first position.

    >>> is_state(Record("decoder.features", ("batch", "position", "width"), torch.ones(1, 2, 3), {}, {}))
    True
    >>> context = "batch", "head", "query", "width"
    >>> [is_state(Record("cross.context", context, torch.ones(1, heads, 2, 3), {}, {})) for heads in (1, 8)]
    [True, False]
    """
    axes = set(record.axes)
    if axes == {"batch", "head", "query", "width"}:
        return record.data.shape[record.axes.index("head")] == 1
    along = "position" in axes or "position" in record.scene or begins(record)
    return along and {"batch", "width"} <= axes <= {"batch", "position", "gate", "width"}


def begins(record: Record) -> bool:
    """Whether a record is what a decoder has before it reads its first word: one vector, with no place in a text.

    >>> begins(Record("decoder.context", ("batch", "width"), torch.ones(1, 2), {}, {"begins": True}))
    True
    """
    return bool(record.scene.get("begins"))


def preferred(names: Sequence[str]) -> list[str]:
    """Those of the usual kind that comes first; where there is none, those of the last one's kind.

    >>> preferred(["encoder.gates.forget", "encoder.cell", "encoder.hidden"])
    ['encoder.hidden']
    """
    kinds = [name.rpartition(".")[2] for name in names]
    kind = next((kind for kind in KINDS if kind in kinds), kinds[-1] if kinds else "")
    return [name for name, own in zip(names, kinds) if own == kind]


def _joined(path: Sequence[tuple[Record, int]], gate: str | None) -> np.ndarray:
    """(positions, units): one position after the other, in the order of reading."""
    parts = []
    for record, row in path:
        tensor, axes = record.data.detach()[row].cpu(), list(record.axes)
        axes.remove("batch")
        if gate is not None:
            tensor = tensor.select(axes.index("gate"), gates(record).index(gate))
            axes.remove("gate")
        tensor = tensor.float() if tensor.dtype in (torch.bfloat16, torch.float16) else tensor
        numbers = tensor.reshape(-1, tensor.shape[-1]).numpy()
        parts.append(numbers[: decoding_path.prompt_length(record, row) if {"position", "query"} & set(axes) else None])
    return np.concatenate(parts)


def _tokens(first: tuple[Record, int], said: list[str] | None, length: int, spell: decoding_path.Spell) -> list[str]:
    """The tokens that were read: the words given, or the prompt and what was said; numbers where nobody knows."""
    record, row = first
    if begins(record):
        return [START]
    read = decoding_path.read_words(record, row, spell)
    if said is not None and decoding_path.reader(record) == "target":
        read = [*(read or []), *said][:length]
    if read is None:
        return [str(i + 1) for i in range(length)]
    if len(read) > length:
        raise ModelError(f"{record.name}: {len(read)} words for {length} places; were the words of this pass given?")
    return read


def _in_order(values: np.ndarray, record: Record) -> np.ndarray:
    return values[::-1] if backwards(record) else values


def backwards(record: Record) -> bool:
    """Whether a record holds one position of many that are read from the last to the first.

    >>> backwards(Record("hidden", ("batch", "width"), torch.ones(1, 1), {}, {"position": 0, "backwards": True}))
    True
    """
    return "position" not in record.axes and bool(record.scene.get("backwards"))


def moving(values: np.ndarray, most: int = DRAWN) -> list[int]:
    """The units that move most over the tokens, by their standard deviation; the largest where there is one token.

    >>> moving(np.array([[0.0, 1.0, 5.0], [0.0, -1.0, 5.5]]), 2)
    [1, 2]
    """
    filled = np.nan_to_num(values.astype(np.float64))
    spread = filled.std(0) if len(filled) > 1 else np.abs(filled).sum(0)
    return np.argsort(-spread, kind="stable")[:most].tolist()


def _checked(units: Sequence[int], width: int, name: str) -> list[int]:
    wrong = [unit for unit in units if not 0 <= unit < width]
    if wrong or not units:
        raise ConfigError(f"unit: {name} has the units 0 to {width - 1}, got {wrong[0] if wrong else 'none'}")
    return list(units)
