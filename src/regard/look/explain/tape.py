"""Operation tape: every torch operation of a block with its operands, so that each number can be followed back.

Tensors are numbered as nodes in the order in which they are made. A node knows its operation, and its operands as
nodes; tensors that no recorded operation made, such as weights and inputs, are roots. Operations that only move numbers
(views, concatenation, writing into a cache) keep no numbers of their own: those are at the node that computed them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_map

from regard.look.explain.moves import is_move
from regard.look.explain.nodes import ROOT, Operand, TapeNode

IN_PLACE = {"__setitem__": "setitem", "__iadd__": "add", "__isub__": "sub", "__imul__": "mul", "__itruediv__": "div"}
"""operators that write into their first operand"""
OPERATORS = {
    "__add__": "add", "__radd__": "add", "__sub__": "sub", "__rsub__": "rsub", "__mul__": "mul", "__rmul__": "mul",
    "__truediv__": "div", "__rtruediv__": "rdiv", "__rdiv__": "rdiv", "__div__": "div", "__matmul__": "matmul",
    "__rmatmul__": "rmatmul", "__neg__": "neg", "__pow__": "pow", "__rpow__": "rpow", "__getitem__": "getitem",
    "true_divide": "div", "divide": "div", "multiply": "mul", "subtract": "sub", "negative": "neg",
}  # fmt: skip
"""usual names of Python's operators"""


class OperationTape(TorchFunctionMode):
    """Records the operations of the block in which it is entered.

    >>> import torch
    >>> x = torch.tensor([1.0, 2.0])
    >>> with OperationTape() as tape:
    ...     y = (x * 3).view(2, 1)
    >>> [node.operation for node in tape.nodes], tape.nodes[tape.number(y)].operands
    (['root', 'mul', 'view'], [1])
    """

    def __init__(self) -> None:
        super().__init__()
        self.nodes: list[TapeNode] = []
        self._numbers: dict[int, int] = {}
        self._alive: list[Tensor] = []  # the id of a tensor is its own only as long as it exists

    def name_weights(self, module: nn.Module) -> None:
        """Make the weights of a module named roots; a second layout of a weight is the weight."""
        for label, tensor, numbers in named_weights(module):
            if id(tensor) not in self._numbers:
                self._add(TapeNode(ROOT, None, (), {}, 0, numbers.shape, numbers, label), tensor)

    def alias(self, tensor: Tensor, made: Tensor) -> None:
        """Let a tensor that was made before the block be the same node as `made`."""
        self._alive.append(tensor)
        self._numbers[id(tensor)] = self.number(made)

    def number(self, tensor: Tensor) -> int:
        """Node of a tensor; one that is not known becomes a root."""
        known = self._numbers.get(id(tensor))
        return known if known is not None else self._add(TapeNode(ROOT, None, (), {}, 0, tensor.shape, tensor), tensor)

    def knows(self, tensor: Tensor) -> bool:
        """Whether a tensor has a node."""
        return id(tensor) in self._numbers

    def _add(self, node: TapeNode, tensor: Tensor) -> int:
        self.nodes.append(node)
        self._alive.append(tensor)
        self._numbers[id(tensor)] = len(self.nodes) - 1
        return len(self.nodes) - 1

    def __torch_function__(
        self, func: Callable[..., Any], types: Sequence[type], args: Any = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        name = operation_name(func)
        writes = name in IN_PLACE or (name.endswith("_") and not name.endswith("__")) or bool(kwargs.get("inplace"))
        if writes and isinstance(args[0], Tensor):
            return self._write(name, func, args, kwargs)
        out = func(*args, **kwargs)
        outputs = [out] if isinstance(out, Tensor) else list(out) if isinstance(out, tuple | list) else []
        given = {id(part) for part in args if isinstance(part, Tensor)}
        if any(isinstance(part, Tensor) and id(part) not in given for part in outputs):
            operands = self._operands(args, kwargs)
            for i, part in enumerate(outputs):
                if isinstance(part, Tensor):
                    self._record(OPERATORS.get(name, name), func, operands, i, part)
        return out

    def _write(self, name: str, func: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        """An operation in place: its first operand keeps the numbers that it had, as another node."""
        target, before = args[0], self.nodes[self.number(args[0])]
        if before.data is not None and before.data.data_ptr() == target.data_ptr():
            before.data = before.data.clone()
        operands = self._operands(args, kwargs)
        out = func(*args, **kwargs)
        usual = IN_PLACE.get(name, name.removesuffix("_"))
        self._record(usual, func, operands, 0, target)
        if isinstance(out, Tensor) and out is not target:
            self.alias(out, target)
        return out

    def _operands(self, args: Any, kwargs: Any) -> tuple[Any, Any]:
        found: tuple[Any, Any] = tree_map(
            lambda p: Operand(self.number(p)) if isinstance(p, Tensor) else p, (args, kwargs)
        )
        return found

    def _record(self, name: str, func: Callable[..., Any], operands: tuple[Any, Any], output: int, out: Tensor) -> None:
        data = None if is_move(name, output) else out
        self._add(TapeNode(name, func, tuple(operands[0]), operands[1], output, out.shape, data), out)


def named_weights(module: nn.Module) -> Iterator[tuple[str, Tensor, Tensor]]:
    """Name, tensor and numbers of each parameter, buffer and other tensor of a module.

    A layer that is laid out for inference has its weight twice; the numbers of both are those of the weight.
    """
    for prefix, part in module.named_modules():
        stored = {name: value for name, value in vars(part).items() if isinstance(value, Tensor)}
        for name, tensor in (*part._parameters.items(), *part._buffers.items(), *stored.items()):
            own = getattr(part, "weight", None) if name in ("transposed", "packed") else None
            if tensor is not None:
                label = f"{prefix}.{'weight' if own is not None else name}".removeprefix(".")
                yield label, tensor, tensor if own is None else own


def operation_name(function: Callable[..., Any]) -> str:
    """Name of a torch function, of an operator, or of an attribute such as `mT`.

    >>> import torch
    >>> operation_name(torch.Tensor.mT.__get__), operation_name(torch.tanh)
    ('mT', 'tanh')
    """
    name = getattr(function, "__name__", type(function).__name__)
    if name == "__get__":
        return str(getattr(function, "__self__").__name__)  # noqa: B009
    return str(name)
