"""Input and output spaces: embedding, output head, loss, and how a prediction becomes the next input.

Tokens, classes and real values differ in their space only: models, training and decoding are the same.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.sequence import PAD, UNK


class InputSpace(ABC):
    """What a model reads at one position."""

    @abstractmethod
    def embed(self, width: int) -> nn.Module:
        """The input embedding."""


@dataclass(frozen=True)
class Pixels:
    """Images of one size: what a vision model reads."""

    channels: int
    height: int
    width: int


class Space(InputSpace):
    """What a model reads or predicts at one position."""

    @abstractmethod
    def head(self, width: int) -> nn.Module:
        """The output projection: vector -> logits, or the parameters of another distribution."""

    def tie(self, embed: nn.Module, head: nn.Module) -> None:
        """Tie the weights of embedding and head, where both are over the same vocabulary; elsewhere do nothing."""
        return

    @abstractmethod
    def loss(self, out_NC: Tensor, target_N: Tensor) -> Tensor:
        """The training loss, summed over the predictions; with label smoothing where there is any."""

    def nll(self, out_NC: Tensor, target_N: Tensor) -> Tensor:
        """Negative log-likelihood, summed, as validation reports it: the loss without label smoothing."""
        return self.loss(out_NC, target_N)

    @abstractmethod
    def mode(self, out_NC: Tensor) -> Tensor:
        """The mode of the predicted distribution, as the next input."""

    def sample(self, out_NC: Tensor, generator: torch.Generator) -> Tensor:
        """A sample of the predicted distribution; of point predictions, the mode.

        It is drawn on the generator's device: one of the CPU gives the same numbers whatever the model's device.
        """
        return self.mode(out_NC)


@dataclass(frozen=True)
class Classes(Space):
    """One of `size` classes."""

    size: int
    smoothing: float = 0.0

    def embed(self, width: int) -> nn.Module:
        return nn.Embedding(self.size, width)

    def head(self, width: int) -> nn.Module:
        return nn.Linear(width, self.size)

    def loss(self, out_NC: Tensor, target_N: Tensor) -> Tensor:
        return F.cross_entropy(out_NC, target_N, reduction="sum", label_smoothing=self.smoothing)

    def nll(self, out_NC: Tensor, target_N: Tensor) -> Tensor:
        return F.cross_entropy(out_NC, target_N, reduction="sum")

    def mode(self, out_NC: Tensor) -> Tensor:
        return out_NC.argmax(-1)

    def sample(self, out_NC: Tensor, generator: torch.Generator) -> Tensor:
        prob_NC = out_NC.softmax(-1).to(generator.device)
        return torch.multinomial(prob_NC, 1, generator=generator).squeeze(1).to(out_NC.device)


class Words(Classes):
    """The tokens of a vocabulary. The head has no bias, so that it can be tied to the embedding; <PAD> is no target."""

    def embed(self, width: int) -> nn.Module:
        embedding = nn.Embedding(self.size, width)
        if not embedding.weight.is_meta:
            nn.init.normal_(embedding.weight, std=width**-0.5)
        return embedding

    def head(self, width: int) -> nn.Module:
        return nn.Linear(width, self.size, bias=False)

    def tie(self, embed: nn.Module, head: nn.Module) -> None:
        head.weight = embed.weight

    def loss(self, out_NC: Tensor, target_N: Tensor) -> Tensor:
        if self.smoothing == 0:
            return self.nll(out_NC, target_N)
        return _LabelSmoothing.apply(out_NC, target_N, self.smoothing)


@dataclass(frozen=True)
class FactorizedWords(Words):
    """Tokens with embeddings of width `table`, projected to the model's width: for pretrained word vectors."""

    table: int = 50

    def embed(self, width: int) -> nn.Module:
        embedding = super().embed(self.table)
        return embedding if width == self.table else nn.Sequential(embedding, nn.Linear(self.table, width, bias=False))

    def tie(self, embed: nn.Module, head: nn.Module) -> None:
        """Nothing: embedding and head differ in width."""
        return


