"""Values as blocks of text: vectors in a line, matrices in brackets, tables with words beside them, curves as bars."""

from __future__ import annotations

import io
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from rich.cells import cell_len, chop_cells
from rich.console import Console
from rich.text import Text

from regard.lessons.lesson import Value
from regard.look.matrix import Matrix
from regard.look.terminal import Colour, heat_map, padded, painted
from regard.look.tokens import cut, isolated, visible

GAP, LONGEST, WIDEST = 3, 16, 24
"""columns between two blocks, of a label at most, of a cell at most"""
BARS = "▁▂▃▄▅▆▇█"
RESULT = "bold"
NAME = "cyan"


def figures(numbers: Sequence[float]) -> list[str]:
    """Numbers in one form: whole ones as they are, others with as many of four digits as they need, or by powers.

    >>> figures([1.0, 0.0, -1.0]), figures([0.603, 0.25]), figures([1e-7, 0.75])
    (['1', '0', '-1'], ['0.603', '0.250'], ['1.0e-07', '0.75'])
    """
    sizes = [abs(number) for number in numbers if number]
    if all(number == math.floor(number) for number in numbers) and max(sizes, default=0) < 1e7:
        return [f"{int(number)}" for number in numbers]
    if max(sizes) >= 1e5 or max(sizes) < 5e-4:
        return [f"{number:.1e}" if number else "0" for number in numbers]
    digits = next((n for n in range(1, 4) if all(round(x, n) == round(x, 4) for x in numbers)), 4)
    return [f"{x:.1e}" if 0 < abs(x) < 5e-4 else f"{x:.{digits}f}" for x in numbers]


def written(items: Sequence[object]) -> list[str]:
    """The cells of a table: numbers in one form, texts as they can be seen.

    >>> written(["sera,", "a\\tb"]), written([True])
    (['sera,', 'a⇥b'], ['1'])
    """
    if any(isinstance(item, str) for item in items):
        return [visible(str(item)) for item in items]
    return figures([float(item) for item in items])  # type: ignore[arg-type]


@dataclass(frozen=True)
class Block:
    """Lines of one width.

    >>> Block.of(["a", "bcd"]).width
    3
    """

    lines: tuple[Text, ...]

    @classmethod
    def of(cls, lines: Sequence[str | Text], style: str = "") -> Block:
        """Lines of text, filled up to the longest."""
        made = [line if isinstance(line, Text) else Text(line, style) for line in lines]
        width = max((line.cell_len for line in made), default=0)
        for line in made:
            line.append(" " * (width - line.cell_len))
        return cls(tuple(made))

    @property
    def width(self) -> int:
        return self.lines[0].cell_len if self.lines else 0

    def beside(self, other: Block, gap: int = 0) -> Block:
        """Two blocks side by side, the lower one in the middle of the higher."""
        height = max(len(self.lines), len(other.lines))
        pairs = zip(self._centred(height), other._centred(height))
        return Block(tuple(Text.assemble(a, " " * gap, b) for a, b in pairs))

    def _centred(self, height: int) -> Iterator[Text]:
        above = (height - len(self.lines)) // 2
        blank = Text(" " * self.width)
        yield from [blank] * above
        yield from self.lines
        yield from [blank] * (height - above - len(self.lines))


def flow(blocks: Sequence[Block], width: int) -> list[Text]:
    """Blocks side by side as far as they fit, then below.

    >>> [line.plain for line in flow([Block.of(["ab"]), Block.of(["c"])], 10)], len(flow([Block.of(["ab"])] * 2, 5))
    (['ab   c'], 2)
    """
    rows: list[Block] = []
    for block in blocks:
        if rows and rows[-1].width + GAP + block.width <= width:
            rows[-1] = rows[-1].beside(block, GAP)
        else:
            rows.append(block)
    return [line for row in rows for line in row.lines]


def drawn(value: Value, width: int, colour: Colour, style: str = "", mark: str = "") -> Block:
    """`name = value`, as wide as it needs, at most `width`; behind a mark, if there is one.

    >>> [line.plain for line in drawn(Value("h", [1.0, 0.0], ("unit",)), 40, "none").lines]
    ['h = [1  0]']
    """
    sign = Text.assemble((mark, style), (f"{value.sign} =", NAME))
    if value.look == "log":
        return _stacked(sign, curves(value, width - 2))
    if heat(value):
        return _stacked(sign, _heat(value, width - 2, colour))
    room = width - sign.cell_len - 1
    if room < width // 2 or _needs(value) > room:
        return _stacked(sign, content(value, width - 2, colour, style))
    return Block.of([sign]).beside(content(value, room, colour, style), 1)


