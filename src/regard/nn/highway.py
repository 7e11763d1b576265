"""Highway layers: Srivastava, Greff and Schmidhuber 2015, "Highway Networks"."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Highway(nn.Module):
    """y = g * max(0, W x + b) + (1 - g) * x, with the gate g = sigmoid(W_g x + b_g).

    The bias of the gate starts at -2: at first the layer mostly carries its input.

    >>> layer, x = Highway(3), torch.ones(2, 3)
    >>> layer.linear.bias.data.fill_(-1e4) is not None and torch.equal(layer(x), x)
    True
    """

    def __init__(self, width: int, gate_bias: float = -2.0) -> None:
        super().__init__()
        self.linear = nn.Linear(width, 2 * width)
        nn.init.constant_(self.linear.bias[width:].detach(), gate_bias)

    def forward(self, x: Tensor) -> Tensor:
        new, gate = self.linear(x).chunk(2, -1)
        return torch.lerp(x, new.relu(), gate.sigmoid())
