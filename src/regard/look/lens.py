"""Logit lens: what each layer would predict (nostalgebraist 2020, "interpreting GPT: the logit lens").

The output of each layer goes through the model's own end, as if it were the output of the last layer: the last norm and
the output projection, what a recurrent decoder's readout adds to its state, the pooling of a classifier, the CRF of a
tagger. The most probable tokens or labels are computed once, from the recorded values, and become two more records:
`lens.ids` and `lens.probabilities`, so that views and files need no model.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from regard.errors import ModelError
from regard.look.decoding_path import SEQUENCES
from regard.trace import Record, without_recording

IDS, PROBABILITIES = "lens.ids", "lens.probabilities"
"""names of the records"""
TOP = 20
"""candidates per layer and position"""
CHUNK = 64
"""positions that are projected together: logits of a large vocabulary are large"""
VOCABULARY = "vocabulary"
"""fact of a record's context: the side whose vocabulary its ids are of"""
LABEL = "label"
"""the vocabulary of ids of labels, and the fact that holds their names"""
ACTUAL, ACTUAL_TITLE, NOTES, WHOLE = "lens_actual", "lens_actual_title", "lens_notes", "lens_whole"
"""facts of the context of a lens: what followed or was chosen at each position, what that is called, notes, and whether
a text as a whole has one output"""
NEXT, TOKEN, ANSWER = "next", "token", "answer"
"""what the actual tokens are: those that followed, those that stood there, or the labels that the model chose"""


@dataclass(frozen=True)
class LensLayers:
    """What the end of a model reads, for each layer, and what is known about the positions."""

    titles: Sequence[str]
    """"embedding", "layer 0", ..."""
    features: Sequence[Tensor]
    """(P, D) of each layer, the lowest first"""
    places: Any = None
    """tokens at the positions, a list of one row; None: not known"""
    actual: Sequence[str] = ()
    """the token that followed at each position, or that stood there, or the label that the model chose"""
    actual_title: str = NEXT
    names: tuple[str, ...] = ()
    """names of the labels, where the logits are over labels"""
    whole: bool = False
    """whether a text as a whole gets one output"""
    notes: Sequence[str] = ()


class LensHead(ABC):
    """The end of a model, as a function of its recorded values."""

    side: str = "target"
    """side whose vocabulary the logits are over; LABEL: over labels"""
    chunk: int | None = CHUNK
    """positions that are projected together; None: all, since they depend on each other"""

    @abstractmethod
    def layers(self, records: Sequence[Record]) -> LensLayers:
        """What the end reads of each layer, from condensed records; a ModelError if there is no such thing."""

    @abstractmethod
    def logits(self, features_PD: Tensor) -> Tensor:
        """(P, V) logits of features."""

    def probabilities(self, features_PD: Tensor) -> Tensor:
        """(P, V) probabilities of features, in double precision."""
        return self.logits(features_PD).cpu().double().softmax(-1)


class NoLens(LensHead):
    """The end of a model that has no logit lens, with the reason."""

    def __init__(self, reason: str) -> None:
        self.reason = reason

    def layers(self, records: Sequence[Record]) -> LensLayers:
        raise no_lens(self.reason)

    def logits(self, features_PD: Tensor) -> Tensor:
        raise no_lens(self.reason)


def no_lens(reason: str) -> ModelError:
    """The error of a model without a lens."""
    return ModelError(f"no logit lens: {reason}")


@torch.no_grad()
@without_recording()
def lens_records(records: Sequence[Record], head: LensHead) -> list[Record]:
    """The lens of condensed records, as two records; a ModelError with the reason if the model has none."""
    found = head.layers(records)
    best = [_candidates(head, features_PD) for features_PD in found.features]
    titles = tuple(found.titles)
    context = {
        **sequence_facts(records), "condensed": True, "layer": titles, VOCABULARY: head.side, WHOLE: found.whole,
        ACTUAL: list(found.actual), ACTUAL_TITLE: found.actual_title, NOTES: list(found.notes), LABEL: found.names,
    }  # fmt: skip
    labels = {"layer": titles} | ({} if found.places is None else {"position": found.places})
    axes = ("batch", "layer", "position", "candidate")
    ids, probabilities = (torch.stack(part)[None] for part in zip(*best, strict=True))
    return [Record(name, axes, data, labels, context) for name, data in ((IDS, ids), (PROBABILITIES, probabilities))]


def sequence_facts(records: Sequence[Record]) -> dict[str, Any]:
    """The tokens of each side, which all condensed records share."""
    context = next((record.context for record in records), {})
    return {side: context[side] for side in SEQUENCES if side in context}


def _candidates(head: LensHead, features_PD: Tensor) -> tuple[Tensor, Tensor]:
    """Ids and probabilities of the best candidates at each position."""
    parts = [head.probabilities(part) for part in features_PD.split(head.chunk or max(1, len(features_PD)))]
    best = [part.topk(min(TOP, part.shape[1])) for part in parts]
    return torch.cat([part.indices for part in best]), torch.cat([part.values for part in best]).float()
