"""Training objectives: batches, tasks (targets and features of a loss), the trained module, and the loader protocol."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from regard.device import module_device
from regard.loss import Loss, chunked_loss
from regard.sequence import Rows
from regard.spaces import Space


@dataclass(frozen=True)
class Batch(Rows):
    """Sources and targets of one training step."""

    source: Any
    """a Rows: Tokens or Images; empty for language models"""
    target: Any
    """Tokens, or (B,) classes"""
    resets_state: bool = False
    """truncated BPTT: start from a fresh hidden state instead of that of the previous batch"""


@dataclass(frozen=True)
class Task(ABC):
    """Targets of a batch, and the features that predict them; the output space has the head and the loss.

    >>> from regard.sequence import Tokens
    >>> from regard.spaces import Words
    >>> batch = Batch(Tokens.pad([[4, 5]]), Tokens.pad([[2, 7, 3]]))
    >>> NextToken(Words(8)).counts(batch)
    {'next': tensor(2)}
    """

    space: Space

    @abstractmethod
    def targets(self, batch: Batch) -> Mapping[str, tuple[Tensor, Tensor]]:
        """For each part of the loss: a mask of the positions that count, and the targets. Needs no model."""

    @abstractmethod
    def features(self, model: Any, batch: Batch, hidden_state: Any) -> tuple[Mapping[str, Tensor], Any]:
        """The model's features for each part, and the hidden state for the next batch (or None)."""

    def counts(self, batch: Batch) -> dict[str, Tensor]:
        """Number of predictions of each part of the loss."""
        return {name: mask.sum() for name, (mask, _) in self.targets(batch).items()}

    def loss(
        self, model: Any, batch: Batch, score: Callable[[Tensor, Tensor], Tensor], hidden_state: Any = None
    ) -> tuple[Loss, Any]:
        """The sum of `score` over the positions that count, per part; and the hidden state for the next batch."""
        (features, hidden_state), targets = self.features(model, batch, hidden_state), self.targets(batch)
        totals = {
            name: chunked_loss(
                model.readout, score, select_positions(features[name], mask), select_positions(target, mask)
            )
            for name, (mask, target) in targets.items()
        }
        return Loss(totals), hidden_state


def select_positions(x: Tensor, mask: Tensor) -> Tensor:
    """The rows of `x` (B, L, ...) where `mask` is True, flattened.

    >>> import torch
    >>> select_positions(torch.tensor([[1, 2], [3, 0]]), torch.tensor([[True, True], [True, False]]))
    tensor([1, 2, 3])
    """
    rows = x.flatten(0, mask.ndim - 1)
    if x.is_meta or mask.all():
        return rows
    return rows.index_select(0, mask.flatten().nonzero().squeeze(1))


class NextToken(Task):
    """Next-token prediction (or next value), for all models with a decoder."""

    def targets(self, batch: Batch) -> Mapping[str, tuple[Tensor, Tensor]]:
        _, target_BT, real_BT = batch.target.shift()
        return {"next": (real_BT, target_BT)}

    def features(self, model: Any, batch: Batch, hidden_state: Any) -> tuple[Mapping[str, Tensor], Any]:
        return {"next": model(batch.source, batch.target.shift()[0])}, None


class StatefulNextToken(NextToken):
    """Next-token prediction where a batch continues from the hidden state of the previous one, without its gradients.

    This is truncated backpropagation through time (Williams and Peng 1990). A decoder with a KV cache has no hidden
    state and starts afresh with each batch.

    >>> from regard.models.gpt import GPTConfig
    >>> from regard.sequence import Tokens
    >>> from regard.spaces import Words
    >>> model = GPTConfig(layers=1, width=8, heads=2, max_positions=8).build(Words(8), Words(8))
    >>> StatefulNextToken(Words(8)).features(model, Batch(Tokens.pad([[]]), Tokens.pad([[4, 5, 6]])), None)[1] is None
    True
    """

    def features(self, model: Any, batch: Batch, hidden_state: Any) -> tuple[Mapping[str, Tensor], Any]:
        state = model.start(batch.source) if hidden_state is None or batch.resets_state else hidden_state
        features_BTD, state = model.decoder(batch.target.shift()[0], state)
        return {"next": features_BTD}, model.decoder.hidden_state(state)


