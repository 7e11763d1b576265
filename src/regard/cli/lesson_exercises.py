"""regard lesson NAME --exercises: questions in the terminal, and answers from stdin that are checked."""

from __future__ import annotations

import shlex
import shutil
import sys
import textwrap
from collections.abc import Mapping
from typing import Any

import click

from regard.cli.options import print_json
from regard.lessons.catalogue import find_lesson, lesson_plan, solve
from regard.lessons.engine.exercises import Exercise, format_solution, grade

TRIES = 3
"""answers to a question in a terminal; a file has one line per question"""


def ask(name: str, changes: Mapping[str, Any], as_json: bool) -> None:
    """Ask each question, read an answer, and check it; as JSON: questions and answers."""
    exercises = lesson_plan(name).exercises
    if as_json:
        print_json([one.to_dict() | {"answer": solve(name, one, changes)} for one in exercises])
        return
    _print(find_lesson(name).title, bold=True)
    right = 0
    for number, exercise in enumerate(exercises, 1):
        click.echo()
        _print(f"{number}  {exercise.prompt}", indent=3)
        right += _ask_one(name, exercise, changes)
    click.echo()
    _print(f"{right} of {len(exercises)} right", bold=True)


def _ask_one(name: str, exercise: Exercise, changes: Mapping[str, Any]) -> bool:
    """Whether the answer is right. A line without an answer, or the end of the input, shows the solution."""
    interactive, expected = sys.stdin.isatty(), solve(name, exercise, changes)
    for attempt in range(TRIES if interactive else 1):
        if interactive:
            click.echo("   your answer (Enter shows it): ", nl=False)
        answer = sys.stdin.readline().strip()
        if not answer:
            break
        result = grade(answer, expected, exercise.tolerance)
        mark = "✓" if result.right else "✗"
        hint = f"; hint: {exercise.hint}" if exercise.hint and not result.right and not attempt else ""
        shown = answer if len(answer) <= 60 else f"{answer[:59]}…"
        _print(f"   {mark} {'' if interactive else f'{shown}: '}{result.message}{hint}", indent=5)
        if result.right:
            return True
    _print(f"   answer: {format_solution(expected)}", indent=5)
    inputs = " ".join(shlex.quote(f"{key}={value}") for key, value in exercise.changes.items())
    _print(f"   shown by: regard lesson {name} {inputs}".rstrip(), indent=5)
    return False


def _print(text: str, indent: int = 0, bold: bool = False) -> None:
    """Lines of at most the width of the terminal; control characters are not printed."""
    width = max(32, min(shutil.get_terminal_size().columns, 100))
    clean = "".join(letter for letter in text if letter.isprintable())
    for line in textwrap.wrap(clean, width, subsequent_indent=" " * indent, drop_whitespace=True) or [""]:
        click.echo(click.style(line, bold=True) if bold and sys.stdout.isatty() else line)
