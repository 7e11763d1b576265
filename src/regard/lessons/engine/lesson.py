"""A lesson is plain data: inputs that can be changed, steps with formula and numbers, and what was expected."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from regard.lessons.engine.formula import mathml, plain

FORMAT = "lesson/1"
Data = Any
"""A number, a text, or lists of them in lists: what JSON holds."""
Look = Literal["numbers", "weights", "signed", "arcs", "line", "log", "tree"]
"""As it is; as shares of one; as colours on both sides of 0; as arcs between words; as a curve, also on a logarithmic
axis; as the tree of a search, whose rows say: the row before, the word, its log-probability, what became of it."""


def shape(data: Data) -> tuple[int, ...]:
    """The sizes of nested lists; a number or a text has none.

    >>> shape([[1, 2, 3], [4, 5, 6]]), shape(1.5)
    ((2, 3), ())
    """
    if not isinstance(data, list):
        return ()
    return (len(data), *(shape(data[0]) if data else ()))


@dataclass(frozen=True)
class Value:
    """Numbers or words with a name, an axis name for each of their axes, and words along an axis.

    >>> Value("h", [1.0, 0.0], ("unit",), symbol="h_{t-1}").sign
    'hₜ₋₁'
    """

    name: str
    """how other steps, and the command line, call it"""
    data: Data
    axes: tuple[str, ...] = ()
    labels: Mapping[str, list[str]] = field(default_factory=dict)
    """of an axis: {"source": ["je", "suis"]}"""
    symbol: str = ""
    """how a formula writes it, in TeX; empty: as its name"""
    look: Look = "numbers"
    """how it is best drawn"""

    def __post_init__(self) -> None:
        sizes = shape(self.data)
        if len(self.axes) != len(sizes):
            raise ValueError(f"{self.name}: {len(self.axes)} axes are named, and there are {len(sizes)}")
        for axis, words in self.labels.items():
            if len(words) != sizes[self.axes.index(axis)]:
                raise ValueError(f"{self.name}: {len(words)} words along {axis}, which has {sizes}")

    @property
    def sign(self) -> str:
        """How the terminal writes it."""
        return plain(self.symbol or self.name)

    def to_dict(self) -> dict[str, Any]:
        """Plain data that JSON can hold."""
        found: dict[str, Any] = {"name": self.name, "symbol": self.symbol or self.name, "axes": list(self.axes)}
        return found | {"labels": {k: list(v) for k, v in self.labels.items()}, "look": self.look, "data": self.data}

    @classmethod
    def from_dict(cls, table: Mapping[str, Any]) -> Value:
        """What `to_dict` gave."""
        symbol = "" if table["symbol"] == table["name"] else table["symbol"]
        return cls(table["name"], table["data"], tuple(table["axes"]), table["labels"], symbol, table["look"])


@dataclass(frozen=True)
class Given:
    """An input as a lesson used it, beside what the lecture has.

    >>> Given(Value("x", [1, 1], ("input",)), [1, 0], "what is read now").changed
    True
    """

    value: Value
    default: Data
    about: str
    choices: tuple[str, ...] = ()

    @property
    def changed(self) -> bool:
        """Whether somebody gave another value than the lecture's."""
        return self.value.data != self.default

    def to_dict(self) -> dict[str, Any]:
        """Plain data that JSON can hold."""
        more = {"default": self.default, "about": self.about, "choices": list(self.choices), "changed": self.changed}
        return {**self.value.to_dict(), **more}

    @classmethod
    def from_dict(cls, table: Mapping[str, Any]) -> Given:
        """What `to_dict` gave."""
        return cls(Value.from_dict(table), table["default"], table["about"], tuple(table["choices"]))


