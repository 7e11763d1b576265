"""Tracing of inner values: tap() names a tensor inside a model, record() collects the tapped tensors of a block.

A tapped value may be replaced (interventions) or keep its gradient, so callers continue with what tap() returns. A
record holds the context in which it was made (decoding step, sources, hypothesis, position) and the tokens along its
axes. Without a recording, tap() returns its argument at once.
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
    """One tapped tensor.

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
    """tokens along an axis: {"key": [["je", "suis"]]}, one list per row of the batch"""
    context: Mapping[str, Any]
    """facts given by `trace_context`, such as {"step": 3, "sources": (N,), "hypothesis": (N,)}"""


@dataclass
class Trace:
    """The records of one recording, readable without the model."""

    replace: Mapping[str, Callable[[Tensor], Tensor]] = field(default_factory=dict)
    """pattern of names -> function whose result replaces the value"""
    gradients: bool = False
    """keep the tensors in the autograd graph, so that a loss can be differentiated with respect to them; where no
    weight requires a gradient, the graph starts at the first tapped value"""
    records: list[Record] = field(default_factory=list)

    def find(self, pattern: str) -> list[Record]:
        """Records whose name matches a pattern such as "decoder.*.weights"."""
        return [record for record in self.records if fnmatch.fnmatchcase(record.name, pattern)]

    def add(self, name: str, tensor: Tensor, axes: str) -> Tensor:
        """Record a value. `axes` names each axis; "key:source" also says which tokens label it."""
        words = [word.partition(":") for word in axes.split()]
        if len(words) != tensor.ndim:
            raise ValueError(f"{name}: axes {axes!r} name {len(words)} axes, the tensor has {tensor.ndim}")
        for pattern, change in self.replace.items():
            tensor = change(tensor) if fnmatch.fnmatchcase(name, pattern) else tensor
        if self.gradients and torch.is_grad_enabled() and tensor.is_floating_point() and not tensor.requires_grad:
            tensor = tensor.clone().requires_grad_()
        labels = {axis: _here.context[side] for axis, _, side in words if side in _here.context}
        data = tensor if self.gradients else _copy_to_cpu(tensor)
        self.records.append(Record(name, tuple(axis for axis, _, _ in words), data, labels, _here.context))
        return tensor


def _copy_to_cpu(tensor: Tensor) -> Tensor:
    """A copy for a record: records are read on the CPU, wherever the model computes."""
    return tensor.detach().clone() if tensor.device.type in ("cpu", "meta") else tensor.detach().cpu()


class _Here(threading.local):
    """Per-thread state, so that a server can record one request while it answers another."""

    trace: Trace | None = None
    names: Mapping[int, str] = {}
    context: Mapping[str, Any] = {}


_here = _Here()


def tracing() -> bool:
    """Whether this thread is recording."""
    return _here.trace is not None


def current_trace() -> Trace | None:
    """The trace that this thread records into, or None."""
    return _here.trace


def tap(module: nn.Module, name: str, tensor: Tensor, axes: str) -> Tensor:
    """Record `tensor` under a name, if this thread is recording; returns it, or its replacement."""
    if _here.trace is None:
        return tensor
    prefix = _here.names[id(module)]
    return _here.trace.add(f"{prefix}.{name}" if prefix else name, tensor, axes)


def trace_context(**facts: Any) -> AbstractContextManager[None]:
    """Attach facts to all values tapped inside the block: decoding step, position, hypotheses, tokens.

    >>> with record(layer := nn.Identity()) as trace, trace_context(step=3):
    ...     _ = tap(layer, "logits", torch.ones(1, 2), "batch vocabulary")
    >>> trace.records[0].context
    {'step': 3}
    """
    return _push_context(facts) if tracing() else nullcontext()


@contextmanager
def _push_context(facts: Mapping[str, Any]) -> Iterator[None]:
    before = _here.context
    _here.context = {**before, **{name: fact.cpu() if torch.is_tensor(fact) else fact for name, fact in facts.items()}}
    try:
        yield
    finally:
        _here.context = before


@contextmanager
def without_recording() -> Iterator[None]:
    """Record nothing inside the block, such as a computation on values that were recorded already.

    >>> with record(layer := nn.Identity()) as trace, without_recording():
    ...     _ = tap(layer, "logits", torch.ones(1, 2), "batch vocabulary")
    >>> trace.records
    []
    """
    before, _here.trace = _here.trace, None
    try:
        yield
    finally:
        _here.trace = before


@contextmanager
def record(
    model: nn.Module, replace: Mapping[str, Callable[[Tensor], Tensor]] | None = None, gradients: bool = False
) -> Iterator[Trace]:
    """Record every value that `model` taps inside this block.

    >>> with record(layer := nn.Identity(), replace={"weights": torch.zeros_like}):
    ...     tap(layer, "weights", torch.ones(2), "key")
    tensor([0., 0.])
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


def gradient_norms(losses_T: Tensor, records: list[Record]) -> Tensor:
    """(T, S): norms of d loss_t / d hidden_s. A recurrent layer has one record per position, attention one for all.

    >>> h = torch.ones(1, 2, 3, requires_grad=True)
    >>> gradient_norms((h.sum((0, 2)) * torch.tensor([1.0, 2.0])).cumsum(0), [Record("h", (), h, {}, {})])
    tensor([[1.7321, 0.0000],
            [1.7321, 3.4641]])
    """
    return row_gradient_norms(losses_T, records).norm(dim=1)


def row_gradient_norms(losses_T: Tensor, records: list[Record]) -> Tensor:
    """(T, B, S): gradient norms per row of a batch, where loss_t is a sum over independent rows.

    >>> h = torch.ones(2, 1, 3, requires_grad=True)
    >>> row_gradient_norms(h.sum()[None], [Record("h", (), h, {}, {})])
    tensor([[[1.7321],
             [1.7321]]])
    """

    def norms_BS(loss: Tensor) -> Tensor:
        found = torch.autograd.grad(loss, [r.data for r in records], retain_graph=True, materialize_grads=True)
        return torch.cat([g.reshape(g.shape[0], -1, g.shape[-1]) for g in found], 1).norm(dim=2)

    return torch.stack([norms_BS(loss) for loss in losses_T])
