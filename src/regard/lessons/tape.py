"""Lesson: Linnainmaa's tape, walked backwards one instruction at a time, and the rounding error that it bounds."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch

from regard.lessons.engine.builder import Input, LessonBuilder, value
from regard.lessons.engine.exercises import Exercise
from regard.lessons.engine.reading import Reading
from regard.origins.tape import Tape, TapeNumber, WalkStep, gradients, rounding_error_bound, walk_back

EXPRESSIONS: dict[str, Callable[[TapeNumber, TapeNumber], TapeNumber]] = {
    "x*y + x": lambda x, y: x * y + x,
    "(x + y)*(x - y)": lambda x, y: (x + y) * (x - y),
    "x/y - y/x": lambda x, y: x / y - y / x,
    "tanh(x*y) + x": lambda x, y: (x * y).tanh() + x,
    "((x*y + x)*y + x)*y": lambda x, y: ((x * y + x) * y + x) * y,
}
INPUTS = (
    Input("x", 0.3, "first argument", bounds=(-1000, 1000)),
    Input("y", 0.6, "second argument", bounds=(-1000, 1000)),
    Input("f", "(x + y)*(x - y)", "the computation", choices=tuple(EXPRESSIONS)),
    Input("p", 2, "the instruction to look at", bounds=(1, 5)),
)
COLUMNS = ["I", "J", "K", "Dj", "Dk", "result"]


def compute(page: LessonBuilder) -> None:
    """Record a computation, walk back over it, and bound its rounding error."""
    if page.data("f") == "x/y - y/x" and 0 in (page.data("x"), page.data("y")):
        raise page.error("x and y must not be 0 where one divides the other")
    tape = Tape()
    x, y = tape.variable(page.data("x")), tape.variable(page.data("y"))
    result = EXPRESSIONS[page.data("f")](x, y)
    _record(page, tape)
    steps = list(walk_back(tape, result))
    _walk(page, tape, steps)
    _instruction(page, tape, steps)
    C = gradients(tape, result)
    page.step(
        "The derivatives",
        "What remains in the cells of x and y are the derivatives with respect to them, both from a single walk.",
        "",
        "C",
        value("dx", C[x.cell], "", r"\frac{\partial f}{\partial x}"),
        value("dy", C[y.cell], "", r"\frac{\partial f}{\partial y}"),
    )
    page.compare("the tape and torch.autograd", autograd(page), [C[x.cell], C[y.cell]], 1e-9)
    _rounding_error(page)
    page.expect("df/dx of (x + y)(x - y) is 2 x", 0.6, "dx")
    page.expect("df/dy of (x + y)(x - y) is -2 y", -1.2, "dy")


def _record(page: LessonBuilder, tape: Tape) -> None:
    columns = zip(tape.I, tape.J, tape.K, tape.Dj, tape.Dk, map(float, tape.results))
    rows = [f"{p}: {name}" for p, name in enumerate(tape.operations, 1)]
    page.step(
        "The tape",
        "Cell 1 holds x and cell 2 holds y. Each instruction writes its result into a new cell I, reads the cells J "
        "and K (0: it has one argument), and notes the derivatives of its result with respect to both.",
        r"D_j = \frac{\partial I}{\partial J}, \quad D_k = \frac{\partial I}{\partial K}",
        "x y f",
        value("tape", [list(map(float, row)) for row in columns], "p column", "", {"p": rows, "column": COLUMNS}),
    )


def _walk(page: LessonBuilder, tape: Tape, steps: list[WalkStep]) -> None:
    first = [0.0] * tape.cells
    first[tape.I[-1] - 1] = 1.0
    rows = [first, *(list(step.C[1:]) for step in steps)]
    labels = {
        "p": ["start", *(f"p = {step.p}" for step in steps)],
        "cell": ["x", "y", *(f"cell {i}" for i in range(3, tape.cells + 1))],
    }
    page.step(
        "The walk backwards",
        "The table C has one number per cell: 1 for the final result, 0 elsewhere. From the last instruction to the "
        "first, the number of the result's cell is taken out and added to the cells of the arguments, times the "
        "derivatives.",
        r"c = C[I_p], \quad C[J_p] \leftarrow C[J_p] + c D_j, \quad C[K_p] \leftarrow C[K_p] + c D_k",
        "tape",
        value("C", rows, "p cell", "C", labels),
    )


def _instruction(page: LessonBuilder, tape: Tape, steps: list[WalkStep]) -> None:
    p = min(page.data("p"), len(steps))
    step = next(step for step in steps if step.p == p)
    page.step(
        f"Instruction {p}: {tape.operations[p - 1]}",
        "Its coefficient is the derivative of the final result with respect to its own result; each argument gets the "
        "coefficient times its derivative.",
        r"c D_j, \quad c D_k",
        "tape C p",
        value("coefficient", step.coefficient, "", "c"),
        value("to_j", step.coefficient * tape.Dj[p - 1], "", "c D_j"),
        value("to_k", step.coefficient * tape.Dk[p - 1], "", "c D_k"),
    )


def _rounding_error(page: LessonBuilder) -> None:
    """The paper's own use: the error of the computation in float32."""
    tape = Tape()
    arguments = [tape.variable(np.float32(page.data(name))) for name in "xy"]
    rounded = EXPRESSIONS[page.data("f")](*arguments)
    exact = Tape()
    result = EXPRESSIONS[page.data("f")](*(exact.variable(float(one.value)) for one in arguments))
    error, bound = abs(float(rounded.value) - result.value), rounding_error_bound(tape, rounded)
    page.step(
        "The rounding error",
        "What Linnainmaa computed it for. In float32 each instruction is rounded, by at most its result times 2^-24. "
        "Each such error reaches the final result times the coefficient: the sum of all is a bound for the error.",
        r"\text{error} \le 2^{-24} \sum_p \mid c_p I_p \mid",
        "x y f C",
        value("single", float(rounded.value), "", r"f_{32}"),
        value("error", error, "", r"\text{error}"),
        value("bound", bound, "", r"\text{bound}"),
    )
    page.compare("how far the error exceeds its bound", 0.0, max(0.0, error - bound), 0)


def autograd(page: LessonBuilder) -> list[float]:
    """Derivatives of the same expression by torch."""
    x, y = (torch.tensor(page.data(name), dtype=torch.float64, requires_grad=True) for name in "xy")
    EXPRESSIONS[page.data("f")](x, y).backward()  # type: ignore[arg-type, attr-defined]
    return [float(one.grad) if one.grad is not None else 0.0 for one in (x, y)]


FIGURE = "x > tape; y > tape > C > dx; C > dy"
EXERCISES = (
    Exercise(
        "For f = x*y + x at x = 2 and y = 3, what is the derivative with respect to x?",
        "dx",
        {"f": "x*y + x", "x": 2.0, "y": 3.0, "p": 1},
        hint="the sum of the derivatives along both uses of x",
    ),
    Exercise(
        "And with respect to y?",
        "dy",
        {"f": "x*y + x", "x": 2.0, "y": 3.0, "p": 1},
        hint="y is used once, multiplied by x",
    ),
)
READING = Reading(
    "Linnainmaa's tape, walked backwards; the bound of the rounding error",
    ("reverse-mode automatic differentiation", "computation graph", "autograd", "backpropagation"),
    (
        "Linnainmaa 1970, The representation of the cumulative rounding error of an algorithm as a Taylor "
        "expansion of the local rounding errors",
    ),
)
