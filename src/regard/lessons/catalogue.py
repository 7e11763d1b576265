"""The list of lessons in their order. A lesson is a module: INPUTS, compute(page), FIGURE, EXERCISES, READING."""

from __future__ import annotations

import difflib
import textwrap
from collections.abc import Mapping
from importlib import import_module
from typing import Any

from regard.errors import ConfigError
from regard.lessons.contents.entry import LessonEntry
from regard.lessons.contents.networks import NETWORK_LESSONS
from regard.lessons.contents.transformers import TRANSFORMER_LESSONS
from regard.lessons.engine.exercises import Exercise
from regard.lessons.engine.inputs import LessonPlan
from regard.lessons.engine.lesson import Data, Lesson
from regard.lessons.engine.reading import Figure

LESSONS = NETWORK_LESSONS | TRANSFORMER_LESSONS


def find_lesson(name: str) -> LessonEntry:
    """Entry of a lesson; an unknown name is an error with a suggestion.

    >>> find_lesson("bahdanu")
    Traceback (most recent call last):
    regard.errors.ConfigError: there is no lesson "bahdanu"; did you mean "bahdanau"?
    """
    if name not in LESSONS:
        close = difflib.get_close_matches(name.lower(), LESSONS, n=1, cutoff=0.5)
        guess = f'did you mean "{close[0]}"?' if close else f"there are {', '.join(LESSONS)}"
        raise ConfigError(f'there is no lesson "{name}"; {guess}')
    return LESSONS[name]


def lesson_plan(name: str) -> LessonPlan:
    """Inputs of a lesson and the function that computes it."""
    find_lesson(name)
    module = import_module(f"regard.lessons.{name.replace('-', '_')}")
    figure = Figure.parse(module.FIGURE)
    return LessonPlan(module.INPUTS, module.compute, module.EXERCISES, figure, module.READING)


def teach(name: str, changes: Mapping[str, Any] | None = None) -> Lesson:
    """Compute a lesson, with its default inputs or with some of them changed.

    >>> teach("rnn").value("o").data, teach("rnn", {"x": [2, 0]}).value("o").data
    (1.0, 2.0)
    """
    from regard.lessons.engine.builder import LessonBuilder  # imports torch, which the list of lessons does not need

    entry, plan = find_lesson(name), lesson_plan(name)
    inputs = plan.resolve(changes or {})
    page = LessonBuilder({one.value.name: one.value for one in inputs})
    plan.compute(page)
    steps, checks = tuple(page.steps), tuple(page.checks)
    return Lesson(name, entry.title, entry.summary, inputs, steps, checks, plan.figure, plan.reading)


def find_exercise(name: str, number: int) -> Exercise:
    """An exercise of a lesson, counted from 1."""
    exercises = lesson_plan(name).exercises
    if not 1 <= number <= len(exercises):
        raise ConfigError(f'the lesson "{name}" has the exercises 1 to {len(exercises)}, got {number}')
    return exercises[number - 1]


def solve(name: str, exercise: Exercise, changes: Mapping[str, Any] | None = None) -> Data:
    """Answer of an exercise, computed by the lesson; `changes`: other inputs that are changed, such as its model.

    >>> solve("rnn", Exercise("With x = [2, 0], what is the output?", "o", {"x": [2, 0]}))
    2.0
    """
    return exercise.solution(teach(name, {**(changes or {}), **exercise.changes}))


def list_lines(width: int) -> list[str]:
    """The list of lessons as lines; a title that does not fit beside its name follows below."""
    lines, part, longest = list[str](), "", max(map(len, LESSONS))
    for name, entry in LESSONS.items():
        if entry.part != part:
            lines += [*([""] if part else []), entry.part]
            part = entry.part
        if longest + 4 + len(entry.title) <= width:
            lines.append(f"  {name:{longest}}  {entry.title}")
        else:
            lines += [f"  {name}", *textwrap.wrap(entry.title, max(width, 20), initial_indent="    ")]
    note = (
        "regard lesson NAME shows one; NAME=VALUE after it changes an input and recomputes the results. "
        "regard lesson NAME --exercises asks you two questions about it."
    )
    return [*lines, "", *textwrap.wrap(note, max(width, 20))]
