"""Values as blocks of text: vectors in a line, matrices in brackets, tables with words beside them, and pictures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from rich.cells import cell_len
from rich.text import Text

from regard.lessons.engine.figures import folded, table, written
from regard.lessons.engine.lesson import Value
from regard.lessons.engine.pictures import LONGEST, curves, heat_lines, tree
from regard.look.terminal import Colour, padded, painted
from regard.look.tokens import cut, isolated, visible

GAP, WIDEST = 3, 24
"""columns between two blocks, of a cell at most"""
RESULT = "bold"
NAME = "cyan"


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
    if value.look in ("log", "line"):
        return _stacked(sign, Block.of(curves(value, width - 2)))
    if value.look == "tree":
        return _stacked(sign, Block.of(tree(value, width - 2)))
    if heat(value):
        return _stacked(sign, Block.of(heat_lines(value, width - 2, colour)))
    room = width - sign.cell_len - 1
    if room < width // 2 or _needs(value) > room:
        return _stacked(sign, content(value, width - 2, colour, style))
    return Block.of([sign]).beside(content(value, room, colour, style), 1)


def heat(value: Value) -> bool:
    """Whether a value is drawn as a heat map: what has two signs or arcs, and weights with words on both sides.

    >>> heat(Value("A", [[1.0]], ("target", "source"), {"target": ["i"], "source": ["je"]}, look="weights"))
    True
    """
    return value.look in ("signed", "arcs") or (
        value.look == "weights" and len(value.axes) == 2 and len(value.labels) == 2
    )


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
        cells = [[cut(cell, WIDEST) for cell in row] for row in table(value)]
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
            brief = [told.removeprefix("columns ") for told in which]
            which = [told if self.margin + cell_len(told) <= width else "" for told in brief]
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
