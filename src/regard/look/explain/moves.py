"""Operations that only move numbers: where each output number came from, found by moving indices instead of numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_map

from regard.look.explain.nodes import Operand, TapeNode

IDENTITIES = frozenset(
    (
        "clone", "detach", "contiguous", "to", "float", "double", "half",
        "bfloat16", "cpu", "data", "dropout", "alias", "type_as", "requires_grad",
        "identity", "feature_dropout", "dropout1d", "dropout2d",
    )
)  # fmt: skip
"""operations that return the same numbers in the same places; layers are in eval mode"""
VIEWS = frozenset(
    (
        "view", "view_as", "reshape", "reshape_as", "flatten", "unflatten", "transpose",
        "swapaxes", "permute", "movedim", "mT", "T", "t", "chunk",
        "split", "tensor_split", "unbind", "cat", "concat", "stack", "hstack",
        "expand", "expand_as", "broadcast_to", "squeeze", "unsqueeze", "getitem", "select",
        "narrow", "index_select", "gather", "take_along_dim", "repeat_interleave", "repeat", "tile",
        "flip", "roll", "unfold", "pad", "masked_fill", "diagonal",
    )
)  # fmt: skip
"""operations that move the numbers of their first operand, or of a list of operands"""
SPECIAL = frozenset(
    (
        "setitem", "scatter", "embedding", "where", "topk",
    )
)  # fmt: skip
CONSTANT = -1
"""index of a number that is not an operand's, such as padding"""
Get = Callable[[int], Tensor]
"""node -> its indices, or its numbers"""


def is_move(operation: str, output: int = 0) -> bool:
    """Whether an operation only moves numbers; the second output of topk are the places of those that it moves.

    >>> is_move("topk"), is_move("topk", 1), is_move("add")
    (True, False, False)
    """
    if operation == "topk" and output:
        return False
    return operation in IDENTITIES or operation in VIEWS or operation in SPECIAL


def moved_operands(node: TapeNode) -> list[int]:
    """Nodes whose numbers an operation moves; others, such as indices and masks, say where."""
    if node.operation in IDENTITIES or node.operation in VIEWS:
        return _numbers(node.args[:1] or node.kwargs)
    if node.operation == "embedding":
        return _numbers(node.args[1])
    if node.operation == "setitem":
        return _numbers((node.args[0], node.args[2]))
    if node.operation == "scatter":
        return _numbers((node.args[0], node.args[3:], node.kwargs))
    if node.operation == "where":
        return _numbers((node.args[0], node.args[2:]) if _is_method(node) else node.args[1:])
    return _numbers(node.args[0])


def move(node: TapeNode, indices: Get, numbers: Get) -> Tensor:
    """The operation applied to indices: of each output number, the index of the number that was moved there.

    `indices` gives those of a node that is moved, `numbers` the data of one that says where to.
    """
    if node.operation in IDENTITIES:
        return indices(moved_operands(node)[0]).reshape(node.shape)
    if node.operation == "topk":
        found = node.function(*tree_map(lambda part: _fill(part, numbers), node.args), **node.kwargs)  # type: ignore[misc]
        dim = node.kwargs.get("dim", node.args[2] if len(node.args) > 2 else -1)
        return indices(moved_operands(node)[0]).gather(dim, found[1])
    moved = set(moved_operands(node))
    args, kwargs = tree_map(
        lambda part: _fill(part, lambda n: indices(n) if n in moved else numbers(n)),
        (_without_constants(node.args, node.operation), dict(node.kwargs)),
    )
    if node.operation == "setitem":
        out: Tensor = args[0].clone()
        out[args[1]] = args[2]
        return out
    if node.operation == "scatter":
        out = args[0].clone()
        return out.scatter_(*args[1:], **kwargs)
    if node.operation == "pad" and kwargs.get("mode", args[2] if len(args) > 2 else "constant") == "constant":
        return torch.nn.functional.pad(args[0], args[1], value=CONSTANT)
    result = node.function(*args, **kwargs)  # type: ignore[misc]
    return result if isinstance(result, Tensor) else result[node.output]


def constant(node: TapeNode) -> float:
    """The number that an operation writes where it moves none."""
    if node.operation == "pad":
        value = node.kwargs.get("value", node.args[3] if len(node.args) > 3 else 0.0)
        return float(value or 0.0)
    scalars = [part for part in (*node.args[1:], *node.kwargs.values()) if isinstance(part, int | float)]
    return float(scalars[-1]) if scalars else 0.0


def _without_constants(args: tuple[Any, ...], operation: str) -> tuple[Any, ...]:
    """Arguments with CONSTANT in place of the numbers that the operation writes."""
    at = {"masked_fill": (2,), "setitem": (2,), "where": (1, 2), "scatter": (3,)}.get(operation, ())
    return tuple(CONSTANT if i in at and isinstance(part, int | float) else part for i, part in enumerate(args))


def _is_method(node: TapeNode) -> bool:
    """Whether `where` was called as x.where(condition, other)."""
    return node.function is torch.Tensor.where


def _fill(part: Any, get: Get) -> Any:
    return get(part.node) if isinstance(part, Operand) else part


def _numbers(arguments: Any) -> list[int]:
    found: list[int] = []
    tree_map(lambda part: found.append(part.node) if isinstance(part, Operand) else None, arguments)
    return found
