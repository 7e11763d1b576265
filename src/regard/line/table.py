"""Entries of the line, read from line.json, which docs/line.py derives from code, recipes and LOG.md."""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any

from regard.errors import ConfigError

FILE = "line.json"


@dataclass(frozen=True)
class LineEntry:
    """One system of the line."""

    id: str
    name: str
    year: int
    """of the first publication"""
    part: str
    idea: str
    """what was new, in a few words"""
    paper: str
    against: str
    """what it is compared with"""
    new: str
    after: tuple[str, ...]
    """ids of the systems it builds on"""
    file: str
    """the file that implements it"""
    lines: int
    lesson: str | None
    kinds: tuple[str, ...]
    """kinds of models that are of this system"""
    settings: Mapping[str, Any] = field(hash=False)
    """settings that a model of these kinds must have besides"""
    recipe: str | None
    command: str | None
    result: str | None
    """score, then time"""
    logged: str | None
    """date of the result in LOG.md, if it is not of a recipe"""

    @property
    def score(self) -> str:
        """The result without what follows the first semicolon."""
        return (self.result or "").partition(";")[0].removesuffix(".")

    def matches(self, model: Mapping[str, Any]) -> bool:
        """Whether the model table of a recipe is of this system.

        >>> find_entry("gru").matches({"kind": "rnnlm", "cell": "gru"}), find_entry("gru").matches({"kind": "gpt"})
        (True, False)
        """
        return model.get("kind") in self.kinds and has_settings(model, self.settings)


def has_settings(table: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    """Whether a table has all of the wanted settings, also in tables inside of it.

    >>> has_settings({"decoder": {"kind": "gnmt", "layers": 2}}, {"decoder": {"kind": "gnmt"}})
    True
    """
    for name, value in wanted.items():
        found = table.get(name)
        if isinstance(value, dict) and isinstance(found, dict) and has_settings(found, value):
            continue
        if found != value:
            return False
    return True


@dataclass(frozen=True)
class LineEvent:
    """Something on the line that is not a system to build: a book, a winter, a contest, an unpublished model."""

    year: int
    until: int | None
    name: str
    text: str
    lesson: str | None
    undisclosed: bool

    @property
    def years(self) -> str:
        """One year or a span."""
        return f"{self.year} to {self.until}" if self.until else str(self.year)


@dataclass(frozen=True)
class Line:
    """Systems and events, by year."""

    parts: tuple[str, ...]
    entries: tuple[LineEntry, ...]
    events: tuple[LineEvent, ...]

    @staticmethod
    def from_table(table: Mapping[str, Any]) -> Line:
        """The line of the content of line.json."""
        rows: list[dict[str, Any]] = [
            {name: tuple(value) if isinstance(value, list) else value for name, value in row.items()}
            for row in table["entries"]
        ]
        entries, events = (LineEntry(**row) for row in rows), (LineEvent(**row) for row in table["events"])
        return Line(tuple(table["parts"]), tuple(entries), tuple(events))

    def rows(self) -> list[LineEntry | LineEvent]:
        """Systems and events by year; an event comes after the systems of its first year."""
        return sorted([*self.entries, *self.events], key=lambda row: (row.year, isinstance(row, LineEvent)))


@cache
def line_table() -> dict[str, Any]:
    """The content of line.json."""
    found: dict[str, Any] = json.loads((files("regard.line") / FILE).read_text(encoding="utf-8"))
    return found


@cache
def load_line() -> Line:
    """The line of this version of the package."""
    return Line.from_table(line_table())


def find_entry(name: str) -> LineEntry:
    """The system with an id; an unknown id is an error with a suggestion.

    >>> find_entry("perceptorn")
    Traceback (most recent call last):
    regard.errors.ConfigError: the line has no system "perceptorn"; did you mean "perceptron"?
    """
    entries = {entry.id: entry for entry in load_line().entries}
    if name.lower() not in entries:
        close = difflib.get_close_matches(name.lower(), entries, n=1, cutoff=0.5)
        guess = f'did you mean "{close[0]}"?' if close else f"there are {', '.join(entries)}"
        raise ConfigError(f'the line has no system "{name}"; {guess}')
    return entries[name.lower()]