class PerSequence(Task):
    """One output per source: a class, a number, or all the numbers of a horizon. The model is a Classifier.

    >>> import torch
    >>> from regard.sequence import Tokens
    >>> from regard.spaces import Classes
    >>> PerSequence(Classes(2)).counts(Batch(Tokens.pad([[4, 5], [6]]), torch.tensor([0, 1])))
    {'whole': tensor(2)}
    """

    def targets(self, batch: Batch) -> Mapping[str, tuple[Tensor, Tensor]]:
        return {"whole": (torch.ones(len(batch.target), dtype=torch.bool, device=batch.target.device), batch.target)}

    def features(self, model: Any, batch: Batch, hidden_state: Any) -> tuple[Mapping[str, Tensor], Any]:
        return {"whole": model(batch.source)}, None


class PerToken(Task):
    """One output per token: a tag, a number, an angle. The model is a Tagger; the target is as long as the source.

    >>> from regard.sequence import Tokens
    >>> from regard.spaces import Classes
    >>> PerToken(Classes(3)).counts(Batch(Tokens.pad([[4, 5], [6]]), Tokens.pad([[0, 2], [1]])))
    {'each': tensor(3)}
    """

    def targets(self, batch: Batch) -> Mapping[str, tuple[Tensor, Tensor]]:
        return {"each": (batch.target.mask, batch.target.data)}

    def features(self, model: Any, batch: Batch, hidden_state: Any) -> tuple[Mapping[str, Tensor], Any]:
        return {"each": model(batch.source)}, None


class Objective(nn.Module):
    """Model and task as one module: what is compiled and trained.

    >>> from regard.models.gpt import GPTConfig
    >>> from regard.sequence import Tokens
    >>> from regard.spaces import Words
    >>> model = GPTConfig(layers=1, width=8, heads=2, max_positions=8).build(Words(8), Words(8))
    >>> objective = Objective(model, NextToken(Words(8)))
    >>> loss, hidden_state = objective(Batch(Tokens.pad([[]]), Tokens.pad([[2, 7, 3]])))
    >>> list(loss.totals), hidden_state
    (['next'], None)
    """

    def __init__(self, model: nn.Module, task: Task) -> None:
        super().__init__()
        self.model, self.task = model, task

    def forward(self, batch: Batch, hidden_state: Any = None) -> tuple[Loss, Any]:
        """The loss of a batch that continues from `hidden_state`, and the next hidden state.

        A batch comes from the loader on the CPU; here it is moved to the model's device.
        """
        space, batch = self.task.space, batch.to(module_device(self.model))
        return self.task.loss(self.model, batch, space.loss if self.training else space.nll, hidden_state)


class Loader(Protocol):
    """Data loader: batches in an order that is a pure function of seed, epoch and index; a position is plain JSON.

    Under truncated BPTT each row continues the same row of the previous batch, on the same process.

    >>> from regard.tasks.copying import CopyTask
    >>> loader: Loader = CopyTask(rows=2)
    >>> first, after = next(loader.train_batches(None))
    >>> second, _ = next(loader.train_batches(after))
    >>> len(first), after, first.source.data.equal(second.source.data)
    (2, {'batch': 1}, False)
    """

    def train_batches(self, position: Mapping[str, int] | None) -> Iterator[tuple[Batch, Mapping[str, int]]]:
        """This process's share of each training batch, endlessly, and the position after it."""

    def valid_batches(self) -> Iterator[Batch]:
        """This process's share of the validation data, once."""

    def batches_per_epoch(self) -> int:
        """Number of batches of the first epoch."""
