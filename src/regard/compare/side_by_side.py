"""Side-by-side outputs of several models for one text, with their attention on one color scale."""

from __future__ import annotations

import re
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
from regard.look.svg import STYLE, UNIT, coord, document, text_element, text_width
from regard.look.terminal import ColorDepth
from regard.look.tokens import grapheme_clusters, make_visible, truncate
from regard.run import load, record
from regard.tasks import Model
from regard.train.checkpoint_store import run_folder

SIZE = re.compile(r'^<svg xmlns="http://www\.w3\.org/2000/svg" width="(\d+)" height="(\d+)"')
LINE = re.compile(r"^line 1(:?) ")
"""how an error about the only text starts"""
ACROSS, GAP = 3, 3
"""most models per row, and terminal columns between two of them"""
CEILING = 1.0
"""value of the strongest color, for every model: all of the attention"""
NO_ATTENTION = "it has no attention: the whole sentence went through its state"
SCALE = "one scale for all: the strongest color is all of the attention"
MIN_WIDTH = 320.0
"""smallest width of a model in the SVG; longer outputs are wrapped"""
TITLES = ".rg .rg-text{font-size:18px;font-weight:600}.rg .rg-model{font-size:16px;font-weight:600}"


@dataclass(frozen=True, eq=False)
class ModelAnswer:
    """Output of one model for one text."""

    name: str
    text: str
    output: str
    view: AttentionView | None
    """its attention; None: it has none"""
    failure: str = ""
    """why there is no output"""

    @property
    def matrix(self) -> Matrix | None:
        """The attention as a matrix on the color scale that all models share."""
        return replace(self.view.matrix, ceiling=CEILING) if self.view else None

    @property
    def summary(self) -> str:
        """One line: the output, or why there is none.

        >>> ModelAnswer("gru", "je suis", "I am", None).summary
        'gru: I am  (it has no attention: the whole sentence went through its state)'
        """
        if self.failure:
            return f"{self.name}: no answer: {self.failure}"
        return f"{self.name}: {make_visible(self.output)}{'' if self.view else f'  ({NO_ATTENTION})'}"

    def to_dict(self) -> dict[str, Any]:
        """The answer as plain JSON."""
        attention = self.view.to_dict() if self.view else None
        found = {"model": self.name, "text": self.text, "output": self.output, "attention": attention}
        return {**found, "failure": self.failure} if self.failure else found


def side_by_side(runs: Mapping[str, Path], texts: Sequence[str], device: str = "auto") -> list[ModelAnswer]:
    """Answers of all models to each text, text by text; it is an error if no model can read any text."""
    models = {name: load(path, device) for name, path in runs.items()}
    check_comparable({str(runs[name]): (run_folder(runs[name]), model) for name, model in models.items()})
    found = [_answer(name, model, text) for text in texts for name, model in models.items()]
    if found and all(one.failure for one in found):
        raise DataError(f"{found[0].name}: {found[0].failure}")
    return found


def _answer(name: str, model: Model, text: str) -> ModelAnswer:
    try:
        with record(model) as trace:
            output = model.predict_text(text)
    except (DataError, ConfigError) as error:  # too long for this model, for example; others may accept it
        why = LINE.sub(lambda found: "" if found[1] else "the text ", str(error))
        return ModelAnswer(name, text, "", None, why)
    try:
        return ModelAnswer(name, text, output, trace.attention())
    except ModelError:  # a model without attention
        return ModelAnswer(name, text, output, None)


def render_text(found: Sequence[ModelAnswer], width: int | None = None, color: ColorDepth | None = None) -> str:
    """All answers as text: per text the outputs, then the attention heat maps, side by side if there is room."""
    width, color = terminal.or_terminal(width, color)
    parts = []
    for text, group in groupby(found, key=lambda one: one.text):
        answers = list(group)
        parts += [make_visible(text), "\n".join(one.summary for one in answers), *_heat_maps(answers, width, color)]
    return "\n\n".join(parts)


