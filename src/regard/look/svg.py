"""Heat map as SVG: one self-contained text with a light and a dark color scheme.

All texts go through escape_text(), so no token can be markup.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from xml.sax.saxutils import escape

from rich.cells import cell_len

from regard.look.color_scales import ColorScale
from regard.look.colormaps import DARK, LIGHT, SIGNS, svg_fill
from regard.look.matrix import Matrix
from regard.look.tokens import is_rtl, isolate_bidi, make_visible, token_label, truncate

SIDE_COLORS = {"source": ("#0F6E84", "#5CC8DE"), "target": ("#8A5A00", "#E3B35A")}
"""Color of a side's labels, light and dark."""
UNIT = 8
MAX_LABEL = 24
"""Terminal columns of the longest label; its tooltip has all of it."""
MIN_WIDTH = 320.0
"""Of the legend below the cells."""


def heat_map(matrix: Matrix) -> str:
    """A matrix with labels, numbers and a legend."""
    layout = HeatMapLayout(matrix)
    right = layout.left + layout.width + layout.overhang
    width = max(right, MIN_WIDTH, text_width(matrix.title, 14)) + UNIT * 4
    height = layout.top + layout.height + UNIT * 9
    parts = [
        text_element(UNIT * 2, UNIT * 3, make_visible(matrix.title), "rg-head"),
        *_titles(layout),
        *_labels(layout),
        *_cells(matrix, layout.cell, layout.left, layout.top),
        *legend(matrix.scale, matrix.smallest, matrix.largest, UNIT * 2, layout.top + layout.height + UNIT * 4),
    ]
    return document(width, height, matrix.title, matrix.summary(), parts)


def small_multiples(matrices: Sequence[Matrix], title: str, across: int = 4) -> str:
    """Several matrices over the same tokens, small and without labels, under one legend."""
    cell = max(2.0, min(16.0, 160 / max([1, *matrices[0].numbers.shape])))
    wide = max(len(matrices[0].columns) * cell, text_width("head 00", 12)) + UNIT * 2
    tall = len(matrices[0].rows) * cell + UNIT * 5
    parts = [text_element(UNIT * 2, UNIT * 3, make_visible(title), "rg-head")]
    for i, matrix in enumerate(matrices):
        x, y = UNIT * 2 + i % across * wide, UNIT * 7 + i // across * tall
        parts.append(text_element(x, y, make_visible(matrix.title), "rg-muted"))
        parts += _cells(matrix, cell, x, y + UNIT)
    low = UNIT * 7 + math.ceil(len(matrices) / across) * tall
    limits = min(m.smallest for m in matrices), max(m.largest for m in matrices)
    parts += legend(matrices[0].scale, *limits, UNIT * 2, low)
    width = max(UNIT * 2 + min(across, len(matrices)) * wide, MIN_WIDTH, text_width(title, 14) + UNIT * 4)
    parts += _captions(matrices[0], low + UNIT * 6, width)
    summary = " ".join(f"{make_visible(m.title)}: {m.summary(3)}" for m in matrices)
    return document(width, low + UNIT * 9, title, summary, parts)


@dataclass(frozen=True)
class HeatMapLayout:
    """Positions and sizes of the parts of a heat map with labels and titles."""

    matrix: Matrix

    @cached_property
    def cell(self) -> float:
        most = max(len(self.matrix.rows), len(self.matrix.columns))
        return 44.0 if most <= 10 else 36.0 if most <= 20 else 24.0 if most <= 40 else 16.0

    @cached_property
    def font(self) -> float:
        return 13.0 if self.cell >= 24 else 10.0

    @cached_property
    def rows(self) -> list[str]:
        return [truncate(token_label(row), MAX_LABEL) for row in self.matrix.rows]

    @cached_property
    def columns(self) -> list[str]:
        return [truncate(token_label(column), MAX_LABEL) for column in self.matrix.columns]

    @cached_property
    def longest(self) -> float:
        return max((text_width(c, self.font) for c in self.columns), default=0.0)

    @cached_property
    def angle(self) -> int:
        """Rotation of the column labels: 0 if all of them fit."""
        if self.longest <= self.cell - 2:
            return 0
        return -45 if self.cell >= 24 else -90

    @cached_property
    def overhang(self) -> float:
        return self.longest * 0.71 if self.angle == -45 else 0.0

    @cached_property
    def left(self) -> float:
        labels = [*(text_width(row, self.font) for row in self.rows), text_width(self.matrix.row_title, 12)]
        return UNIT * 3 + math.ceil(max(labels))

    @cached_property
    def top(self) -> float:
        label_height = {0: self.font, -45: self.longest * 0.71 + self.font, -90: self.longest + 4}[self.angle]
        return UNIT * 7 + math.ceil(label_height)

    @property
    def width(self) -> float:
        return len(self.matrix.columns) * self.cell

    @property
    def height(self) -> float:
        return len(self.matrix.rows) * self.cell


