"""word2vec: skip-gram and CBOW with negative sampling (Mikolov et al. 2013).

As in the paper: frequent words are subsampled before windows are cut, so that windows reach further; the width of each
window is drawn from 1 to `window`; negative samples are drawn by frequency to the power of 3/4. Different here: the
negative samples of a batch are drawn once and shared by all its predictions, each with weight
`negatives / shared_negatives`, also where one equals the predicted word. The expected loss is the paper's, and all
scores are matrix products: of a segment's words with one another and with the negative samples. Windows end at the
borders of segments of 128 words, which each epoch cuts elsewhere. The gradient of CBOW is that of the mean; the
optimizer is the recipe's.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from regard.loss import Loss
from regard.objective import Batch, Task
from regard.sequence import Rows


@dataclass(frozen=True)
class ContextPairs(Rows):
    """Word-context pairs of each row, and the negative samples of the batch."""

    mask: Tensor
    """(B, L, L): whether the second word is in the context window of the first"""
    negatives: Tensor
    """(B, K): ids of the negative samples, the same in each row"""


@dataclass(frozen=True)
class NegativeSampling(Task):
    """Negative-sampling loss: -log s(h.w) - negatives * mean over the negative samples n of log s(-h.n), h the input.

    All scores are matrix products: of a row's words with one another, and with the batch's negative samples.
    """

    negatives: int = 5

    @abstractmethod
    def scores(self, inputs_BLD: Tensor, outputs_BLD: Tensor) -> Tensor:
        """(B, L, G): scores of the predictions at each position, in the order of `targets`."""

    def loss(
        self, model: Any, batch: Batch, score: Callable[[Tensor, Tensor], Tensor], hidden_state: Any = None
    ) -> tuple[Loss, Any]:
        """The sum over all predictions; `score`, which needs logits of the whole vocabulary, is not used."""
        ids_BL, negatives_K = batch.source.data, batch.target.negatives[0]
        inputs_BLD = self.features(model, batch, hidden_state)[0]["context"]
        ids_N = torch.cat([ids_BL.flatten(), negatives_K])
        words_ND = F.embedding(ids_N, model.readout.weight)  # one lookup: one gradient for both
        outputs_BLD, negatives_KD = words_ND[: ids_BL.numel()].view(inputs_BLD.shape), words_ND[ids_BL.numel() :]
        scores_BLG, mask_BLG = self.scores(inputs_BLD, outputs_BLD), self.targets(batch)["context"][0]
        positive = (F.softplus(-scores_BLG) * mask_BLG).sum()
        noise_N = F.softplus(inputs_BLD.flatten(0, 1) @ negatives_KD.T).sum(1)
        negative = (noise_N * mask_BLG.sum(-1).flatten()).sum()
        return Loss({"context": positive + negative * (self.negatives / len(negatives_K))}), None


class SkipGram(NegativeSampling):
    """Skip-gram: predict each context word from a word."""

    def targets(self, batch: Batch) -> Mapping[str, tuple[Tensor, Tensor]]:
        return {"context": (batch.target.mask, batch.source.data[:, None].expand_as(batch.target.mask))}

    def scores(self, inputs_BLD: Tensor, outputs_BLD: Tensor) -> Tensor:
        return inputs_BLD @ outputs_BLD.mT

    def features(self, model: Any, batch: Batch, hidden_state: Any) -> tuple[Mapping[str, Tensor], Any]:
        return {"context": model(batch.source)}, None


class CBOW(NegativeSampling):
    """Continuous bag of words: predict a word from the mean of its context words."""

    def targets(self, batch: Batch) -> Mapping[str, tuple[Tensor, Tensor]]:
        return {"context": (batch.target.mask.any(-1, keepdim=True), batch.source.data[:, :, None])}

    def scores(self, inputs_BLD: Tensor, outputs_BLD: Tensor) -> Tensor:
        return (inputs_BLD * outputs_BLD).sum(-1, keepdim=True)

    def features(self, model: Any, batch: Batch, hidden_state: Any) -> tuple[Mapping[str, Tensor], Any]:
        return {"context": model(batch.source, batch.target.mask)}, None


METHODS: dict[str, type[SkipGram] | type[CBOW]] = {"skipgram": SkipGram, "cbow": CBOW}
