"""Fused recurrent layers under torch.export: the length of a sequence stays a symbol.

torch.export keeps a recurrent layer as one operator, but computes the shapes of its outputs by unrolling it, which
makes the length a constant. Inside `symbolic_lengths` the shapes come from a function that reads shapes only.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch._C import DispatchKey
from torch._decomp import decomposition_table

OPERATORS = tuple(getattr(torch.ops.aten, name).input for name in ("lstm", "gru", "rnn_tanh", "rnn_relu"))
KEYS = (DispatchKey.Autograd, DispatchKey.CompositeImplicitAutograd)


def output_shapes(x_NLI: Tensor, state: Tensor | list[Tensor], *settings: Any) -> tuple[Tensor, ...]:
    """Outputs of a recurrent layer in one direction, batch first, with their shapes and without their values."""
    states = [state] if isinstance(state, Tensor) else list(state)
    out_NLD = x_NLI.new_empty(x_NLI.shape[0], x_NLI.shape[1], states[0].shape[2])
    return (out_NLD, *(torch.empty_like(part) for part in states))


@contextmanager
def symbolic_lengths() -> Iterator[None]:
    """Context in which tracing keeps the length of a recurrent layer's input symbolic."""
    kernels = {operator: dict(operator.py_kernels) for operator in OPERATORS}
    rules = {operator: decomposition_table[operator] for operator in OPERATORS}
    try:
        for operator in OPERATORS:
            operator.py_kernels.update(dict.fromkeys(KEYS, output_shapes))
            operator._dispatch_cache.clear()
            decomposition_table[operator] = output_shapes
        yield
    finally:
        for operator in OPERATORS:
            operator.py_kernels.clear()
            operator.py_kernels.update(kernels[operator])
            operator._dispatch_cache.clear()
            decomposition_table[operator] = rules[operator]
