"""The line in a terminal: an overview by year, and all about one system."""

from __future__ import annotations

import textwrap

from regard.line.table import Line, LineEntry, LineEvent
from regard.plurals import count_noun


def overview_lines(line: Line, width: int) -> list[str]:
    """Systems and events by year: what was new, what was measured, and where it is."""
    width, longest = max(width, 40), max(len(entry.id) for entry in line.entries)
    found = list[str]()
    for row in line.rows():
        if isinstance(row, LineEvent):
            name = f"{row.name}, undisclosed" if row.undisclosed else row.name
            found += ["", *_wrap(f"{row.years}: {name}. {row.text}", width, "  -- "), ""]
            continue
        found += _wrap(f"{row.year}  {row.id:{longest}}  {row.name}: {row.idea}", width, " ", longest + 9)
        found += _wrap(", ".join(_places(row)), width, " " * (longest + 9))
        if row.score:
            found += _wrap(row.score, width, " " * (longest + 9))
    note = "regard line NAME shows all about one system: paper, what was new, recipe, result, lesson."
    return [*found, "", *textwrap.wrap(note, width)]


def _places(entry: LineEntry) -> list[str]:
    """File and lesson of a system."""
    places = [f"{entry.file.removeprefix('src/regard/')} ({count_noun(entry.lines, 'line')})"]
    return [*places, f"lesson {entry.lesson}"] if entry.lesson else places


def entry_lines(entry: LineEntry, line: Line, width: int) -> list[str]:
    """All about one system."""
    width = max(width, 40)
    names = {other.id: f"{other.name} ({other.year}, {other.id})" for other in line.entries}
    followers = [other.id for other in line.entries if entry.id in other.after]
    result = f"{entry.result or 'not measured'}{f' (LOG.md, {entry.logged})' if entry.logged else ''}"
    rows = {
        "paper": entry.paper,
        f"new{f' against {entry.against}' if entry.against else ''}": entry.new,
        "builds on": ", ".join(names[name] for name in entry.after),
        "followed by": ", ".join(names[name] for name in followers),
        "file": f"{entry.file}, {count_noun(entry.lines, 'line')}",
        "recipe": entry.command or "",
        "result": result,
        "lesson": f"regard lesson {entry.lesson}" if entry.lesson else "",
    }
    found = [f"{entry.name}, {entry.year}"]
    for label, text in rows.items():
        if text:
            found += ["", label, *_wrap(text, width, "  ")]
    return found


def _wrap(text: str, width: int, start: str, indent: int | None = None) -> list[str]:
    """Lines that start with `start`; all but the first are indented further, by default as far."""
    further = " " * (len(start) if indent is None else indent)
    return textwrap.wrap(
        text, width, initial_indent=start, subsequent_indent=further, break_on_hyphens=False, break_long_words=False
    )
