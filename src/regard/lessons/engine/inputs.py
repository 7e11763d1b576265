"""What a lesson asks for, and the check of what it is given: axes of one name have one size, whoever has them."""

from __future__ import annotations

import ast
import difflib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from regard.errors import ConfigError
from regard.lessons.engine.lesson import Check, Data, Given, Step, Value, shape

LARGEST, MOST = 1_000_000, 4096
"""How large a number may be, and how many of them an input may hold: enough to play, and nothing overflows."""


@dataclass(frozen=True)
class Input:
    """A number, a text, or a vector or matrix of them that can be changed.

    >>> Input("x", [1.0, 0.0], "what is read now", ("input",)).spelled({"input": 2})
    'a list of 2 numbers (input)'
    """

    name: str
    default: Data
    about: str
    axes: tuple[str, ...] = ()
    symbol: str = ""
    labels: Mapping[str, list[str]] = field(default_factory=dict)
    choices: tuple[str, ...] = ()
    """texts that it can be; none: any"""
    bounds: tuple[float, float] = (-LARGEST, LARGEST)
    """the smallest and the largest number that it may hold"""

    @property
    def kind(self) -> type:
        """Of what it is made: whole numbers, numbers or texts."""
        item = self.default
        while isinstance(item, list):
            item = item[0] if item else ""
        return type(item)

    def spelled(self, sizes: Mapping[str, int]) -> str:
        """What is expected, in words; an axis that has no size yet may be as long as one likes."""
        noun = {int: "whole number", float: "number", str: "text"}[self.kind]
        if not self.axes:
            return f"one of {', '.join(self.choices)}" if self.choices else f"a {noun}"
        named = " x ".join(f"{sizes[axis]} {axis}" if axis in sizes else axis for axis in self.axes)
        if len(self.axes) == 1:
            count = f"{sizes[self.axes[0]]} " if self.axes[0] in sizes else ""
            return f"a list of {count}{noun}s ({self.axes[0]})"
        return f"a matrix of {noun}s ({named})"

    def read(self, given: Any, sizes: Mapping[str, int]) -> Data:
        """The value, if it is one of these; else an error that says what was expected."""
        data = self._typed(given) if isinstance(given, str) else given
        if len(self.axes) == 1 and not isinstance(data, list | tuple):
            data = [data]  # one number is a list of one
        found = self._items(data, sizes)
        sides = shape(found)
        right = len(sides) == len(self.axes) and all(sides) and _even(found, sides)
        right = right and all(sizes.get(axis, size) == size for axis, size in zip(self.axes, sides))
        if not right or math.prod(sides) > MOST:
            raise ConfigError(f"{self.name}: expected {self.spelled(sizes)}, got {_told(found, sides)}")
        return found

    def _typed(self, text: str) -> Any:
        """What was typed: a list in brackets or with commas, a number; a text is a text."""
        if self.kind is str and not text.startswith("["):
            return text
        try:
            return ast.literal_eval(text)
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            return text

    def _items(self, data: Any, sizes: Mapping[str, int]) -> Data:
        if isinstance(data, list | tuple):
            return [self._items(item, sizes) for item in data]
        wrong = ConfigError(f"{self.name}: expected {self.spelled(sizes)}, got {_quoted(data)}")
        if self.kind is str:
            text = data if isinstance(data, str) else str(data)
            if self.choices and text not in self.choices:
                raise wrong
            return text
        if isinstance(data, bool) or not isinstance(data, int | float):
            raise wrong
        low, high = self.bounds
        if not low <= data <= high:
            raise ConfigError(f"{self.name}: expected numbers from {low:,} to {high:,}, got {_quoted(data)}")
        if self.kind is int and data != math.floor(data):
            raise wrong
        return int(data) if self.kind is int else float(data)

    def given(self, data: Data) -> Given:
        """The input with its value."""
        sizes = dict(zip(self.axes, shape(data)))
        labels = {axis: words for axis, words in self.labels.items() if len(words) == sizes[axis]}
        value = Value(self.name, data, self.axes, labels, self.symbol)
        return Given(value, self.default, self.about, self.choices)


