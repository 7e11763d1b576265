"""A forecaster: Lai et al. 2018, "Modeling Long- and Short-Term Temporal Patterns with Deep Neural Networks".

New against a recurrent network with a head: a linear model of the window stands beside the network, so that the scale
of the input reaches the answer undisturbed and the network has to learn only what a line cannot tell. Rows can be read
in patches, several at a place (Nie et al. 2023). The whole horizon is said at once. Different here: any encoder; the
line reads all columns, and is where training begins; how far answers were off on validation is kept with the weights,
and makes the intervals.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from regard.models.base import Encoder
from regard.sequence import Memory, Tokens
from regard.spaces import Space
from regard.trace import tap

NAMED = 64
"""Numbers that a column is known by, learnt from random ones: loud enough to be heard from the first step on."""
HUSHED = 0.1
"""How loud the network is beside a line that training begins at: not mute, or nothing would tell it what to learn."""
LEVELS = 100
"""Shares of the answers for which it is known how far they were off: 1 %, 2 %, ... 100 %."""


@dataclass(frozen=True)
class Shape:
    """What a forecaster reads and says, in numbers.

    >>> Shape(rows=120, columns=9, patch=24, answers=168).places
    5
    """

    rows: int
    """rows that are read: the window, and the horizon where something of it is known"""
    columns: int
    """numbers in a row"""
    patch: int
    """rows at a place"""
    answers: int
    """numbers that are said: the horizon, times the columns that are said at once"""
    apart: int = 1
    """columns that are read one at a time, by the same weights"""
    straight: int = 0
    """numbers of each row, counted from its beginning, that the line reads; 0: there is no line"""
    owned: int = 0
    """lines that are one column's own, beside the one that all share: one for each that is read apart, or none"""

    @property
    def places(self) -> int:
        """Places that the encoder reads."""
        return self.rows // self.patch

    @property
    def named(self) -> int:
        """Numbers that tell which column it is, where columns share the weights."""
        return NAMED if self.apart > 1 else 0

    @property
    def inputs(self) -> int:
        """Numbers at a place."""
        return self.columns * self.patch + self.named


class Forecaster(nn.Module):
    """What an encoder makes of a window, and the window itself, to one head.

    >>> from regard.models.mlp import MLPConfig
    >>> from regard.sequence import last
    >>> from regard.spaces import Gaussian, Values
    >>> shape = Shape(rows=6, columns=2, patch=6, answers=3, straight=2)
    >>> encoder = MLPConfig(width=4).build_encoder(Values(shape.inputs))
    >>> model = Forecaster(encoder, last, Gaussian(3), shape)
    >>> model(Tokens.full(torch.zeros(5, 6, 2))).shape, model.readout
    (torch.Size([5, 16]), Linear(in_features=16, out_features=6, bias=True))
    """

    off: Tensor

    def __init__(self, encoder: Encoder, pool: Callable[[Memory], Tensor], space: Space, shape: Shape) -> None:
        super().__init__()
        self.encoder, self.pool, self.shape = encoder, pool, shape
        readout = space.head(encoder.width + shape.rows * shape.straight * (1 + shape.owned) + shape.named)
        assert isinstance(readout, nn.Linear)
        self.readout = readout
        self.which = nn.Embedding(shape.apart, NAMED) if shape.apart > 1 else None
        self.register_buffer("off", torch.zeros(LEVELS, shape.answers * shape.apart))

    @property
    def straight(self) -> int:
        """Numbers that reach the head past the network."""
        return self.readout.in_features - self.encoder.width

    def forward(self, source: Tokens) -> Tensor:
        x_BRC, shape = source.data, self.shape
        parts = [x_BRC.reshape(len(x_BRC), shape.places, -1)]
        if self.which is not None and source.segments is not None:
            parts.append(self.which(source.segments[:, :1]).expand(-1, shape.places, -1))
        found_BD = self.pool(self.encoder(Tokens.full(torch.cat(parts, 2))))
        return tap(self, "features", torch.cat([found_BD, self.line(source)], 1), "batch width")

    def line(self, source: Tokens) -> Tensor:
        """(B, straight): what the head reads past the network: the window, and the name of the column."""
        x_BN = source.data[..., : self.shape.straight].flatten(1)
        parts = [x_BN]
        if self.which is not None and source.segments is not None:
            parts.append(self.which(source.segments[:, 0]))
        if (
            self.shape.owned and source.segments is not None
        ):  # each column's numbers at a place of their own, else zeros
            own_BC = nn.functional.one_hot(source.segments[:, 0], self.shape.owned).to(x_BN.dtype)
            parts.append((own_BC[..., None] * x_BN[:, None]).flatten(1))
        return torch.cat(parts, 1)

    @torch.no_grad()
    def begin(self, line_NA: Tensor, off_A: Tensor) -> None:
        """Start as a line, the bias in its last row; what is said of doubts is how far that line is off."""
        answers, width, weight, bias = self.shape.answers, self.encoder.width, self.readout.weight, self.readout.bias
        weight[:, :width] *= HUSHED
        weight[:, width:] = 0
        weight[:answers, width:] = line_NA[:-1].T
        bias[:answers] = line_NA[-1]
        bias[answers:] = off_A.clamp(min=1e-3).log()[: len(bias) - answers]

    @torch.no_grad()
    def learn_off(self, errors_NA: Tensor) -> None:
        """Keep how far answers were off, in units of their own doubt: an interval is as wide as so many of them need.

        It is the error that so many of N + 1 answers keep to, of which N were seen (split conformal prediction).
        """
        n = len(errors_NA)
        shares = (torch.arange(1, LEVELS + 1, dtype=torch.double) / LEVELS * (n + 1)).ceil().long().clamp(1, n) - 1
        self.off.copy_(errors_NA.sort(0).values.index_select(0, shares))

    def reach(self, level: float) -> Tensor:
        """(answers x apart,): how far to either side an interval goes at a level, in units of an answer's doubt."""
        at = level * LEVELS - 1
        low = int(min(max(at, 0), LEVELS - 1))
        high = min(low + 1, LEVELS - 1)
        return torch.lerp(self.off[low], self.off[high], float(min(max(at - low, 0.0), 1.0)))
