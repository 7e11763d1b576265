"""Data model of a lesson: inputs that can be changed, steps with formula and numbers, and checks."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from regard.lessons.engine.formula import mathml, plain_text
from regard.lessons.engine.reading import Figure, Reading

FORMAT = "lesson/1"
Data = Any
"""A number, a text, or nested lists of them: what JSON holds."""
Look = Literal["numbers", "weights", "signed", "arcs", "line", "log", "tree", "records", "listing"]
"""Plain numbers; weights that sum to 1; a diverging color scale around 0; arcs between words; a curve, also on a
logarithmic axis; a search tree, whose rows are [index of the parent row, word, log-probability, outcome];
rows of texts, each text on lines of its own after the label of its column; lines of code, each with what it does."""


def shape(data: Data) -> tuple[int, ...]:
    """Sizes of nested lists; a number or a text has none."""
    if not isinstance(data, list):
        return ()
    return (len(data), *(shape(data[0]) if data else ()))


@dataclass(frozen=True)
class Value:
    """Numbers or words with a name, named axes, and labels along an axis.

    >>> Value("h", [1.0, 0.0], ("unit",), symbol="h_{t-1}").sign
    'hₜ₋₁'
    """

    name: str
    """identifier in other steps and on the command line"""
    data: Data
    axes: tuple[str, ...] = ()
    labels: Mapping[str, list[str]] = field(default_factory=dict)
    """labels of an axis: {"source": ["je", "suis"]}"""
    symbol: str = ""
    """TeX symbol in formulas; empty: the name"""
    look: Look = "numbers"
    """how it is best drawn"""

    def __post_init__(self) -> None:
        sizes = shape(self.data)
        if len(self.axes) != len(sizes):
            raise ValueError(f"{self.name}: expected {len(sizes)} axis names, got {len(self.axes)}")
        for axis, words in self.labels.items():
            if len(words) != sizes[self.axes.index(axis)]:
                raise ValueError(f"{self.name}: {len(words)} labels along {axis}, but the shape is {sizes}")

    @property
    def sign(self) -> str:
        """The symbol as plain text."""
        return plain_text(self.symbol or self.name)

    def to_dict(self) -> dict[str, Any]:
        """JSON form."""
        found: dict[str, Any] = {"name": self.name, "symbol": self.symbol or self.name, "axes": list(self.axes)}
        return found | {"labels": {k: list(v) for k, v in self.labels.items()}, "look": self.look, "data": self.data}


@dataclass(frozen=True)
class InputValue:
    """Value of an input in a lesson, together with its default."""

    value: Value
    default: Data
    about: str
    choices: tuple[str, ...] = ()

    @property
    def is_changed(self) -> bool:
        """Whether the value differs from the default."""
        return self.value.data != self.default

    def to_dict(self) -> dict[str, Any]:
        """JSON form."""
        more = {"default": self.default, "about": self.about, "choices": list(self.choices)}
        return {**self.value.to_dict(), **more, "changed": self.is_changed}


@dataclass(frozen=True)
class LessonStep:
    """One computation: explanation, formula, operands and results.

    >>> LessonStep("A square", "x times itself.", "y = x^2", (), (Value("y", 9.0),)).to_dict()["formula"]["text"]
    'y = x²'
    """

    title: str
    text: str
    formula: str
    """TeX; source of the terminal's text and of the page's MathML"""
    operands: tuple[Value, ...]
    results: tuple[Value, ...]

    def to_dict(self) -> dict[str, Any]:
        """JSON form."""
        forms = {"tex": self.formula, "text": plain_text(self.formula), "mathml": mathml(self.formula)}
        found: dict[str, Any] = {"title": self.title, "text": self.text, "formula": forms if self.formula else None}
        sides = {"operands": self.operands, "results": self.results}
        return found | {side: [value.to_dict() for value in values] for side, values in sides.items()}


@dataclass(frozen=True)
class LessonCheck:
    """Comparison of an expected with a computed value, within a tolerance.

    >>> LessonCheck("o", "lecture", 1.0, 1.0000001).holds, LessonCheck("o", "lecture", 1.0, 2.0).holds
    (True, False)
    """

    about: str
    kind: Literal["lecture", "agreement"]
    """lecture: a known number, valid for the default inputs; agreement: two computations agree for any inputs"""
    expected: Data
    found: Data
    tolerance: float = 5e-5
    symbol: str = ""
    """TeX symbol of the computed value, if it has one"""

    @property
    def holds(self) -> bool:
        """Whether both are equal within the tolerance."""
        return shape(self.expected) == shape(self.found) and self.difference <= self.tolerance

    @property
    def difference(self) -> float:
        """Largest absolute difference; infinity for two texts that differ."""
        pairs = zip(flatten(self.expected), flatten(self.found))
        return max((_item_difference(a, b) for a, b in pairs), default=0.0)

    def to_dict(self) -> dict[str, Any]:
        """JSON form."""
        given = {"about": self.about, "kind": self.kind, "symbol": self.symbol, "expected": self.expected}
        return {**given, "found": self.found, "tolerance": self.tolerance, "holds": self.holds}


def flatten(data: Data) -> Iterator[Any]:
    """All numbers or texts of nested lists."""
    if isinstance(data, list):
        for item in data:
            yield from flatten(item)
    else:
        yield data


def _item_difference(a: Any, b: Any) -> float:
    if isinstance(a, str) or isinstance(b, str):
        return 0.0 if a == b else math.inf
    return abs(a - b)


@dataclass(frozen=True)
class Lesson:
    """A computed lesson."""

    name: str
    title: str
    summary: str
    """summary of what the lesson teaches"""
    inputs: tuple[InputValue, ...] = ()
    steps: tuple[LessonStep, ...] = ()
    checks: tuple[LessonCheck, ...] = ()
    figure: Figure = Figure()
    """what is computed from what"""
    reading: Reading = Reading("", (), ())
    """item of the course, usual terms, papers"""

    @property
    def changed_inputs(self) -> tuple[str, ...]:
        """Names of the inputs that differ from their defaults."""
        return tuple(one.value.name for one in self.inputs if one.is_changed)

    @property
    def values(self) -> dict[str, Value]:
        """All inputs and results by their names."""
        found = [one.value for one in self.inputs] + [value for step in self.steps for value in step.results]
        return {value.name: value for value in found}

    def value(self, name: str) -> Value:
        """An input, or the result of a step, by its name."""
        return self.values[name]

    def to_dict(self) -> dict[str, Any]:
        """JSON form, which the page draws."""
        found: dict[str, Any] = {"format": FORMAT, "name": self.name, "title": self.title, "summary": self.summary}
        parts = {"inputs": self.inputs, "steps": self.steps, "checks": self.checks}
        found |= {part: [item.to_dict() for item in items] for part, items in parts.items()}  # type: ignore[attr-defined]
        return found | {"figure": self.figure.to_dict(), "reading": self.reading.to_dict()}
