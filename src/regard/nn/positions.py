"""Where a word stands: sinusoids (Vaswani et al. 2017, 3.5), or a table that is learned (Gehring et al. 2017)."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from regard.errors import DataError


class Sinusoids(nn.Module):
    """PE(pos, 2i) = sin(pos / 10000^(2i/d)), PE(pos, 2i+1) = cos(...): no longest length, nothing to learn.

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


class LearnedPositions(nn.Module):
    """One vector a place, up to a longest length; a place past it is an error, never a wrong vector.

    >>> LearnedPositions(8, longest=16)(torch.tensor([[0, 1]])).shape
    torch.Size([1, 2, 8])
    """

    def __init__(self, width: int, longest: int) -> None:
        super().__init__()
        self.longest, self.table = longest, nn.Embedding(longest, width)
        nn.init.normal_(self.table.weight, std=width**-0.5)

    def forward(self, positions_NL: Tensor) -> Tensor:
        if not positions_NL.is_meta and not torch.compiler.is_compiling() and positions_NL.numel():
            most = int(positions_NL.max())
            if most >= self.longest:
                raise DataError(
                    f"a text of {most + 1} tokens is longer than the {self.longest} places this model has learned; "
                    "split it, or train with a larger model.longest"
                )
        return self.table(positions_NL)


Positions = Sinusoids | LearnedPositions
