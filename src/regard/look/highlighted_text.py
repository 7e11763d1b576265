"""Highlighted text: a running text with one number per token as its background color, in any script."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from rich.cells import cell_len

from regard.look import svg, terminal
from regard.look.color_scales import ColorScale
from regard.look.colormaps import svg_fill
from regard.look.matrix import Matrix
from regard.look.terminal import ColorDepth
from regard.look.tokens import is_rtl, isolate_bidi, make_visible, token_label, truncate
from regard.look.view import View

FONT_SIZE, LINE_HEIGHT, LINE_CELLS = 15, 28, 92
"""Of the SVG."""
GAP = 1
"""Between two boxes, so that neighbors of equal value can be told apart."""
CELL = 0.62 * FONT_SIZE
"""Width of a monospaced character."""


@dataclass(frozen=True, eq=False)
class HighlightedText(View):
    """Tokens with one number each."""

    title: str
    tokens: list[str]
    values: np.ndarray
    """(tokens,)"""
    scale: ColorScale
    note: str = ""
    """second line of the legend"""

    def text(self, width: int | None = None, color: ColorDepth | None = None) -> str:
        """The text on its colors; without colors, a line per token with its number."""
        width, color = terminal.or_terminal(width, color)
        if color == "none":
            return "\n".join([terminal.heat_map(self._matrix(), width, color), *self._notes()])
        intensities = self.scale.intensities(self.values)
        lines = []
        for line in wrap_tokens(self.tokens, width):
            order = visual_order(line, self.tokens)
            labels = [(isolate_bidi(running_text(self.tokens[i], width)), float(intensities[i])) for i in order]
            lines.append("".join(terminal.paint(label, x, color, self.scale.colormap) for label, x in labels))
        head = isolate_bidi(truncate(make_visible(self.title), width))
        return "\n".join([head, *lines, terminal.legend(self._matrix(), color), *self._notes()])

    def svg(self) -> str:
        """The text on its colors, as one self-contained SVG text."""
        parts, unit = [svg.text_element(svg.UNIT * 2, svg.UNIT * 3, make_visible(self.title), "rg-head")], svg.UNIT
        lines = wrap_tokens(self.tokens, LINE_CELLS)
        widest = max((sum(map(self._cells, line)) for line in lines), default=0) * CELL
        rtl = is_rtl("".join(self.tokens))
        y = unit * 5.0
        for line in lines:
            x = unit * 2 + (widest - sum(map(self._cells, line)) * CELL if rtl else 0)
            for i in visual_order(line, self.tokens):
                parts += self._box(i, x, y)
                x += self._cells(i) * CELL
            y += LINE_HEIGHT
        matrix = self._matrix()
        parts += svg.legend(self.scale, matrix.smallest, matrix.largest, unit * 2, y + unit)
        for note in self._notes():
            y += 18
            parts.append(svg.text_element(unit * 2, y + unit + 28, note, "rg-muted"))
        width = max(widest, svg.MIN_WIDTH, svg.text_width(self.title, 14)) + unit * 4
        return svg.document(width, y + unit * 6, self.title, matrix.summary(), parts)

    def _notes(self) -> list[str]:
        return [self.note] if self.note else []

    def _cells(self, i: int) -> int:
        return cell_len(running_text(self.tokens[i], LINE_CELLS))

    def _box(self, i: int, x: float, y: float) -> list[str]:
        label, number = running_text(self.tokens[i], LINE_CELLS), float(self.values[i])
        kind, paint, ink = svg_fill(self.scale.colormap, float(self.scale.intensities(self.values[i : i + 1])[0]))
        wide, direction = self._cells(i) * CELL, "rtl" if is_rtl(label) else "ltr"
        tooltip = f"{isolate_bidi(make_visible(self.tokens[i]))}: {self.scale.format_exact(number)}"
        middle, baseline = svg.coord(x + wide / 2), svg.coord(y + LINE_HEIGHT - 10)
        return [
            f'<g><title>{svg.escape_text(tooltip)}</title><rect class="{kind}" x="{svg.coord(x)}" y="{svg.coord(y)}" '
            f'width="{svg.coord(wide - GAP)}" height="{LINE_HEIGHT - 4}" {paint}/>',
            f'<text class="rg-mono {ink}" x="{middle}" y="{baseline}" text-anchor="middle" '
            f'direction="{direction}">{svg.escape_text(label)}</text></g>',
        ]

    def _matrix(self) -> Matrix:
        return Matrix(
            self.values[:, None], tuple(self.tokens), ("value",), self.title, "token", "", color_scale=self.scale,
            summary_words=("values", "has"),
        )  # fmt: skip

    def to_dict(self) -> dict[str, Any]:
        return self._fields("title", "tokens", "values") | {"range": list(self.scale.limits)}

    def __repr__(self) -> str:
        return f"HighlightedText({self.title!r}, {len(self.tokens)} tokens)"


def running_text(token: str, cells: int) -> str:
    """A token as part of a running text: spaces stay spaces, other invisible characters are made visible."""
    inner = token.replace("▁", " ")
    bare = inner.strip(" ")
    if not bare:
        return " " * min(max(len(inner), 1), cells)
    start = inner.index(bare)
    return truncate(" " * start + token_label(bare) + " " * (len(inner) - start - len(bare)), cells)


def wrap_tokens(tokens: Sequence[str], cells: int) -> list[list[int]]:
    """Token indices per line: a new line where the next token does not fit, and after a line break.

    >>> wrap_tokens(["je", " suis", "\\n", "ici"], 5), wrap_tokens(["ab", "cd", "e"], 4)
    ([[0], [1, 2], [3]], [[0, 1], [2]])
    """
    lines: list[list[int]] = [[]]
    used = 0
    for i, token in enumerate(tokens):
        size = cell_len(running_text(token, cells))
        # a line break's mark may overhang: alone on a line it would look like an empty one
        if lines[-1] and used + size > cells and "\n" not in token:
            lines.append([])
            used = 0
        lines[-1].append(i)
        used += size
        if "\n" in token:
            lines.append([])
            used = 0
    return [line for line in lines if line]


def visual_order(line: Sequence[int], tokens: Sequence[str]) -> list[int]:
    """The tokens of a line from left to right: runs of a right-to-left script are reversed."""
    base = is_rtl("".join(tokens))
    directions = []
    for i in line:  # a token without a direction takes that of the text
        rtl, has_letters = is_rtl(tokens[i]), any(char.isalpha() or char.isdigit() for char in tokens[i])
        directions.append(rtl if rtl or has_letters else base)
    grouped = itertools.groupby(zip(line, directions), key=lambda pair: pair[1])
    runs = [(rtl, [i for i, _ in run]) for rtl, run in grouped]
    ordered = [(run[::-1] if rtl else run) for rtl, run in runs]
    return [i for run in (ordered[::-1] if base else ordered) for i in run]
