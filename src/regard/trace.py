"""tap() shows an inner value by name; record() keeps what is shown. Costs nothing when nobody looks.

A value may be replaced (what-if) or keep its gradient, so every caller goes on with what tap() returns. A record
says in which scene it was seen (decoding step, source, hypothesis, position) and whose words its axes wear.
"""

from __future__ import annotations

import fnmatch
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn


@dataclass(frozen=True)
class Record:
    """One value that was seen.

    >>> with record(nn.ModuleDict({"a": (layer := nn.Linear(1, 1))})) as trace:
    ...     _ = tap(layer, "weights", torch.ones(1, 2), "query key")
    >>> trace.records[0].name, trace.records[0].axes
    ('a.weights', ('query', 'key'))
    """

    name: str
    """such as "decoder.layers.0.cross.weights\""""
    axes: tuple[str, ...]
    """such as ("batch", "head", "query", "key")"""
    data: Tensor
    labels: Mapping[str, Any]
    """of an axis: {"key": [["je", "suis"]]}, one list of words a row of the batch"""
    scene: Mapping[str, Any]
    """such as {"step": 3, "sources": (N,), "hypothesis": (N,)}"""


@dataclass
class Trace:
    """Plain records, readable without the model.

    >>> Trace().find("*.weights")
    []
    """

    replace: Mapping[str, Callable[[Tensor], Tensor]] = field(default_factory=dict)
    """pattern of names -> what to go on with instead"""
    gradients: bool = False
    """keep the tensors in the graph, so that a loss can be differentiated with respect to them; where no weight learns,
    the graph begins at the first value that is shown"""
    records: list[Record] = field(default_factory=list)

    def find(self, pattern: str) -> list[Record]:
        """Records whose name fits a pattern such as "decoder.*.weights"."""
        return [record for record in self.records if fnmatch.fnmatchcase(record.name, pattern)]

    def see(self, name: str, tensor: Tensor, axes: str) -> Tensor:
        """Keep a value. `axes` names each axis; "key:source" also says whose words it wears."""
        words = [word.partition(":") for word in axes.split()]
        if len(words) != tensor.ndim:
            raise ValueError(f"{name}: axes {axes!r} name {len(words)} axes, the tensor has {tensor.ndim}")
        for pattern, change in self.replace.items():
            tensor = change(tensor) if fnmatch.fnmatchcase(name, pattern) else tensor
        if self.gradients and torch.is_grad_enabled() and tensor.is_floating_point() and not tensor.requires_grad:
            tensor = tensor.clone().requires_grad_()
        labels = {axis: _here.scene[side] for axis, _, side in words if side in _here.scene}
        data = tensor if self.gradients else tensor.detach().clone()
        self.records.append(Record(name, tuple(axis for axis, _, _ in words), data, labels, _here.scene))
        return tensor


class _Here(threading.local):
    """Per thread, so that a server can record one request while it answers another."""

    trace: Trace | None = None
    names: Mapping[int, str] = {}
    scene: Mapping[str, Any] = {}


_here = _Here()


def tracing() -> bool:
    """Whether somebody records in this thread.

    >>> tracing()
    False
    """
    return _here.trace is not None


def current() -> Trace | None:
    """The trace that this thread records into, if somebody records.

    >>> current() is None
    True
    """
    return _here.trace


def tap(module: nn.Module, name: str, tensor: Tensor, axes: str) -> Tensor:
    """Show `tensor` to whoever records, and go on with what comes back.

    >>> tap(nn.Identity(), "weights", torch.ones(1), "key")
    tensor([1.])
    """
    if _here.trace is None:
        return tensor
    prefix = _here.names[id(module)]
    return _here.trace.see(f"{prefix}.{name}" if prefix else name, tensor, axes)


def scene(**facts: Any) -> AbstractContextManager[None]:
    """What is seen inside happens at this step, at this position, to these hypotheses, with these words.

    >>> with scene(step=3):
    ...     pass
    """
    return _inside(facts) if tracing() else nullcontext()


@contextmanager
def _inside(facts: Mapping[str, Any]) -> Iterator[None]:
    before = _here.scene
    _here.scene = {**before, **facts}
    try:
        yield
    finally:
        _here.scene = before


@contextmanager
def record(
    model: nn.Module, replace: Mapping[str, Callable[[Tensor], Tensor]] | None = None, gradients: bool = False
) -> Iterator[Trace]:
    """Keep every value that `model` shows inside this block.

    >>> with record(nn.Identity()) as trace:
    ...     pass
    >>> trace.records
    []
    """
    before = _here.trace, _here.names
    _here.trace = Trace(replace or {}, gradients)
    _here.names = {id(module): name for name, module in model.named_modules()}
    try:
        # a compiled module does not look at a thread's own data again: it would record nothing, silently
        with torch.compiler.set_stance("force_eager"):
            yield _here.trace
    finally:
        _here.trace, _here.names = before


def gradients(losses_T: Tensor, records: list[Record]) -> Tensor:
    """(T, S): norms of d loss_t / d hidden_s. A recurrent layer gives one record a position, attention one for all.

    >>> h = torch.ones(1, 2, 3, requires_grad=True)
    >>> gradients((h.sum((0, 2)) * torch.tensor([1.0, 2.0])).cumsum(0), [Record("h", (), h, {}, {})])
    tensor([[1.7321, 0.0000],
            [1.7321, 3.4641]])
    """
    return row_gradients(losses_T, records).norm(dim=1)


def row_gradients(losses_T: Tensor, records: list[Record]) -> Tensor:
    """(T, B, S): the same for each row of a batch, if loss_t is a sum over rows that do not touch one another.

    >>> h = torch.ones(2, 1, 3, requires_grad=True)
    >>> row_gradients(h.sum()[None], [Record("h", (), h, {}, {})])
    tensor([[[1.7321],
             [1.7321]]])
    """

    def norms_BS(loss: Tensor) -> Tensor:
        found = torch.autograd.grad(loss, [r.data for r in records], retain_graph=True, materialize_grads=True)
        return torch.cat([g.reshape(g.shape[0], -1, g.shape[-1]) for g in found], 1).norm(dim=2)

    return torch.stack([norms_BS(loss) for loss in losses_T])
