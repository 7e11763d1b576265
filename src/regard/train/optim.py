"""Optimizers (Adam, AdamW, SGD) over flat parameters: one tensor per parameter group, and one for its gradients.

A group is what shares its weight decay (matrices, or biases and norms) and its learning-rate multiplier.

One fused call updates everything, one norm clips everything, one all-reduce sums all gradients over processes. Every
parameter starts on a 64-byte boundary: kernels give other bits for other alignments.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor, nn

from regard.config import check_share
from regard.errors import ConfigError, ModelError


@dataclass(frozen=True)
class Adam:
    """Adam (Kingma and Ba 2015); the defaults are the Transformer paper's."""

    kind: Literal["adam"] = "adam"
    """Kingma and Ba 2015"""
    betas: tuple[float, float] = (0.9, 0.98)
    """Adam's beta1 and beta2: decay rates of the running means of the gradient and of its square"""
    eps: float = 1e-9
    """Adam's epsilon, added to the denominator for numerical stability"""

    def __post_init__(self) -> None:
        if not all(0 <= beta < 1 for beta in self.betas):
            raise ConfigError(f"betas = {list(self.betas)} must each be at least 0 and below 1")
        if not self.eps >= 0:
            raise ConfigError(f"eps = {self.eps} must be at least 0")

    def build(self, groups: list[dict[str, Any]]) -> torch.optim.Optimizer:
        return torch.optim.Adam(groups, lr=0.0, betas=self.betas, eps=self.eps, fused=True)


@dataclass(frozen=True)
class AdamW(Adam):
    """AdamW: Adam with decoupled weight decay (Loshchilov and Hutter 2019)."""

    kind: Literal["adamw"] = "adamw"  # type: ignore[assignment]
    """Loshchilov and Hutter 2019"""
    eps: float = 1e-8
    weight_decay: float = 0.01
    """decoupled weight decay, times the learning rate; biases and norms are exempt"""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.weight_decay >= 0:
            raise ConfigError(f"weight_decay = {self.weight_decay} must be at least 0")

    def build(self, groups: list[dict[str, Any]]) -> torch.optim.Optimizer:
        decayed = [{**group, "weight_decay": self.weight_decay if group["matrices"] else 0.0} for group in groups]
        return torch.optim.AdamW(decayed, lr=0.0, betas=self.betas, eps=self.eps, fused=True)


@dataclass(frozen=True)
class SGD:
    """Stochastic gradient descent."""

    kind: Literal["sgd"] = "sgd"
    """Robbins and Monro 1951"""
    momentum: float = 0.0
    """momentum: share of the last update added to the next; 0: plain SGD"""
    weight_decay: float = 0.0
    """L2 penalty, added to the gradient as this times the weight; biases and norms are exempt"""

    def __post_init__(self) -> None:
        check_share(self, "momentum")
        if not self.weight_decay >= 0:
            raise ConfigError(f"weight_decay = {self.weight_decay} must be at least 0")

    def build(self, groups: list[dict[str, Any]]) -> torch.optim.Optimizer:
        decayed = [{**group, "weight_decay": self.weight_decay if group["matrices"] else 0.0} for group in groups]
        return torch.optim.SGD(decayed, lr=0.0, momentum=self.momentum, fused=True)


OptimizerConfig = Adam | AdamW | SGD

_ALIGNED = 16
"""float32 numbers in 64 bytes"""


class FlatParameters:
    """A model's trainable parameters and gradients as flat tensors: one pair for matrices, one for biases and norms.

    Parameters with another multiplier of the learning rate (`rates`) have pairs of their own.

    >>> layer = nn.Linear(3, 2)
    >>> flat = FlatParameters(layer)
    >>> layer(torch.ones(1, 3)).sum().backward()
    >>> round(float(flat.norm()), 4), len(list(flat.weights()))
    (2.8284, 2)
    """

    def __init__(self, model: nn.Module, rates: Mapping[nn.Parameter, float] | None = None) -> None:
        rates = rates or {}
        owned = [p for p in model.parameters() if p.requires_grad]
        self.groups: list[nn.Parameter] = []
        self.settings: list[dict[str, Any]] = []
        for matrices in (True, False):
            for rate in sorted({rates.get(p, 1.0) for p in owned}, reverse=True):
                members = [p for p in owned if (p.ndim > 1) == matrices and rates.get(p, 1.0) == rate]
                if members:
                    self.groups.append(_flatten(members))
                    self.settings.append({"matrices": matrices, "rate": rate})

    def weights(self) -> Iterator[Tensor]:
        """The flat weights (not copies)."""
        return (group.data for group in self.groups)

    def gradients(self) -> Iterator[Tensor]:
        """The flat gradients (not copies)."""
        return (group.grad for group in self.groups if group.grad is not None)

    def zero_grad(self) -> None:
        """Set all gradients to 0, in place."""
        for grad in self.gradients():
            grad.zero_()

    def norm(self) -> Tensor:
        """L2 norm of all gradients together."""
        return torch.stack([grad.norm() for grad in self.gradients()]).norm()

    def scale_gradients(self, factor: Tensor | float) -> None:
        """Multiply all gradients, in place: gradient clipping by norm."""
        for grad in self.gradients():
            grad.mul_(factor)

    def optimizer(self, config: OptimizerConfig) -> torch.optim.Optimizer:
        """An optimizer over the flat tensors."""
        pairs = zip(self.groups, self.settings, strict=True)
        return config.build([{"params": [group], **settings} for group, settings in pairs])


def set_learning_rate(optimizer: torch.optim.Optimizer, rate: float) -> None:
    """Set the learning rate of each parameter group: the rate of the schedule, times the multiplier of the group."""
    for group in optimizer.param_groups:
        group["lr"] = rate * group["rate"]


def _flatten(members: list[nn.Parameter]) -> nn.Parameter:
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
    """State of an optimizer as named tensors, for a checkpoint."""
    states: dict[int, dict[str, Any]] = optimizer.state_dict()["state"]
    return {f"{i}.{name}": t for i, s in states.items() for name, t in s.items() if torch.is_tensor(t)}


def restore_optimizer(optimizer: torch.optim.Optimizer, tensors: dict[str, Tensor]) -> None:
    """Load the state that `optimizer_tensors` gave into an optimizer; tensors are copied."""
    state: dict[Any, dict[str, Tensor]] = {}
    for name, tensor in tensors.items():
        i, _, kind = name.partition(".")
        state.setdefault(int(i), {})[kind] = tensor.clone()
    sizes = [group["params"][0].numel() for group in optimizer.param_groups]
    for i, own in state.items():
        size = sizes[i] if i < len(sizes) else 0
        if any(t.numel() not in (1, size) for t in own.values()):
            raise ModelError(
                f"the optimizer state has {max(t.numel() for t in own.values())} numbers where the model has "
                f"{size}; the checkpoint belongs to another model"
            )
    whole: dict[str, Any] = {"state": state, "param_groups": optimizer.state_dict()["param_groups"]}
    optimizer.load_state_dict(whole)
