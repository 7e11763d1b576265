"""One sentence through several models: what each says, and where it looked while it said it."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
from rich.cells import cell_len
from rich.text import Text

from regard.compare.table import check_comparable
from regard.errors import ConfigError, DataError, ModelError
from regard.look import svg, terminal
from regard.look.attention import AttentionView
from regard.look.matrix import Matrix
from regard.look.svg import STYLE, UNIT, document, extent, n, written
from regard.look.terminal import Colour
from regard.look.tokens import clusters, cut, visible
from regard.run import load, record, run_of
from regard.tasks import Model

SIZE = re.compile(r'^<svg xmlns="http://www\.w3\.org/2000/svg" width="(\d+)" height="(\d+)"')
LINE = re.compile(r"^line 1(:?) ")
"""how an error about the only text begins"""
ACROSS, GAP = 3, 3
"""models that stand side by side at most, and columns of a terminal between two of them"""
CEILING = 1.0
"""what the strongest colour stands for, of every model: all of its attention"""
BLIND = "it has no attention: the whole sentence went through its state"
SCALE = "one scale for all: the strongest colour is all of the attention"
NARROWEST = 320.0
"""of a model in a picture, in which longer outputs are wrapped"""
TITLES = ".rg .rg-text{font-size:18px;font-weight:600}.rg .rg-model{font-size:16px;font-weight:600}"


@dataclass(frozen=True, eq=False)
class Beside:
    """What one model said.

    >>> Beside("gru", "je suis", "I am", None).output
    'I am'
    """

    name: str
    text: str
    output: str
    view: AttentionView | None
    """where it looked; None: it has no attention"""
    failure: str = ""
    """why it said nothing"""

    @property
    def matrix(self) -> Matrix | None:
        """Where it looked, in colours that can be compared with those of others."""
        return replace(self.view.matrix, ceiling=CEILING) if self.view else None

    @property
    def told(self) -> str:
        """In a line: what it said, or why it said nothing.

        >>> Beside("gru", "je suis", "I am", None).told
        'gru: I am  (it has no attention: the whole sentence went through its state)'
        """
        if self.failure:
            return f"{self.name}: no answer: {self.failure}"
        return f"{self.name}: {visible(self.output)}{'' if self.view else f'  ({BLIND})'}"

    def to_dict(self) -> dict[str, Any]:
        """Plain data that JSON can hold."""
        seen = self.view.to_dict() if self.view else None
        found = {"model": self.name, "text": self.text, "output": self.output, "attention": seen}
        return {**found, "failure": self.failure} if self.failure else found


def side_by_side(runs: Mapping[str, Path], texts: Sequence[str]) -> list[Beside]:
    """What each model says to each text, text by text; a text that none of them can read is an error."""
    models = {name: load(path) for name, path in runs.items()}
    check_comparable({str(runs[name]): (run_of(runs[name]), model) for name, model in models.items()})
    found = [_said(name, model, text) for text in texts for name, model in models.items()]
    if found and all(one.failure for one in found):
        raise DataError(f"{found[0].name}: {found[0].failure}")
    return found


def _said(name: str, model: Model, text: str) -> Beside:
    try:
        with record(model) as trace:
            output = model.answer(text)
    except (DataError, ConfigError) as error:  # too long for this one, say; others may still read it
        why = LINE.sub(lambda found: "" if found[1] else "the text ", str(error))
        return Beside(name, text, "", None, why)
    try:
        return Beside(name, text, output, trace.attention())
    except ModelError:  # there was none to record
        return Beside(name, text, output, None)


def page(found: Sequence[Beside], width: int | None = None, colour: Colour | None = None) -> str:
    """All of it in characters: of each text what the models say, then where they look, side by side if there is room.

    >>> print(page([Beside("gru", "je suis", "I am", None)]))
    je suis
    <BLANKLINE>
    gru: I am  (it has no attention: the whole sentence went through its state)
    """
    width = shutil.get_terminal_size().columns if width is None else width
    colour = terminal.colours(os.environ, sys.stdout.isatty()) if colour is None else colour
    parts = []
    for text, group in groupby(found, key=lambda one: one.text):
        said = list(group)
        parts += [visible(text), "\n".join(one.told for one in said), *_maps(said, width, colour)]
    return "\n\n".join(parts)


def _maps(said: Sequence[Beside], width: int, colour: Colour) -> list[str]:
    """Heat maps in as many columns as there is room for, and what the colours mean, once."""
    looks = [(one.name, matrix) for one in said if (matrix := one.matrix) is not None]
    if not looks:
        return []
    plain = [terminal.heat_map(matrix, width, "none").splitlines()[1:-1] for _, matrix in looks]
    widest = 1 + max(cell_len(line) for lines in plain for line in lines)  # cells in colour end in a space
    across = max(1, min(ACROSS, len(looks), (width + GAP) // (widest + GAP)))
    room = (width + GAP) // across - GAP
    blocks = [[cut(name, room), *terminal.heat_map(m, room, colour).splitlines()[:-1]] for name, m in looks]
    rows = [_columns(blocks[i : i + across], room) for i in range(0, len(blocks), across)]
    numbers = np.concatenate([matrix.numbers.ravel() for _, matrix in looks])[None]
    every = Matrix(numbers, ("",), ("",) * numbers.size, "", ceiling=CEILING)
    return [*rows, f"{terminal.legend(every, colour)}\n{SCALE}"]


def _columns(blocks: Sequence[Sequence[str]], room: int) -> str:
    """Blocks of lines side by side, each `room` wide; lines may hold colours."""
    height, gap = max(map(len, blocks)), " " * GAP
    filled = [[*block, *[""] * (height - len(block))] for block in blocks]
    lines = [[line + " " * (room - Text.from_ansi(line).cell_len) for line in block] for block in filled]
    return "\n".join(gap.join(row).rstrip() for row in zip(*lines, strict=True))


def picture(found: Sequence[Beside]) -> str:
    """All of it in one SVG: each text with the models side by side under it, all in colours of one scale.

    >>> drawn = picture([Beside("gru", "je suis", "I am", None), Beside("lstm", "je suis", "I was", None)])
    >>> [drawn.count(f">{words}</text>") for words in ("je suis", "gru", "I was")]
    [1, 1, 1]
    """
    groups = [(text, [_cell(one) for one in group]) for text, group in groupby(found, key=lambda one: one.text)]
    across = min(ACROSS, max(len(cells) for _, cells in groups))
    wide = [max(cell.width for _, cells in groups for cell in cells[i::ACROSS]) for i in range(across)]
    left = [UNIT * 2 + sum(wide[:i]) + UNIT * 3 * i for i in range(across)]
    parts, y, width = [written(UNIT * 2, UNIT * 3, SCALE, "rg-muted")], UNIT * 7.0, left[-1] + wide[-1] + UNIT * 2
    for text, cells in groups:
        parts.append(written(UNIT * 2, y, visible(text), "rg-text"))
        width, y = max(width, extent(visible(text), 18) + UNIT * 4), y + UNIT * 4
        for i in range(0, len(cells), across):
            row = cells[i : i + across]
            for x, cell in zip(left, row):
                parts.append(f'<g transform="translate({n(x)} {n(y)})">{cell.drawn}</g>')
            y += max(cell.height for cell in row) + UNIT * 4
    said = "; ".join(f"{one.name} says {visible(one.output)}" for one in found)
    return document(width, y, visible(found[0].text), said, parts, STYLE + TITLES)


@dataclass(frozen=True)
class _Cell:
    """One model in a picture."""

    drawn: str
    width: float
    height: float


def _cell(one: Beside) -> _Cell:
    """A model's name, what it said and where it looked."""
    drawn = svg.picture(one.matrix) if one.matrix is not None else ""
    size = SIZE.match(drawn)
    wide, tall = (float(size[1]), float(size[2])) if size else (NARROWEST, 0.0)
    wide = max(wide, NARROWEST, extent(visible(one.name), 16))
    said = _wrapped(one.failure or visible(one.output), wide)
    lines = [(line, "rg-muted" if one.failure else "rg-row") for line in said]
    if not one.view and not one.failure:
        lines += [(line, "rg-muted") for line in _wrapped(BLIND, wide)]
    parts, y = [written(0, UNIT * 2, visible(one.name), "rg-model")], UNIT * 5.0
    for line, kind in lines:
        parts.append(written(0, y, line, kind))
        wide, y = max(wide, extent(line, 12)), y + UNIT * 2
    if drawn:
        parts.append(drawn.replace("<svg ", f'<svg x="{-UNIT * 2}" y="{n(y - UNIT)}" ', 1))
    return _Cell("".join(parts), wide, y + tall - UNIT)


def _wrapped(text: str, room: float) -> list[str]:
    """Lines that are not drawn wider than `room`: broken between words, or inside one that is too long for a line."""
    lines = [""]
    for word in text.split(" "):
        longer = f"{lines[-1]} {word}".strip()
        if extent(longer, 12) <= room:
            lines[-1] = longer
            continue
        lines.append("")
        for cluster in clusters(word):
            if extent(lines[-1] + cluster, 12) > room:
                lines.append("")
            lines[-1] += cluster
    return [line for line in lines if line]
