"""Optimisers over flat memory: all weights that are treated alike lie in one tensor, and so do their gradients.

One fused call updates everything, one norm clips everything, one message sums all gradients over processes. Every
weight begins on a boundary of 64 bytes: kernels give other bits for other alignments.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor, nn

from regard.errors import ConfigError, ModelError


def _check_adam(betas: tuple[float, float], eps: float) -> None:
    if not all(0 <= beta < 1 for beta in betas):
        raise ConfigError(f"betas = {list(betas)} must each be at least 0 and below 1")
    if not eps >= 0:
        raise ConfigError(f"eps = {eps} must be at least 0")


@dataclass(frozen=True)
class Adam:
    """Kingma and Ba 2015; the defaults are the Transformer paper's.

    >>> Adam().betas
    (0.9, 0.98)
    """

    kind: Literal["adam"] = "adam"
    """Kingma and Ba 2015"""
    betas: tuple[float, float] = (0.9, 0.98)
    """how slowly the means of the gradient and of its square move"""
    eps: float = 1e-9
    """added to the root of the second mean"""

    def __post_init__(self) -> None:
        _check_adam(self.betas, self.eps)

    def build(self, groups: list[dict[str, Any]]) -> torch.optim.Optimizer:
        return torch.optim.Adam(groups, lr=0.0, betas=self.betas, eps=self.eps, fused=True)


@dataclass(frozen=True)
class AdamW:
    """Adam with decoupled weight decay (Loshchilov and Hutter 2019); biases and norms do not decay.

    >>> AdamW().decay
    0.01
    """

    kind: Literal["adamw"] = "adamw"
    """Loshchilov and Hutter 2019"""
    betas: tuple[float, float] = (0.9, 0.98)
    """how slowly the means of the gradient and of its square move"""
    eps: float = 1e-8
    """added to the root of the second mean"""
    decay: float = 0.01
    """share of each matrix that is taken away a step, times the learning rate"""

    def __post_init__(self) -> None:
        _check_adam(self.betas, self.eps)
        if not self.decay >= 0:
            raise ConfigError(f"decay = {self.decay} must be at least 0")

    def build(self, groups: list[dict[str, Any]]) -> torch.optim.Optimizer:
        decayed = [{**group, "weight_decay": self.decay if group["matrices"] else 0.0} for group in groups]
        return torch.optim.AdamW(decayed, lr=0.0, betas=self.betas, eps=self.eps, fused=True)


@dataclass(frozen=True)
class SGD:
    """Stochastic gradient descent.

    >>> SGD().momentum
    0.0
    """

    kind: Literal["sgd"] = "sgd"
    """Robbins and Monro 1951"""
    momentum: float = 0.0
    """share of the last update that is kept"""

    def __post_init__(self) -> None:
        if not 0 <= self.momentum < 1:
            raise ConfigError(f"momentum = {self.momentum} must be at least 0 and below 1")

    def build(self, groups: list[dict[str, Any]]) -> torch.optim.Optimizer:
        return torch.optim.SGD(groups, lr=0.0, momentum=self.momentum, fused=True)


OptimizerConfig = Adam | AdamW | SGD

_ALIGNED = 16
"""numbers between two boundaries of 64 bytes"""


class Flat:
    """A model's weights and gradients as two flat tensors each: matrices, and the rest.

    >>> layer = nn.Linear(3, 2)
    >>> flat = Flat(layer)
    >>> layer(torch.ones(1, 3)).sum().backward()
    >>> round(float(flat.norm()), 4), len(list(flat.weights()))
    (2.8284, 2)
    """

    def __init__(self, model: nn.Module) -> None:
        owned = [p for p in model.parameters() if p.requires_grad]
        self.groups: list[nn.Parameter] = []
        self.matrices: list[bool] = []
        for matrices in (True, False):
            members = [p for p in owned if (p.ndim > 1) == matrices]
            if members:
                self.groups.append(_gathered(members))
                self.matrices.append(matrices)

    def weights(self) -> Iterator[Tensor]:
        """The flat weights themselves."""
        return (group.data for group in self.groups)

    def gradients(self) -> Iterator[Tensor]:
        """The flat gradients themselves."""
        return (group.grad for group in self.groups if group.grad is not None)

    def clear(self) -> None:
        """All gradients become 0, where they lie."""
        for grad in self.gradients():
            grad.zero_()

    def norm(self) -> Tensor:
        """The length of all gradients together."""
        return torch.stack([grad.norm() for grad in self.gradients()]).norm()

    def scale(self, factor: Tensor | float) -> None:
        """All gradients are multiplied."""
        for grad in self.gradients():
            grad.mul_(factor)

    def optimizer(self, config: OptimizerConfig) -> torch.optim.Optimizer:
        """The optimiser over the flat tensors."""
        pairs = zip(self.groups, self.matrices, strict=True)
        return config.build([{"params": [group], "matrices": matrices} for group, matrices in pairs])


def _gathered(members: list[nn.Parameter]) -> nn.Parameter:
    """Move the members into one tensor, and their gradients into another; each member becomes a view."""
    starts, end = [], 0
    for p in members:
        starts.append(end)
        end += -(-p.numel() // _ALIGNED) * _ALIGNED
    flat = nn.Parameter(members[0].new_zeros(end))
    flat.grad = torch.zeros_like(flat)
    for p, start in zip(members, starts, strict=True):
        view = flat.data[start : start + p.numel()].view_as(p)
        view.copy_(p.data)
        p.data, p.grad = view, flat.grad[start : start + p.numel()].view_as(p)
    return flat


def optimizer_tensors(optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """What an optimiser remembers, by plain names.

    >>> layer = nn.Linear(1, 1)
    >>> flat = Flat(layer)
    >>> optimizer = flat.optimizer(Adam())
    >>> optimizer.step()
    >>> sorted(optimizer_tensors(optimizer))
    ['0.exp_avg', '0.exp_avg_sq', '0.step', '1.exp_avg', '1.exp_avg_sq', '1.step']
    """
    states: dict[int, dict[str, Any]] = optimizer.state_dict()["state"]
    return {f"{i}.{name}": t for i, s in states.items() for name, t in s.items() if torch.is_tensor(t)}


def restore_optimizer(optimizer: torch.optim.Optimizer, tensors: dict[str, Tensor]) -> None:
    """Give an optimiser its memory back, in memory of its own.

    >>> optimizer = Flat(nn.Linear(1, 1)).optimizer(SGD())
    >>> restore_optimizer(optimizer, {})
    """
    state: dict[Any, dict[str, Tensor]] = {}
    for name, tensor in tensors.items():
        i, _, kind = name.partition(".")
        state.setdefault(int(i), {})[kind] = tensor.clone()
    sizes = [group["params"][0].numel() for group in optimizer.param_groups]
    for i, memory in state.items():
        if any(t.numel() not in (1, sizes[i]) for t in memory.values()):
            raise ModelError(
                f"the optimiser's memory has {max(t.numel() for t in memory.values())} numbers where the model has "
                f"{sizes[i]}; the checkpoint belongs to another model"
            )
    whole: dict[str, Any] = {"state": state, "param_groups": optimizer.state_dict()["param_groups"]}
    optimizer.load_state_dict(whole)
