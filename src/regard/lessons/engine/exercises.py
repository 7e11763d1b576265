"""Exercises of a lesson: a question as data, an answer computed from the lesson's own values, and its grading."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from regard.lessons.engine.lesson import Data, Lesson, Value, flatten

ROUNDING = 6e-3
"""default tolerance: two decimals are enough"""
MAX_ANSWER = 500
"""length of an answer in characters"""
_NUMBER = re.compile(r"^([-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?)(?:/(\d+\.?\d*))?(%?)$", re.IGNORECASE)

_GROUPED = re.compile(r"^-?[1-9]\d{0,2}(,\d{3})+$")
"""one number with commas, such as 61,100,840"""


@dataclass(frozen=True)
class Exercise:
    """A question about a lesson, perhaps with other inputs.

    >>> from regard.lessons import teach
    >>> exercise = Exercise("With x = [2, 0], what is the output?", "o", {"x": [2, 0]})
    >>> exercise.solution(teach("rnn", exercise.changes))
    2.0
    """

    prompt: str
    answer: str | Callable[[Lesson], Data]
    """name of a value of the lesson, or a function of the lesson"""
    changes: Mapping[str, Any] = field(default_factory=dict)
    """inputs that differ from the lesson's defaults"""
    hint: str = ""
    tolerance: float = ROUNDING
    """largest difference of a number that counts as right"""

    def solution(self, lesson: Lesson) -> Data:
        """The answer in a lesson that was computed with `changes`."""
        return lesson.value(self.answer).data if isinstance(self.answer, str) else self.answer(lesson)

    def to_dict(self) -> dict[str, Any]:
        """JSON form, without the answer."""
        return {"prompt": self.prompt, "hint": self.hint, "changes": dict(self.changes), "tolerance": self.tolerance}


@dataclass(frozen=True)
class Grade:
    """Whether an answer is right, and what is to be said about it."""

    right: bool
    message: str


def item(name: str, *at: int) -> Callable[[Lesson], Data]:
    """Answer: one item of a value, by its indices from 0."""

    def pick(lesson: Lesson) -> Data:
        data = lesson.value(name).data
        for index in at:
            data = data[index]
        return data

    return pick


def largest(name: str, *at: int) -> Callable[[Lesson], Data]:
    """Answer: the label of the largest number along the last axis of a value, in the row at some indices."""

    def pick(lesson: Lesson) -> Data:
        value: Value = lesson.value(name)
        row = item(name, *at)(lesson)
        return value.labels[value.axes[-1]][max(range(len(row)), key=row.__getitem__)]

    return pick


def grade(text: str, expected: Data, tolerance: float = ROUNDING) -> Grade:
    """Compare a typed answer with the solution: numbers within a tolerance, texts regardless of case.

    >>> grade("[1, 0, 1/3]", [1.0, 0.0, 0.333], 0.006), grade("2", 2.5).right, grade(" Sera ", "sera").right
    (Grade(right=True, message='right'), False, True)
    >>> grade("1 0", [1.0, 0.0, 0.0]).message, grade("one", 1.0).message
    ('expected 3 numbers, got 2', 'expected a number, got "one"')
    """
    wanted = list(flatten(expected))
    if isinstance(wanted[0], str):
        found = _normalize(text)
        return Grade(True, "right") if found == _normalize(" ".join(wanted)) else Grade(False, "not right")
    numbers: list[float] = []
    text = text.replace("−", "-").replace(" %", "%").strip()
    for part in re.split(r"[\s,;\[\]()]+", text.replace(",", "") if _GROUPED.match(text) else text):
        if part and (number := _parse_number(part)) is None:
            return Grade(False, f'expected {_count(len(wanted))}, got "{part[:40]}"')
        numbers += [number] if part and number is not None else []
    if len(numbers) != len(wanted):
        return Grade(False, f"expected {_count(len(wanted))}, got {len(numbers)}")
    wrong = sum(abs(a - float(b)) > tolerance for a, b in zip(numbers, wanted))
    if not wrong:
        return Grade(True, "right")
    return Grade(
        False, "not right" if len(wanted) == 1 else f"{len(wanted) - wrong} of {len(wanted)} numbers are right"
    )


def _parse_number(text: str) -> float | None:
    match = _NUMBER.match(text)
    if match is None or (match[2] and not float(match[2])):
        return None
    number = float(match[1]) / float(match[2] or 1) / (100 if match[3] else 1)
    return number if math.isfinite(number) else None


def _count(count: int) -> str:
    return "a number" if count == 1 else f"{count} numbers"


def _normalize(text: str) -> str:
    """Lower-case words without quotes, brackets and commas around them."""
    return " ".join(word.strip("\"'“”[](),;").casefold() for word in text.split())


def format_solution(data: Data) -> str:
    """The answer on one line.

    >>> format_solution([0.5, 0.25]), format_solution("am")
    ('[0.50  0.25]', '"am"')
    """
    from regard.lessons.engine.formatting import format_brief  # imports numpy, which the list of lessons does not need

    return format_brief(data)
