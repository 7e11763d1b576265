"""Classifying with a trained model: texts in, labels with probabilities out, in the order they came."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from regard.tasks.classify.inputs import Matter, Piece
from regard.tasks.classify.labels import Labels
from regard.trace import scene, tap, tracing

ROWS = 256
"""texts that are read at once, at most"""


@dataclass(frozen=True)
class Verdict:
    """A label, and how likely the model holds it.

    >>> Verdict("positive", 0.98).label
    'positive'
    """

    label: str
    probability: float


@dataclass(frozen=True, eq=False)
class Ruling:
    """What a model makes of one text.

    >>> ruling = Ruling(np.array([0.25, 0.75]), left_out=0)
    >>> ruling.top(1, Labels(("bad", "good"), (1, 1))), Ruling(None, 0).top(2, Labels(("bad", "good"), (1, 1)))
    ([Verdict(label='good', probability=0.75)], [])
    """

    share_C: np.ndarray | None
    """the probability of each label; None: there was nothing to read"""
    left_out: int
    """tokens of the text that were not read, since it has too many"""

    def top(self, count: int, labels: Labels) -> list[Verdict]:
        """The likeliest labels, the likeliest first; of a text without words there is none."""
        if self.share_C is None:
            return []
        order = np.argsort(-self.share_C, kind="stable")[:count]
        return [Verdict(labels.names[i], float(self.share_C[i])) for i in order]


@dataclass(frozen=True)
class Judge:
    """A model, what it reads, and what it may say.

    >>> from regard.models.mlp import MLPConfig
    >>> from regard.models.base import Classifier
    >>> from regard.sequence import mean
    >>> from regard.spaces import Classes
    >>> from regard.tasks.classify.inputs import Measures
    >>> from regard.tasks.generate.numbers import Scale
    >>> matter = Measures(Scale(("width",), (0.0,), (1.0,)))
    >>> model = Classifier(MLPConfig(width=4).build_encoder(matter.space()), mean, Classes(2), 4)
    >>> found = Judge(model, matter, Labels(("bad", "good"), (1, 1))).rule(["0.5", ""])
    >>> [None if ruling.share_C is None else round(float(ruling.share_C.sum()), 6) for ruling in found]
    [1.0, None]
    """

    model: Any
    """a Classifier"""
    matter: Matter
    labels: Labels
    tokens: int = 8192
    """places that are read at once, padding included"""

    @torch.no_grad()
    def rule(self, lines: Sequence[str], first_line: int = 1) -> list[Ruling]:
        """What the model makes of each text; `first_line` is the number of the first, for messages."""
        pieces = self.matter.read(lines, first_line)
        found = [Ruling(None, piece.left_out) for piece in pieces]
        for rows in self.grouped(pieces):
            given = [pieces[i].row for i in rows]
            words = [self.matter.words(row) for row in given] if tracing() else []
            with scene(source=words, label=self.labels.names):
                features_BD = tap(self.model, "features", self.model(self.matter.tokens(given)), "batch width")
                out_BC = tap(self.model, "logits", self.model.readout(features_BD), "batch label:label")
            for i, share_C in zip(rows, out_BC.double().softmax(-1).numpy(), strict=True):
                found[i] = Ruling(share_C, pieces[i].left_out)
        return found

    def grouped(self, pieces: Sequence[Piece]) -> Iterator[list[int]]:
        """Texts of like length together; those without anything to read are left out."""
        rows = sorted((i for i, piece in enumerate(pieces) if piece.row), key=lambda i: -len(pieces[i].row))
        at = 0
        while at < len(rows):
            count = max(1, min(ROWS, self.tokens // len(pieces[rows[at]].row)))
            yield rows[at : at + count]
            at += count
