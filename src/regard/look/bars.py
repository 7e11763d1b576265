"""Bar view: signed numbers with a label each, as bars around zero; in a terminal and as SVG."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from rich.cells import cell_len

from regard.look.svg import STYLE, UNIT, coord, document, escape_text, text_element, text_width
from regard.look.tokens import make_visible, truncate
from regard.look.view import View

LINE, BAR, LABEL = 20, 240, 40
"""height of a line and longest bar in an SVG; terminal columns of a label"""
SHOWN = 40
"""bars in a terminal and in an SVG: those with the largest numbers; data and the page have all"""


@dataclass(frozen=True, eq=False)
class BarsView(View):
    """Numbers as bars, the largest absolute ones first.

    >>> view = BarsView("parts of a logit", ["embedding", "layer 0, feed-forward"], np.array([-0.5, 2.0]), ["sum 1.5"])
    >>> print(view.text(52))
    parts of a logit
    layer 0, feed-forward +2.0000           |██████████
    embedding             -0.5000         ██|
    sum 1.5
    """

    title: str
    labels: list[str]
    values: np.ndarray
    notes: Sequence[str] = ()
    """lines below the bars"""

    @property
    def order(self) -> list[int]:
        """Indices of the bars that are drawn, the largest absolute number first."""
        return np.argsort(-np.abs(self.values), kind="stable")[:SHOWN].tolist()

    @property
    def all_notes(self) -> list[str]:
        """The notes, and how many numbers are not drawn."""
        rest = len(self.values) - len(self.order)
        return [*self.notes, *([f"{rest} smaller ones are not shown"] if rest else [])]

    def text(self, width: int | None = None) -> str:
        """A line per bar; zero is in the middle."""
        width = shutil.get_terminal_size().columns if width is None else width
        labels = [truncate(make_visible(self.labels[i]), LABEL) for i in self.order]
        wide = max(map(cell_len, labels), default=0)
        half = max(4, min(30, (width - wide - 10) // 2))
        top = float(np.abs(self.values).max(initial=0.0)) or 1.0
        lines = [make_visible(self.title)]
        for i, label in zip(self.order, labels, strict=True):
            value = float(self.values[i])
            bar = "█" * round(half * abs(value) / top)
            drawn = f"{bar if value < 0 else '':>{half}}|{bar if value > 0 else ''}"
            lines.append(f"{label}{' ' * (wide - cell_len(label))} {value:+.4f} {drawn}".rstrip())
        return "\n".join([*lines, *self.all_notes])

    def svg(self) -> str:
        """A line per bar; zero is in the middle."""
        labels = [truncate(make_visible(self.labels[i]), LABEL) for i in self.order]
        wide = max((text_width(label, 12) for label in labels), default=0.0) + UNIT * 2
        zero = wide + UNIT * 9 + BAR / 2
        top = float(np.abs(self.values).max(initial=0.0)) or 1.0
        parts = [text_element(UNIT * 2, UNIT * 3, make_visible(self.title), "rg-head")]
        y = UNIT * 5.0
        for i, label in zip(self.order, labels, strict=True):
            value = float(self.values[i])
            length = BAR / 2 * abs(value) / top
            kind, x = ("rg-positive", zero) if value >= 0 else ("rg-negative", zero - length)
            parts += [
                text_element(UNIT * 2, y + 14, label, "rg-row"),
                text_element(wide + UNIT * 8, y + 14, f"{value:+.4f}", "rg-muted", "end"),
                f'<rect class="{kind}" x="{coord(x)}" y="{coord(y + 3)}" width="{coord(length)}" height="{LINE - 6}">'
                f"<title>{escape_text(f'{make_visible(self.labels[i])}: {value:+.6f}')}</title></rect>",
            ]
            y += LINE
        parts.append(f'<path d="M{coord(zero)} {UNIT * 5}V{coord(y)}" stroke="#8A94A0" stroke-width="1"/>')
        for note in self.all_notes:
            y += 18
            parts.append(text_element(UNIT * 2, y, make_visible(note), "rg-muted"))
        texts = [*map(make_visible, self.all_notes), make_visible(self.title)]
        width = max(zero + BAR / 2, *(text_width(text, 14) for text in texts)) + UNIT * 4
        return document(width, y + UNIT * 3, self.title, self.summary(), parts, STYLE)

    def summary(self) -> str:
        """The description for screen readers."""
        best = [f"{make_visible(self.labels[i])} {float(self.values[i]):+.3g}" for i in self.order[:3]]
        return f"{len(self.values)} numbers, the largest: {', '.join(best)}"

    def to_dict(self) -> dict[str, Any]:
        return self._fields("title", "labels", "values", "notes")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.title!r}, {len(self.values)} numbers)"
