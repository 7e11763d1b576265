"""Token grid: a table whose cells are tokens with a probability each, colored by it, as SVG and in a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from rich.cells import cell_len

from regard.look import svg, terminal
from regard.look.color_scales import LinearScale
from regard.look.colormaps import svg_fill
from regard.look.terminal import ColorDepth
from regard.look.tokens import isolate_bidi, make_visible, token_label, truncate

MAX_LABEL = 12
"""terminal columns of the widest label of a cell"""
NUMBER = 5
"""terminal columns of a probability and the space before it"""
CELL_HEIGHT, LINE_CELLS = 34, 120
"""of the SVG: height of a cell, and width of a block of columns in characters"""
SCALE = LinearScale(1.0)


@dataclass(frozen=True, eq=False)
class TokenGrid:
    """Tokens with probabilities in rows and columns.

    >>> grid = TokenGrid("lens", ("I",), ("layer 0", "next"), [["am", "am"]], np.array([[0.5, np.nan]]), ("token", ""))
    >>> print(grid.text(40, "none"))
    lens
    token   layer 0     next
    I      ▒am 0.50       am
    """

    title: str
    rows: Sequence[str]
    columns: Sequence[str]
    """names of the columns; tokens where `tokens_across`"""
    cells: Sequence[Sequence[str]]
    """the token of each cell"""
    numbers: np.ndarray
    """(rows, columns) probabilities; NaN where a cell has none"""
    titles: tuple[str, str] = ("", "")
    """of the rows and of the columns"""
    marked: np.ndarray | None = None
    """(rows, columns) cells with an outline"""
    tooltips: Sequence[Sequence[str]] | None = None
    notes: Sequence[str] = ()
    """lines below the grid"""

    def transpose(self) -> TokenGrid:
        """Rows as columns."""
        flip = lambda table: [list(column) for column in zip(*table, strict=True)]  # noqa: E731
        return TokenGrid(
            self.title, self.columns, self.rows, flip(self.cells), self.numbers.T, self.titles[::-1],
            None if self.marked is None else self.marked.T, None if self.tooltips is None else flip(self.tooltips),
            self.notes,
        )  # fmt: skip

    def text(self, width: int | None = None, color: ColorDepth | None = None) -> str:
        """The grid in characters; columns that do not fit continue below."""
        width, color = terminal.or_terminal(width, color)
        rows = [truncate(token_label(row), max(8, width // 4)) for row in self.rows]
        margin = max(map(cell_len, [*rows, self.titles[0]]), default=0) + 1
        labels = [[truncate(token_label(cell), MAX_LABEL) if cell else "" for cell in line] for line in self.cells]
        heads = [truncate(token_label(column), MAX_LABEL + NUMBER) for column in self.columns]
        columns = zip(heads, *labels, strict=True)
        sizes = [max(cell_len(head), max(map(cell_len, cells), default=0) + NUMBER) + 2 for head, *cells in columns]
        lines = [isolate_bidi(truncate(make_visible(self.title), width))]
        for block in _blocks(sizes, width - margin):
            head = "".join(terminal.pad_cells(heads[j], sizes[j], "right") for j in block)
            lines.append((terminal.pad_cells(self.titles[0], margin, "left") + head).rstrip())
            for i, row in enumerate(rows):
                cells = (self._cell(i, j, labels[i][j], sizes[j], color) for j in block)
                lines.append((terminal.pad_cells(row, margin, "left") + "".join(cells)).rstrip())
        return "\n".join([*lines, *self.notes])

    def _cell(self, i: int, j: int, label: str, size: int, color: ColorDepth) -> str:
        number = float(self.numbers[i, j])
        if not label or np.isnan(number):
            return terminal.pad_cells(label, size, "right")
        text = terminal.pad_cells(label, size - NUMBER - 2, "right") + f" {number:.2f}"
        if color == "none":
            shade = terminal.shade(number)
            bare = text.lstrip(" ")
            return " " * (size - cell_len(bare) - 1) + shade + bare
        return " " + terminal.paint(f"{text} ", number, color)

    def svg(self, block_cells: int = LINE_CELLS) -> str:
        """The grid as one self-contained SVG text; columns that do not fit continue below."""
        unit, small = svg.UNIT, 12.0
        rows = [truncate(token_label(row), svg.MAX_LABEL) for row in self.rows]
        left = unit * 3 + max((svg.text_width(row, small) for row in [*rows, self.titles[0]]), default=0.0)
        labels = [[truncate(token_label(cell), MAX_LABEL) if cell else "" for cell in line] for line in self.cells]
        heads = [truncate(token_label(column), MAX_LABEL) for column in self.columns]
        wide = max([44.0, *(svg.text_width(label, small) + 10 for line in [heads, *labels] for label in line)])
        parts = [svg.text_element(unit * 2, unit * 3, make_visible(self.title), "rg-head")]
        y, across = unit * 6.0, max(1, int(block_cells * 7.5 // wide))
        for start in range(0, len(heads), across):
            block = range(start, min(start + across, len(heads)))
            parts += self._block(block, rows, heads, labels, (left, y, wide))
            y += 20 + len(rows) * CELL_HEIGHT + unit * 2
        for note in self.notes:
            parts.append(svg.text_element(unit * 2, y + unit, note, "rg-muted"))
            y += 18
        known = self.numbers[np.isfinite(self.numbers)]
        limits = (float(known.min()), float(known.max())) if known.size else (0.0, 0.0)
        parts += svg.legend(SCALE, *limits, unit * 2, y + unit)
        across = min(across, len(heads))
        note_width = max((svg.text_width(note, 12) for note in self.notes), default=0.0)
        width = max(left + across * wide, svg.MIN_WIDTH, svg.text_width(self.title, 14), note_width) + unit * 4
        return svg.document(width, y + unit * 6, self.title, self.summary(), parts)

    def _block(
        self,
        block: range,
        rows: Sequence[str],
        heads: Sequence[str],
        labels: Sequence[Sequence[str]],
        place: tuple[float, float, float],
    ) -> list[str]:
        left, top, wide = place
        parts = [svg.text_element(left - svg.UNIT, top + 10, self.titles[0], "rg-muted", "end")]
        for n, j in enumerate(block):
            parts.append(
                svg.text_element(left + (n + 0.5) * wide, top + 10, isolate_bidi(heads[j]), "rg-muted", "middle")
            )
        for i, row in enumerate(rows):
            y = top + 18 + i * CELL_HEIGHT
            parts.append(svg.text_element(left - svg.UNIT, y + CELL_HEIGHT / 2 + 4, isolate_bidi(row), "rg-row", "end"))
            for n, j in enumerate(block):
                parts += self._svg_cell(i, j, labels[i][j], (left + n * wide, y, wide))
        return parts

    def _svg_cell(self, i: int, j: int, label: str, place: tuple[float, float, float]) -> list[str]:
        x, y, wide = place
        number, middle = float(self.numbers[i, j]), x + wide / 2
        kind, paint, ink = svg_fill("sequential", number)
        marked = self.marked is not None and bool(self.marked[i, j])
        edge = ' style="stroke:#A8326E;stroke-opacity:1;stroke-width:2"' if marked else ""
        tooltip = self.tooltips[i][j] if self.tooltips is not None else ""
        box = f'x="{svg.coord(x + 1)}" y="{svg.coord(y + 1)}" width="{svg.coord(wide - 2)}" height="{CELL_HEIGHT - 2}"'
        parts = [f"<g><title>{svg.escape_text(tooltip)}</title>", f'<rect class="{kind}" {box} {paint}{edge}/>']
        parts.append(svg.text_element(middle, y + 15, isolate_bidi(label), f"rg-row {ink}", "middle"))
        if np.isfinite(number):
            parts.append(svg.text_element(middle, y + 28, f"{number:.2f}", f"rg-number {ink}", "middle"))
        return [*parts, "</g>"]

    def summary(self, most: int = 12) -> str:
        """The grid in one sentence, for screen readers: the last column of the first rows."""
        told = [
            f"{token_label(row)}: {token_label(line[-1]) if line and line[-1] else 'none'}"
            for row, line in list(zip(self.rows, self.cells, strict=True))[:most]
        ]
        rest = f"; and {len(self.rows) - most} more" if len(self.rows) > most else ""
        return (
            f"{len(self.rows)} x {len(self.columns)} tokens. {token_label(self.columns[-1])}: {'; '.join(told)}{rest}."
        )


def _blocks(sizes: Sequence[int], width: int) -> list[list[int]]:
    """Columns of each block: as many as fit, at least one.

    >>> _blocks([4, 4, 4], 9)
    [[0, 1], [2]]
    """
    blocks: list[list[int]] = []
    used = 0
    for j, size in enumerate(sizes):
        if not blocks or used + size > width:
            blocks.append([])
            used = 0
        blocks[-1].append(j)
        used += size
    return blocks