@dataclass(frozen=True)
class SpelledWords(Words):
    """Tokens with their strings, for models that read characters; one beyond the softmax is predicted as <UNK>.

    >>> out = torch.tensor([[0.0, 9.0]])
    >>> torch.equal(SpelledWords(4).nll(out, torch.tensor([3])), SpelledWords(4).nll(out, torch.tensor([UNK])))
    True
    """

    vocabulary: Sequence[str] = field(default=(), repr=False, compare=False)
    """the token of each id"""

    def loss(self, out_NC: Tensor, target_N: Tensor) -> Tensor:
        return super().loss(out_NC, self.softmax_targets(target_N, out_NC.shape[1]))

    def nll(self, out_NC: Tensor, target_N: Tensor) -> Tensor:
        return super().nll(out_NC, self.softmax_targets(target_N, out_NC.shape[1]))

    @staticmethod
    def softmax_targets(target_N: Tensor, size: int) -> Tensor:
        """The targets of a softmax over the first `size` tokens."""
        return torch.where(target_N < size, target_N, UNK)


@dataclass(frozen=True)
class SpelledInput(InputSpace):
    """Words with their spellings, (B, L, 1 + C): a word id, then the ids of its characters (nn/spelling.py).

    A word without an id of its own is read by its characters.
    """

    words: int
    """number of word ids"""

    def embed(self, width: int) -> nn.Module:
        return WordIdEmbedding(Words(self.words).embed(width))


class WordIdEmbedding(nn.Module):
    """Embedding of the word ids of spelled words: (B, L, 1 + C) -> (B, L, width)."""

    def __init__(self, words: nn.Module) -> None:
        super().__init__()
        self.words = words

    def forward(self, ids_BLC: Tensor) -> Tensor:
        return self.words(ids_BLC[..., 0])


class _LabelSmoothing(torch.autograd.Function):
    """Label-smoothed cross-entropy: 1 - e on the target, e spread over all tokens but <PAD> (Szegedy et al. 2016).

    Written out, because autograd makes three more passes over the logits; <PAD> gets no share: it is never a target.
    """

    @staticmethod
    def forward(ctx: Any, out_NC: Tensor, target_N: Tensor, smoothing: float) -> Tensor:
        out_NC = out_NC if out_NC.dtype == torch.float64 else out_NC.float()
        prob_NC = out_NC.softmax(-1)
        # one pass of exponentials serves loss and gradient: the largest probability never underflows
        max_N1, at_N1 = out_NC.max(-1, keepdim=True)
        total_N1 = max_N1 - prob_NC.gather(1, at_N1).log()  # log of the sum of exponentials
        right = (out_NC.gather(1, target_N[:, None]) - total_N1).sum()
        spread = (out_NC.sum(1) - out_NC[:, PAD] - (out_NC.shape[1] - 1) * total_N1.squeeze(1)).sum()
        ctx.save_for_backward(prob_NC, target_N)
        ctx.smoothing, ctx.dtype = smoothing, out_NC.dtype
        return -((1 - smoothing) * right + smoothing / (out_NC.shape[1] - 1) * spread)

    @staticmethod
    def backward(ctx: Any, *factor: Tensor) -> Any:
        prob_NC, target_N = ctx.saved_tensors
        spread = ctx.smoothing / (prob_NC.shape[1] - 1)
        grad_NC = prob_NC - spread
        grad_NC[:, PAD] += spread
        grad_NC.scatter_add_(1, target_N[:, None], grad_NC.new_full((len(target_N), 1), ctx.smoothing - 1))
        return grad_NC.mul_(factor[0]).to(ctx.dtype), None, None


@dataclass(frozen=True)
class Values(Space):
    """Real numbers as point predictions, with squared error."""

    features: int = 1

    def embed(self, width: int) -> nn.Module:
        return nn.Linear(self.features, width)

    def head(self, width: int) -> nn.Module:
        return nn.Linear(width, self.features)

    def loss(self, out_NC: Tensor, target_N: Tensor) -> Tensor:
        return F.mse_loss(out_NC, target_N, reduction="sum")

    def mode(self, out_NC: Tensor) -> Tensor:
        return out_NC


