"""Candidates view: the most probable tokens at each position, with rank and probability of the actual one.

It is made from recorded logits: of each decoding step (translation, generation), of each position of a text that a
language model reads, or of the masks that a masked language model fills.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from regard.errors import ModelError
from regard.look.decoding_path import ANSWER, IdToToken, to_tokens
from regard.look.terminal import ColorDepth
from regard.look.token_grid import TokenGrid
from regard.look.tokens import make_visible, token_label
from regard.look.view import View
from regard.trace import Record

LOGITS, IDS = "logits", "ids"
"""names of the records: predictions, and the tokens that were read"""
TOP = 10
"""candidates per position"""
SHOWN = 5
"""candidates in a terminal and in an SVG"""


@dataclass(frozen=True, eq=False)
class CandidatesView(View):
    """Candidates for each position: the next token, the next word of a translation, or the word at a mask.

    >>> view = CandidatesView(["I"], [["am", "was"]], np.array([[0.75, 0.25]]), ["was"], [2], np.array([0.25]))
    >>> print(view.text(50, "none"))
    candidates for the next token
    after         1         2    actual     rank
    I      ▓am 0.75 ░was 0.25 ░was 0.25       #2
    """

    contexts: list[str]
    """the last token that was read, or the token at each position"""
    candidates: list[list[str]]
    """(positions, candidates), the most probable first"""
    probabilities: np.ndarray
    """of the candidates"""
    actual: list[str]
    """the token that followed; "" if there is none"""
    ranks: list[int]
    """of the actual tokens, from 1; 0 if there is none"""
    actual_probabilities: np.ndarray
    """of the actual tokens; NaN if there is none"""
    kind: str = "next"
    """"next": the next token of a text; "step": the tokens of an answer; "mask": the words at masks"""

    @property
    def title(self) -> str:
        return {"mask": "candidates for each mask", "step": "candidates at each step of the answer"}.get(
            self.kind, "candidates for the next token"
        )

    def grid(self, shown: int = SHOWN) -> TokenGrid:
        """A row per position, a column per candidate, and the actual token."""
        shown = min(shown, self.probabilities.shape[1])
        cells, numbers = [line[:shown] for line in self.candidates], self.probabilities[:, :shown]
        columns = [str(i + 1) for i in range(shown)]
        marked = [[bool(a) and cell == a for cell in line] for line, a in zip(cells, self.actual, strict=True)]
        if any(self.actual):
            ranked = [f"#{rank}" if rank else "" for rank in self.ranks]
            cells = [[*line, a, rank] for line, a, rank in zip(cells, self.actual, ranked, strict=True)]
            blank = np.full(len(cells), np.nan)
            numbers = np.column_stack([numbers, self.actual_probabilities, blank])
            columns += ["chosen" if self.kind == "step" else "actual", "rank"]
            marked = [[*line, False, False] for line in marked]
        tooltips = [
            [f"{make_visible(cell)} {number:.4f}" if cell and number == number else "" for cell, number in zip(*pair)]
            for pair in zip(cells, numbers.tolist(), strict=True)
        ]
        title = "mask" if self.kind == "mask" else "after"
        return TokenGrid(
            self.title, self.contexts, columns, cells, numbers, (title, "candidate"), np.array(marked), tooltips
        )

    def text(self, width: int | None = None, color: ColorDepth | None = None) -> str:
        """A line per position, with as many candidates as fit."""
        for shown in range(SHOWN, 1, -1):
            found = self.grid(shown).text(width, color)
            if found.count("\n") <= len(self.contexts) + 1:
                break
        return found

    def svg(self) -> str:
        """A row per position; the actual token is outlined."""
        return self.grid().svg()

    def to_dict(self) -> dict[str, Any]:
        numbers = [None if number != number else number for number in self.actual_probabilities.tolist()]
        names = ("kind", "contexts", "candidates", "probabilities", "actual", "ranks")
        labels = {"labels": [[token_label(token) for token in line] for line in self.candidates]}
        return self._fields(*names) | {"actual_probabilities": numbers} | labels

    def __repr__(self) -> str:
        return f"CandidatesView({self.title!r}, {len(self.contexts)} positions)"


def candidates_view(records: Sequence[Record], id_to_token: IdToToken) -> CandidatesView:
    """The view behind Recording.candidates(), of condensed records."""
    record = next((r for r in records if r.name == LOGITS and r.axes[2:] == ("vocabulary",)), None)
    if record is None:
        raise ModelError(
            "no candidates: no logits over a vocabulary were recorded; a model that generates, translates or fills "
            "masks has some"
        )
    places, actual_ids = _places(record, records)
    probabilities = record.data[0].double().softmax(-1)
    best = probabilities.topk(min(TOP, probabilities.shape[1]))
    side = record.context.get("vocabulary", "target")
    ranks, chances = _ranks(probabilities, actual_ids)
    actual = [to_tokens([i], side, id_to_token)[0] if i is not None else "" for i in actual_ids]
    kind = {"step": "step"}.get(record.axes[1], record.context.get("candidates", "next"))
    found = [to_tokens(ids, side, id_to_token) for ids in best.indices.tolist()]
    return CandidatesView(places, found, best.values.numpy(), actual, ranks, chances, kind)


def _places(record: Record, records: Sequence[Record]) -> tuple[list[str], list[int | None]]:
    """The token before each prediction, and the id of the actual one."""
    size, context = record.data.shape[1], record.context
    answer = next((r.data[0].tolist() for r in records if r.name == ANSWER), None)
    if record.axes[1] == "step":
        read = context["read"][0] if "read" in context else []
        before = read[len(read) - size :] if len(read) >= size else [str(i + 1) for i in range(size)]
        ids: list[int | None] = [] if answer is None else answer[:size]
        return list(before), [*ids, *[None] * (size - len(ids))]
    if "mask" in record.labels:  # the words that stood there are not known
        return list(record.labels["mask"]), [None] * size
    label = record.labels.get("position")
    before = [str(i + 1) for i in range(size)] if label is None else list(label[0])
    read_ids = next((r.data[0].tolist() for r in records if r.name == IDS), [])
    ids = read_ids[1 : size + 1]
    return before, [*ids, *[None] * (size - len(ids))]


def _ranks(probabilities_PV: Tensor, ids: Sequence[int | None]) -> tuple[list[int], np.ndarray]:
    """Rank (from 1; 0 if there is none) and probability of one id per position."""
    ranks, chances = [], np.full(len(ids), np.nan)
    for p, i in enumerate(ids):
        if i is None:
            ranks.append(0)
            continue
        own = probabilities_PV[p, i]
        ranks.append(int((probabilities_PV[p] > own).sum()) + 1)
        chances[p] = float(own)
    return ranks, chances


def top_ids(logits: Tensor) -> Tensor:
    """The ids that a view of these logits shows, so that a trace file has their tokens."""
    return logits.topk(min(TOP, logits.shape[-1])).indices if logits.numel() else torch.zeros(0, dtype=torch.long)
