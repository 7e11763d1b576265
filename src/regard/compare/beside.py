"""One sentence through several models: what each says, and where it looked while it said it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from regard.compare.table import check_comparable
from regard.errors import ModelError
from regard.jobs import Model
from regard.look.svg import UNIT, document, extent, written
from regard.look.terminal import Colour
from regard.look.tokens import visible
from regard.look.views import AttentionView
from regard.run import load, record, run_of

SIZE = re.compile(r'^<svg xmlns="http://www\.w3\.org/2000/svg" width="(\d+)" height="(\d+)"')


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

    def shown(self, width: int | None = None, colour: Colour | None = None) -> str:
        """The output and a heat map, in characters.

        >>> print(Beside("gru", "je suis", "I am", None).shown())
        gru: I am
          (it has no attention: the whole sentence went through its state)
        """
        if self.view is None:
            return f"{self.name}: {self.output}\n  (it has no attention: the whole sentence went through its state)"
        return f"{self.name}: {self.output}\n{self.view.text(width, colour)}"

    def to_dict(self) -> dict[str, Any]:
        """Plain data that JSON can hold."""
        seen = self.view.to_dict() if self.view else None
        return {"model": self.name, "text": self.text, "output": self.output, "attention": seen}


def side_by_side(runs: Mapping[str, Path], texts: Sequence[str]) -> list[Beside]:
    """What each model says to each text, text by text."""
    models = {name: load(path) for name, path in runs.items()}
    check_comparable({str(runs[name]): (run_of(runs[name]), model) for name, model in models.items()})
    return [_said(name, model, text) for text in texts for name, model in models.items()]


def _said(name: str, model: Model, text: str) -> Beside:
    with record(model) as trace:
        output = model.answer(text)
    try:
        return Beside(name, text, output, trace.attention())
    except ModelError:  # there was none to record
        return Beside(name, text, output, None)


def picture(found: Sequence[Beside]) -> str:
    """All of it in one SVG, one model below the other.

    >>> picture([Beside("gru", "je suis", "I am", None)]).count("gru: I am")
    1
    """
    parts, y, width = [], UNIT * 4.0, 320.0
    for one in found:
        title = f"{one.name}: {visible(one.output)}"
        parts.append(written(UNIT * 2, y, title, "rg-head"))
        width = max(width, extent(title, 14) + UNIT * 4)
        y += UNIT * 2
        if one.view is None:
            parts.append(written(UNIT * 2, y + UNIT, "it has no attention", "rg-muted"))
            y += UNIT * 5
            continue
        drawn = one.view.svg()
        size = SIZE.match(drawn)
        assert size is not None
        parts.append(drawn.replace("<svg ", f'<svg x="0" y="{y:.0f}" ', 1))
        width, y = max(width, float(size[1])), y + float(size[2]) + UNIT * 4
    said = "; ".join(f"{one.name} says {visible(one.output)}" for one in found)
    return document(width, y, visible(found[0].text), said, parts)
