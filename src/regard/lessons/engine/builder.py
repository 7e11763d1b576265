"""A page is written step by step: what a step uses must be there already, so that what depends on what is known."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import Tensor

from regard.lessons.engine.inputs import Work
from regard.lessons.engine.lesson import Check, Data, Look, Step, Value


class Page:
    """Collects the steps of a lesson.

    >>> import torch
    >>> page = Page({"x": Value("x", 3.0)})
    >>> page.step("A square", "Times itself.", "y = x^2", "x", Page.value("y", torch.tensor(9.0)))
    >>> page.work().steps[0].operands[0].data, page["y"].data
    (3.0, 9.0)
    """

    def __init__(self, inputs: Mapping[str, Value]) -> None:
        self._values, self._steps, self._checks = dict(inputs), list[Step](), list[Check]()

    def __getitem__(self, name: str) -> Value:
        return self._values[name]

    @staticmethod
    def value(
        name: str,
        data: Tensor | Data,
        axes: str = "",
        symbol: str = "",
        labels: Mapping[str, list[str]] | None = None,
        look: Look = "numbers",
    ) -> Value:
        """A result: a tensor, or plain data; axes are named in one text, "target source"."""
        plain = data.tolist() if isinstance(data, Tensor) else data
        return Value(name, plain, tuple(axes.split()), labels or {}, "" if symbol == name else symbol, look)

    def step(self, title: str, text: str, formula: str, using: str, *results: Value) -> None:
        """One more step; `using` names what goes in, in one text: "V h"."""
        for result in results:
            if result.name in self._values:
                raise ValueError(f"step {title!r}: {result.name} is there already")
        operands = tuple(self._values[name] for name in using.split())
        self._values |= {result.name: result for result in results}
        self._steps.append(Step(title, text, formula, operands, results))

    def lecture(self, about: str, expected: Data, name: str, tolerance: float = 5e-5) -> None:
        """The number of the lecture, true of the lecture's inputs."""
        value = self._values[name]
        self._checks.append(Check(about, "lecture", expected, value.data, tolerance, value.symbol or value.name))

    def agree(self, about: str, expected: Any, found: Any, tolerance: float = 1e-6) -> None:
        """Two ways to one number, which agree whatever is given."""
        both = [side.tolist() if isinstance(side, Tensor) else side for side in (expected, found)]
        self._checks.append(Check(about, "agreement", both[0], both[1], tolerance))

    def work(self) -> Work:
        """What was written."""
        return Work(tuple(self._steps), tuple(self._checks))
