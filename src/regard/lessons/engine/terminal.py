"""A lesson in the terminal: what one learns, inputs, steps with formula and numbers, and what was expected."""

from __future__ import annotations

import io
import math

from rich.console import Console
from rich.text import Text

from regard.lessons.catalogue import CONTENTS
from regard.lessons.engine.blocks import GAP, NAME, RESULT, Block, content, drawn, flow, heat
from regard.lessons.engine.figures import brief, folded
from regard.lessons.engine.formula import plain
from regard.lessons.engine.lesson import Check, Given, Lesson, Step, Value, shape
from regard.look.terminal import Colour

WIDEST, NARROWEST = 100, 32
"""columns of text, at most and at least"""
AGAIN = (1, 8, 12)
"""numbers that a scalar, a vector and a matrix may have to be shown a second time"""
BESIDE, SPACE, ABOUT = 36, 3, 24
"""columns of an input's value at most, of the space behind it, and of what it is, at least, to stand beside it"""
HALF = 44
"""columns that a heat map wants to stand beside another"""
INDENT = "   "
YOURS, AGREES, FORMULA = "yellow", "green", "italic magenta"
SYSTEMS = {"none": None, "256": "256", "24-bit": "truecolor"}


def text(
    lesson: Lesson, width: int, colour: Colour = "none", usual: Lesson | None = None, step: int | None = None
) -> str:
    """A lesson in lines of at most `width` columns; `usual` is the lesson as the lesson has it, if inputs are changed.

    >>> from regard.lessons import teach
    >>> print(text(teach("rnn"), 60, step=4).splitlines()[2])
    4  The output
    """
    room = max(NARROWEST, min(width, WIDEST))
    file = io.StringIO()
    console = Console(
        file=file,
        width=max(width, NARROWEST),
        force_terminal=colour != "none",
        color_system=SYSTEMS[colour],  # type: ignore[arg-type]
        highlight=False,
        legacy_windows=False,
    )
    for line in _page(lesson, room, colour, usual, step):
        line.rstrip()
        console.print(line, soft_wrap=True)
    return file.getvalue()


def _page(lesson: Lesson, width: int, colour: Colour, usual: Lesson | None, step: int | None) -> list[Text]:
    lines = [Text(line, "bold") for line in folded(lesson.title, width)]
    if step is None:
        lines += [*map(Text, folded(lesson.learns, width)), Text(""), *_inputs(lesson, width, colour)]
    shown = {given.value.name for given in lesson.inputs} if step is None else set()
    before = {value.name: value for one in usual.steps for value in one.results} if usual else {}
    for number, one in enumerate(lesson.steps, 1):
        if step in (None, number):
            lines += [Text(""), *_step(number, one, width, colour, shown, before)]
        if step is None:
            shown |= {value.name for value in one.results}
    return lines if step is not None else [*lines, Text(""), *_checks(lesson, width)]


def _inputs(lesson: Lesson, width: int, colour: Colour) -> list[Text]:
    example = f"change some: regard lesson {lesson.name} {CONTENTS[lesson.name].example}"
    head = Text.assemble(("Inputs", "bold"), (f"   {example}", "dim"))
    below = [Text(line, "dim") for line in folded(example, width)]
    lines = [head] if head.cell_len <= width else [Text("Inputs", "bold"), *below]
    names = max(len(given.value.name) for given in lesson.inputs)
    most = min(BESIDE, width - names - len(INDENT) - 2 - SPACE - ABOUT)
    wide = [content(given.value, width, "none").width for given in lesson.inputs]
    column = max((size for size in wide if size <= most), default=0)
    return [*lines, *(line for given in lesson.inputs for line in _input(given, names, column, width, colour))]


def _input(given: Given, names: int, column: int, width: int, colour: Colour) -> list[Text]:
    """Name and value, and at the right what it is; below where the value is too wide for its column."""
    value, about = given.value, given.about
    name = Block.of([Text.assemble(INDENT, (f"{value.name:{names}}  ", NAME))])
    shown = content(value, width - name.width, colour, YOURS if given.changed else "")
    if value.sign != value.name:
        about = f"{value.sign}: {about}"
    if given.choices:
        about += f" ({' or '.join(given.choices)})"
    if given.changed:
        about += f"; yours, the lesson has {brief(given.default)}"
    room = width - name.width - column - SPACE
    if shown.width <= column:
        filled = Block.of([*shown.lines[:-1], Text.assemble(shown.lines[-1], " " * (column - shown.width))])
        told = Block.of(folded(about, room), "dim")
        left = name.beside(filled)
        if len(told.lines) > len(left.lines):  # what it is begins beside it
            left = Block.of([*left.lines, *[""] * (len(told.lines) - len(left.lines))])
        return list(left.beside(told, SPACE).lines)
    below = [Text(" " * name.width + line, "dim") for line in folded(about, width - name.width)]
    return [*name.beside(shown).lines, *below]


