"""Models made ready for use only: the same numbers up to rounding, sooner, on a CPU.

Several rows want a large weight that oneDNN has laid out beforehand; a small one, for which its calls cost more than
they save, and one row times a wide matrix, such as a softmax's, want it transposed (up to twice as fast). Dropout is
left out, and sinusoids are looked up.
"""

from __future__ import annotations

import copy
from typing import TypeVar, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.nn.int8_argmax import Screen
from regard.nn.positions import Sinusoids

M = TypeVar("M", bound=nn.Module)
SMALL = 2**18
"""Numbers in a weight up to which it is only transposed"""


def prepare(model: M, longest: int = 1024) -> M:
    """A copy of a model that is used, not trained: same structure and names; `model` itself stays as it was.

    A layer keeps two layouts of its weight, made when they are first needed; embeddings and norms are shared. Other
    devices and dtypes than float32 on a CPU keep their own layers. `longest` places of sinusoids are looked up.

    >>> model = nn.Sequential(nn.Linear(4, 3), nn.Dropout(0.5))
    >>> x = torch.randn(2, 4)
    >>> torch.allclose(prepare(model)(x), model.eval()(x), atol=1e-6)
    True
    """
    made: dict[int, nn.Module] = {}

    def ready(module: nn.Module) -> nn.Module:
        if id(module) not in made:
            made[id(module)] = new = _ready(module, longest)
            if type(new) is type(module):
                new._modules = {name: child and ready(child) for name, child in module._modules.items()}
        return made[id(module)]

    return cast(M, ready(model))


def _ready(module: nn.Module, longest: int) -> nn.Module:
    if type(module) is nn.Linear and module.weight.dtype is torch.float32 and module.weight.device.type == "cpu":
        return ReadyLinear(module)
    if type(module) is nn.Dropout:
        return nn.Identity().eval()
    if type(module) is Sinusoids:
        return SinusoidTable(module, longest)
    twin = copy.copy(module)
    twin._parameters = {n: p if p is None else nn.Parameter(p.detach(), False) for n, p in module._parameters.items()}
    twin._buffers, twin.training = dict(module._buffers), False
    return twin


class ReadyLinear(nn.Module):
    """x W^T + b, with the weight laid out as one row or as several rows want it.

    >>> linear = nn.Linear(4, 3)
    >>> ready = ReadyLinear(linear)
    >>> [torch.allclose(ready(x), linear(x), atol=1e-6) for x in (torch.ones(4), torch.ones(1, 4), torch.ones(2, 5, 4))]
    [True, True, True]
    """

    def __init__(self, linear: nn.Linear) -> None:
        super().__init__()
        self.weight, self.bias = linear.weight.detach(), None if linear.bias is None else linear.bias.detach()
        self.inputs, self.small = linear.in_features, self.weight.numel() <= SMALL
        turned = self.small or linear.out_features > 4 * linear.in_features
        self.single: Tensor | None = None if turned else self.weight
        self.packed: Tensor | None = None
        self._screen: Screen | None = None
        self.eval()

    def forward(self, x: Tensor) -> Tensor:
        if self.small or x.numel() == self.inputs or not torch.backends.mkldnn.is_available():
            if self.single is None:
                self.single = self.weight.t().contiguous().t()
            return F.linear(x, self.single, self.bias)
        if self.packed is None:
            self.packed = torch.ops.mkldnn._reorder_linear_weight(self.weight, None)
        return torch.ops.mkldnn._linear_pointwise(x, self.packed, self.bias, "none", [], "")

    def screen(self) -> Screen | None:
        """What finds the largest of its outputs sooner, made when it is first asked for; None where nothing does."""
        if self._screen is None and self.bias is None and Screen.serves(self.weight):
            self._screen = Screen(self.weight)
        return self._screen

    def extra_repr(self) -> str:
        return f"in_features={self.weight.shape[1]}, out_features={self.weight.shape[0]}"


class SinusoidTable(nn.Module):
    """Sinusoids that were computed once; a place past the table is computed.

    >>> places = torch.tensor([[0, 3, 9]])
    >>> torch.equal(SinusoidTable(Sinusoids(4), 5)(places), Sinusoids(4)(places))
    True
    """

    def __init__(self, sinusoids: Sinusoids, longest: int) -> None:
        super().__init__()
        self.sinusoids, self.longest = sinusoids, longest
        self.table = sinusoids(torch.arange(longest))
        self.eval()

    def forward(self, places_NL: Tensor) -> Tensor:
        if int(places_NL.max()) >= self.longest:
            return self.sinusoids(places_NL)
        return F.embedding(places_NL, self.table)