@dataclass(frozen=True)
class Step:
    """One thing that is computed: why, by which formula, from what, and what comes out.

    >>> one, two = Value("x", 3.0), Value("y", 9.0)
    >>> Step("A square", "Times itself.", "y = x^2", (one,), (two,)).to_dict()["formula"]["text"]
    'y = x²'
    """

    title: str
    text: str
    formula: str
    """TeX; the one source of what the terminal writes and the page draws"""
    operands: tuple[Value, ...]
    results: tuple[Value, ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain data that JSON can hold."""
        drawn = {"tex": self.formula, "text": plain(self.formula), "mathml": mathml(self.formula)}
        found: dict[str, Any] = {"title": self.title, "text": self.text, "formula": drawn if self.formula else None}
        sides = {"operands": self.operands, "results": self.results}
        return found | {side: [value.to_dict() for value in values] for side, values in sides.items()}

    @classmethod
    def from_dict(cls, table: Mapping[str, Any]) -> Step:
        """What `to_dict` gave."""
        sides = (tuple(Value.from_dict(value) for value in table[side]) for side in ("operands", "results"))
        return cls(table["title"], table["text"], (table["formula"] or {"tex": ""})["tex"], *sides)


@dataclass(frozen=True)
class Check:
    """What was expected, what was found, and how far apart they may be.

    >>> Check("o", "lecture", 1.0, 1.0000001).holds, Check("o", "lecture", 1.0, 2.0).holds
    (True, False)
    """

    about: str
    """what is compared, in words"""
    kind: Literal["lecture", "agreement"]
    """the lecture's number, true of the lecture's inputs; or two ways to one number, which agree whatever is given"""
    expected: Data
    found: Data
    tolerance: float = 5e-5
    symbol: str = ""
    """of what was found, in TeX, where there is one"""

    @property
    def holds(self) -> bool:
        """Whether both are equal within the tolerance."""
        return shape(self.expected) == shape(self.found) and self.difference <= self.tolerance

    @property
    def difference(self) -> float:
        """The largest difference of two numbers; two texts differ by nothing or by infinity."""
        pairs = zip(_flat(self.expected), _flat(self.found))
        return max((_apart(a, b) for a, b in pairs), default=0.0)

    def to_dict(self) -> dict[str, Any]:
        """Plain data that JSON can hold."""
        given = {"about": self.about, "kind": self.kind, "symbol": self.symbol, "expected": self.expected}
        return {**given, "found": self.found, "tolerance": self.tolerance, "holds": self.holds}

    @classmethod
    def from_dict(cls, table: Mapping[str, Any]) -> Check:
        """What `to_dict` gave."""
        return cls(*(table[k] for k in ("about", "kind", "expected", "found", "tolerance", "symbol")))


def _flat(data: Data) -> Iterator[Any]:
    if isinstance(data, list):
        for item in data:
            yield from _flat(item)
    else:
        yield data


def _apart(a: Any, b: Any) -> float:
    if isinstance(a, str) or isinstance(b, str):
        return 0.0 if a == b else math.inf
    return abs(a - b)


@dataclass(frozen=True)
class Lesson:
    """Everything that is to be shown.

    >>> Lesson.from_dict(Lesson("rnn", "A cell", "How it works.").to_dict()).title
    'A cell'
    """

    name: str
    title: str
    learns: str
    """what one learns here"""
    inputs: tuple[Given, ...] = ()
    steps: tuple[Step, ...] = ()
    checks: tuple[Check, ...] = ()

    @property
    def changed(self) -> tuple[str, ...]:
        """Names of the inputs that are not the lecture's."""
        return tuple(given.value.name for given in self.inputs if given.changed)

    def value(self, name: str) -> Value:
        """An input, or the result of a step, by its name.

        >>> step = Step("A square", "Times itself.", "", (), (Value("y", 9.0),))
        >>> Lesson("square", "", "", steps=(step,)).value("y").data
        9.0
        """
        found = [given.value for given in self.inputs] + [value for step in self.steps for value in step.results]
        return next(value for value in found if value.name == name)

    def to_dict(self) -> dict[str, Any]:
        """Plain data that JSON can hold; what the page draws."""
        found: dict[str, Any] = {"format": FORMAT, "name": self.name, "title": self.title, "learns": self.learns}
        parts = {"inputs": self.inputs, "steps": self.steps, "checks": self.checks}
        return found | {part: [item.to_dict() for item in items] for part, items in parts.items()}  # type: ignore[attr-defined]

    @classmethod
    def from_dict(cls, table: Mapping[str, Any]) -> Lesson:
        """What `to_dict` gave, also after JSON."""
        return cls(
            table["name"],
            table["title"],
            table["learns"],
            tuple(Given.from_dict(given) for given in table["inputs"]),
            tuple(Step.from_dict(step) for step in table["steps"]),
            tuple(Check.from_dict(check) for check in table["checks"]),
        )
