"""Explanations: how each number of a recorded pass was computed, down to weights and inputs; from a tape of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from regard.errors import ModelError
from regard.look.explain.expressions import Expression, Number, Place, Vector, safe
from regard.look.explain.moves import CONSTANT
from regard.look.explain.nodes import ROOT, Operand, TapeNode
from regard.look.explain.operations import Look, rule_of
from regard.look.explain.tape import OperationTape
from regard.look.explain.walk import Elements, TapeWalk
from regard.look.explain.wording import describe, operation_title
from regard.nn.inference import SinusoidTable
from regard.trace import Record

MAX_LABELED = 1 << 22
"""numbers of a tensor up to which an operand's index in it is looked up"""
MAX_PARTS = 24
"""numbers and vectors of one expression; what is deeper is explained on request"""
WEIGHT_AXES = {
    1: ("row",),
    2: ("row", "column"),
    3: ("filter", "channel", "column"),
    4: ("filter", "channel", "row", "column"),
}
"""axes of weights by their number"""
KEY = 1 << 40
"""node x KEY + flat index is one number for both"""


@dataclass(frozen=True)
class Explanation:
    """One number: where it is, what was recorded, and the expression that gives it."""

    place: Place
    value: float
    """of the pass"""
    text: str
    expression: Expression | None
    """None: it is a weight, an input or a constant"""

    def to_dict(self) -> dict[str, Any]:
        return {
            "place": self.place.to_dict(),
            "value": safe(self.value),
            "text": self.text,
            "expression": None if self.expression is None else self.expression.to_dict(),
        }


def begin_tape(tape: OperationTape, module: nn.Module) -> None:
    """Name the weights of a module, and make tables of sinusoids again, so that their numbers are explained too."""
    tape.name_weights(module)
    for part in module.modules():
        if isinstance(part, SinusoidTable):
            with tape:
                made = part.sinusoids(torch.arange(part.size))
            tape.alias(part.table, made)


