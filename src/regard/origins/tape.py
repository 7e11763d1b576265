"""Backpropagation on a tape: Linnainmaa 1970, "The representation of the cumulative rounding error of an algorithm ..."

New: one walk backwards over the instructions of a computation gives the derivatives of its result with respect to all
inputs and all intermediate results, at a small multiple of the cost of the computation itself. Instruction p stores its
result in cell I[p] and reads the cells J[p] and K[p]; Dj[p] and Dk[p] are the partial derivatives of the result with
respect to them. A table C, one number per cell, starts as 0 except for C = 1 at the final result. The walk from the
last instruction to the first moves each entry of C from a result to its arguments. The paper's first use is the
rounding error: derivative times local error, summed over all instructions. PyTorch's autograd is the same walk over
tensors. (Master's thesis, Helsinki 1970; BIT 16, 1976.)
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

UNIT_ROUNDOFF = 2.0**-24
"""largest relative error of one correctly rounded float32 operation"""


class Tape:
    """Instructions in the order in which they were executed; cells are numbered from 1.

    >>> tape = Tape()
    >>> x, y = tape.variable(3.0), tape.variable(4.0)
    >>> z = x * y + x
    >>> tape.I, tape.J, tape.K, tape.Dj, tape.Dk
    ([3, 4], [1, 3], [2, 1], [4.0, 1.0], [3.0, 1.0])
    >>> C = gradients(tape, z)
    >>> z.value, C[x.cell], C[y.cell]
    (15.0, 5.0, 3.0)
    """

    def __init__(self) -> None:
        self.I: list[int] = []
        self.J: list[int] = []
        self.K: list[int] = []
        self.Dj: list[float] = []
        self.Dk: list[float] = []
        self.operations: list[str] = []
        """name of the operation of each instruction, such as *"""
        self.results: list[Any] = []
        """result of each instruction"""
        self.cells = 0

    def variable(self, value: Any) -> TapeNumber:
        """A new cell that holds an input."""
        self.cells += 1
        return TapeNumber(self, self.cells, value)

    def record(
        self, operation: str, value: Any, j: TapeNumber, dj: Any, k: TapeNumber | None = None, dk: Any = 0.0
    ) -> TapeNumber:
        """Append an instruction with one or two arguments; its result gets a new cell."""
        result = self.variable(value)
        self._append(operation, value, result.cell, j.cell, float(dj), k.cell if k else 0, float(dk))
        return result

    def store(self, into: TapeNumber, value: TapeNumber) -> TapeNumber:
        """The instruction `into := value`, which overwrites a cell: its derivative up to here ends with this."""
        self._append("=", value.value, into.cell, value.cell, 1.0, 0, 0.0)
        return TapeNumber(self, into.cell, value.value)

    def _append(self, operation: str, value: Any, i: int, j: int, dj: float, k: int, dk: float) -> None:
        self.I.append(i)
        self.J.append(j)
        self.K.append(k)
        self.Dj.append(dj)
        self.Dk.append(dk)
        self.operations.append(operation)
        self.results.append(value)


@dataclass(frozen=True, eq=False)
class TapeNumber:
    """A number in a cell of a tape; arithmetic with it is recorded. Constants need no cell."""

    tape: Tape
    cell: int
    value: Any
    """a float, a float32 of NumPy, or a Fraction"""

    def __add__(self, other: TapeNumber | float) -> TapeNumber:
        if not isinstance(other, TapeNumber):
            return self.tape.record("+", self.value + other, self, 1.0)
        return self.tape.record("+", self.value + other.value, self, 1.0, other, 1.0)

    def __sub__(self, other: TapeNumber | float) -> TapeNumber:
        if not isinstance(other, TapeNumber):
            return self.tape.record("-", self.value - other, self, 1.0)
        return self.tape.record("-", self.value - other.value, self, 1.0, other, -1.0)

    def __mul__(self, other: TapeNumber | float) -> TapeNumber:
        if not isinstance(other, TapeNumber):
            return self.tape.record("*", self.value * other, self, other)
        return self.tape.record("*", self.value * other.value, self, other.value, other, self.value)

    def __truediv__(self, other: TapeNumber) -> TapeNumber:
        quotient = self.value / other.value
        return self.tape.record("/", quotient, self, 1 / other.value, other, -quotient / other.value)

    def __neg__(self) -> TapeNumber:
        return self.tape.record("neg", -self.value, self, -1.0)

    __radd__, __rmul__ = __add__, __mul__

    def exp(self) -> TapeNumber:
        result = math.exp(self.value)
        return self._function("exp", result, result)

    def sin(self) -> TapeNumber:
        return self._function("sin", math.sin(self.value), math.cos(self.value))

    def tanh(self) -> TapeNumber:
        result = math.tanh(self.value)
        return self._function("tanh", result, 1 - result**2)

    def sigmoid(self) -> TapeNumber:
        result = 0.5 * (1 + math.tanh(0.5 * self.value))  # 1 / (1 + exp(-x)) without overflow
        return self._function("sigmoid", result, result * (1 - result))

    def _function(self, name: str, result: float, derivative: float) -> TapeNumber:
        return self.tape.record(name, type(self.value)(result), self, derivative)  # a float32 stays one


@dataclass(frozen=True)
class WalkStep:
    """One instruction of the walk backwards."""

    p: int
    """number of the instruction, from 1"""
    coefficient: float
    """derivative of the final result with respect to the result of this instruction"""
    C: tuple[float, ...]
    """the table after the step; C[0] is not used"""


def walk_back(tape: Tape, result: TapeNumber) -> Iterator[WalkStep]:
    """The walk of the paper, one step per instruction, from the last to the first."""
    C = [0.0] * (tape.cells + 1)
    C[result.cell] = 1.0
    for p, coefficient in _walk(tape, C):
        yield WalkStep(p + 1, coefficient, tuple(C))


def _walk(tape: Tape, C: list[float]) -> Iterator[tuple[int, float]]:
    for p in range(len(tape.I) - 1, -1, -1):
        coefficient = C[tape.I[p]]
        C[tape.I[p]] = 0.0
        if coefficient != 0:
            if tape.Dj[p] != 0:
                C[tape.J[p]] += coefficient * tape.Dj[p]
            if tape.Dk[p] != 0:
                C[tape.K[p]] += coefficient * tape.Dk[p]
        yield p, coefficient


def gradients(tape: Tape, result: TapeNumber) -> list[float]:
    """The table C at the end of the walk: the derivative of `result` with respect to each input, by cell."""
    C = [0.0] * (tape.cells + 1)
    C[result.cell] = 1.0
    for _ in _walk(tape, C):
        pass
    return C


def rounding_error_bound(tape: Tape, result: TapeNumber, unit_roundoff: float = UNIT_ROUNDOFF) -> float:
    """First-order bound of the rounding error of `result`, if each instruction rounds correctly.

    An instruction errs by at most its result times the unit roundoff; the final result, by the derivative times that.

    >>> import numpy as np
    >>> tape = Tape()
    >>> x = tape.variable(np.float32(0.1))
    >>> rounding_error_bound(tape, x * x) == UNIT_ROUNDOFF * float(np.float32(0.1) * np.float32(0.1))
    True
    """
    C = [0.0] * (tape.cells + 1)
    C[result.cell] = 1.0
    return unit_roundoff * sum(abs(coefficient * float(tape.results[p])) for p, coefficient in _walk(tape, C))
