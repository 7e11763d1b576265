"""Inference optimization on a CPU: the same results up to rounding, faster.

Decoding of one sequence reads every weight for one row of numbers, at the speed of the memory: a weight that has more
outputs than inputs is read fastest transposed, another one as it is. For several rows, large weights are prepacked by
oneDNN, which takes 0.4 to 0.9 of the time of either layout. Small weights, for which its calls cost more than they
save, are transposed. Dropout is removed, and sinusoids are looked up in a table. Where torch lacks oneDNN's private
operators, weights are only transposed.
"""

from __future__ import annotations

import copy
from typing import TypeVar, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.device import module_device
from regard.nn.int8_argmax import Int8Argmax
from regard.nn.positions import SinusoidHalves, Sinusoids

M = TypeVar("M", bound=nn.Module)
PREPACKS = all(hasattr(torch.ops.mkldnn, name) for name in ("_reorder_linear_weight", "_linear_pointwise"))
"""whether this torch has the private operators of prepacked weights"""
SMALL = 2**18
"""elements of a weight up to which it is only transposed"""


def optimize_for_inference(model: M, positions: int = 1024) -> M:
    """A copy of a model for inference, with the same structure and names; `model` itself is unchanged.

    A layer keeps a second layout of its weight, created on first use; embeddings and norms are shared. Layers on other
    devices or in other dtypes than float32 stay as they are. On a CPU, sinusoids are tabulated for so many `positions`.

    >>> model = nn.Sequential(nn.Linear(4, 3), nn.Dropout(0.5))
    >>> x = torch.randn(2, 4)
    >>> torch.allclose(optimize_for_inference(model)(x), model.eval()(x), atol=1e-6)
    True
    """
    copies: dict[int, nn.Module] = {}
    table = (
        positions if module_device(model).type == "cpu" else 0
    )  # elsewhere its bounds check would wait for the device

    def convert(module: nn.Module) -> nn.Module:
        if id(module) not in copies:
            copies[id(module)] = new = _convert(module, table)
            if type(new) is type(module):
                new._modules = {name: child and convert(child) for name, child in module._modules.items()}
        return copies[id(module)]

    return cast(M, convert(model))


def _convert(module: nn.Module, positions: int) -> nn.Module:
    if type(module) is nn.Linear and module.weight.dtype is torch.float32 and module.weight.device.type == "cpu":
        return InferenceLinear(module)
    if type(module) is nn.Dropout:
        return nn.Identity().eval()
    if isinstance(module, Sinusoids | SinusoidHalves) and positions:
        return SinusoidTable(module, positions)
    new = copy.copy(module)
    new._parameters = {n: p if p is None else nn.Parameter(p.detach(), False) for n, p in module._parameters.items()}
    new._buffers, new.training = dict(module._buffers), False
    return new


class InferenceLinear(nn.Module):
    """x W^T + b, with the weight in the layout that is read fastest.

    >>> linear = nn.Linear(4, 3)
    >>> fast = InferenceLinear(linear)
    >>> [torch.allclose(fast(x), linear(x), atol=1e-6) for x in (torch.ones(4), torch.ones(1, 4), torch.ones(2, 5, 4))]
    [True, True, True]
    """

    def __init__(self, linear: nn.Linear) -> None:
        super().__init__()
        self.weight, self.bias = linear.weight.detach(), None if linear.bias is None else linear.bias.detach()
        self.small, self.widens = self.weight.numel() <= SMALL, self.weight.shape[0] > self.weight.shape[1]
        self.transposed: Tensor | None = None
        self.packed: Tensor | None = None
        self._argmax: Int8Argmax | None = None
        self.eval()

    def forward(self, x: Tensor) -> Tensor:
        is_row = x.numel() == self.weight.shape[1]
        if is_row and not self.small and not self.widens:
            return F.linear(x, self.weight, self.bias)
        if is_row or self.small or not PREPACKS or not torch.backends.mkldnn.is_available():
            if self.transposed is None:
                self.transposed = self.weight.t().contiguous().t()
            return F.linear(x, self.transposed, self.bias)
        if self.packed is None:
            self.packed = torch.ops.mkldnn._reorder_linear_weight(self.weight, None)
        return torch.ops.mkldnn._linear_pointwise(x, self.packed, self.bias, "none", [], "")

    def int8_argmax(self) -> Int8Argmax | None:
        """A faster argmax over the outputs, created on first use; None where it is not supported."""
        if self._argmax is None and self.bias is None and Int8Argmax.is_supported(self.weight):
            self._argmax = Int8Argmax(self.weight)
        return self._argmax

    def extra_repr(self) -> str:
        return f"in_features={self.weight.shape[1]}, out_features={self.weight.shape[0]}"


class SinusoidTable(nn.Module):
    """Precomputed sinusoids; positions beyond the table are computed.

    >>> positions = torch.tensor([[0, 3, 9]])
    >>> torch.equal(SinusoidTable(Sinusoids(4), 5)(positions), Sinusoids(4)(positions))
    True
    """

    def __init__(self, sinusoids: Sinusoids | SinusoidHalves, size: int) -> None:
        super().__init__()
        self.sinusoids, self.size = sinusoids, size
        self.table = sinusoids(torch.arange(size, device="cpu"))
        self.eval()

    def forward(self, positions_NL: Tensor) -> Tensor:
        if int(positions_NL.max()) >= self.size:
            return self.sinusoids(positions_NL)
        return F.embedding(positions_NL, self.table)