class Explainer:
    """Explains the numbers of condensed records that were made, like the pass itself, inside a tape.

    >>> from regard.trace import record, tap
    >>> layer = nn.Linear(2, 1)
    >>> model = nn.ModuleDict({"layer": layer})
    >>> with OperationTape() as tape, torch.no_grad():
    ...     begin_tape(tape, model)
    ...     with record(model) as trace:
    ...         _ = tap(layer, "output", layer(torch.tensor([[3.0, 4.0]])), "batch width")
    >>> found = Explainer(tape, trace.records, trace.records).explain("layer.output", {"width": 0})
    >>> type(found.expression.terms[0]).__name__, abs(found.expression.value - found.value) < 1e-6
    ('DotProduct', True)
    """

    def __init__(self, tape: OperationTape, raw: Sequence[Record], condensed: Sequence[Record]) -> None:
        self.tape, self.walk = tape, TapeWalk(tape)
        self.records = {record.name: record for record in condensed}
        self._recorded: dict[int, Record] = {}
        for record in raw:
            self._recorded.setdefault(self._tap_node(record), record)
        tapped = {record.name for record in raw}
        for record in condensed:  # such as the logit lens, which is computed from the records
            if record.name not in tapped and tape.knows(record.data):
                self._recorded.setdefault(tape.number(record.data), record)
        self._places: dict[str, tuple[Tensor, Tensor]] = {}

    def _tap_node(self, record: Record) -> int:
        """Node of the tensor that was tapped: a record holds a copy of it."""
        number = self.tape.number(record.data)
        while self.tape.nodes[number].operation in ("clone", "detach", "cpu", "to"):
            number = self.tape.nodes[number].operands[0]
        return number

    def explain(self, name: str, index: Mapping[str, int]) -> Explanation:
        """How a number of a tensor was computed; axes that are left out are at 0."""
        record = self.records[name]
        if not self.tape.knows(record.data):
            raise ModelError(f"{name} was not computed by torch operations")
        shape = record.data.shape
        at = [0, *(index.get(axis, 0) for axis in record.axes[1:])]
        flat = int(flat_index(at, shape))
        own = Place("tensor", name, {axis: at[i] for i, axis in enumerate(record.axes) if i}, "")
        here = self.walk.origin(Elements.of(self.tape.number(record.data), torch.tensor([flat])), self._recorded)
        return self._explain(here, own)

    def explain_ref(self, ref: str) -> Explanation:
        """How an operand of another explanation was computed; `ref` is that of its place."""
        try:
            node, flat, total = (int(part) for part in ref.split("."))
        except ValueError:
            node = flat = total = -1
        if (
            total != len(self.tape.nodes)
            or not 0 <= node < total
            or not 0 <= flat < self.tape.nodes[node].shape.numel()
        ):
            raise ModelError("this number belongs to another pass of the model; click the number in the trace again")
        here = Elements.of(node, torch.tensor([flat]))
        return self._explain(here, self._describe(here)[0])

    def _explain(self, here: Elements, place: Place) -> Explanation:
        value = float(self.walk.numbers(here))
        made = self._trace_back(here)
        node, flat = made.pairs()[0]
        if node == CONSTANT:
            return Explanation(place, value, describe(place, None, "constant"), None)
        if node in self._recorded and (node, flat) != here.pairs()[0]:
            same = Number(value, self._describe(made)[0])
            return Explanation(place, value, describe(place, same, "copy"), same)
        found = self.tape.nodes[node]
        expression = self._expression(node, flat, PartBudget())
        if expression is None and found.operation == ROOT:
            end = self._describe(made)[0]
            copy = Number(value, end) if end.name != place.name else None
            return Explanation(place, value, describe(place, copy, "weight" if found.label else "input"), copy)
        return Explanation(place, value, describe(place, expression, found.operation), expression)

    def _trace_back(self, here: Elements) -> Elements:
        """Where a number that stands at a recorded node came from: computed, or recorded earlier."""
        (node, _), stops = here.pairs()[0], set(self._recorded)
        return self.walk.origin(here, stops - {node})

    def _expression(self, node: int, flat: int, budget: PartBudget) -> Expression | None:
        rule = rule_of(self.tape.nodes[node].operation)
        return None if rule is None else rule(TapeLook(self, node, flat, budget))

    def operand(self, node: int, flat: int, budget: PartBudget) -> Expression:
        """A number of an operand: recorded, a weight, or taken apart in its turn."""
        found = self.walk.origin(Elements.of(node, torch.tensor([flat])), self._recorded)
        made, at = found.pairs()[0]
        if made != CONSTANT and made not in self._recorded and budget.take():
            inner = self._expression(made, at, budget)
            if inner is not None:
                return inner
        return Number(float(self.walk.numbers(found)), self._describe(found)[0])

    def vector(self, node: int, flats: Tensor) -> Vector:
        """Numbers of an operand with their places."""
        found = self.walk.origin(Elements.of(node, flats), self._recorded)
        return Vector(self.walk.numbers(found).tolist(), self._describe(found))

    def _describe(self, found: Elements) -> list[Place]:
        places: list[Place] = [Place("constant", "constant")] * len(found)
        for node in found.nodes.unique().tolist():
            if node == CONSTANT:
                continue
            at = (found.nodes == node).nonzero().squeeze(1)
            kind, name, axes, index = self._name(node, found.flats[at])
            refs = found.flats[at].tolist()
            for i, row, flat in zip(at.tolist(), index.tolist(), refs, strict=True):
                place = dict(zip(axes, row, strict=True))
                places[i] = Place(kind, name, place, f"{node}.{flat}.{len(self.tape.nodes)}")
        return places

    def _name(self, node: int, flats: Tensor) -> tuple[str, str, tuple[str, ...], Tensor]:
        """Kind, name and axes of a node, and the index of each number of it."""
        record, made = self._recorded.get(node), self.tape.nodes[node]
        index = torch.stack(torch.unravel_index(flats, made.shape), 1) if made.shape else flats.new_zeros(len(flats), 0)
        if record is not None:
            return self._locate(record, node, flats, index)
        if made.label:
            axes = WEIGHT_AXES.get(len(made.shape), ())
            return "weight", made.label, axes, index[:, : len(axes)]
        kind, title = "input", "input"
        if made.operation != ROOT:
            weight = next((self.tape.nodes[n].label for n in made.operands if self.tape.nodes[n].label), "")
            title = operation_title(made.operation, weight)
            kind = "computed" if rule_of(made.operation) else "constant"
        return kind, title, tuple(f"axis {i}" for i in range(1, index.shape[1])), index[:, 1:]

    def _locate(
        self, record: Record, node: int, flats: Tensor, own: Tensor
    ) -> tuple[str, str, tuple[str, ...], Tensor]:
        """Recorded numbers in the condensed record of their name; else, such as those of another step, in their own."""
        condensed = self.records.get(record.name)
        if condensed is not None and condensed.data.numel() <= MAX_LABELED:
            keys, order = self._positions(condensed)
            wanted = node * KEY + flats
            at = torch.searchsorted(keys, wanted).clamp(max=len(keys) - 1)
            if bool((keys[at] == wanted).all()):
                index = torch.stack(torch.unravel_index(order[at], condensed.data.shape), 1)
                return "tensor", record.name, condensed.axes[1:], index[:, 1:]
        kept = [i for i, axis in enumerate(record.axes) if axis != "batch"]
        return "recorded", record.name, tuple(record.axes[i] for i in kept), own[:, kept]

    def _positions(self, record: Record) -> tuple[Tensor, Tensor]:
        """Keys of the numbers of a condensed record, sorted, and their flat indices."""
        if record.name not in self._places:
            number, size = self.tape.number(record.data), record.data.numel()
            found = self.walk.origin(Elements.of(number, torch.arange(size)), set(self._recorded) - {number})
            self._places[record.name] = (found.nodes * KEY + found.flats).sort()
        return self._places[record.name]


