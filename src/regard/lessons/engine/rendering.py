"""Values for the terminal: vectors on a line, matrices in brackets, tables with labels, and pictures."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Literal

from rich.cells import cell_len
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from regard.lessons.engine.formatting import format_cells, format_table, wrap_text
from regard.lessons.engine.lesson import Value
from regard.lessons.engine.pictures import MAX_LABEL, picture_lines
from regard.look.terminal import ColorDepth, pad_cells, paint
from regard.look.tokens import isolate_bidi, make_visible, truncate

GAP, MAX_CELL, UNLIMITED = 3, 24, 10_000
"""columns between two blocks, of a table cell, and of an unlimited line"""
NAME = "cyan"
_CONSOLE = Console(file=io.StringIO(), width=UNLIMITED)


def width_of(block: RenderableType) -> int:
    """Columns that a renderable needs."""
    return _CONSOLE.measure(block).maximum


def grid_row(*blocks: RenderableType, gap: int = GAP, top: bool = False, first_width: int = 0) -> Table:
    """Blocks side by side, vertically centered; `top`: the first one starts at the top."""
    grid = Table.grid(padding=(0, gap, 0, 0))
    for i, block in enumerate(blocks):
        width = max(width_of(block), 0 if i else first_width)
        grid.add_column(vertical="top" if top and i == 0 else "middle", min_width=width)
    grid.add_row(*blocks)
    return grid


def flow(blocks: Sequence[RenderableType], width: int) -> list[Table]:
    """Blocks side by side as far as they fit, then below."""
    rows: list[list[RenderableType]] = []
    for block in blocks:
        if rows and width_of(grid_row(*rows[-1], block)) <= width:
            rows[-1].append(block)
        else:
            rows.append([block])
    return [grid_row(*row) for row in rows]


def render_value(value: Value, width: int, color: ColorDepth, style: str = "", mark: str = "") -> RenderableType:
    """`name = value` in at most `width` columns; a value that does not fit beside its name is shown below it."""
    name = Text.assemble((mark, style), (f"{value.sign} =", NAME))
    lines = picture_lines(value, width - 2, color)
    if lines is None:
        room, block = width - name.cell_len - 1, render_data(value, UNLIMITED, color, style)
        if room >= width // 2 and width_of(block) <= room:
            return grid_row(name, block, gap=1)
    content = render_data(value, width - 2, color, style) if lines is None else join_lines(lines)
    return Group(name, Padding(content, (0, 0, 0, 2)))


def join_lines(lines: Sequence[Text]) -> Text:
    """One block of lines that are not wrapped again."""
    return Text("\n", no_wrap=True).join(lines)


def render_data(value: Value, width: int, color: ColorDepth, style: str = "") -> Text:
    """A value without its name.

    >>> print(render_data(Value("V", [[0, 1], [1, 0]], ("a", "b")), 40, "none"))
    ⎡0  1⎤
    ⎣1  0⎦
    """
    if not value.axes:
        text = format_cells([value.data])[0]
        return join_lines(wrap_text(f'"{text}"' if isinstance(value.data, str) else text, width, style))
    if len(value.axes) == 1 and not value.labels:
        return join_lines([Text(line, style) for line in _vector_lines(format_cells(value.data), width)])
    return join_lines(_table_lines(value, width, color, style))


def _vector_lines(cells: list[str], width: int) -> list[str]:
    if any(" " in cell for cell in cells):  # sentences: one per line
        parts = [line.plain for cell in cells for line in wrap_text(f'"{cell}"', width - 2)]
        return [f"{' ' if i else '['}{line}{']' if i == len(parts) - 1 else ''}" for i, line in enumerate(parts)]
    lines = ["["]
    for cell in cells:
        space = "" if lines[-1] in ("[", " ") else "  "
        if space and cell_len(lines[-1]) + 2 + cell_len(cell) + 1 > width:
            lines.append(" ")
            space = ""
        lines[-1] += f"{space}{isolate_bidi(truncate(cell, max(width - 2, 4)))}"
    return [*lines[:-1], f"{lines[-1]}]"]


def _table_lines(value: Value, width: int, color: ColorDepth, style: str) -> list[Text]:
    """Cells in columns, in brackets where columns have no labels; columns that do not fit follow below."""
    matrix = len(value.axes) == 2
    rows = value.data if matrix else [value.data]
    words = value.labels.get(value.axes[0], []) if matrix else [], value.labels.get(value.axes[-1], [])
    labels, heads = ([truncate(make_visible(word), MAX_LABEL) for word in axis] for axis in words)
    cells = [[truncate(cell, MAX_CELL) for cell in row] for row in format_table(value)]
    widths = [max(map(cell_len, column)) for column in zip(*cells, *([heads] if heads else []))]
    margin = max(map(cell_len, labels)) + 2 if labels else 0
    side: Literal["left", "right"] = "left" if isinstance(rows[0][0], str) else "right"
    lines = []
    for part in _column_groups(widths, width - margin - (0 if heads else 2)):
        head = "  ".join(pad_cells(heads[j], widths[j], side) for j in part) if heads else ""
        if not heads and len(part) < len(widths):
            head = _column_range(part, len(widths), width - margin)
        lines += [Text(" " * margin + head, "dim")] if head else []
        for i, row in enumerate(cells):
            left, right = ("", "") if heads else _brackets(i, len(cells))
            line = Text.assemble((pad_cells(labels[i], margin, "left") if labels else "", "dim"), (left, style))
            for j in part:
                cell = pad_cells(row[j], widths[j], side)
                colored = value.look == "weights" and color != "none"
                line.append("  " if j > part[0] else "")
                line.append_text(
                    Text.from_ansi(paint(cell, float(rows[i][j]), color)) if colored else Text(cell, style)
                )
            lines.append(line.append(right, style))
    return lines


def _column_groups(widths: list[int], room: int) -> list[list[int]]:
    """Columns that fit side by side."""
    groups: list[list[int]] = []
    for j, width in enumerate(widths):
        if not groups or sum(widths[k] + 2 for k in groups[-1]) + width > room:
            groups.append([])
        groups[-1].append(j)
    return groups


def _column_range(part: list[int], count: int, room: int) -> str:
    text = f"{part[0] + 1} to {part[-1] + 1} of {count}"
    return next((note for note in (f"columns {text}", text) if len(note) <= room), "")


def _brackets(i: int, rows: int) -> tuple[str, str]:
    if rows == 1:
        return "[", "]"
    return ("⎡", "⎤") if i == 0 else ("⎣", "⎦") if i == rows - 1 else ("⎢", "⎥")