def heat(value: Value) -> bool:
    """Whether a value is drawn as a heat map: weights with words on both sides.

    >>> heat(Value("A", [[1.0]], ("target", "source"), {"target": ["i"], "source": ["je"]}, look="weights"))
    True
    """
    return value.look == "weights" and len(value.axes) == 2 and len(value.labels) == 2


def _stacked(sign: Text, block: Block) -> Block:
    return Block.of([sign, *(Text.assemble("  ", line) for line in block.lines)])


def _needs(value: Value) -> int:
    """How wide it would like to be."""
    return content(value, 10_000, "none").width


def content(value: Value, width: int, colour: Colour, style: str = "") -> Block:
    """A value without its name.

    >>> [line.plain for line in content(Value("V", [[0, 1], [1, 0]], ("a", "b")), 40, "none").lines]
    ['⎡0  1⎤', '⎣1  0⎦']
    """
    if not value.axes:
        text = written([value.data])[0]
        return Block.of(folded(f'"{text}"' if isinstance(value.data, str) else text, width), style)
    if len(value.axes) == 1 and not value.labels:
        return _vector(written(value.data), width, style)
    return Block.of(Table.of(value).lines(width, colour, style))


def folded(text: str, width: int) -> list[str]:
    """Lines of words; a word that is too long is cut into pieces. Of nothing there are none.

    >>> folded("to be or not", 6), folded("incomprehensible", 8), folded("", 8)
    (['to be', 'or not'], ['incompre', 'hensible'], [])
    """
    lines: list[str] = []
    for word in text.split(" "):
        for piece in chop_cells(visible(word), width) if word else [""]:
            if lines and cell_len(lines[-1]) + 1 + cell_len(piece) <= width:
                lines[-1] += f" {piece}"
            else:
                lines.append(piece)
    return lines if text else []


def _vector(cells: list[str], width: int, style: str) -> Block:
    if any(" " in cell for cell in cells):  # sentences: a line each
        folds = [line for cell in cells for line in folded(f'"{cell}"', width - 2)]
        lines = [f"{' ' if i else '['}{line}" for i, line in enumerate(folds)]
        return Block.of([*lines[:-1], f"{lines[-1]}]"], style)
    lines = ["["]
    for cell in cells:
        between = "" if lines[-1] in ("[", " ") else "  "
        if between and cell_len(lines[-1]) + 2 + cell_len(cell) + 1 > width:
            lines.append(" ")
            between = ""
        lines[-1] += f"{between}{isolated(cut(cell, max(width - 2, 4)))}"
    lines[-1] += "]"
    return Block.of(lines, style)