def _even(data: Data, sides: tuple[int, ...]) -> bool:
    """Whether all lists of a level are of one length."""
    if not sides:
        return not isinstance(data, list)
    return isinstance(data, list) and len(data) == sides[0] and all(_even(item, sides[1:]) for item in data)


def _told(data: Data, sides: tuple[int, ...]) -> str:
    if not sides:
        return _quoted(data)
    if not _even(data, sides):
        return "rows of unequal length"
    if math.prod(sides) > MOST:
        return f"{math.prod(sides):,} of them, and at most {MOST:,} will do"
    return f"a list of {sides[0]}" if len(sides) == 1 else " x ".join(map(str, sides))


def _quoted(data: Any) -> str:
    text = repr(data)
    return text if len(text) <= 40 else f"{text[:39]}…"


@dataclass(frozen=True)
class Work:
    """What came of the inputs.

    >>> Work().steps
    ()
    """

    steps: tuple[Step, ...] = ()
    checks: tuple[Check, ...] = ()


@dataclass(frozen=True)
class Plan:
    """What a lesson asks for, and how it is worked out.

    >>> plan = Plan((Input("x", [1.0, 0.0], "read", ("input",)), Input("U", [[1.0, 0.0]], "", ("unit", "input"))), None)
    >>> [given.value.data for given in plan.resolve({"x": [2, 3]})]
    [[2.0, 3.0], [[1.0, 0.0]]]
    """

    inputs: tuple[Input, ...]
    work: Callable[[Mapping[str, Value]], Work]

    def resolve(self, changes: Mapping[str, Any]) -> tuple[Given, ...]:
        """Every input: as it is given, or as the lecture has it; sizes that do not go together are an error."""
        names = [put.name for put in self.inputs]
        for name in changes:
            if name not in names:
                close = difflib.get_close_matches(name, names, n=1)
                guess = f'did you mean "{close[0]}"?' if close else f"there are {', '.join(names)}"
                raise ConfigError(f'there is no input "{name}"; {guess}')
        sizes: dict[str, tuple[int, str]] = {}
        for put in self.inputs:  # those that stay have the say about the others
            if put.name not in changes:
                sizes |= {axis: (size, put.name) for axis, size in zip(put.axes, shape(put.default))}
        found = []
        for put in self.inputs:
            data = put.default
            if put.name in changes:
                data = self._fitting(put, changes[put.name], sizes)
                sizes |= {axis: (n, put.name) for axis, n in zip(put.axes, shape(data)) if axis not in sizes}
            found.append(put.given(data))
        return tuple(found)

    def _fitting(self, put: Input, given: Any, sizes: Mapping[str, tuple[int, str]]) -> Data:
        try:
            return put.read(given, {axis: size for axis, (size, _) in sizes.items()})
        except ConfigError as error:
            others = list(dict.fromkeys(sizes[axis][1] for axis in put.axes if axis in sizes))
            try:
                put.read(given, {})
            except ConfigError:
                raise error from None  # no size would make it right
            raise ConfigError(f"{error}; for another size change {' and '.join(others)} as well") from None


def parse(settings: Sequence[str]) -> dict[str, str]:
    """name=value as it was typed.

    >>> parse(["x=[1,", ".5]", "f=tanh", "sentence=je suis étudiant"])
    {'x': '[1, .5]', 'f': 'tanh', 'sentence': 'je suis étudiant'}
    """
    found: dict[str, str] = {}
    for setting in _whole(settings):
        name, equals, text = setting.partition("=")
        if not equals or not name.strip():
            raise ConfigError(f'"{setting}" is not an input; write name=value, such as x=1,0')
        found[name.strip()] = text.strip()
    return found


def _whole(settings: Sequence[str]) -> list[str]:
    """A list that the shell cut at its spaces, put together again."""
    found: list[str] = []
    for part in settings:
        if found and found[-1].count("[") > found[-1].count("]"):
            found[-1] += f" {part}"
        else:
            found.append(part)
    return found
