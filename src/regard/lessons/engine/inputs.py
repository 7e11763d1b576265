"""Declared inputs of a lesson and their validation: axes of one name must have one size."""

from __future__ import annotations

import ast
import difflib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from regard.errors import ConfigError
from regard.lessons.engine.exercises import Exercise
from regard.lessons.engine.lesson import Data, InputValue, Value, shape
from regard.lessons.engine.reading import Figure, Reading

MAX_NUMBER, MAX_SIZE = 1_000_000, 4096
"""largest number, and most numbers in one input: enough for experiments without overflow"""


@dataclass(frozen=True)
class Input:
    """A number, a text, or a vector or matrix of them, that users can change.

    >>> Input("x", [1.0, 0.0], "current input", ("input",)).describe({"input": 2})
    'a list of 2 numbers (input)'
    """

    name: str
    default: Data
    about: str
    axes: tuple[str, ...] = ()
    symbol: str = ""
    labels: Mapping[str, list[str]] = field(default_factory=dict)
    choices: tuple[str, ...] = ()
    """allowed texts; empty: any"""
    bounds: tuple[float, float] = (-MAX_NUMBER, MAX_NUMBER)
    """smallest and largest number"""

    @property
    def kind(self) -> type:
        """Type of its items: int, float or str."""
        item = self.default
        while isinstance(item, list):
            item = item[0] if item else ""
        return type(item)

    def describe(self, sizes: Mapping[str, int]) -> str:
        """Expected form in words; an axis without a size may have any length."""
        noun = {int: "whole number", float: "number", str: "text"}[self.kind]
        if not self.axes:
            return f"one of {', '.join(self.choices)}" if self.choices else f"a {noun}"
        if len(self.axes) == 1:
            count = f"{sizes[self.axes[0]]} " if self.axes[0] in sizes else ""
            return f"a list of {count}{noun}s ({self.axes[0]})"
        named = " x ".join(f"{sizes[axis]} {axis}" if axis in sizes else axis for axis in self.axes)
        return f"a matrix of {noun}s ({named})"

    def read(self, given: Any, sizes: Mapping[str, int]) -> Data:
        """The validated value; an error says what was expected."""
        data = self._parse(given) if isinstance(given, str) else given
        if len(self.axes) == 1 and not isinstance(data, list | tuple):
            data = [data]  # one number is a list of one
        found = self._items(data, sizes)
        sides = shape(found)
        right = len(sides) == len(self.axes) and all(sides) and _is_rectangular(found, sides)
        right = right and all(sizes.get(axis, size) == size for axis, size in zip(self.axes, sides))
        if not right or math.prod(sides) > MAX_SIZE:
            raise ConfigError(f"{self.name}: expected {self.describe(sizes)}, got {_describe_data(found, sides)}")
        return found

    def _parse(self, text: str) -> Any:
        if self.kind is str and not text.startswith("["):
            return text
        try:
            return ast.literal_eval(text)
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            return text

    def _items(self, data: Any, sizes: Mapping[str, int]) -> Data:
        if isinstance(data, list | tuple):
            return [self._items(item, sizes) for item in data]
        wrong = ConfigError(f"{self.name}: expected {self.describe(sizes)}, got {_quote(data)}")
        if self.kind is str:
            text = data if isinstance(data, str) else str(data)
            if self.choices and text not in self.choices:
                raise wrong
            return text
        if isinstance(data, bool) or not isinstance(data, int | float):
            raise wrong
        low, high = self.bounds
        if not low <= data <= high:
            raise ConfigError(f"{self.name}: expected numbers from {low:,} to {high:,}, got {_quote(data)}")
        if self.kind is int and data != math.floor(data):
            raise wrong
        return int(data) if self.kind is int else float(data)

    def with_data(self, data: Data) -> InputValue:
        """The input with a value; labels are dropped where the size has changed."""
        sizes = dict(zip(self.axes, shape(data)))
        labels = {axis: words for axis, words in self.labels.items() if len(words) == sizes[axis]}
        value = Value(self.name, data, self.axes, labels, self.symbol)
        return InputValue(value, self.default, self.about, self.choices)


