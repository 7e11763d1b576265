"""Rotary positions (Su et al. 2021): pairs of numbers of each query and key are rotated by an angle that grows with the
position, so that their product depends on the distance between two positions only.

Pair i of a head of width K is (i, i + K/2), as in Hugging Face's Llama, so that its weights are used as they are. The
paper and Meta's code pair (2i, 2i + 1): their weights must be permuted first.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

Rotation = tuple[Tensor, Tensor]
"""cosines and sines of the angles, (N, L, 1, K/2) each"""


class Rotary(nn.Module):
    """The angle of each pair at each position: position / theta^(2i/K). It has no parameters.

    >>> Rotary(4, theta=100.0)(torch.tensor([[0, 3]]))
    tensor([[[0.0000, 0.0000],
             [3.0000, 0.3000]]])
    """

    def __init__(self, head_width: int, theta: float = 10_000.0) -> None:
        super().__init__()
        self.head_width, self.theta = head_width, theta

    def forward(self, positions_NL: Tensor) -> Tensor:
        pairs = torch.arange(0, self.head_width, 2, device=positions_NL.device) / self.head_width
        return positions_NL[..., None] / self.theta**pairs

    def extra_repr(self) -> str:
        return f"head_width={self.head_width}, theta={self.theta:g}"


def rotation(angles_NLP: Tensor, dtype: torch.dtype) -> Rotation:
    """Cosines and sines of the angles, for all heads."""
    return angles_NLP.cos()[:, :, None].to(dtype), angles_NLP.sin()[:, :, None].to(dtype)


def rotate(x_NLHK: Tensor, by: Rotation) -> Tensor:
    """Rotate each pair of numbers of each head.

    >>> quarter = rotation(torch.full((1, 1, 1), torch.pi / 2), torch.float32)
    >>> rotate(torch.tensor([[[[1.0, 0.0]]]]), quarter).round()
    tensor([[[[-0., 1.]]]])
    """
    (cos, sin), (x, y) = by, x_NLHK.chunk(2, -1)
    return torch.cat([x * cos - y * sin, y * cos + x * sin], -1)
