"""Scores of masked language modeling: loss and right tokens at masks, and right answers of next-sentence prediction."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from regard.device import module_device
from regard.metrics import Score, perplexity
from regard.metrics.perplexity import mean_loss
from regard.metrics.spans import accuracy_score
from regard.objective import Batch, Objective, select_positions
from regard.tasks.fill.loader import FillLoader
from regard.tasks.fill.objective import MASKED, NEXT_SENTENCE, MaskedTokens
from regard.tasks.vectors.prepare import WordFrequencies
from regard.train.validation import NonfiniteValidation

CHUNK = 1024
"""predictions whose logits are held at once"""


@dataclass(frozen=True, eq=False)
class FillTally:
    """Sums of each sequence, one row each (B,)."""

    nats: np.ndarray
    """negative log-likelihood of the tokens at masks"""
    masks: np.ndarray
    """number of masks"""
    right: np.ndarray
    """masks whose most probable token is the right one"""
    frequent: np.ndarray
    """masks where the most frequent token of the training text is the right one"""
    pairs: np.ndarray
    """1 if there is a second segment"""
    pairs_right: np.ndarray
    """1 if next-sentence prediction is right"""


@torch.no_grad()
def tally_batch(model: Any, task: MaskedTokens, batch: Batch, frequent: int) -> FillTally:
    """The sums of a batch; `frequent`: id of the most frequent token."""
    batch = batch.to(module_device(model))
    features, targets = task.features(model, batch, None)[0], task.targets(batch)
    mask_BL, ids_BL = targets[MASKED]
    target_N, row_N = select_positions(ids_BL, mask_BL), mask_BL.nonzero()[:, 0]
    parts = []
    for x_ND, target in zip(select_positions(features[MASKED], mask_BL).split(CHUNK), target_N.split(CHUNK)):
        out_NV = model.readout(x_ND).float()
        nats_N = out_NV.logsumexp(-1) - out_NV.gather(1, target[:, None]).squeeze(1)
        parts.append(torch.stack([nats_N, (out_NV.argmax(-1) == target).float()]))
    scored_2N = torch.cat(parts, 1).cpu().double()
    rows = row_N.cpu().numpy()

    def per_row(values_N: Any) -> np.ndarray:
        return np.bincount(rows, values_N, minlength=len(batch))

    pairs = pairs_right = np.zeros(len(batch))
    if NEXT_SENTENCE in targets:
        has_B, follows_B = targets[NEXT_SENTENCE]
        guess_B: Tensor = model.next_sentence(features[NEXT_SENTENCE]).argmax(-1)
        pairs, pairs_right = (x.cpu().numpy().astype(float) for x in (has_B, has_B & (guess_B == follows_B)))
    is_frequent = (target_N == frequent).cpu().numpy()
    return FillTally(
        per_row(scored_2N[0].numpy()), mask_BL.sum(1).cpu().numpy(), per_row(scored_2N[1].numpy()),
        per_row(is_frequent), pairs, pairs_right,
    )  # fmt: skip


@dataclass(frozen=True)
class FillValidation:
    """Loss and perplexity per mask, share of right tokens, and next-sentence accuracy."""

    objective: Objective
    loader: FillLoader
    samples: Callable[[], Sequence[Mapping[str, Any]]]

    def __call__(self) -> tuple[Mapping[str, float], Sequence[Mapping[str, Any]]]:
        task: Any = self.objective.task
        sums = torch.zeros(5, dtype=torch.double)
        for batch in self.loader.valid_batches():
            if len(batch):
                one = tally_batch(self.objective.model, task, batch, frequent=-1)
                columns = (one.nats, one.masks, one.right, one.pairs, one.pairs_right)
                sums += torch.tensor([float(column.sum()) for column in columns], dtype=torch.double)
        self.loader.group.all_reduce_(sums)
        nats, masks, right, pairs, pairs_right = sums.tolist()
        loss = nats / max(1, masks)
        if not math.isfinite(loss):
            raise NonfiniteValidation(f"the validation loss is {loss}")
        metrics = {"loss": loss, "ppl": math.exp(min(loss, 700.0)), "accuracy": 100 * right / max(1, masks)}
        if self.loader.task.next_sentence:
            metrics["next_sentence"] = 100 * pairs_right / max(1, pairs)
        return metrics, self.samples() if self.loader.group.is_main else ()


def eval_scores(tallies: Sequence[FillTally], frequent: str) -> list[Score]:
    """Scores of an evaluation, with intervals from resampled sequences; `frequent`: the most frequent token."""
    names = ("nats", "masks", "right", "frequent", "pairs", "pairs_right")
    nats, masks, right, unigram, pairs, pairs_right = (
        np.concatenate([getattr(tally, name) for tally in tallies]).tolist() for name in names
    )
    counts = [int(count) for count in masks]
    found = [
        accuracy_score("accuracy", right, counts, "unit:mask"),
        accuracy_score("baseline", unigram, counts, f'unit:mask|accuracy of the most frequent token, "{frequent}"'),
        perplexity(nats, counts, "mask"),
        mean_loss(list(zip(nats, counts, strict=True)), "unit:mask"),
    ]
    if any(pairs):
        paired = [(r, int(n)) for r, n in zip(pairs_right, pairs, strict=True) if n]
        rights, ones = [r for r, _ in paired], [n for _, n in paired]
        found.append(accuracy_score("next_sentence", rights, ones, "unit:pair"))
    return found


def most_frequent(frequencies: WordFrequencies) -> int:
    """Id of the most frequent token of the training text."""
    return int(frequencies.counts.argmax())