def text_width(text: str, size: float) -> float:
    """Estimated width of a text, rather too wide than too narrow: the reader's font is not known."""
    wide = sum(char in "mwMW@%—…" for char in text) + 0.5 * sum(char.isupper() for char in text)
    return size * (0.56 * cell_len(text) + 0.3 * wide)


def _titles(layout: HeatMapLayout) -> list[str]:
    """Titles of the rows (above their labels) and of the columns."""
    row, column = layout.matrix.row_title, layout.matrix.column_title
    return [
        text_element(layout.left - UNIT, layout.top - UNIT, f"{row} ↓", f"rg-title {_side_class(row)}", "end"),
        text_element(layout.left, UNIT * 5.5, f"{column} →", f"rg-title {_side_class(column)}"),
    ]


def _captions(matrix: Matrix, y: float, width: float) -> list[str]:
    """Tokens of the rows and columns in two lines, where the cells have no labels."""
    lines = []
    for i, (title, tokens) in enumerate(((matrix.row_title, matrix.rows), (matrix.column_title, matrix.columns))):
        words, used = [escape_text(f"{title} {'↓→'[i]} ")], 0
        for label in (truncate(token_label(token), MAX_LABEL // 2) for token in tokens):
            if used > width / 8 - MAX_LABEL:
                words.append("…")
                break
            # each word is isolated, so that words follow the order of rows or columns in any script
            words.append(f'<tspan class="rg-word">{escape_text(label)}</tspan>')
            used += cell_len(label) + 1
        lines.append(f'<text class="{_side_class(title)}" x="16" y="{coord(y + 18 * i)}">{" ".join(words)}</text>')
    return lines


def _side_class(title: str) -> str:
    return next((f"rg-{side}" for side in SIDE_COLORS if title.startswith(side)), "rg-muted")


def _labels(layout: HeatMapLayout) -> list[str]:
    parts, matrix = [], layout.matrix
    for i, label in enumerate(layout.rows):
        y = layout.top + (i + 0.5) * layout.cell + layout.font * 0.35
        kind = f"rg-row {_side_class(matrix.row_title)}"
        parts.append(_label(layout.left - UNIT, y, label, matrix.rows[i], layout.font, "end", kind))
    for j, label in enumerate(layout.columns):
        x, y = layout.left + (j + 0.5) * layout.cell, layout.top - 6
        kind = f"rg-column {_side_class(matrix.column_title)}"
        if layout.angle == 0:
            parts.append(_label(x, y, label, matrix.columns[j], layout.font, "middle", kind))
        else:
            x += layout.font * (0.35 if layout.angle == -90 else 0.2)
            rotation = f' transform="rotate({layout.angle} {coord(x)} {coord(y)})"'
            parts.append(_label(x, y, label, matrix.columns[j], layout.font, "start", kind, rotation))
    return parts


def _label(x: float, y: float, label: str, token: str, size: float, anchor: str, kind: str, rotation: str = "") -> str:
    # "start" is the right end of a right-to-left text
    if (rtl := is_rtl(label)) and anchor != "middle":
        anchor = {"start": "end", "end": "start"}[anchor]
    way = "rtl" if rtl else "ltr"
    return (
        f'<text class="{kind}" x="{coord(x)}" y="{coord(y)}" style="font-size:{coord(size)}px" text-anchor="{anchor}" '
        f'direction="{way}"{rotation}>{escape_text(label)}<title>{escape_text(isolate_bidi(make_visible(token)))}</title></text>'
    )


def _cells(matrix: Matrix, cell: float, left: float, top: float) -> list[str]:
    parts, scale, intensities = [], matrix.scale, matrix.intensities
    names = (matrix.rows, matrix.columns)
    rows, columns = ([isolate_bidi(truncate(token_label(name), 2 * MAX_LABEL)) for name in side] for side in names)
    side = cell - 1.0 if cell >= 8 else cell  # small cells have no gap
    for i, row in enumerate(rows):
        for j, column in enumerate(columns):
            x, y, number = left + j * cell, top + i * cell, float(matrix.numbers[i, j])
            kind, paint, ink = svg_fill(scale.colormap, float(intensities[i, j]))
            parts.append(
                f"<g><title>{escape_text(f'{row} → {column}: {scale.format_exact(number)}')}</title><rect "
                f'class="{kind}" x="{coord(x)}" y="{coord(y)}" width="{coord(side)}" height="{coord(side)}" {paint}/>'
            )
            if cell >= 36:
                middle = x + side / 2, y + side / 2 + 4
                parts.append(text_element(*middle, scale.format(number), f"rg-number {ink}", "middle"))
            parts.append("</g>")
    return parts


def legend(scale: ColorScale, low: float, high: float, x: float, y: float) -> list[str]:
    """The color map with its limits, and the smallest and the largest number."""
    # steps and not a gradient: a gradient needs an id, and two drawings in one page would share it
    start, end = ("0" if not number else scale.format_exact(number) for number in scale.limits)
    parts = [text_element(x, y + 10, start, "rg-muted")]
    at = x + max(UNIT * 2, math.ceil(text_width(start, 12)) + UNIT)
    for i in range(16):
        step = -1 + i / 7.5 if scale.colormap == "diverging" else i / 15
        kind, paint, _ = svg_fill(scale.colormap, step)
        parts.append(f'<rect class="{kind}" x="{coord(at + i * 8)}" y="{coord(y)}" width="8" height="12" {paint}/>')
    parts.append(text_element(at + 16 * 8 + UNIT, y + 10, end, "rg-muted"))
    extremes = f"smallest {scale.format_exact(low)}, largest {scale.format_exact(high)}"
    return [*parts, text_element(x, y + 28, extremes, "rg-muted")]


def document(
    width: float, height: float, title: str, summary: str, parts: Sequence[str], style: str | None = None
) -> str:
    """A whole SVG with its style, and its title and description for screen readers."""
    body = "".join(parts)
    # ids must differ between drawings in one page
    own = "rg-" + hashlib.sha256(f"{title}{summary}{body}".encode("utf-8", "replace")).hexdigest()[:12]
    wide, tall = math.ceil(width), math.ceil(height)
    size = f'width="{wide}" height="{tall}" viewBox="0 0 {wide} {tall}"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} class="rg" role="img" '
        f'aria-labelledby="{own}-t {own}-d"><title id="{own}-t">{escape_text(make_visible(title))}</title>'
        f'<desc id="{own}-d">{escape_text(summary)}</desc><style>{style or STYLE}</style>'
        f'<rect class="rg-page" width="100%" height="100%"/>{body}</svg>'
    )


def text_element(x: float, y: float, content: str, kind: str, anchor: str = "start") -> str:
    """A <text> element of the class `kind`."""
    return f'<text class="{kind}" x="{coord(x)}" y="{coord(y)}" text-anchor="{anchor}">{escape_text(content)}</text>'


def escape_text(content: str) -> str:
    """Text that is safe between tags and in quotes; characters that XML cannot hold are replaced."""
    return escape("".join(char if _in_xml(char) else "\ufffd" for char in content), {'"': "&quot;", "'": "&#39;"})


def _in_xml(char: str) -> bool:
    code = ord(char)
    return char in "\t\n\r" or 0x20 <= code <= 0xD7FF or 0xE000 <= code <= 0xFFFD or code >= 0x10000


def coord(number: float) -> str:
    """A coordinate with at most two digits after the point."""
    return f"{number:.2f}".rstrip("0").rstrip(".")


def _rules(colors: dict[str, str], scheme: int) -> str:
    inks = ("#000000", "#000000", "#FFFFFF") if scheme == 0 else ("#FFFFFF", "#000000", "#000000")
    return (
        f".rg-page{{fill:{colors['page']}}}.rg-weight{{fill:{colors['weight']}}}"
        + "".join(f".rg-{sign}{{fill:{pair[scheme]}}}" for sign, pair in SIGNS.items())
        + f".rg text{{fill:{colors['text']}}}.rg .rg-muted{{fill:{colors['muted']}}}"
        + "".join(f".rg .rg-{side}{{fill:{pair[scheme]}}}" for side, pair in SIDE_COLORS.items())
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
"""All selectors start with a class of our own: in a notebook they apply to the whole page."""
