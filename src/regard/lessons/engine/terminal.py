"""A lesson as terminal text: summary, inputs, steps with formulas and numbers, and checks."""

from __future__ import annotations

import io
import math

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from regard.lessons.catalogue import LESSONS
from regard.lessons.engine.formatting import format_brief, wrap_text
from regard.lessons.engine.formula import plain_text
from regard.lessons.engine.lesson import InputValue, Lesson, LessonCheck, LessonStep, Value, shape
from regard.lessons.engine.pictures import is_heat_map
from regard.lessons.engine.reading import node_label
from regard.lessons.engine.rendering import GAP, NAME, flow, grid_row, join_lines, render_data, render_value, width_of
from regard.look.terminal import ColorDepth

MAX_WIDTH, MIN_WIDTH = 100, 32
"""columns of text"""
MAX_REPEATED = (1, 8, 12)
"""numbers up to which a scalar, a vector and a matrix are shown a second time"""
MAX_INPUT, MIN_ABOUT = 36, 24
"""columns of an input's value, and of its description, for both to be side by side"""
HALF_WIDTH = 44
"""columns of a heat map beside another one"""
INDENT = 3
RESULT, CHANGED, AGREES, WRONG, FORMULA = "bold", "yellow", "green", "bold red", "italic magenta"
COLOR_SYSTEMS = {"none": None, "256": "256", "24-bit": "truecolor"}


def lesson_text(
    lesson: Lesson, width: int, color: ColorDepth = "none", original: Lesson | None = None, step: int | None = None
) -> str:
    """A lesson in lines of at most `width` columns; `original`: the lesson with default inputs, to compare with.

    >>> from regard.lessons import teach
    >>> print(lesson_text(teach("rnn"), 60, step=4).splitlines()[2])
    4  The output
    """
    console = Console(
        file=io.StringIO(),
        width=max(MIN_WIDTH, min(width, MAX_WIDTH)),
        force_terminal=color != "none",
        color_system=COLOR_SYSTEMS[color],  # type: ignore[arg-type]
        highlight=False,
        legacy_windows=False,
    )
    blocks = _page(lesson, console.width, color, original, step)
    for segments in console.render_lines(Group(*blocks), pad=False):
        line = Text.assemble(*((segment.text, segment.style or "") for segment in segments))
        line.rstrip()
        console.print(line, soft_wrap=True)
    return console.file.getvalue()  # type: ignore[attr-defined]


def _page(
    lesson: Lesson, width: int, color: ColorDepth, original: Lesson | None, step: int | None
) -> list[RenderableType]:
    blocks: list[RenderableType] = [*wrap_text(lesson.title, width, "bold")]
    if step is None:
        blocks += [*wrap_text(lesson.summary, width), "", *_figure(lesson, width), *_inputs(lesson, width, color)]
    shown = {one.value.name for one in lesson.inputs} if step is None else set()
    before = {value.name: value for one in original.steps for value in one.results} if original else {}
    for number, one in enumerate(lesson.steps, 1):
        if step in (None, number):
            blocks += ["", *_step(number, one, width, color, shown, before)]
        if step is None:
            shown |= {value.name for value in one.results}
    return blocks if step is not None else [*blocks, "", *_checks(lesson, width), "", *_reading(lesson, width)]


def _indent(block: RenderableType, columns: int = INDENT) -> Padding:
    return Padding(block, (0, 0, 0, columns))


def _figure(lesson: Lesson, width: int) -> list[RenderableType]:
    """The figure as chains of arrows; a picture of its values is drawn by the page."""
    values = lesson.values
    signs = {node: values[node].sign if node in values else node_label(node) for node in lesson.figure.nodes}
    chains = [" → ".join(signs[node] for node in chain) for chain in lesson.figure.chains]
    lines = [line for chain in chains for line in wrap_text(chain, width - INDENT, FORMULA)]
    return [Text("Figure", "bold"), *map(_indent, lines), ""] if lines else []


def _reading(lesson: Lesson, width: int) -> list[RenderableType]:
    reading = lesson.reading
    rows = {"course": reading.source, "terms": ", ".join(reading.terms), "papers": "; ".join(reading.papers)}
    rows["exercises"] = f"regard lesson {lesson.name} --exercises"
    names = max(map(len, rows)) + 2
    blocks: list[RenderableType] = [Text("Read on", "bold")]
    for name, text in rows.items():
        lines = join_lines(wrap_text(text, width - INDENT - names))
        blocks.append(_indent(grid_row(Text(f"{name:{names}}", NAME), lines, gap=0, top=True)))
    return blocks


def _inputs(lesson: Lesson, width: int, color: ColorDepth) -> list[RenderableType]:
    example = f"change some: regard lesson {lesson.name} {LESSONS[lesson.name].example}"
    head = Text.assemble(("Inputs", "bold"), (f"   {example}", "dim"))
    heads = [head] if head.cell_len <= width else [Text("Inputs", "bold"), *wrap_text(example, width, "dim")]
    names = max(len(one.value.name) for one in lesson.inputs) + 2
    limit = min(MAX_INPUT, width - names - INDENT - GAP - MIN_ABOUT)
    widths = [width_of(render_data(one.value, width, "none")) for one in lesson.inputs]
    column = max((size for size in widths if size <= limit), default=0)
    return [*heads, *(_indent(_input(one, names, column, width - INDENT, color)) for one in lesson.inputs)]


