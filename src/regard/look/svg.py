"""A matrix as a picture: one SVG text that needs no other file, light or dark as the reader's screen is.

Texts go through text(): escaped for XML, with nothing invisible left in them, so that no token can be markup.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from xml.sax.saxutils import escape

from rich.cells import cell_len

from regard.look.color_scales import Scale
from regard.look.colormaps import DARK, LIGHT, SIGNS, on_page
from regard.look.matrix import Matrix
from regard.look.tokens import cut, isolated, right_to_left, shown, visible

SIDES = {"source": ("#0F6E84", "#5CC8DE"), "target": ("#8A5A00", "#E3B35A")}
"""Colour of a side's labels, light and dark."""
UNIT = 8
LONGEST = 24
"""Cells of the longest label; its tooltip has all of it."""


def picture(matrix: Matrix) -> str:
    """A matrix with labels, numbers and a legend.

    >>> import numpy as np
    >>> drawn = picture(Matrix(np.array([[0.25, 0.75]]), ("i",), ("je", "suis"), "cross"))
    >>> drawn.startswith("<svg xmlns"), "<title>i → suis: 0.7500</title>" in drawn
    (True, True)
    """
    plan = Plan(matrix)
    width = max(plan.left + plan.width + plan.overhang, plan.legend_width, extent(matrix.title, 14)) + UNIT * 4
    height = plan.top + plan.height + UNIT * 9
    parts = [
        written(UNIT * 2, UNIT * 3, visible(matrix.title), "rg-head"),
        *_titles(plan),
        *_labels(plan),
        *_cells(plan),
        *legend(matrix.scale, matrix.smallest, matrix.largest, UNIT * 2, plan.top + plan.height + UNIT * 4),
    ]
    return document(width, height, matrix.title, matrix.summary(), parts)


def small_multiples(matrices: Sequence[Matrix], title: str, across: int = 4) -> str:
    """Many matrices over the same words, small and without labels, under one legend.

    >>> import numpy as np
    >>> one = Matrix(np.array([[0.25, 0.75]]), ("i",), ("je", "suis"), "head 0", ceiling=1.0)
    >>> small_multiples([one, one], "cross").count("<title>i → suis: 0.7500</title>")
    2
    """
    cell = max(2.0, min(16.0, 160 / max([1, *matrices[0].numbers.shape])))
    wide = max(len(matrices[0].columns) * cell, extent("head 00", 12)) + UNIT * 2
    tall = len(matrices[0].rows) * cell + UNIT * 5
    parts = [written(UNIT * 2, UNIT * 3, visible(title), "rg-head")]
    for i, matrix in enumerate(matrices):
        x, y = UNIT * 2 + i % across * wide, UNIT * 7 + i // across * tall
        parts.append(written(x, y, visible(matrix.title), "rg-muted"))
        parts += _cells(Plan(matrix, cell, x, y + UNIT))
    down = math.ceil(len(matrices) / across)
    low = UNIT * 7 + down * tall
    ends = min(m.smallest for m in matrices), max(m.largest for m in matrices)
    parts += legend(matrices[0].scale, *ends, UNIT * 2, low)
    width = max(UNIT * 2 + min(across, len(matrices)) * wide, 320, extent(title, 14) + UNIT * 4)
    parts += _captions(matrices[0], low + UNIT * 6, width)
    said = " ".join(f"{visible(m.title)}: {m.summary(3)}" for m in matrices)
    return document(width, low + UNIT * 9, title, said, parts)


