"""A text whose tokens stand on colours: one number a token, in the terminal and as SVG, in any script."""

from __future__ import annotations

import itertools
import os
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from rich.cells import cell_len

from regard.look import svg, terminal
from regard.look.color_scales import Scale
from regard.look.colormaps import on_page
from regard.look.matrix import Matrix
from regard.look.terminal import Colour
from regard.look.tokens import cut, isolated, right_to_left, shown, visible

SIZE, LINE, WIDE = 15, 28, 92
"""Of the picture: size of letters, height of a line, cells a line."""
GAP = 1
"""Between two boxes: where tokens meet can be seen even if their values are alike."""
CELL = 0.62 * SIZE
"""How wide one cell of a monospaced letter is."""


@dataclass(frozen=True, eq=False)
class ColouredText:
    """Tokens with one number each.

    >>> from regard.look.color_scales import Signed
    >>> text = ColouredText("unit 3", ["je", " suis"], np.array([0.5, -1.0]), Signed(1.0))
    >>> "<title>␣suis: -1.0000</title>" in text.svg()
    True
    """

    title: str
    tokens: list[str]
    values: np.ndarray
    """(tokens,)"""
    scale: Scale
    note: str = ""
    """what else the legend says of the colours"""

    def text(self, width: int | None = None, colour: Colour | None = None) -> str:
        """The text on its colours; where there are none, a line a token with its number."""
        width = shutil.get_terminal_size().columns if width is None else width
        colour = terminal.colours(os.environ, sys.stdout.isatty()) if colour is None else colour
        if colour == "none":
            return "\n".join([terminal.heat_map(self._column(), width, colour), *self._noted()])
        strengths = self.scale.strengths(self.values)
        lines = []
        for line in wrapped(self.tokens, width):
            labels = [isolated(written(self.tokens[i], width)) for i in in_sight(line, self.tokens)]
            places = [float(strengths[i]) for i in in_sight(line, self.tokens)]
            lines.append("".join(terminal.painted(a, s, colour, self.scale.ramp) for a, s in zip(labels, places)))
        head = isolated(cut(visible(self.title), width))
        return "\n".join([head, *lines, terminal.legend(self._column(), colour), *self._noted()])

    def svg(self) -> str:
        """The picture as one SVG text; it needs no other file."""
        parts, unit = [svg.written(svg.UNIT * 2, svg.UNIT * 3, visible(self.title), "rg-head")], svg.UNIT
        lines = wrapped(self.tokens, WIDE)
        widest = max((sum(map(self._cells, line)) for line in lines), default=0) * CELL
        base = right_to_left("".join(self.tokens))
        y = unit * 5.0
        for line in lines:
            x = unit * 2 + (widest - sum(map(self._cells, line)) * CELL if base else 0)
            for i in in_sight(line, self.tokens):
                parts += self._box(i, x, y)
                x += self._cells(i) * CELL
            y += LINE
        column = self._column()
        parts += svg.legend(self.scale, column.smallest, column.largest, unit * 2, y + unit)
        for note in self._noted():
            y += 18
            parts.append(svg.written(unit * 2, y + unit + 28, note, "rg-muted"))
        width = max(widest, 320.0, svg.extent(self.title, 14)) + unit * 4
        return svg.document(width, y + unit * 6, self.title, column.summary(), parts)

    def _noted(self) -> list[str]:
        return [self.note] if self.note else []

    def _cells(self, i: int) -> int:
        return cell_len(written(self.tokens[i], WIDE))

    def _box(self, i: int, x: float, y: float) -> list[str]:
        label, number = written(self.tokens[i], WIDE), float(self.values[i])
        kind, paint, ink = on_page(self.scale.ramp, float(self.scale.strengths(self.values[i : i + 1])[0]))
        wide, way = self._cells(i) * CELL, "rtl" if right_to_left(label) else "ltr"
        told = f"{isolated(visible(self.tokens[i]))}: {self.scale.exact(number)}"
        return [
            f'<g><title>{svg.text(told)}</title><rect class="{kind}" x="{svg.n(x)}" y="{svg.n(y)}" '
            f'width="{svg.n(wide - GAP)}" height="{LINE - 4}" {paint}/>',
            f'<text class="rg-mono {ink}" x="{svg.n(x + wide / 2)}" y="{svg.n(y + LINE - 10)}" text-anchor="middle" '
            f'direction="{way}">{svg.text(label)}</text></g>',
        ]

    def _column(self) -> Matrix:
        return Matrix(
            self.values[:, None], tuple(self.tokens), ("value",), self.title, "token", "", given=self.scale,
            spoken=("values", "has"),
        )  # fmt: skip

    def to_dict(self) -> dict[str, Any]:
        """Plain data that JSON can hold."""
        return {
            "title": self.title,
            "tokens": list(self.tokens),
            "values": self.values.tolist(),
            "range": list(self.scale.ends),
        }

    def _repr_html_(self) -> str:
        return self.svg()

    def __repr__(self) -> str:
        return f"ColouredText({self.title!r}, {len(self.tokens)} tokens)"


def written(token: str, cells: int) -> str:
    """A token as part of a running text: its spaces are spaces, all else that is invisible is made visible.

    >>> written("▁suis", 80), written("\\n", 80), written(" ", 80)
    (' suis', '↵', ' ')
    """
    inner = token.replace("▁", " ")
    bare = inner.strip(" ")
    if not bare:
        return " " * min(max(len(inner), 1), cells)
    start = inner.index(bare)
    return cut(" " * start + shown(bare) + " " * (len(inner) - start - len(bare)), cells)


def wrapped(tokens: Sequence[str], cells: int) -> list[list[int]]:
    """Numbers of the tokens of each line: a new one where the next token does not fit, or a line has ended.

    >>> wrapped(["je", " suis", "\\n", "ici"], 5), wrapped(["ab", "cd", "e"], 4)
    ([[0], [1, 2], [3]], [[0, 1], [2]])
    """
    lines: list[list[int]] = [[]]
    used = 0
    for i, token in enumerate(tokens):
        size = cell_len(written(token, cells))
        # the mark of a line's end may hang over: alone on a line it would look like an empty one
        if lines[-1] and used + size > cells and "\n" not in token:
            lines.append([])
            used = 0
        lines[-1].append(i)
        used += size
        if "\n" in token:
            lines.append([])
            used = 0
    return [line for line in lines if line]


def in_sight(line: Sequence[int], tokens: Sequence[str]) -> list[int]:
    """The tokens of a line from left to right: where a script runs the other way, so does their order.

    >>> in_sight([0, 1, 2, 3], ["a", " من", " یک", "b"]), in_sight([0, 1], ["من", "یک"])
    ([0, 2, 1, 3], [1, 0])
    """
    base = right_to_left("".join(tokens))
    ways = []
    for i in line:  # what has no direction goes with the text
        way = right_to_left(tokens[i])
        ways.append(way if way or _has_letters(tokens[i]) else base)
    runs = [(way, [i for i, _ in run]) for way, run in itertools.groupby(zip(line, ways), key=lambda pair: pair[1])]
    ordered = [(run[::-1] if way else run) for way, run in runs]
    return [i for run in (ordered[::-1] if base else ordered) for i in run]


def _has_letters(token: str) -> bool:
    return any(char.isalpha() or char.isdigit() for char in token)
