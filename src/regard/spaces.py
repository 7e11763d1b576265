"""A space owns what goes in (embed), what comes out (head), the loss, and how a prediction becomes the next input.

A forecaster is a decoder over another space: no loss function or rollout of its own.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.sequence import PAD


class Readable(ABC):
    """What a model reads at one place.

    >>> Words(7).embed(4)
    Embedding(7, 4)
    """

    @abstractmethod
    def embed(self, width: int) -> nn.Module:
        """Thing -> vector."""


class Space(Readable):
    """What a model reads or says at one place.

    >>> Words(7).next(torch.eye(7)[4:5])
    tensor([4])
    """

    @abstractmethod
    def head(self, width: int) -> nn.Module:
        """Vector -> logits, or the parameters of another distribution."""

    def tie(self, embed: nn.Module, head: nn.Module) -> None:
        """Share weights, where what goes in and what comes out are the same things; elsewhere do nothing."""
        return

    @abstractmethod
    def loss(self, out_NC: Tensor, wanted_N: Tensor) -> Tensor:
        """What training minimises, summed over the predictions."""

    def surprise(self, out_NC: Tensor, wanted_N: Tensor) -> Tensor:
        """What validation reports, summed: the loss without smoothing."""
        return self.loss(out_NC, wanted_N)

    @abstractmethod
    def next(self, out_NC: Tensor) -> Tensor:
        """The prediction as the next input: the mode."""

    def draw(self, out_NC: Tensor, generator: torch.Generator) -> Tensor:
        """The next input, drawn from what is predicted; where no doubt is predicted, the mode."""
        return self.next(out_NC)


@dataclass(frozen=True)
class Classes(Space):
    """One of `size` things.

    >>> Classes(3).next(torch.tensor([[0.1, 0.7, 0.2]]))
    tensor([1])
    """

    size: int
    smoothing: float = 0.0

    def embed(self, width: int) -> nn.Module:
        return nn.Embedding(self.size, width)

    def head(self, width: int) -> nn.Module:
        return nn.Linear(width, self.size)

    def loss(self, out_NC: Tensor, wanted_N: Tensor) -> Tensor:
        return F.cross_entropy(out_NC, wanted_N, reduction="sum", label_smoothing=self.smoothing)

    def surprise(self, out_NC: Tensor, wanted_N: Tensor) -> Tensor:
        return F.cross_entropy(out_NC, wanted_N, reduction="sum")

    def next(self, out_NC: Tensor) -> Tensor:
        return out_NC.argmax(-1)

    def draw(self, out_NC: Tensor, generator: torch.Generator) -> Tensor:
        return torch.multinomial(out_NC.softmax(-1), 1, generator=generator).squeeze(1)


class Words(Classes):
    """The vocabulary. The head has no bias, so that it can be tied to the embedding; <PAD> is never wanted.

    >>> Words(7).head(4)
    Linear(in_features=4, out_features=7, bias=False)
    """

    def embed(self, width: int) -> nn.Module:
        embedding = nn.Embedding(self.size, width)
        if not embedding.weight.is_meta:
            nn.init.normal_(embedding.weight, std=width**-0.5)
        return embedding

    def head(self, width: int) -> nn.Module:
        return nn.Linear(width, self.size, bias=False)

    def tie(self, embed: nn.Module, head: nn.Module) -> None:
        head.weight = embed.weight

    def loss(self, out_NC: Tensor, wanted_N: Tensor) -> Tensor:
        if self.smoothing == 0:
            return self.surprise(out_NC, wanted_N)
        return _Smoothed.apply(out_NC, wanted_N, self.smoothing)


@dataclass(frozen=True)
class Vectors(Words):
    """The vocabulary, each word with a vector of `table` numbers that is then brought to a model's width.

    Word vectors of one's own have the width that they have.

    >>> Vectors(7, table=3).embed(4)
    Sequential(
      (0): Embedding(7, 3)
      (1): Linear(in_features=3, out_features=4, bias=False)
    )
    """

    table: int = 50

    def embed(self, width: int) -> nn.Module:
        embedding = super().embed(self.table)
        return embedding if width == self.table else nn.Sequential(embedding, nn.Linear(self.table, width, bias=False))

    def tie(self, embed: nn.Module, head: nn.Module) -> None:
        """Nothing: what goes in and what comes out may differ in width."""
        return


class _Smoothed(torch.autograd.Function):
    """Cross-entropy against 1 - e on the wanted word and e spread over all words but <PAD> (Szegedy et al. 2016).

    Written out, because autograd's own makes three passes more over the logits; <PAD> gets no share, as it can
    never be wanted.
    """

    @staticmethod
    def forward(ctx: Any, out_NC: Tensor, wanted_N: Tensor, smoothing: float) -> Tensor:
        out_NC = out_NC if out_NC.dtype == torch.float64 else out_NC.float()
        share_NC = out_NC.softmax(-1)
        # the one pass of exponentials serves loss and gradient: the largest share is never too small for its logarithm
        most_N1, at_N1 = out_NC.max(-1, keepdim=True)
        total_N1 = most_N1 - share_NC.gather(1, at_N1).log()  # log of the sum of exponentials
        right = (out_NC.gather(1, wanted_N[:, None]) - total_N1).sum()
        spread = (out_NC.sum(1) - out_NC[:, PAD] - (out_NC.shape[1] - 1) * total_N1.squeeze(1)).sum()
        ctx.save_for_backward(share_NC, wanted_N)
        ctx.smoothing, ctx.dtype = smoothing, out_NC.dtype
        return -((1 - smoothing) * right + smoothing / (out_NC.shape[1] - 1) * spread)

    @staticmethod
    def backward(ctx: Any, *factor: Tensor) -> Any:
        share_NC, wanted_N = ctx.saved_tensors
        spread = ctx.smoothing / (share_NC.shape[1] - 1)
        grad_NC = share_NC - spread
        grad_NC[:, PAD] += spread
        grad_NC.scatter_add_(1, wanted_N[:, None], grad_NC.new_full((len(wanted_N), 1), ctx.smoothing - 1))
        return grad_NC.mul_(factor[0]).to(ctx.dtype), None, None


@dataclass(frozen=True)
class Values(Space):
    """Real numbers, one point each: squared error.

    >>> Values(1).loss(torch.zeros(2, 1), torch.full((2, 1), 3.0))
    tensor(18.)
    """

    features: int = 1

    def embed(self, width: int) -> nn.Module:
        return nn.Linear(self.features, width)

    def head(self, width: int) -> nn.Module:
        return nn.Linear(width, self.features)

    def loss(self, out_NC: Tensor, wanted_N: Tensor) -> Tensor:
        return F.mse_loss(out_NC, wanted_N, reduction="sum")

    def next(self, out_NC: Tensor) -> Tensor:
        return out_NC


SHARPEST = -7.0
"""The log deviation below which no doubt falls: numbers that repeat exactly would make it fall for ever."""


class Gaussian(Values):
    """Real numbers, each with its own doubt: the head gives mean and log deviation.

    >>> Gaussian(1).next(torch.tensor([[3.0, 0.0]]))
    tensor([[3.]])
    """

    def head(self, width: int) -> nn.Module:
        return nn.Linear(width, 2 * self.features)

    @staticmethod
    def parts(out_NC: Tensor) -> tuple[Tensor, Tensor]:
        """The middle of each prediction, and the logarithm of its doubt."""
        middle_NF, log_NF = out_NC.chunk(2, -1)
        return middle_NF, log_NF.clamp(min=SHARPEST)

    def loss(self, out_NC: Tensor, wanted_N: Tensor) -> Tensor:
        mean_NF, log_NF = self.parts(out_NC)
        return (((wanted_N - mean_NF) / log_NF.exp()).square() / 2 + log_NF + math.log(2 * math.pi) / 2).sum()

    def next(self, out_NC: Tensor) -> Tensor:
        return out_NC.chunk(2, -1)[0]

    def draw(self, out_NC: Tensor, generator: torch.Generator) -> Tensor:
        mean_NF, log_NF = self.parts(out_NC)
        return mean_NF + log_NF.exp() * torch.randn(mean_NF.shape, generator=generator, dtype=mean_NF.dtype)


class Medians(Values):
    """Real numbers, one point each: absolute error, so that a stray value counts no more than it is off.

    >>> Medians(1).loss(torch.zeros(2, 1), torch.full((2, 1), 3.0))
    tensor(6.)
    """

    def loss(self, out_NC: Tensor, wanted_N: Tensor) -> Tensor:
        return F.l1_loss(out_NC, wanted_N, reduction="sum")


class Laplace(Gaussian):
    """Real numbers, each with its own doubt, and stray values now and then: the head gives median and log scale.

    >>> Laplace(1).loss(torch.tensor([[3.0, 0.0]]), torch.tensor([[5.0]]))
    tensor(2.6931)
    """

    def loss(self, out_NC: Tensor, wanted_N: Tensor) -> Tensor:
        median_NF, log_NF = self.parts(out_NC)
        return ((wanted_N - median_NF).abs() / log_NF.exp() + log_NF + math.log(2)).sum()

    def draw(self, out_NC: Tensor, generator: torch.Generator) -> Tensor:
        median_NF, log_NF = self.parts(out_NC)
        half_NF = torch.rand(median_NF.shape, generator=generator, dtype=median_NF.dtype) - 0.5
        return median_NF - log_NF.exp() * half_NF.sign() * torch.log1p(-2 * half_NF.abs())


class Compass(nn.Module):
    """Angles go in as points on the circle, so that 0 and 2 pi are one.

    >>> compass = Compass(1, 4)
    >>> torch.allclose(compass(torch.tensor([[0.0]])), compass(torch.tensor([[2 * math.pi]])), atol=1e-5)
    True
    """

    def __init__(self, features: int, width: int) -> None:
        super().__init__()
        self.linear = nn.Linear(2 * features, width)

    def forward(self, angles: Tensor) -> Tensor:
        return self.linear(torch.cat([angles.cos(), angles.sin()], -1))


class Angles(Values):
    """Angles in radians; the head gives a direction in the plane, the loss is 1 - cos(difference).

    >>> Angles(1).next(torch.tensor([[0.0, 2.0]]))
    tensor([[1.5708]])
    """

    def embed(self, width: int) -> nn.Module:
        return Compass(self.features, width)

    def head(self, width: int) -> nn.Module:
        return nn.Linear(width, 2 * self.features)

    def loss(self, out_NC: Tensor, wanted_N: Tensor) -> Tensor:
        return (1 - torch.cos(self.next(out_NC) - wanted_N)).sum()

    def next(self, out_NC: Tensor) -> Tensor:
        x_NF, y_NF = out_NC.chunk(2, -1)
        return torch.atan2(y_NF, x_NF)