@dataclass(frozen=True)
class Plan:
    """Where everything goes. With no size given, room is made for labels and titles.

    >>> import numpy as np
    >>> Plan(Matrix(np.array([[1.0]]), ("a",), ("b",), "cross")).cell
    44.0
    """

    matrix: Matrix
    fixed: float | None = None
    """size of a cell; None: by the number of cells"""
    x: float = 0.0
    y: float = 0.0

    @cached_property
    def cell(self) -> float:
        if self.fixed is not None:
            return self.fixed
        most = max(len(self.matrix.rows), len(self.matrix.columns))
        return 44.0 if most <= 10 else 36.0 if most <= 20 else 24.0 if most <= 40 else 16.0

    @cached_property
    def font(self) -> float:
        return 13.0 if self.cell >= 24 else 10.0

    @cached_property
    def rows(self) -> list[str]:
        return [cut(shown(row), LONGEST) for row in self.matrix.rows]

    @cached_property
    def columns(self) -> list[str]:
        return [cut(shown(column), LONGEST) for column in self.matrix.columns]

    @cached_property
    def longest(self) -> float:
        return max((extent(c, self.font) for c in self.columns), default=0.0)

    @cached_property
    def angle(self) -> int:
        """How far the labels of columns are turned: not at all if all of them fit."""
        if self.longest <= self.cell - 2:
            return 0
        return -45 if self.cell >= 24 else -90

    @cached_property
    def overhang(self) -> float:
        return self.longest * 0.71 if self.angle == -45 else 0.0

    @cached_property
    def left(self) -> float:
        if self.fixed is not None:
            return self.x
        labels = [*(extent(row, self.font) for row in self.rows), extent(self.matrix.row_title, 12)]
        return UNIT * 3 + math.ceil(max(labels))

    @cached_property
    def top(self) -> float:
        if self.fixed is not None:
            return self.y
        turned = {0: self.font, -45: self.longest * 0.71 + self.font, -90: self.longest + 4}[self.angle]
        return UNIT * 7 + math.ceil(turned)

    @property
    def width(self) -> float:
        return len(self.matrix.columns) * self.cell

    @property
    def height(self) -> float:
        return len(self.matrix.rows) * self.cell

    @property
    def legend_width(self) -> float:
        return 320.0


def extent(text: str, size: float) -> float:
    """About how wide a text is drawn, rather too wide than too narrow: nobody can ask the reader's font.

    >>> extent("suis", 10) < extent("MMMM", 10) < extent("学学学学", 10)
    True
    """
    wide = sum(char in "mwMW@%—…" for char in text) + 0.5 * sum(char.isupper() for char in text)
    return size * (0.56 * cell_len(text) + 0.3 * wide)


def _titles(plan: Plan) -> list[str]:
    """Which side is which: columns above them, rows above their labels."""
    row, column = plan.matrix.row_title, plan.matrix.column_title
    return [
        written(plan.left - UNIT, plan.top - UNIT, f"{row} ↓", f"rg-title {_side(row)}", "end"),
        written(plan.left, UNIT * 5.5, f"{column} →", f"rg-title {_side(column)}"),
    ]