def _is_rectangular(data: Data, sides: tuple[int, ...]) -> bool:
    if not sides:
        return not isinstance(data, list)
    return isinstance(data, list) and len(data) == sides[0] and all(_is_rectangular(item, sides[1:]) for item in data)


def _describe_data(data: Data, sides: tuple[int, ...]) -> str:
    if not sides:
        return _quote(data)
    if not _is_rectangular(data, sides):
        return "rows of unequal length"
    if math.prod(sides) > MAX_SIZE:
        return f"{math.prod(sides):,} items; at most {MAX_SIZE:,} are allowed"
    return f"a list of {sides[0]}" if len(sides) == 1 else " x ".join(map(str, sides))


def _quote(data: Any) -> str:
    text = repr(data)
    return text if len(text) <= 40 else f"{text[:39]}…"


@dataclass(frozen=True)
class LessonPlan:
    """Inputs of a lesson, and the function that computes its steps.

    >>> inputs = Input("x", [1.0, 0.0], "", ("input",)), Input("U", [[1.0, 0.0]], "", ("unit", "input"))
    >>> [one.value.data for one in LessonPlan(inputs, None).resolve({"x": [2, 3]})]
    [[2.0, 3.0], [[1.0, 0.0]]]
    """

    inputs: tuple[Input, ...]
    compute: Callable[[Any], None]
    """adds steps and checks to a LessonBuilder"""
    exercises: tuple[Exercise, ...] = ()
    figure: Figure = Figure()
    reading: Reading = Reading("", (), ())

    def resolve(self, changes: Mapping[str, Any]) -> tuple[InputValue, ...]:
        """Every input, changed or default; sizes that contradict each other are an error."""
        names = [declared.name for declared in self.inputs]
        for name in changes:
            if name not in names:
                close = difflib.get_close_matches(name, names, n=1)
                guess = f'did you mean "{close[0]}"?' if close else f"there are {', '.join(names)}"
                raise ConfigError(f'there is no input "{name}"; {guess}')
        sizes: dict[str, tuple[int, str]] = {}
        for declared in self.inputs:  # unchanged inputs determine the sizes of the others
            if declared.name not in changes:
                sizes |= {axis: (size, declared.name) for axis, size in zip(declared.axes, shape(declared.default))}
        found = []
        for declared in self.inputs:
            data = declared.default
            if declared.name in changes:
                data = self._read(declared, changes[declared.name], sizes)
                sizes |= {axis: (n, declared.name) for axis, n in zip(declared.axes, shape(data)) if axis not in sizes}
            found.append(declared.with_data(data))
        return tuple(found)

    def _read(self, declared: Input, given: Any, sizes: Mapping[str, tuple[int, str]]) -> Data:
        try:
            return declared.read(given, {axis: size for axis, (size, _) in sizes.items()})
        except ConfigError as error:
            others = list(dict.fromkeys(sizes[axis][1] for axis in declared.axes if axis in sizes))
            try:
                declared.read(given, {})
            except ConfigError:
                raise error from None  # wrong for any size
            raise ConfigError(f"{error}; for another size change {' and '.join(others)} as well") from None


def parse_inputs(settings: Sequence[str]) -> dict[str, str]:
    """Parse name=value arguments; a list that the shell split at its spaces is joined again.

    >>> parse_inputs(["x=[1,", ".5]", "f=tanh", "sentence=je suis étudiant"])
    {'x': '[1, .5]', 'f': 'tanh', 'sentence': 'je suis étudiant'}
    """
    joined: list[str] = []
    for part in settings:
        if joined and joined[-1].count("[") > joined[-1].count("]"):
            joined[-1] += f" {part}"
        else:
            joined.append(part)
    found: dict[str, str] = {}
    for setting in joined:
        name, equals, text = setting.partition("=")
        if not equals or not name.strip():
            raise ConfigError(f'"{setting}" is not an input; write name=value, such as x=1,0')
        found[name.strip()] = text.strip()
    return found
