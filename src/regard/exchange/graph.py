"""Graphs of a trained model: functions of plain tensors with named inputs and outputs, for formats without Python code.

A format (ONNX, an ExportedProgram of torch) writes the graphs of a plan; the plan knows how they are called one after
the other, and compares what they give with the model itself.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.export import Dim
from torch.utils._pytree import tree_flatten, tree_unflatten

Run = Callable[[str, Sequence[Tensor]], list[Tensor]]
"""Runs the graph of a name on its inputs, in order; returns its outputs"""
STATE_PARTS = ("hidden", "cell")
"""names of the tensors in the state of a recurrent layer"""


@dataclass(frozen=True)
class Port:
    """An input or an output of a graph."""

    name: str
    axes: tuple[str | int, ...]
    """of each axis its name, if it may have any size, or its size"""
    dtype: torch.dtype = torch.float32
    meaning: str = ""

    def describe(self) -> dict[str, Any]:
        """The port as JSON."""
        found = {"name": self.name, "dtype": str(self.dtype).removeprefix("torch."), "axes": list(self.axes)}
        return found | ({"meaning": self.meaning} if self.meaning else {})


@dataclass(frozen=True)
class Graph:
    """A module that takes and returns plain tensors, and an example of its inputs."""

    name: str
    module: nn.Module
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    example: tuple[Tensor, ...]

    def dynamic_shapes(self) -> tuple[tuple[dict[int, Any], ...]]:
        """The axes of the inputs that may have any size, as torch.export takes them for a module with *inputs."""
        return (
            tuple(
                {i: Dim.DYNAMIC for i, axis in enumerate(port.axes) if isinstance(axis, str)} for port in self.inputs
            ),
        )

    def describe(self) -> dict[str, Any]:
        """Inputs and outputs as JSON."""
        return {
            "inputs": [port.describe() for port in self.inputs],
            "outputs": [port.describe() for port in self.outputs],
        }


@dataclass(frozen=True)
class GraphPlan(ABC):
    """The graphs of a model, the files that belong to them, and how they are compared with the model."""

    graphs: tuple[Graph, ...]
    facts: Mapping[str, Any]
    """what a program needs to know beside the shapes, as JSON: special tokens, labels, limits"""
    files: Mapping[str, bytes] = field(default_factory=dict)
    """further files, by name: tokenizers, preprocessing"""

    @abstractmethod
    def check(self, run: Run, seed: int = 0) -> float:
        """The largest difference between the outputs of the graphs and those of the model, on random inputs."""

    @abstractmethod
    def usage(self) -> str:
        """How the graphs are called, for the README."""


def difference(found: Tensor, expected: Tensor) -> float:
    """The largest difference of two tensors, in units of the largest expected number if that is above 1.

    >>> difference(torch.tensor([1.0, 20.5]), torch.tensor([1.0, 20.0]))
    0.025
    """
    if found.shape != expected.shape:
        return float("inf")
    if not expected.numel():
        return 0.0
    own = expected.double()
    worst = (found.double() - own).abs().max() / own.abs().max().clamp(min=1.0)
    return float("inf") if worst.isnan() else float(worst)


@dataclass(frozen=True)
class Structure:
    """The tensors inside a dataclass of tensors, by name: it is taken apart into them, and made of them again."""

    spec: Any
    leaves: tuple[Any, ...]
    """what is no tensor is kept as it is"""
    names: tuple[str, ...]
    used: tuple[int, ...]
    """numbers of the leaves that are inputs of a graph"""

    @classmethod
    def of(cls, rows: Any, name: str) -> Structure:
        """The structure of a dataclass of tensors; all its tensors are used."""
        leaves, spec = tree_flatten(rows)
        used = tuple(i for i, leaf in enumerate(leaves) if isinstance(leaf, Tensor))
        kept = tuple(None if isinstance(leaf, Tensor) else leaf for leaf in leaves)
        return cls(spec, kept, tuple(leaf_names(rows, name)), used)

    def restrict(self, used: Sequence[int]) -> Structure:
        """The same with fewer tensors: the others are None when it is built."""
        return Structure(self.spec, self.leaves, self.names, tuple(used))

    @property
    def tensor_names(self) -> list[str]:
        """Names of the tensors that are used."""
        return [self.names[i] for i in self.used]

    def pick(self, rows: Any) -> list[Tensor]:
        """The tensors that are used."""
        leaves = tree_flatten(rows)[0]
        return [leaves[i] for i in self.used]

    def build(self, tensors: Sequence[Tensor]) -> Any:
        """The dataclass of these tensors."""
        given = dict(zip(self.used, tensors, strict=True))
        return tree_unflatten([given.get(i, leaf) for i, leaf in enumerate(self.leaves)], self.spec)


def leaf_names(value: Any, name: str) -> Iterator[str]:
    """Names of all leaves of a dataclass, in the order in which a pytree has them.

    >>> from regard.sequence import Padded
    >>> list(leaf_names(Padded(torch.zeros(1, 2), torch.ones(1)), "source"))
    ['source.data', 'source.lengths', 'source.ragged']
    """
    if is_dataclass(value):
        for part in fields(value):
            yield from leaf_names(getattr(value, part.name), f"{name}.{part.name}")
    elif isinstance(value, tuple):
        is_state = len(value) <= len(STATE_PARTS) and all(isinstance(one, Tensor) for one in value)
        names = STATE_PARTS if is_state else tuple(map(str, range(len(value))))
        for own, one in zip(names, value, strict=False):
            yield from leaf_names(one, f"{name}.{own}")
    else:
        yield name
