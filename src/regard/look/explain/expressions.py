"""Expressions: how one number follows from others, as data that a page can draw and a program can compute again."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

MAX_SENT = 1024
"""numbers of a vector that are sent; of a longer one those that count most"""

FUNCTIONS: dict[str, Callable[[float], float]] = {
    "tanh": math.tanh,
    "sigmoid": lambda x: 1 / (1 + math.exp(-x)) if x > -700 else 0.0,
    "ReLU": lambda x: max(x, 0.0),
    "exp": math.exp,
    "log": math.log,
    "sin": math.sin,
    "cos": math.cos,
    "sqrt": math.sqrt,
    "abs": abs,
    "GELU": lambda x: 0.5 * x * (1 + math.erf(x / math.sqrt(2))),
    "GELU, tanh form": lambda x: 0.5 * x * (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
    "SiLU": lambda x: x / (1 + math.exp(-x)) if x > -700 else 0.0,
    "negative": lambda x: -x,
    "round": lambda x: float(round(x)),
}
"""functions of one number"""


class Expression(ABC):
    """How a number is computed."""

    @property
    @abstractmethod
    def value(self) -> float:
        """The number, computed in double precision."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """As plain data, with its value."""


@dataclass(frozen=True)
class Place:
    """Where a number is: a tensor of the trace, a weight, or an operation that was not recorded."""

    kind: str
    """"tensor"; "recorded" at another step; "weight", "input", "constant", or "computed" and not recorded"""
    name: str
    """of the tensor or of the weight; of other numbers a description"""
    index: Mapping[str, int] = field(default_factory=dict)
    """per axis"""
    ref: str = ""
    """for a request that explains it"""

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind, "name": self.name, "index": dict(self.index), "ref": self.ref}


@dataclass(frozen=True)
class Number(Expression):
    """A number that is not taken apart here."""

    number: float
    place: Place

    @property
    def value(self) -> float:
        return self.number

    def to_dict(self) -> dict[str, Any]:
        return {"op": "number", "value": safe(self.number), "place": self.place.to_dict()}


@dataclass(frozen=True)
class Combination(Expression):
    """Terms joined by + − × ÷ or a power, or the largest or smallest of them.

    >>> Combination("+", (Number(1.0, Place("constant", "1")), Number(2.0, Place("constant", "2")))).value
    3.0
    """

    operator: str
    terms: tuple[Expression, ...]

    @property
    def value(self) -> float:
        numbers = [term.value for term in self.terms]
        match self.operator:
            case "+":
                return math.fsum(numbers)
            case "−":
                return numbers[0] - numbers[1]
            case "×":
                return math.prod(numbers)
            case "÷":
                return numbers[0] / numbers[1]
            case "^":
                return float(numbers[0] ** numbers[1])
            case "max":
                return max(numbers)
        return min(numbers)

    def to_dict(self) -> dict[str, Any]:
        terms = [term.to_dict() for term in self.terms]
        return {"op": "combination", "operator": self.operator, "terms": terms, "value": safe(self.value)}


@dataclass(frozen=True)
class Call(Expression):
    """A function of one number."""

    function: str
    argument: Expression

    @property
    def value(self) -> float:
        return FUNCTIONS[self.function](self.argument.value)

    def to_dict(self) -> dict[str, Any]:
        return {
            "op": "call",
            "function": self.function,
            "argument": self.argument.to_dict(),
            "value": safe(self.value),
        }


@dataclass(frozen=True)
class Vector:
    """Numbers with their places: a row of a matrix, a state, a window of an image."""

    numbers: Sequence[float]
    places: Sequence[Place]

    def to_dict(self, order: Sequence[int]) -> dict[str, Any]:
        """The numbers `order`, and what all of them share: kind, name, and the part of the index that is the same."""
        names = {(place.kind, place.name) for place in self.places}
        kind, name = names.pop() if len(names) == 1 else ("mixed", " and ".join(sorted({n for _, n in names})[:3]))
        first = self.places[0].index if self.places else {}
        same = {axis: i for axis, i in first.items() if all(place.index.get(axis) == i for place in self.places)}
        along = [axis for axis in first if axis not in same] if kind != "mixed" else []
        return {
            "kind": kind,
            "name": name,
            "index": same if kind != "mixed" else {},
            "along": along,
            "size": len(self.numbers),
            "numbers": [safe(self.numbers[i]) for i in order],
            "places": [self.places[i].to_dict() for i in order]
            if kind == "mixed"
            else [[self.places[i].index.get(axis, 0) for axis in along] for i in order],
            "refs": [self.places[i].ref for i in order],
        }


@dataclass(frozen=True)
class DotProduct(Expression):
    """The sum of products of two vectors."""

    left: Vector
    right: Vector

    @property
    def products(self) -> list[float]:
        """One per pair."""
        return [a * b for a, b in zip(self.left.numbers, self.right.numbers, strict=True)]

    @property
    def value(self) -> float:
        return math.fsum(self.products)

    def to_dict(self) -> dict[str, Any]:
        products = self.products
        order = largest(products)
        rest = math.fsum(products) - math.fsum(products[i] for i in order) if len(order) < len(products) else 0.0
        return {
            "op": "dot",
            "left": self.left.to_dict(order),
            "right": self.right.to_dict(order),
            "rest": safe(rest),
            "value": safe(self.value),
        }


@dataclass(frozen=True)
class Reduction(Expression):
    """One number of a whole vector: its sum, mean, largest number, standard deviation or root mean square."""

    name: str
    vector: Vector
    epsilon: float = 0.0
    """added to the variance or to the mean square"""

    @property
    def value(self) -> float:
        numbers = self.vector.numbers
        mean = math.fsum(numbers) / max(len(numbers), 1)
        match self.name:
            case "sum":
                return math.fsum(numbers)
            case "mean":
                return mean
            case "max":
                return max(numbers)
            case "deviation":
                return math.sqrt(math.fsum((x - mean) ** 2 for x in numbers) / len(numbers) + self.epsilon)
            case "variance" | "sample variance":
                return math.fsum((x - mean) ** 2 for x in numbers) / (len(numbers) - (self.name != "variance"))
            case "root mean square":
                return math.sqrt(math.fsum(x * x for x in numbers) / len(numbers) + self.epsilon)
        return math.sqrt(math.fsum(x * x for x in numbers))  # the length of the vector

    def to_dict(self) -> dict[str, Any]:
        order = largest(self.vector.numbers)
        return {
            "op": "reduction",
            "name": self.name,
            "vector": self.vector.to_dict(order),
            "epsilon": self.epsilon,
            "value": safe(self.value),
        }


@dataclass(frozen=True)
class Softmax(Expression):
    """The share of one number's exponential among those of a vector."""

    number: Expression
    vector: Vector

    @property
    def total(self) -> float:
        """Sum of the exponentials, relative to the largest."""
        top = max(self.vector.numbers)
        return math.fsum(math.exp(x - top) for x in self.vector.numbers)

    @property
    def value(self) -> float:
        top = max(self.vector.numbers)
        return math.exp(self.number.value - top) / self.total if math.isfinite(top) else math.nan

    def to_dict(self) -> dict[str, Any]:
        order = largest(self.vector.numbers, signed=True)
        return {
            "op": "softmax",
            "number": self.number.to_dict(),
            "vector": self.vector.to_dict(order),
            "value": safe(self.value),
        }


def largest(numbers: Sequence[float], signed: bool = False) -> list[int]:
    """Indices of the numbers to send, in order: all, or those of the largest size.

    >>> largest([0.5, -2.0, 1.0])
    [0, 1, 2]
    """
    if len(numbers) <= MAX_SENT:
        return list(range(len(numbers)))
    return sorted(sorted(range(len(numbers)), key=lambda i: -numbers[i] if signed else -abs(numbers[i]))[:MAX_SENT])


def safe(number: float) -> float | str:
    """A number for JSON, which has no infinity."""
    return number if math.isfinite(number) else "nan" if math.isnan(number) else "inf" if number > 0 else "-inf"
