"""What is asked of a model: the one place where the parts of a loss are named, and the one module that is trained."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from regard.loss import Loss, projected
from regard.sequence import Rows
from regard.spaces import Space


@dataclass(frozen=True)
class Batch(Rows):
    """Sources and what is wanted of them.

    >>> from regard.sequence import Tokens
    >>> len(Batch(Tokens.of([[4, 5], [6]]), Tokens.of([[2, 7, 3], [2, 3]])))
    2
    """

    source: Any
    """a Rows: Tokens, Images, or nothing"""
    target: Any
    """Tokens, or (B,) classes"""
    begins: bool = False
    """of a stream: whether it starts anew, and so goes on from nothing"""


@dataclass(frozen=True)
class Task(ABC):
    """What a batch asks, and the features that answer it; the head and the loss are the space's.

    >>> from regard.sequence import Tokens
    >>> from regard.spaces import Words
    >>> batch = Batch(Tokens.of([[4, 5]]), Tokens.of([[2, 7, 3]]))
    >>> Continue(Words(8)).counts(batch)
    {'next': tensor(2)}
    """

    space: Space

    @abstractmethod
    def asked(self, batch: Batch) -> Mapping[str, tuple[Tensor, Tensor]]:
        """For each part of the loss: where a prediction counts, and what is wanted there. Needs no model."""

    @abstractmethod
    def features(self, model: Any, batch: Batch, carry: Any) -> tuple[Mapping[str, Tensor], Any]:
        """The model's features for each part, and what the next batch may go on from (None: nothing)."""

    def counts(self, batch: Batch) -> dict[str, Tensor]:
        """How many predictions each part of the loss has."""
        return {name: where.sum() for name, (where, _) in self.asked(batch).items()}

    def loss(
        self, model: Any, batch: Batch, score: Callable[[Tensor, Tensor], Tensor], carry: Any = None
    ) -> tuple[Loss, Any]:
        """The sum of `score` over the places that count, part by part; and the carry for the next batch."""
        (found, carry), asked = self.features(model, batch, carry), self.asked(batch)
        totals = {
            name: projected(model.readout, score, flat(found[name], where), flat(wanted, where))
            for name, (where, wanted) in asked.items()
        }
        return Loss(totals), carry


def flat(x: Tensor, where: Tensor) -> Tensor:
    """The rows of `x` (B, L, ...) where a prediction counts, one after the other.

    >>> import torch
    >>> flat(torch.tensor([[1, 2], [3, 0]]), torch.tensor([[True, True], [True, False]]))
    tensor([1, 2, 3])
    """
    if x.is_meta:
        return x.flatten(0, where.ndim - 1)
    return x.flatten(0, where.ndim - 1).index_select(0, where.flatten().nonzero().squeeze(1))


class Continue(Task):
    """Next token, next value: anything with a decoder.

    >>> from regard.spaces import Words
    >>> Continue(Words(8)).space.size
    8
    """

    def asked(self, batch: Batch) -> Mapping[str, tuple[Tensor, Tensor]]:
        _, wanted_BT, real_BT = batch.target.shifted()
        return {"next": (real_BT, wanted_BT)}

    def features(self, model: Any, batch: Batch, carry: Any) -> tuple[Mapping[str, Tensor], Any]:
        return {"next": model(batch.source, batch.target.shifted()[0])}, None


class Stream(Continue):
    """Continue, where a batch goes on from the state in which the one before it stopped; gradients do not.

    This is truncated backpropagation through time (Williams and Peng 1990). A decoder that has nothing to hand on,
    such as one that attends to all it has read, starts anew with each batch.

    >>> from regard.models.gpt import GPTConfig
    >>> from regard.sequence import Tokens
    >>> from regard.spaces import Words
    >>> model = GPTConfig(layers=1, width=8, heads=2, longest=8).build(Words(8), Words(8))
    >>> Stream(Words(8)).features(model, Batch(Tokens.of([[]]), Tokens.of([[4, 5, 6]])), None)[1] is None
    True
    """

    def features(self, model: Any, batch: Batch, carry: Any) -> tuple[Mapping[str, Tensor], Any]:
        state = model.start(batch.source) if carry is None or batch.begins else carry
        features_BTD, state = model.decoder(batch.target.shifted()[0], state)
        return {"next": features_BTD}, model.decoder.carry(state)