def _input(one: InputValue, names: int, column: int, width: int, color: ColorDepth) -> RenderableType:
    """Name and value with the description at the right, or below where the value is too wide."""
    name = Text(f"{one.value.name:{names}}", NAME)
    content = render_data(one.value, width - names, color, CHANGED if one.is_changed else "")
    about = one.about if one.value.sign == one.value.name else f"{one.value.sign}: {one.about}"
    about += f" ({' or '.join(one.choices)})" if one.choices else ""
    about += f"; changed, the lesson has {format_brief(one.default)}" if one.is_changed else ""
    if width_of(content) <= column:
        text = join_lines(wrap_text(about, width - names - column - GAP, "dim"))
        return grid_row(grid_row(name, content, gap=0), text, top=True, first_width=names + column)
    lines = join_lines(wrap_text(about, width - names, "dim"))
    return Group(grid_row(name, content, gap=0), _indent(lines, names))


def _step(
    number: int, step: LessonStep, width: int, color: ColorDepth, shown: set[str], before: dict[str, Value]
) -> list[RenderableType]:
    room, label = width - INDENT, f"{number}  "
    title = join_lines(wrap_text(step.title, width - len(label), "bold"))
    lines: list[RenderableType] = [grid_row(Text(label, "bold"), title, gap=0, top=True)]
    lines += [_indent(line) for line in wrap_text(step.text, room)]
    if step.formula:
        formula = wrap_text(plain_text(step.formula), room - INDENT, FORMULA)
        lines += ["", *(_indent(line, 2 * INDENT) for line in formula), ""]
    maps = [value for value in step.results if is_heat_map(value)]
    half = (room - GAP) // 2 if len(maps) > 1 and room >= 2 * HALF_WIDTH else room
    values: list[RenderableType] = [*flow([_operand(value, room, color, shown) for value in step.operands], room)]
    values += [_result(value, room, color, before) for value in step.results if value not in maps]
    values += flow([_result(value, half, color, before) for value in maps], room)
    return [*lines, *map(_indent, values)]


def _operand(value: Value, width: int, color: ColorDepth, shown: set[str]) -> RenderableType:
    """An operand; a large one that was shown before is only named."""
    sides = shape(value.data)
    picture = value.look in ("signed", "line", "log", "tree", "records", "listing")
    if value.name in shown and (picture or math.prod(sides) > MAX_REPEATED[len(sides)]):
        return Text.assemble((value.sign, NAME), (f" ({' x '.join(map(str, sides))}, above)", "dim"))
    return render_value(value, width, color)


def _result(value: Value, width: int, color: ColorDepth, before: dict[str, Value]) -> RenderableType:
    """A result after an arrow, and the lesson's own value where changed inputs have changed it."""
    old = before.get(value.name)
    changed = old is not None and old.data != value.data
    block = render_value(value, width, color, f"{RESULT} {CHANGED}" if changed else RESULT, "→ ")
    if old is None or not changed:
        return block
    note = f"(the lesson has {format_brief(old.data)})"
    lines = wrap_text(note if len(note) <= 60 else "(changed)", width - 4, "dim")
    right = grid_row(block, join_lines(lines))
    return right if width_of(right) <= width else Group(block, *(_indent(line, 4) for line in lines))


def _checks(lesson: Lesson, width: int) -> list[RenderableType]:
    blocks: list[RenderableType] = [Text("Check", "bold")]
    for check in lesson.checks:
        mark, text, style = _check(check, bool(lesson.changed_inputs))
        lines = join_lines(wrap_text(text, width - INDENT - 2, style))
        blocks.append(_indent(grid_row(Text(mark, style), lines, gap=1, top=True)))
    if lesson.changed_inputs:
        summary = f"{' and '.join(lesson.changed_inputs)} changed: marked results differ from the lesson's."
    elif not all(check.holds for check in lesson.checks):
        summary = "Some numbers differ from the lesson's; this is a bug."
    elif any(check.kind == "lecture" for check in lesson.checks):
        summary = "All numbers are those of the lesson."
    else:
        summary = "All computations agree."
    return [*blocks, *wrap_text(summary, width, "bold")]


def _check(check: LessonCheck, changed: bool) -> tuple[str, str, str]:
    """Mark, text and style of a check."""
    if check.kind == "agreement":
        text = f"{check.about}: {'equal' if check.difference == 0 else f'difference {check.difference:.1e}'}"
        return ("✓", text, AGREES) if check.holds else ("✗", text, WRONG)
    found, expected = format_brief(check.found), format_brief(check.expected)
    if check.holds:
        return "✓", f"{check.about}: {expected}", AGREES
    if changed:
        return "·", f"{check.about}: {found}; the lesson has {expected}", CHANGED
    return "✗", f"{check.about}: {found}; the lesson has {expected}", WRONG
