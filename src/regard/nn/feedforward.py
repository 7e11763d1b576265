"""Position-wise feed-forward network: FFN(x) = f(x W1 + b1) W2 + b2 (Vaswani et al. 2017, eq. 2).

Recorded are the hidden units after the activation, as `activations`, and the `output`.
"""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor, nn

from regard.trace import tap, tracing


class FeedForward(nn.Module):
    """Feed-forward network with a ReLU: width -> inner -> width."""

    def __init__(self, width: int, inner: int, side: str = "target") -> None:
        super().__init__()
        self.axes = f"batch position:{side} width"
        self.up, self.down = nn.Linear(width, inner), nn.Linear(inner, width)
        for linear in (self.up, self.down):
            nn.init.xavier_uniform_(linear.weight)
            nn.init.zeros_(linear.bias)

    def forward(self, x_NLD: Tensor) -> Tensor:
        return project_down(self, F.relu(tap(self, "preactivations", self.up(x_NLD), self.axes), inplace=not tracing()))


class GELUFeedForward(nn.Module):
    """Feed-forward network with a GELU, as in GPT and BERT; `approximate="tanh"` is GPT's."""

    def __init__(
        self, width: int, inner: int, approximate: str = "tanh", side: str = "target", bias: bool = True
    ) -> None:
        super().__init__()
        self.axes, self.approximate = f"batch position:{side} width", approximate
        self.up, self.down = nn.Linear(width, inner, bias=bias), nn.Linear(inner, width, bias=bias)

    def forward(self, x_NLD: Tensor) -> Tensor:
        return project_down(
            self, F.gelu(tap(self, "preactivations", self.up(x_NLD), self.axes), approximate=self.approximate)
        )


class SwishFeedForward(nn.Module):
    """Feed-forward network with Swish, x * sigmoid(x) (Ramachandran et al. 2017), as in Marian's models."""

    def __init__(self, width: int, inner: int, side: str = "target") -> None:
        super().__init__()
        self.axes = f"batch position:{side} width"
        self.up, self.down = nn.Linear(width, inner), nn.Linear(inner, width)

    def forward(self, x_NLD: Tensor) -> Tensor:
        return project_down(self, F.silu(self.up(x_NLD)))


class SwiGLU(nn.Module):
    """Gated feed-forward network: down(silu(gate(x)) * up(x)), without biases (Shazeer 2020)."""

    def __init__(self, width: int, inner: int, side: str = "target") -> None:
        super().__init__()
        self.axes = f"batch position:{side} width"
        self.gate, self.up = nn.Linear(width, inner, bias=False), nn.Linear(width, inner, bias=False)
        self.down = nn.Linear(inner, width, bias=False)

    def forward(self, x_NLD: Tensor) -> Tensor:
        return project_down(
            self,
            F.silu(tap(self, "preactivations", self.gate(x_NLD), self.axes))
            * tap(self, "linear", self.up(x_NLD), self.axes),
        )


def project_down(ffn: FeedForward | GELUFeedForward | SwishFeedForward | SwiGLU, hidden_NLF: Tensor) -> Tensor:
    """The second linear layer of a feed-forward network; records its input and its output."""
    return tap(ffn, "output", ffn.down(tap(ffn, "activations", hidden_NLF, ffn.axes)), ffn.axes)