class Whole(Task):
    """One answer for the whole source: a class, a number, or all the numbers of a horizon. The model is a Classifier.

    >>> import torch
    >>> from regard.sequence import Tokens
    >>> from regard.spaces import Classes
    >>> Whole(Classes(2)).counts(Batch(Tokens.of([[4, 5], [6]]), torch.tensor([0, 1])))
    {'whole': tensor(2)}
    """

    def asked(self, batch: Batch) -> Mapping[str, tuple[Tensor, Tensor]]:
        return {"whole": (torch.ones(len(batch.target), dtype=torch.bool, device=batch.target.device), batch.target)}

    def features(self, model: Any, batch: Batch, carry: Any) -> tuple[Mapping[str, Tensor], Any]:
        return {"whole": model(batch.source)}, None


class Each(Task):
    """One answer a place: a tag, a number, an angle. The model is a Tagger; the target is as long as the source.

    >>> from regard.sequence import Tokens
    >>> from regard.spaces import Classes
    >>> Each(Classes(3)).counts(Batch(Tokens.of([[4, 5], [6]]), Tokens.of([[0, 2], [1]])))
    {'each': tensor(3)}
    """

    def asked(self, batch: Batch) -> Mapping[str, tuple[Tensor, Tensor]]:
        return {"each": (batch.target.mask, batch.target.data)}

    def features(self, model: Any, batch: Batch, carry: Any) -> tuple[Mapping[str, Tensor], Any]:
        return {"each": model(batch.source)}, None


class Objective(nn.Module):
    """Model and task as one module: the only thing that is wrapped, compiled or shared out among processes.

    >>> from regard.models.gpt import GPTConfig
    >>> from regard.sequence import Tokens
    >>> from regard.spaces import Words
    >>> model = GPTConfig(layers=1, width=8, heads=2, longest=8).build(Words(8), Words(8))
    >>> objective = Objective(model, Continue(Words(8)))
    >>> loss, carry = objective(Batch(Tokens.of([[]]), Tokens.of([[2, 7, 3]])))
    >>> list(loss.totals), carry
    (['next'], None)
    """

    def __init__(self, model: nn.Module, task: Task) -> None:
        super().__init__()
        self.model, self.task = model, task

    def forward(self, batch: Batch, carry: Any = None) -> tuple[Loss, Any]:
        """The loss of a batch that goes on from `carry`, and what the next batch goes on from."""
        space = self.task.space
        return self.task.loss(self.model, batch, space.loss if self.training else space.surprise, carry)


class Feed(Protocol):
    """Batches in an order that is a pure function of seed, epoch and index; a position is plain JSON.

    Where batches go on from one another, each row goes on from the same row, on the same process.

    >>> from regard.tasks.copying import Copying
    >>> feed: Feed = Copying(rows=2)
    >>> first, after = next(feed.stream(None))
    >>> second, _ = next(feed.stream(after))
    >>> len(first), after, first.source.data.equal(second.source.data)
    (2, {'batch': 1}, False)
    """

    def stream(self, position: Mapping[str, int] | None) -> Iterator[tuple[Batch, Mapping[str, int]]]:
        """This process's share of each training batch, for ever, and the position after it."""

    def valid(self) -> Iterator[Batch]:
        """This process's share of the validation data, once."""

    def epoch(self) -> int:
        """How many batches the first epoch has."""


class Tell(Protocol):
    """How long work says how far it is: what is done, how much of it, out of how much (0: unknown).

    >>> told = []
    >>> tell: Tell = lambda what, done, total: told.append(f"{what} {done}/{total}")
    >>> tell("reading", 3, 7)
    >>> told
    ['reading 3/7']
    """

    def __call__(self, what: str, done: int, total: int) -> None: ...


def silent(what: str, done: int, total: int) -> None:
    """Tell nobody.

    >>> silent("reading", 3, 7)
    """