def _heat_maps(answers: Sequence[ModelAnswer], width: int, color: ColorDepth) -> list[str]:
    """Heat maps in as many columns as there is room for, and one legend."""
    maps = [(one.name, matrix) for one in answers if (matrix := one.matrix) is not None]
    if not maps:
        return []
    plain = [terminal.heat_map(matrix, width, "none").splitlines()[1:-1] for _, matrix in maps]
    widest = 1 + max(cell_len(line) for lines in plain for line in lines)  # colored cells end in a space
    across = max(1, min(ACROSS, len(maps), (width + GAP) // (widest + GAP)))
    room = (width + GAP) // across - GAP
    blocks = [[truncate(name, room), *terminal.heat_map(m, room, color).splitlines()[:-1]] for name, m in maps]
    rows = [_columns(blocks[i : i + across], room) for i in range(0, len(blocks), across)]
    numbers = np.concatenate([matrix.numbers.ravel() for _, matrix in maps])[None]
    every = Matrix(numbers, ("",), ("",) * numbers.size, "", ceiling=CEILING)
    return [*rows, f"{terminal.legend(every, color)}\n{SCALE}"]


def _columns(blocks: Sequence[Sequence[str]], room: int) -> str:
    """Blocks of lines side by side, each `room` wide; lines may contain color codes."""
    height, gap = max(map(len, blocks)), " " * GAP
    padded = [[*block, *[""] * (height - len(block))] for block in blocks]
    lines = [[line + " " * (room - Text.from_ansi(line).cell_len) for line in block] for block in padded]
    return "\n".join(gap.join(row).rstrip() for row in zip(*lines, strict=True))


def render_svg(found: Sequence[ModelAnswer]) -> str:
    """All answers as one SVG: the models side by side under each text, on one color scale."""
    groups = [(text, [_cell(one) for one in group]) for text, group in groupby(found, key=lambda one: one.text)]
    across = min(ACROSS, max(len(cells) for _, cells in groups))
    wide = [max(cell.width for _, cells in groups for cell in cells[i::ACROSS]) for i in range(across)]
    left = [UNIT * 2 + sum(wide[:i]) + UNIT * 3 * i for i in range(across)]
    parts, y, width = [text_element(UNIT * 2, UNIT * 3, SCALE, "rg-muted")], UNIT * 7.0, left[-1] + wide[-1] + UNIT * 2
    for text, cells in groups:
        parts.append(text_element(UNIT * 2, y, make_visible(text), "rg-text"))
        width, y = max(width, text_width(make_visible(text), 18) + UNIT * 4), y + UNIT * 4
        for i in range(0, len(cells), across):
            row = cells[i : i + across]
            for x, cell in zip(left, row):
                parts.append(f'<g transform="translate({coord(x)} {coord(y)})">{cell.markup}</g>')
            y += max(cell.height for cell in row) + UNIT * 4
    description = "; ".join(f"{one.name} says {make_visible(one.output)}" for one in found)
    return document(width, y, make_visible(found[0].text), description, parts, STYLE + TITLES)


@dataclass(frozen=True)
class _Cell:
    """One model in the SVG."""

    markup: str
    width: float
    height: float


def _cell(one: ModelAnswer) -> _Cell:
    """A model's name, output and attention."""
    markup = svg.heat_map(one.matrix) if one.matrix is not None else ""
    size = SIZE.match(markup)
    wide, tall = (float(size[1]), float(size[2])) if size else (MIN_WIDTH, 0.0)
    wide = max(wide, MIN_WIDTH, text_width(make_visible(one.name), 16))
    output = _wrap(one.failure or make_visible(one.output), wide)
    lines = [(line, "rg-muted" if one.failure else "rg-row") for line in output]
    if not one.view and not one.failure:
        lines += [(line, "rg-muted") for line in _wrap(NO_ATTENTION, wide)]
    parts, y = [text_element(0, UNIT * 2, make_visible(one.name), "rg-model")], UNIT * 5.0
    for line, kind in lines:
        parts.append(text_element(0, y, line, kind))
        wide, y = max(wide, text_width(line, 12)), y + UNIT * 2
    if markup:
        parts.append(markup.replace("<svg ", f'<svg x="{-UNIT * 2}" y="{coord(y - UNIT)}" ', 1))
    return _Cell("".join(parts), wide, y + tall - UNIT)


def _wrap(text: str, room: float) -> list[str]:
    """Lines of at most `room` width, broken between words, or inside a word that is too long for a line."""
    lines = [""]
    for word in text.split(" "):
        longer = f"{lines[-1]} {word}".strip()
        if text_width(longer, 12) <= room:
            lines[-1] = longer
            continue
        lines.append("")
        for cluster in grapheme_clusters(word):
            if text_width(lines[-1] + cluster, 12) > room:
                lines.append("")
            lines[-1] += cluster
    return [line for line in lines if line]