@dataclass(frozen=True)
class Table:
    """Cells in columns, with words on their sides where there are some; in brackets where there is no head.

    >>> table = Table.of(Value("p", [0.25, 0.75], ("word",), {"word": ["je", "suis"]}))
    >>> [line.plain for line in table.lines(40, "none", "")]
    ['  je  suis', '0.25  0.75']
    """

    value: Value
    cells: list[list[str]]
    labels: list[str]
    """at the left; empty: none"""
    heads: list[str]
    """above; empty: none"""
    side: Literal["left", "right"]
    """where the cells stand in their columns: texts at the left, numbers at the right"""

    @classmethod
    def of(cls, value: Value) -> Table:
        """The table of a vector or a matrix."""
        rows = value.data if len(value.axes) == 2 else [value.data]
        flat, count = written([cell for row in rows for cell in row]), len(rows[0])
        cells = [[cut(cell, WIDEST) for cell in flat[i * count : (i + 1) * count]] for i in range(len(rows))]
        left = value.labels.get(value.axes[0], []) if len(value.axes) == 2 else []
        above = value.labels.get(value.axes[-1], [])
        labels, heads = ([cut(visible(word), LONGEST) for word in words] for words in (left, above))
        return cls(value, cells, labels, heads, "left" if isinstance(rows[0][0], str) else "right")

    @property
    def widths(self) -> list[int]:
        """Of each column."""
        above = [[head] for head in self.heads] or [[] for _ in self.cells[0]]
        return [max(map(cell_len, [*column, *more])) for column, more in zip(zip(*self.cells), above)]

    @property
    def margin(self) -> int:
        """What the labels take, with the space behind them."""
        return max(map(cell_len, self.labels)) + 2 if self.labels else 0

    def lines(self, width: int, colour: Colour, style: str) -> list[Text]:
        """As many columns as fit, then the others below."""
        widths, room = self.widths, width - self.margin - (0 if self.heads else 2)
        parts: list[list[int]] = []
        for j, column in enumerate(widths):
            if not parts or sum(widths[k] + 2 for k in parts[-1]) + column > room:
                parts.append([])
            parts[-1].append(j)
        which = [
            f"columns {part[0] + 1} to {part[-1] + 1} of {len(widths)}" if len(parts) > 1 else "" for part in parts
        ]
        if any(self.margin + cell_len(told) > width for told in which):
            which = [told.removeprefix("columns ") for told in which]
        return [line for part, told in zip(parts, which) for line in self._part(part, told, colour, style)]

    def _part(self, chosen: list[int], told: str, colour: Colour, style: str) -> Iterator[Text]:
        widths = self.widths
        if self.heads:
            above = "  ".join(padded(self.heads[j], widths[j], self.side) for j in chosen)
            yield Text(" " * self.margin + above, "dim")
        elif told:
            yield Text(" " * self.margin + told, "dim")
        for i, row in enumerate(self.cells):
            line = Text.assemble((padded(self.labels[i], self.margin, "left") if self.labels else "", "dim"))
            line.append("" if self.heads else _bracket(i, len(self.cells), "⎡⎢⎣["), style)
            for n, j in enumerate(chosen):
                line.append("  " if n else "")
                line.append_text(self._cell(i, j, padded(row[j], widths[j], self.side), colour, style))
            line.append("" if self.heads else _bracket(i, len(self.cells), "⎤⎥⎦]"), style)
            yield line

    def _cell(self, i: int, j: int, text: str, colour: Colour, style: str) -> Text:
        if self.value.look != "weights" or colour == "none":
            return Text(text, style)
        row = self.value.data[i] if len(self.value.axes) == 2 else self.value.data
        return Text.from_ansi(painted(text, float(row[j]), colour))


def _bracket(i: int, rows: int, marks: str) -> str:
    return marks[3] if rows == 1 else marks[0] if i == 0 else marks[2] if i == rows - 1 else marks[1]


def _heat(value: Value, width: int, colour: Colour) -> Block:
    rows, columns = (tuple(value.labels[axis]) for axis in value.axes)
    matrix = Matrix(np.array(value.data), rows, columns, value.sign, value.axes[0], value.axes[1])
    lines = [Text.from_ansi(line) for line in heat_map(matrix, width, colour).splitlines()[1:]]
    console = Console(file=io.StringIO(), width=width)
    return Block.of([part for line in lines for part in line.wrap(console, width)])


def curves(value: Value, width: int) -> Block:
    """Rows of bars on one logarithmic axis, with the first and the last number of each.

    >>> [line.plain.rstrip() for line in curves(Value("g", [1.0, 0.1, 0.01], ("distance",), look="log"), 60).lines]
    ['1.0e+00 █▅▁ 1.0e-02', 'distance 0 to 2; axis from 1.0e-02 to 1.0e+00']
    """
    rows = value.data if len(value.axes) == 2 else [value.data]
    labels = (
        [cut(visible(word), min(LONGEST, width - 22)) for word in value.labels.get(value.axes[0], [])]
        if len(value.axes) == 2
        else []
    )
    margin = max(map(cell_len, labels)) + 2 if labels else 0
    steps = len(rows[0])
    room = max(3, min(steps, width - margin - 2 * 8))
    low = min((x for row in rows for x in row if x > 0), default=1.0)
    high = max((x for row in rows for x in row if x > 0), default=1.0)
    lines = []
    for i, row in enumerate(rows):
        picked = [row[round(k * (steps - 1) / max(room - 1, 1))] for k in range(room)]
        line = Text.assemble((padded(labels[i], margin, "left") if labels else "", "dim"))
        line.append(f"{row[0]:.1e} ")
        line.append("".join(_bar(x, low, high) for x in picked), RESULT)
        line.append(f" {row[-1]:.1e}")
        lines.append(line)
    axis = value.axes[-1]
    along = value.labels.get(axis) or [str(i) for i in range(steps)]
    for part in folded(f"{axis} {along[0]} to {along[-1]}; axis from {low:.1e} to {high:.1e}", width):
        lines.append(Text(part, "dim"))
    return Block.of(lines)


def _bar(number: float, low: float, high: float) -> str:
    if number <= 0:
        return " "
    share = math.log(number / low) / math.log(high / low) if high > low else 1.0
    return BARS[round(share * (len(BARS) - 1))]
