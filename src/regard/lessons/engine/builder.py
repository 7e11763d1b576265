"""Builder of a lesson: steps refer to earlier values by name, so that dependencies are known."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from regard.errors import ConfigError
from regard.lessons.engine.inputs import MAX_NUMBER, Input
from regard.lessons.engine.lesson import Data, LessonCheck, LessonStep, Look, Value

__all__ = ["MAX_NUMBER", "Input", "LessonBuilder", "Value", "value"]


def value(
    name: str,
    data: Tensor | Data,
    axes: str = "",
    symbol: str = "",
    labels: Mapping[str, list[str]] | None = None,
    look: Look = "numbers",
) -> Value:
    """A result, from a tensor or plain data; axis names are separated by spaces: "target source"."""
    plain = data.tolist() if isinstance(data, Tensor) else data
    return Value(name, plain, tuple(axes.split()), labels or {}, "" if symbol == name else symbol, look)


class LessonBuilder:
    """Collects the steps and checks of a lesson.

    >>> page = LessonBuilder({"x": Value("x", 3.0)})
    >>> page.step("A square", "x times itself.", "y = x^2", "x", value("y", page.tensor("x") ** 2))
    >>> page.steps[0].operands[0].data, page["y"].data
    (3.0, 9.0)
    """

    def __init__(self, inputs: Mapping[str, Value]) -> None:
        self._values = dict(inputs)
        self.steps: list[LessonStep] = []
        self.checks: list[LessonCheck] = []

    def __getitem__(self, name: str) -> Value:
        return self._values[name]

    def data(self, name: str) -> Any:
        """Plain data of a value."""
        return self[name].data

    def tensor(self, name: str) -> Tensor:
        """A value in double precision."""
        return torch.tensor(self[name].data, dtype=torch.float64)

    def tensors(self, names: str) -> list[Tensor]:
        """Several values, named in one text: "U V h"."""
        return [self.tensor(name) for name in names.split()]

    def labels(self, name: str) -> dict[str, list[str]]:
        """Labels of a value by axis."""
        return dict(self[name].labels)

    def words(self, name: str) -> list[str]:
        """Words of a text input, at least one."""
        return split_words(name, self.data(name))

    def step(self, title: str, text: str, formula: str, using: str, *results: Value) -> None:
        """Add a step; `using` names its operands in one text: "V h"."""
        for result in results:
            if result.name in self._values:
                raise ValueError(f"step {title!r}: {result.name} exists already")
        operands = tuple(self._values[name] for name in using.split())
        self._values |= {result.name: result for result in results}
        self.steps.append(LessonStep(title, text, formula, operands, results))

    @staticmethod
    def error(message: str) -> ConfigError:
        """The error for inputs that cannot be computed together."""
        return ConfigError(message)

    def expect(self, about: str, expected: Data, name: str, tolerance: float = 5e-5) -> None:
        """Check a value against the lecture's number, which holds for the default inputs."""
        found = self[name]
        self.checks.append(LessonCheck(about, "lecture", expected, found.data, tolerance, found.symbol or found.name))

    def compare(self, about: str, expected: Any, found: Any, tolerance: float = 1e-6) -> None:
        """Check that two computations of one number agree, for any inputs."""
        both = [side.tolist() if isinstance(side, Tensor) else side for side in (expected, found)]
        self.checks.append(LessonCheck(about, "agreement", both[0], both[1], tolerance))


def split_words(name: str, text: str) -> list[str]:
    """Words of a text, at least one."""
    if not text.split():
        raise ConfigError(f"{name}: expected some words, got none")
    return text.split()
