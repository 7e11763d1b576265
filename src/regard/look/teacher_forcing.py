"""Teacher-forced pass: a text as a model reads it in training, with the tokens of both sides."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from regard.device import module_device
from regard.look.gradients import GradientsView, gradients_through_time
from regard.sequence import Images, Padded, Tokens
from regard.spaces import Space
from regard.trace import tap, trace_context


@dataclass(frozen=True)
class TeacherForcedPass:
    """One source and target, read with teacher forcing; the source of a language model is empty."""

    source: Padded | Images
    target: Tokens
    """from <SOS> to <EOS>, or from the first token of a text to the last"""
    space: Space
    """output space of the target: it computes the loss"""
    tokens: Mapping[str, Sequence[Sequence[str]]] = field(default_factory=dict)
    """per side ("source", "target"): the tokens of each row"""

    @torch.no_grad()
    def run(self, model: Any) -> None:
        """One forward pass over the whole text, to be recorded."""
        with trace_context(**{side: [list(row) for row in rows] for side, rows in self.tokens.items()}):
            target = self.target.to(module_device(model))
            features_1TD = model(self.source.to(target.device), target)
            if not target.data.is_floating_point():
                tap(model, "ids", target.data, "batch position:target")
                tap(model, "logits", model.readout(features_1TD), "batch position:target vocabulary")

    def gradients(self, model: Any, name: str | None = None, layer: int | None = None) -> GradientsView:
        """|dL_t/dh_s| in this text; see gradients_through_time."""
        return gradients_through_time(model, self.source, self.target, self.space, name, layer, self.tokens)