class PartBudget:
    """How many parts an expression may still have."""

    def __init__(self, parts: int = MAX_PARTS) -> None:
        self.left = parts

    def take(self) -> bool:
        """Whether one more part may be taken apart."""
        self.left -= 1
        return self.left >= 0


class TapeLook(Look):
    """One output number of a node of a tape."""

    def __init__(self, explainer: Explainer, number: int, flat: int, budget: PartBudget) -> None:
        self.explainer, self.budget = explainer, budget
        self.node: TapeNode = explainer.tape.nodes[number]
        self.at = unravel(flat, self.node.shape)

    def number(self, part: Any, index: Sequence[int]) -> Expression:
        if not isinstance(part, Operand):
            return Number(float(part), Place("constant", "constant"))
        return self.explainer.operand(part.node, int(flat_index(index, self.shape(part))), self.budget)

    def vector(self, part: Any, flats: Tensor) -> Vector:
        return self.explainer.vector(part.node, flats)

    def shape(self, part: Any) -> torch.Size:
        return self.explainer.tape.nodes[part.node].shape if isinstance(part, Operand) else torch.Size()


def flat_index(index: Sequence[int], shape: torch.Size) -> int:
    """Index into the flattened tensor.

    >>> flat_index([1, 2], torch.Size([2, 3]))
    5
    """
    flat = 0
    for i, size in zip(index, shape, strict=True):
        flat = flat * size + i
    return flat


def unravel(flat: int, shape: torch.Size) -> tuple[int, ...]:
    """Index per axis.

    >>> unravel(5, torch.Size([2, 3]))
    (1, 2)
    """
    index: list[int] = []
    for size in reversed(shape):
        flat, at = divmod(flat, size)
        index.insert(0, at)
    return tuple(index)
