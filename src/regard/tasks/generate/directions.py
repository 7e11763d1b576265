"""Language models in both directions (ELMo): their batches, their loss, and their validation.

A batch has two windows: `target` is read forwards, and `source` is a window of the reversed text. Each continues where
its own previous window ended, so both directions carry their hidden state.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from regard.config import plain
from regard.distributed import ProcessGroup
from regard.errors import ConfigError
from regard.loss import Loss
from regard.models.base import ModelConfigBase
from regard.nn.sampled_softmax import sampled_softmax_loss
from regard.objective import Batch, Loader, NextToken, Objective, select_positions
from regard.spaces import SpelledWords
from regard.tasks.generate.loader import StreamLoader, empty_source, stream_windows
from regard.train.validation import NonfiniteValidation


def check_bidirectional(model: ModelConfigBase, data: str, order: str, label_smoothing: float) -> None:
    """Refuse settings that do not fit a model that reads the characters of words in both directions."""
    samples = plain(model).get("samples", 0)
    kind = f'model.kind = "{model.kind}"'
    if data == "numbers":
        raise ConfigError(f"{kind} reads the characters of words, and the data are numbers; use rnnlm")
    if order == "shuffled":
        raise ConfigError(f'{kind} carries its hidden state from window to window; task.order = "shuffled" does not')
    if samples and label_smoothing:
        raise ConfigError(
            f"train.label_smoothing = {label_smoothing} spreads over all words, and model.samples = {samples} "
            "draws some of them; set one of them to 0"
        )


DIRECTIONS = ("forward", "backward")
"""parts of the loss"""


@dataclass(frozen=True)
class BidirectionalStreamLoader(StreamLoader):
    """Windows of a text and of the same text reversed.

    >>> text = np.arange(12, dtype=np.uint16)
    >>> batch = BidirectionalStreamLoader(text, text, window=3, rows=2).batch(0, 0)
    >>> batch.target.data.tolist(), batch.source.data.tolist()
    ([[0, 1, 2, 3], [5, 6, 7, 8]], [[11, 10, 9, 8], [6, 5, 4, 3]])
    """

    def batch(self, epoch: int, number: int) -> Batch:
        """Window `number` of each of this process's streams, in both directions."""
        assert isinstance(self.train, np.ndarray)
        backward = replace(self, train=self.train[::-1])
        return replace(super().batch(epoch, number), source=StreamLoader.batch(backward, epoch, number).target)

    def valid_batches(self) -> Iterator[Batch]:
        """The validation data once in each direction."""
        assert isinstance(self.valid, np.ndarray)
        return bidirectional_windows(self.valid, self.window, self.rows, self.group)


def bidirectional_windows(
    sequence: np.ndarray,
    window: int,
    rows: int,
    group: ProcessGroup = ProcessGroup(),  # noqa: B008
) -> Iterator[Batch]:
    """A sequence once in each direction."""
    both = (stream_windows(part, window, rows, group) for part in (sequence, sequence[::-1]))
    for forward, backward in zip(*both, strict=True):
        yield replace(forward, source=backward.target)


class BidirectionalNextToken(NextToken):
    """Next-token prediction in both directions; the loss is their mean, and each part continues its own stream."""

    def targets(self, batch: Batch) -> Mapping[str, tuple[Tensor, Tensor]]:
        found = {}
        for name, tokens in zip(DIRECTIONS, (batch.target, batch.source), strict=True):
            _, target_BT, real_BT = tokens.shift()
            found[name] = real_BT, target_BT
        return found

    def features(self, model: Any, batch: Batch, hidden_state: Any) -> tuple[Mapping[str, Tensor], Any]:
        found, ends = {}, []
        decoders = model.decoder, model.backward_decoder
        memory = model.encoder(empty_source(len(batch.target)).to(batch.target.device))
        for i, (name, tokens) in enumerate(zip(DIRECTIONS, (batch.target, batch.source), strict=True)):
            fresh = hidden_state is None or batch.resets_state
            state = decoders[i].start(memory, 0) if fresh else hidden_state[i]
            found[name], end = decoders[i](tokens.shift()[0], state)
            ends.append(decoders[i].hidden_state(end))
        return found, tuple(ends)

    def loss(
        self, model: Any, batch: Batch, score: Callable[[Tensor, Tensor], Tensor], hidden_state: Any = None
    ) -> tuple[Loss, Any]:
        """Half the sum of `score` in each direction; in training over a sampled softmax, if the model has one."""
        if not (model.training and model.samples):
            found, hidden_state = super().loss(model, batch, score, hidden_state)
            return Loss({name: total / 2 for name, total in found.totals.items()}), hidden_state
        features, hidden_state = self.features(model, batch, hidden_state)
        weight_VD, totals = model.readout.weight, {}
        for name, (mask, target) in self.targets(batch).items():
            target_N = SpelledWords.softmax_targets(select_positions(target, mask), len(weight_VD))
            total = sampled_softmax_loss(select_positions(features[name], mask), target_N, weight_VD, model.samples)
            totals[name] = total / 2
        return Loss(totals), hidden_state


@torch.no_grad()
def bidirectional_validation(objective: Objective, loader: Loader, group: ProcessGroup) -> Mapping[str, float]:
    """Validation loss, the mean of both directions; perplexity of both, and of each."""
    sums = {f"{name} {what}": torch.zeros((), dtype=torch.double) for name in DIRECTIONS for what in ("nll", "count")}
    hidden_state = None
    for batch in loader.valid_batches():
        if len(batch):
            loss, hidden_state = objective(batch, hidden_state)
            for name, count in objective.task.counts(batch).items():
                sums[f"{name} nll"] += 2 * loss.totals[name].cpu().double()
                sums[f"{name} count"] += count
    total = group.sum(sums)
    nats = {name: float(total[f"{name} nll"] / total[f"{name} count"].clamp(min=1)) for name in DIRECTIONS}
    mean = sum(nats.values()) / 2
    if not math.isfinite(mean):
        raise NonfiniteValidation(f"the validation loss is {mean}")
    return {"loss": mean, "ppl": exponential(mean), **{f"ppl_{name}": exponential(nats[name]) for name in DIRECTIONS}}


def exponential(nats: float) -> float:
    """The perplexity of a mean loss; no loss overflows."""
    return math.exp(min(nats, 700.0))
