"""Rules of the operations that compute: how one output number follows from the operands.

A rule is given a `Look` at one output number; it asks for operands by argument, and returns an expression. All that is
known about an operation is here: the walk, the server and the page know none of them.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from regard.look.explain.expressions import Call, Combination, DotProduct, Expression, Reduction, Softmax, Vector
from regard.look.explain.nodes import TapeNode

CALLS = {
    "tanh": "tanh", "sigmoid": "sigmoid", "relu": "ReLU", "exp": "exp", "log": "log", "sin": "sin", "cos": "cos",
    "sqrt": "sqrt", "abs": "abs", "silu": "SiLU", "neg": "negative", "round": "round",
}  # fmt: skip
"""functions of one number, by operation"""
COMBINATIONS = {"add": "+", "sub": "−", "mul": "×", "div": "÷", "pow": "^", "maximum": "max", "minimum": "min"}
REVERSED = {"rsub": "−", "rdiv": "÷", "rpow": "^"}
"""operators whose first argument stands on the right"""


class Look(ABC):
    """One output number of an operation, with access to the operands."""

    node: TapeNode
    at: tuple[int, ...]
    """index of the number"""

    @abstractmethod
    def number(self, part: Any, index: Sequence[int]) -> Expression:
        """One number of an operand, or a number among the arguments."""

    @abstractmethod
    def vector(self, part: Any, flats: Tensor) -> Vector:
        """Several numbers of an operand, by flat index."""

    @abstractmethod
    def shape(self, part: Any) -> torch.Size:
        """Shape of an operand; a number among the arguments has none."""

    def argument(self, position: int, name: str, default: Any = None) -> Any:
        """An argument by position or by name."""
        args, kwargs = self.node.args, self.node.kwargs
        return args[position] if len(args) > position else kwargs.get(name, default)

    def broadcast(self, part: Any) -> Expression:
        """The number of an operand that belongs to this output number, elementwise."""
        shape = self.shape(part)
        own = self.at[len(self.at) - len(shape) :]
        return self.number(part, [0 if size == 1 else i for size, i in zip(shape, own, strict=True)])

    def row(self, part: Any, index: Sequence[int], dim: int) -> Vector:
        """All numbers of an operand along an axis."""
        shape = self.shape(part)
        grid = [torch.tensor([i]) for i in index]
        grid[dim] = torch.arange(shape[dim])
        return self.vector(part, flat_indices(grid, shape))

    def block(self, part: Any, index: Sequence[int], dims: Sequence[int]) -> Vector:
        """All numbers of an operand along several axes."""
        shape = self.shape(part)
        axes = {dim % len(shape) for dim in dims}
        grid = [torch.arange(size) if i in axes else torch.tensor([index[i]]) for i, size in enumerate(shape)]
        return self.vector(part, flat_indices(grid, shape))


Rule = Callable[[Look], Expression]


def flat_indices(grid: Sequence[Tensor], shape: torch.Size) -> Tensor:
    """Flat indices of all combinations of indices per axis.

    >>> flat_indices([torch.tensor([1]), torch.arange(3)], torch.Size([2, 3]))
    tensor([3, 4, 5])
    """
    flat = torch.zeros(1, dtype=torch.long)
    for indices, size in zip(grid, shape, strict=True):
        flat = (flat[:, None] * size + indices[None]).reshape(-1)
    return flat


def rule_of(operation: str) -> Rule | None:
    """The rule of an operation; None: it has none, such as one that makes masks."""
    if operation in CALLS:
        return lambda look: Call(CALLS[operation], look.broadcast(look.node.args[0]))
    if operation in COMBINATIONS or operation in REVERSED:
        return _combination
    return RULES.get(operation)


def _combination(look: Look) -> Expression:
    left, right = (look.broadcast(part) for part in look.node.args[:2])
    if look.node.operation in REVERSED:
        return Combination(REVERSED[look.node.operation], (right, left))
    alpha = look.node.kwargs.get("alpha", 1)
    if alpha != 1:
        right = Combination("×", (look.number(alpha, ()), right))
    return Combination(COMBINATIONS[look.node.operation], (left, right))


def _with_bias(look: Look, product: Expression, bias: Any, index: Sequence[int]) -> Expression:
    return product if bias is None else Combination("+", (product, look.number(bias, index)))


def _linear(look: Look) -> Expression:
    x, weight, *_ = look.node.args
    *rows, unit = look.at
    dot = DotProduct(look.row(x, [*rows, 0], -1), look.row(weight, [unit, 0], 1))
    return _with_bias(look, dot, look.argument(2, "bias"), [unit])


def _matmul(look: Look) -> Expression:
    left, right = look.node.args[:2]
    if look.node.operation == "rmatmul":
        left, right = right, left
    a, b = look.shape(left), look.shape(right)
    at = list(look.at)
    column = [at.pop()] if len(b) > 1 else []
    line = [at.pop()] if len(a) > 1 else []

    def batch(shape: torch.Size) -> list[int]:
        """Index of the batch axes, which are broadcast."""
        sizes = shape[:-2]
        return [0 if size == 1 else i for size, i in zip(sizes, at[len(at) - len(sizes) :], strict=True)]

    row = look.row(left, [*batch(a), *line, 0], -1)
    return DotProduct(row, look.row(right, [*batch(b), 0, *column], -2 if len(b) > 1 else -1))


def _convolution(look: Look) -> Expression:
    """Window of the input times a filter; numbers of the padding are 0 and left out."""
    x, weight = look.node.args[:2]
    dims = len(look.at) - 2
    stride, padding, dilation = (
        _per_axis(look.argument(i, name, default), dims)
        for i, name, default in ((3, "stride", 1), (4, "padding", 0), (5, "dilation", 1))
    )
    groups = look.argument(6, "groups", 1)
    size, kernel = look.shape(x), look.shape(weight)
    n, channel, *place = look.at
    first = channel // (kernel[0] // groups) * kernel[1]
    taps = torch.cartesian_prod(*(torch.arange(k) for k in kernel[2:])).view(-1, dims)
    start = torch.tensor([i * s - p for i, s, p in zip(place, stride, padding, strict=True)])
    at = start + taps * torch.tensor(dilation)
    inside = ((at >= 0) & (at < torch.tensor(size[2:]))).all(1)
    at, taps = at[inside], taps[inside]
    read, weights = [], []
    for c in range(kernel[1]):
        head, own = n * size[1] + first + c, channel * kernel[1] + c
        read.append(_flat(at, size[2:]) + head * math.prod(size[2:]))
        weights.append(_flat(taps, kernel[2:]) + own * math.prod(kernel[2:]))
    dot = DotProduct(look.vector(x, torch.cat(read)), look.vector(weight, torch.cat(weights)))
    return _with_bias(look, dot, look.argument(2, "bias"), [channel])


def _flat(index: Tensor, shape: Sequence[int]) -> Tensor:
    flat = torch.zeros(len(index), dtype=torch.long)
    for i, size in enumerate(shape):
        flat = flat * size + index[:, i]
    return flat


def _per_axis(value: Any, dims: int) -> list[int]:
    return (
        [int(v) for v in value] * (dims if len(value) == 1 else 1)
        if isinstance(value, tuple | list)
        else [value] * dims
    )


def _max_pool(look: Look) -> Expression:
    x = look.node.args[0]
    dims = 1 if look.node.operation == "max_pool1d" else 2
    kernel = _per_axis(look.argument(1, "kernel_size"), dims)
    stride = _per_axis(look.argument(2, "stride") or kernel, dims)
    padding = _per_axis(look.argument(3, "padding", 0), dims)
    shape = look.shape(x)
    lead, place = look.at[:-dims], look.at[-dims:]
    grid = [torch.tensor([i]) for i in lead]
    for i, k, s, p, size in zip(place, kernel, stride, padding, shape[-dims:], strict=True):
        window = torch.arange(i * s - p, i * s - p + k)
        grid.append(window[(window >= 0) & (window < size)])
    return Reduction("max", look.vector(x, flat_indices(grid, shape)))


def _layer_norm(look: Look) -> Expression:
    x, shape = look.node.args[0], look.argument(1, "normalized_shape")
    gain, bias, epsilon = (look.argument(2, "weight"), look.argument(3, "bias"), look.argument(4, "eps", 1e-5))
    row = look.block(x, look.at, range(-len(shape), 0))
    centered = Combination("−", (look.broadcast(x), Reduction("mean", row)))
    return _scale(look, Combination("÷", (centered, Reduction("deviation", row, epsilon))), gain, bias)


def _rms_norm(look: Look) -> Expression:
    x, shape = look.node.args[0], look.argument(1, "normalized_shape")
    epsilon = look.argument(3, "eps")
    row = look.block(x, look.at, range(-len(shape), 0))
    rms = Reduction("root mean square", row, torch.finfo(torch.float32).eps if epsilon is None else epsilon)
    return _scale(look, Combination("÷", (look.broadcast(x), rms)), look.argument(2, "weight"), None)


def _scale(look: Look, normal: Expression, gain: Any, bias: Any) -> Expression:
    if gain is not None:
        normal = Combination("×", (normal, look.broadcast(gain)))
    return normal if bias is None else Combination("+", (normal, look.broadcast(bias)))


def _batch_norm(look: Look) -> Expression:
    """With the running statistics: a model that is looked at is not trained."""
    x, mean, variance = look.node.args[:3]
    gain, bias = look.argument(3, "weight"), look.argument(4, "bias")
    channel, epsilon = [look.at[1]], look.argument(7, "eps", 1e-5)
    spread = Combination("+", (look.number(variance, channel), look.number(epsilon, ())))
    normal: Expression = Combination("−", (look.broadcast(x), look.number(mean, channel)))
    normal = Combination("÷", (normal, Call("sqrt", spread)))
    if gain is not None:
        normal = Combination("×", (normal, look.number(gain, channel)))
    return _with_bias(look, normal, bias, channel)


def _softmax(look: Look) -> Expression:
    x = look.node.args[0]
    dim = look.argument(1, "dim")
    row = look.row(x, look.at, dim)
    share = Softmax(look.broadcast(x), row)
    return Call("log", share) if look.node.operation == "log_softmax" else share


def _reduction(look: Look) -> Expression:
    """Sum, mean or largest number along axes, kept or not."""
    x, shape = look.node.args[0], look.shape(look.node.args[0])
    dim = look.argument(1, "dim")
    dims = range(len(shape)) if dim is None else [dim] if isinstance(dim, int) else dim
    axes = {d % len(shape) for d in dims}
    own = iter(look.at)
    kept = len(look.at) == len(shape)
    index = [(next(own) if kept or i not in axes else 0) for i in range(len(shape))]
    name = {"amax": "max", "max": "max", "sum": "sum", "mean": "mean", "var_mean": "mean"}[look.node.operation]
    if look.node.operation == "var_mean" and not look.node.output:
        name = "variance" if look.node.kwargs.get("correction", 1) == 0 else "sample variance"
    return Reduction(name, look.block(x, index, sorted(axes)))


def _adaptive_mean(look: Look) -> Expression:
    x = look.node.args[0]
    shape = look.shape(x)
    grid = [torch.tensor([i]) for i in look.at[:-2]]
    for i, size, out in zip(look.at[-2:], shape[-2:], look.node.shape[-2:], strict=True):
        grid.append(torch.arange(i * size // out, -(-(i + 1) * size // out)))
    return Reduction("mean", look.vector(x, flat_indices(grid, shape)))


def _gelu(look: Look) -> Expression:
    form = "GELU, tanh form" if look.argument(1, "approximate", "none") == "tanh" else "GELU"
    return Call(form, look.broadcast(look.node.args[0]))


def _glu(look: Look) -> Expression:
    """Gated linear unit: one half of the numbers times the sigmoid of the other half."""
    x, dim = look.node.args[0], look.argument(1, "dim", -1)
    half = look.shape(x)[dim] // 2
    gate = list(look.at)
    gate[dim] += half
    return Combination("×", (look.number(x, look.at), Call("sigmoid", look.number(x, gate))))


def _lerp(look: Look) -> Expression:
    start, end, weight = (look.broadcast(part) for part in look.node.args[:3])
    return Combination("+", (start, Combination("×", (weight, Combination("−", (end, start))))))


def _normalize(look: Look) -> Expression:
    x, dim = look.node.args[0], look.argument(2, "dim", 1)
    length = Reduction("length", look.row(x, look.at, dim))
    least = look.number(look.argument(3, "eps", 1e-12), ())
    return Combination("÷", (look.broadcast(x), Combination("max", (length, least))))


def _clamp(look: Look) -> Expression:
    number = look.broadcast(look.node.args[0])
    for operator, bound in (("max", look.argument(1, "min")), ("min", look.argument(2, "max"))):
        if bound is not None:
            number = Combination(operator, (number, look.broadcast(bound)))
    return number


RULES: dict[str, Rule] = {
    "linear": _linear,
    "_linear_pointwise": _linear,
    "matmul": _matmul,
    "rmatmul": _matmul,
    "bmm": _matmul,
    "mm": _matmul,
    "mv": _matmul,
    "conv1d": _convolution,
    "conv2d": _convolution,
    "max_pool1d": _max_pool,
    "max_pool2d": _max_pool,
    "adaptive_avg_pool2d": _adaptive_mean,
    "layer_norm": _layer_norm,
    "rms_norm": _rms_norm,
    "batch_norm": _batch_norm,
    "softmax": _softmax,
    "log_softmax": _softmax,
    "sum": _reduction,
    "mean": _reduction,
    "amax": _reduction,
    "max": _reduction,
    "var_mean": _reduction,
    "gelu": _gelu,
    "glu": _glu,
    "lerp": _lerp,
    "normalize": _normalize,
    "clamp": _clamp,
}
"""by name of the operation; those of one or two numbers are in CALLS and COMBINATIONS"""