def _step(number: int, step: Step, width: int, colour: Colour, shown: set[str], before: dict[str, Value]) -> list[Text]:
    room, label = width - len(INDENT), f"{number}  "
    title = Block.of([label], "bold").lines[0]
    lines = [Text.assemble(title if i == 0 else " " * len(label), (line, "bold"))
             for i, line in enumerate(folded(step.title, width - len(label)))]  # fmt: skip
    lines += [Text(INDENT + line) for line in folded(step.text, room)]
    if step.formula:
        formula = folded(plain(step.formula), room - len(INDENT))
        lines += [Text(""), *(Text(INDENT * 2 + line, FORMULA) for line in formula), Text("")]
    made = flow([_operand(value, room, colour, shown) for value in step.operands], room)
    maps = [value for value in step.results if heat(value)]  # side by side where there is room for two
    half = (room - GAP) // 2 if len(maps) > 1 and room >= 2 * HALF else room
    for value in step.results:
        made += _result(value, room, colour, before).lines if value not in maps else []
    made += flow([_result(value, half, colour, before) for value in maps], room)
    return [*lines, *(Text.assemble(INDENT, line) for line in made)]


def _operand(value: Value, width: int, colour: Colour, shown: set[str]) -> Block:
    """What goes in; a large one that was shown before is only named."""
    sides = shape(value.data)
    picture = value.look in ("signed", "line", "log", "tree")
    if value.name in shown and (picture or math.prod(sides) > AGAIN[len(sides)]):
        return Block.of([Text.assemble((value.sign, NAME), (f" ({' x '.join(map(str, sides))}, above)", "dim"))])
    return drawn(value, width, colour)


def _result(value: Value, width: int, colour: Colour, before: dict[str, Value]) -> Block:
    """What comes out, behind an arrow; where inputs were changed, beside what the lesson has."""
    was = before.get(value.name)
    changed = was is not None and was.data != value.data
    style = f"{RESULT} {YOURS}" if changed else RESULT
    block = drawn(value, width, colour, style, "→ ")
    if was is None or not changed:
        return block
    told = f"(the lesson has {brief(was.data)})"
    note = [Text(line, "dim") for line in folded(told if len(told) <= 60 else "(changed)", width - 4)]
    if block.width + SPACE + max(line.cell_len for line in note) <= width:
        return block.beside(Block.of(note), SPACE)
    return Block.of([*block.lines, *(Text.assemble("    ", line) for line in note)])


def _checks(lesson: Lesson, width: int) -> list[Text]:
    lines = [Text("Check", "bold")]
    for check in lesson.checks:
        mark, said, style = _judged(check, bool(lesson.changed))
        for i, line in enumerate(folded(said, width - len(INDENT) - 2)):
            lines.append(Text(f"{INDENT}{mark if i == 0 else ' '} {line}", style))
    holding = all(check.holds for check in lesson.checks)
    if lesson.changed:
        told = f"{' and '.join(lesson.changed)} changed: what is marked is not the lesson's."
    elif not holding:
        told = "Some numbers differ; this should not be."
    elif any(check.kind == "lecture" for check in lesson.checks):
        told = "All numbers are those of the lesson."
    else:
        told = "All ways lead to the same numbers."
    return [*lines, *(Text(line, "bold") for line in folded(told, width))]


def _judged(check: Check, changed: bool) -> tuple[str, str, str]:
    """A mark, what is said, and in which colour."""
    if check.kind == "agreement":
        said = f"{check.about}: {'equal' if check.difference == 0 else f'{check.difference:.1e} apart'}"
        return ("✓", said, AGREES) if check.holds else ("✗", said, "bold red")
    found, expected = brief(check.found), brief(check.expected)
    if check.holds:
        return "✓", f"{check.about}: {expected}", AGREES
    if changed:
        return "·", f"{check.about}: {found}; the lesson has {expected}", YOURS
    return "✗", f"{check.about}: {found}, and the lesson has {expected}", "bold red"