def _captions(matrix: Matrix, y: float, width: float) -> list[str]:
    """Whose rows and columns they are, where there is no room for a label at each."""
    lines = []
    for i, (title, tokens) in enumerate(((matrix.row_title, matrix.rows), (matrix.column_title, matrix.columns))):
        words, used = [text(f"{title} {'↓→'[i]} ")], 0
        for label in (cut(shown(token), LONGEST // 2) for token in tokens):
            if used > width / 8 - LONGEST:
                words.append("…")
                break
            # each word is fenced, so that words stand in the order of the rows or columns whatever their script
            words.append(f'<tspan class="rg-word">{text(label)}</tspan>')
            used += cell_len(label) + 1
        lines.append(f'<text class="{_side(title)}" x="16" y="{n(y + 18 * i)}">{" ".join(words)}</text>')
    return lines


def _side(title: str) -> str:
    return next((f"rg-{side}" for side in SIDES if title.startswith(side)), "rg-muted")


def _labels(plan: Plan) -> list[str]:
    parts, matrix = [], plan.matrix
    for i, label in enumerate(plan.rows):
        y = plan.top + (i + 0.5) * plan.cell + plan.font * 0.35
        parts.append(
            _label(plan.left - UNIT, y, label, matrix.rows[i], plan.font, "end", f"rg-row {_side(matrix.row_title)}")
        )
    for j, label in enumerate(plan.columns):
        x, y = plan.left + (j + 0.5) * plan.cell, plan.top - 6
        kind = f"rg-column {_side(matrix.column_title)}"
        if plan.angle == 0:
            parts.append(_label(x, y, label, matrix.columns[j], plan.font, "middle", kind))
        else:
            x += plan.font * (0.35 if plan.angle == -90 else 0.2)
            turn = f' transform="rotate({plan.angle} {n(x)} {n(y)})"'
            parts.append(_label(x, y, label, matrix.columns[j], plan.font, "start", kind, turn))
    return parts


def _label(x: float, y: float, label: str, token: str, size: float, anchor: str, kind: str, turn: str = "") -> str:
    # in a text that runs from right to left, "start" is its right end
    if (rtl := right_to_left(label)) and anchor != "middle":
        anchor = {"start": "end", "end": "start"}[anchor]
    way = "rtl" if rtl else "ltr"
    return (
        f'<text class="{kind}" x="{n(x)}" y="{n(y)}" style="font-size:{n(size)}px" text-anchor="{anchor}" '
        f'direction="{way}"{turn}>{text(label)}<title>{text(isolated(visible(token)))}</title></text>'
    )


def _cells(plan: Plan) -> list[str]:
    parts, matrix, scale, strengths = [], plan.matrix, plan.matrix.scale, plan.matrix.strengths
    names = [[isolated(cut(shown(t), 2 * LONGEST)) for t in side] for side in (matrix.rows, matrix.columns)]
    gap = 1.0 if plan.cell >= 8 else 0.0
    for i in range(len(matrix.rows)):
        for j in range(len(matrix.columns)):
            x, y, strength = plan.left + j * plan.cell, plan.top + i * plan.cell, float(strengths[i, j])
            number = float(matrix.numbers[i, j])
            size, (kind, paint, ink) = n(plan.cell - gap), on_page(scale.ramp, strength)
            parts.append(
                f"<g><title>{text(f'{names[0][i]} → {names[1][j]}: {scale.exact(number)}')}</title>"
                f'<rect class="{kind}" x="{n(x)}" y="{n(y)}" width="{size}" height="{size}" {paint}/>'
            )
            if plan.cell >= 36:
                middle = (x + (plan.cell - gap) / 2, y + (plan.cell - gap) / 2 + 4)
                parts.append(written(*middle, scale.told(number), f"rg-number {ink}", "middle"))
            parts.append("</g>")
    return parts


def legend(scale: Scale, low: float, high: float, x: float, y: float) -> list[str]:
    """A scale's colours, what its ends stand for, and the smallest and the largest number.

    >>> from regard.look.color_scales import Share
    >>> len(legend(Share(1.0), 0.1, 0.9, 0, 0))
    19
    """
    # steps and not a gradient: a gradient needs an id, and two pictures in one page would share it
    start, end = ("0" if not number else scale.exact(number) for number in scale.ends)
    parts = [written(x, y + 10, start, "rg-muted")]
    at = x + max(UNIT * 2, math.ceil(extent(start, 12)) + UNIT)
    for i in range(16):
        place = -1 + i / 7.5 if scale.ramp == "signed" else i / 15
        kind, paint, _ = on_page(scale.ramp, place)
        parts.append(f'<rect class="{kind}" x="{n(at + i * 8)}" y="{n(y)}" width="8" height="12" {paint}/>')
    parts.append(written(at + 16 * 8 + UNIT, y + 10, end, "rg-muted"))
    ends = f"smallest {scale.exact(low)}, largest {scale.exact(high)}"
    return [*parts, written(x, y + 28, ends, "rg-muted")]


def document(
    width: float, height: float, title: str, summary: str, parts: Sequence[str], style: str | None = None
) -> str:
    """A whole SVG with its colours, its name and its description for those who hear it.

    >>> document(8, 8, "empty", "nothing", []).endswith("</svg>")
    True
    """
    body = "".join(parts)
    # ids must differ between pictures in one page
    own = "rg-" + hashlib.sha256(f"{title}{summary}{body}".encode("utf-8", "replace")).hexdigest()[:12]
    size = (
        f'width="{math.ceil(width)}" height="{math.ceil(height)}" viewBox="0 0 {math.ceil(width)} {math.ceil(height)}"'
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} class="rg" role="img" '
        f'aria-labelledby="{own}-t {own}-d"><title id="{own}-t">{text(visible(title))}</title>'
        f'<desc id="{own}-d">{text(summary)}</desc><style>{style or STYLE}</style>'
        f'<rect class="rg-page" width="100%" height="100%"/>{body}</svg>'
    )


def written(x: float, y: float, content: str, kind: str, anchor: str = "start") -> str:
    """A text at a place, in the class `kind`.

    >>> written(1, 2.5, "a < b", "rg-muted")
    '<text class="rg-muted" x="1" y="2.5" text-anchor="start">a &lt; b</text>'
    """
    return f'<text class="{kind}" x="{n(x)}" y="{n(y)}" text-anchor="{anchor}">{text(content)}</text>'


def text(content: str) -> str:
    """Text that is safe between tags and in quotes; what XML cannot hold is replaced.

    >>> text('</svg><script>"\\x00')
    '&lt;/svg&gt;&lt;script&gt;&quot;\\ufffd'
    """
    return escape("".join(char if _in_xml(char) else "\ufffd" for char in content), {'"': "&quot;", "'": "&#39;"})


def _in_xml(char: str) -> bool:
    code = ord(char)
    return char in "\t\n\r" or 0x20 <= code <= 0xD7FF or 0xE000 <= code <= 0xFFFD or code >= 0x10000


def n(number: float) -> str:
    """A coordinate in as few digits as it needs.

    >>> n(2.0), n(1.234)
    ('2', '1.23')
    """
    return f"{number:.2f}".rstrip("0").rstrip(".")


def _rules(colours: dict[str, str], scheme: int) -> str:
    inks = ("#000000", "#000000", "#FFFFFF") if scheme == 0 else ("#FFFFFF", "#000000", "#000000")
    return (
        f".rg-page{{fill:{colours['page']}}}.rg-weight{{fill:{colours['weight']}}}"
        + "".join(f".rg-{sign}{{fill:{pair[scheme]}}}" for sign, pair in SIGNS.items())
        + f".rg text{{fill:{colours['text']}}}.rg .rg-muted{{fill:{colours['muted']}}}"
        + "".join(f".rg .rg-{side}{{fill:{pair[scheme]}}}" for side, pair in SIDES.items())
        + "".join(f".rg .rg-{level}{{fill:{ink}}}" for level, ink in zip(("low", "mid", "high"), inks))
    )


STYLE = (
    ".rg text{font-family:system-ui,-apple-system,'Segoe UI',Roboto,'Noto Sans',sans-serif;font-size:12px;"
    "font-variant-numeric:tabular-nums;white-space:pre}"
    ".rg .rg-row,.rg .rg-column,.rg .rg-word{unicode-bidi:isolate}"
    ".rg .rg-head{font-size:14px;font-weight:600}.rg .rg-number{font-size:11px}"
    ".rg .rg-mono{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace;font-size:15px;"
    "unicode-bidi:isolate}"
    ".rg .rg-black{fill:#000000}.rg .rg-white{fill:#FFFFFF}"
    ".rg .rg-weight,.rg .rg-negative,.rg .rg-positive,.rg .rg-cell{stroke:#8A94A0;stroke-opacity:.18}"
    + _rules(LIGHT, 0)
    + f"@media (prefers-color-scheme:dark){{{_rules(DARK, 1)}}}"
)
"""All rules begin with a class of our own: in a notebook they apply to the whole page."""
