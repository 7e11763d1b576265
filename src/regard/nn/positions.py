"""Positional encodings: sinusoidal (Vaswani et al. 2017, 3.5), with sines first, or learned (Gehring et al. 2017)."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from regard.device import widest_float
from regard.errors import DataError


class Sinusoids(nn.Module):
    """PE(pos, 2i) = sin(pos / 10000^(2i/d)), PE(pos, 2i+1) = cos(...): any length, no parameters.

    >>> Sinusoids(4)(torch.tensor([[0]]))
    tensor([[[0., 1., 0., 1.]]])
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.width = width

    def forward(self, positions_NL: Tensor) -> Tensor:
        angle = positions_NL[..., None] / 10_000 ** (
            torch.arange(0, self.width, 2, device=positions_NL.device) / self.width
        )
        return torch.stack([angle.sin(), angle.cos()], -1).flatten(-2)[..., : self.width]


class SinusoidHalves(nn.Module):
    """The sinusoids of `Sinusoids` in two halves, all sines before all cosines, as Marian and Tensor2Tensor have them.

    >>> SinusoidHalves(4)(torch.tensor([[0]]))
    tensor([[[0., 0., 1., 1.]]])
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.width = width

    def forward(self, positions_NL: Tensor) -> Tensor:
        wide = widest_float(positions_NL.device)  # of long texts float32 would lose digits of the angle
        exponents = torch.arange(0, self.width, 2, dtype=wide, device=positions_NL.device) / self.width
        angle = positions_NL[..., None] / 10_000**exponents
        return torch.cat([angle.sin(), angle.cos()], -1)[..., : self.width].float()


class LearnedPositions(nn.Module):
    """Learned positional embeddings; a position beyond the table is an error, never a wrong vector."""

    def __init__(self, width: int, max_positions: int) -> None:
        super().__init__()
        self.max_positions, self.table = max_positions, nn.Embedding(max_positions, width)
        nn.init.normal_(self.table.weight, std=width**-0.5)

    def forward(self, positions_NL: Tensor) -> Tensor:
        if not positions_NL.is_meta and not torch.compiler.is_compiling() and positions_NL.numel():
            last = int(positions_NL.max())
            if last >= self.max_positions:
                raise DataError(
                    f"a text of {last + 1} tokens is longer than the {self.max_positions} positions this model has "
                    "learned; split it, or train with a larger model.max_positions"
                )
        return self.table(positions_NL)


Positions = Sinusoids | SinusoidHalves | LearnedPositions