MIN_LOG_SCALE = -7.0
"""lower bound of the predicted log scale: on exactly repeating numbers it would fall for ever"""


class Gaussian(Values):
    """Real numbers with a normal distribution: the head gives mean and log standard deviation."""

    def head(self, width: int) -> nn.Module:
        return nn.Linear(width, 2 * self.features)

    @staticmethod
    def location_scale(out_NC: Tensor) -> tuple[Tensor, Tensor]:
        """Location and log scale of each prediction."""
        location_NF, log_NF = out_NC.chunk(2, -1)
        return location_NF, log_NF.clamp(min=MIN_LOG_SCALE)

    def loss(self, out_NC: Tensor, target_N: Tensor) -> Tensor:
        mean_NF, log_NF = self.location_scale(out_NC)
        return (((target_N - mean_NF) / log_NF.exp()).square() / 2 + log_NF + math.log(2 * math.pi) / 2).sum()

    def mode(self, out_NC: Tensor) -> Tensor:
        return out_NC.chunk(2, -1)[0]

    def sample(self, out_NC: Tensor, generator: torch.Generator) -> Tensor:
        mean_NF, log_NF = self.location_scale(out_NC)
        noise_NF = torch.randn(mean_NF.shape, generator=generator, dtype=mean_NF.dtype, device=generator.device)
        return mean_NF + log_NF.exp() * noise_NF.to(mean_NF.device)


class PointL1(Values):
    """Real numbers as point predictions, with absolute error, which is robust to outliers.

    >>> PointL1(1).loss(torch.zeros(2, 1), torch.full((2, 1), 3.0))
    tensor(6.)
    """

    def loss(self, out_NC: Tensor, target_N: Tensor) -> Tensor:
        return F.l1_loss(out_NC, target_N, reduction="sum")


class Laplace(Gaussian):
    """Real numbers with a Laplace distribution, which is robust to outliers: the head gives median and log scale.

    >>> Laplace(1).loss(torch.tensor([[3.0, 0.0]]), torch.tensor([[5.0]]))
    tensor(2.6931)
    """

    def loss(self, out_NC: Tensor, target_N: Tensor) -> Tensor:
        median_NF, log_NF = self.location_scale(out_NC)
        return ((target_N - median_NF).abs() / log_NF.exp() + log_NF + math.log(2)).sum()

    def sample(self, out_NC: Tensor, generator: torch.Generator) -> Tensor:
        median_NF, log_NF = self.location_scale(out_NC)
        uniform_NF = torch.rand(median_NF.shape, generator=generator, dtype=median_NF.dtype, device=generator.device)
        half_NF = uniform_NF.to(median_NF.device) - 0.5
        return median_NF - log_NF.exp() * half_NF.sign() * torch.log1p(-2 * half_NF.abs())


class AngleEmbedding(nn.Module):
    """Embeds angles as points on the unit circle, so that 0 and 2 pi are equal.

    >>> embed = AngleEmbedding(1, 4)
    >>> torch.allclose(embed(torch.tensor([[0.0]])), embed(torch.tensor([[2 * math.pi]])), atol=1e-5)
    True
    """

    def __init__(self, features: int, width: int) -> None:
        super().__init__()
        self.linear = nn.Linear(2 * features, width)

    def forward(self, angles: Tensor) -> Tensor:
        return self.linear(torch.cat([angles.cos(), angles.sin()], -1))


class Angles(Values):
    """Angles in radians; the head gives a direction in the plane, the loss is 1 - cos(difference)."""

    def embed(self, width: int) -> nn.Module:
        return AngleEmbedding(self.features, width)

    def head(self, width: int) -> nn.Module:
        return nn.Linear(width, 2 * self.features)

    def loss(self, out_NC: Tensor, target_N: Tensor) -> Tensor:
        return (1 - torch.cos(self.mode(out_NC) - target_N)).sum()

    def mode(self, out_NC: Tensor) -> Tensor:
        x_NF, y_NF = out_NC.chunk(2, -1)
        return torch.atan2(y_NF, x_NF)
