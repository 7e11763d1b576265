"""Nodes of an operation tape: one tensor each, with the operation that made it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_map

ROOT = "root"
"""operation of a tensor that no recorded operation made: a weight or an input"""


@dataclass(frozen=True)
class Operand:
    """A tensor among the arguments of an operation: the node that it is."""

    node: int


@dataclass(eq=False)
class TapeNode:
    """One tensor: the operation that made it, its arguments, and which of the operation's outputs it is."""

    operation: str
    function: Callable[..., Any] | None
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    output: int
    """number of the output, for operations with several"""
    shape: torch.Size
    data: Tensor | None
    """its numbers; None: they are those of its operands"""
    label: str = ""
    """of a root: name of the weight"""

    @property
    def operands(self) -> list[int]:
        """Nodes among the arguments, in order."""
        found: list[int] = []
        tree_map(lambda part: found.append(part.node) if isinstance(part, Operand) else None, (self.args, self.kwargs))
        return found
