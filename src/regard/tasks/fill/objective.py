"""Objective of BERT's pre-training: the tokens at masked positions and, as an option, whether a segment follows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch.nn.functional as F
from torch import Tensor

from regard.loss import Loss, chunked_loss
from regard.objective import Batch, Task, select_positions
from regard.tasks.fill.loader import FillTargets

MASKED, NEXT_SENTENCE = "masked", "next_sentence"
"""parts of the loss"""


class MaskedTokens(Task):
    """Prediction of the original tokens at masked positions, and of whether the second segment follows the first.

    The loss is the sum of both means (Devlin et al. 2019, appendix A.2). The model is a BertPretraining.
    """

    def targets(self, batch: Batch) -> Mapping[str, tuple[Tensor, Tensor]]:
        target: FillTargets = batch.target
        found = {MASKED: (target.masked, target.ids)}
        if target.follows is not None:
            found[NEXT_SENTENCE] = (target.follows >= 0, target.follows)
        return found

    def features(self, model: Any, batch: Batch, hidden_state: Any) -> tuple[Mapping[str, Tensor], Any]:
        memory = model.encoder(batch.source)
        found = {MASKED: memory.states.data}
        if batch.target.follows is not None:
            found[NEXT_SENTENCE] = model.pooler(memory)
        return found, None

    def loss(
        self, model: Any, batch: Batch, score: Callable[[Tensor, Tensor], Tensor], hidden_state: Any = None
    ) -> tuple[Loss, Any]:
        (features, _), targets = self.features(model, batch, hidden_state), self.targets(batch)
        parts = {MASKED: (model.readout, score), NEXT_SENTENCE: (model.next_sentence, sentence_loss)}
        totals = {
            name: chunked_loss(*parts[name], select_positions(features[name], mask), select_positions(target, mask))
            for name, (mask, target) in targets.items()
        }
        return Loss(totals), None


def sentence_loss(out_N2: Tensor, follows_N: Tensor) -> Tensor:
    """Cross-entropy of next-sentence prediction, summed."""
    return F.cross_entropy(out_N2, follows_N, reduction="sum")
