"""Lesson: one update of a multi-layer perceptron, by the delta rule, by the tape and by torch."""

from __future__ import annotations

import numpy as np
import torch

from regard.lessons.engine.builder import Input, LessonBuilder, value
from regard.lessons.engine.exercises import Exercise
from regard.lessons.engine.reading import Reading
from regard.origins.mlp import MLPStep, MLPWeights, hidden_states, predict, update

INPUTS = (
    Input("x", [1.0, 0.5], "input", ("input",)),
    Input("t", 1.0, "target", bounds=(0, 1)),
    Input("W", [[1.0, 1.0], [1.0, 1.0]], "weights of the hidden units", ("unit", "input")),
    Input("b", [-0.5, -1.5], "biases of the hidden units", ("unit",)),
    Input("v", [1.0, -1.0], "weights of the output", ("unit",)),
    Input("c", -0.5, "bias of the output"),
    Input("rate", 1.0, "learning rate", bounds=(0.001, 100), symbol=r"\eta"),
)


def compute(page: LessonBuilder) -> None:
    """Forward, error, deltas backwards, gradient, update."""
    x, v = np.array(page.data("x")), np.array(page.data("v"))
    hidden = np.column_stack([np.array(page.data("W")), np.array(page.data("b"))])
    weights = MLPWeights(hidden, np.append(v, page.data("c")))
    step = update(weights, x[None], np.array([page.data("t")]), page.data("rate"))
    h, y = hidden_states(weights, x[None])[0], float(predict(weights, x[None])[0])
    page.step(
        "Forward",
        "Each hidden unit is a perceptron with a smooth step, the sigmoid; the output unit reads their states.",
        r"h = \sigma(W x + b), \quad y = \sigma(v \cdot h + c)",
        "x W b v c",
        value("h", h.tolist(), "unit"),
        value("y", y),
    )
    page.step(
        "The error",
        "Half the squared difference from the target.",
        r"E = \frac{1}{2} (y - t)^2",
        "y t",
        value("E", step.loss),
    )
    delta = (y - page.data("t")) * y * (1 - y)
    deltas = delta * v * h * (1 - h)
    page.step(
        "Deltas, backwards",
        "The delta of a unit is the derivative of the error with respect to its weighted sum. That of the output is "
        "sent back through the weight v to each hidden unit, times the slope of its sigmoid: backpropagation.",
        r"\delta = (y - t) y (1 - y), \quad \delta_i = \delta v_i h_i (1 - h_i)",
        "y t v h",
        value("delta", delta, "", r"\delta"),
        value("deltas", deltas.tolist(), "unit", r"\delta_i"),
    )
    page.step(
        "The gradient",
        "The derivative for a weight is the delta of its unit times its input.",
        r"\frac{\partial E}{\partial W_{ij}} = \delta_i x_j, \quad \frac{\partial E}{\partial v_i} = \delta h_i",
        "delta deltas x h",
        value("dW", np.outer(deltas, x).tolist(), "unit input", r"\frac{\partial E}{\partial W}"),
        value("dv", (delta * h).tolist(), "unit", r"\frac{\partial E}{\partial v}"),
    )
    _update(page, step, x)
    page.compare(
        "the delta rule and the tape", np.outer(deltas, x).tolist(), step.gradient.hidden[:, :-1].tolist(), 1e-12
    )
    page.compare("the tape and torch.autograd", autograd(page).tolist(), step.gradient.hidden[:, :-1].tolist(), 1e-12)


def _update(page: LessonBuilder, step: MLPStep, x: np.ndarray) -> None:
    after = float(predict(step.after, x[None])[0])
    page.step(
        "The update",
        "Every weight moves against its gradient, and the error for this example falls, if the rate is not too large. "
        f"The tape of this update has {step.instructions} instructions.",
        r"w \leftarrow w - \eta \frac{\partial E}{\partial w}",
        "W v dW dv rate t",
        value("W_new", step.after.hidden[:, :-1].tolist(), "unit input", "W"),
        value("v_new", step.after.output[:-1].tolist(), "unit", "v"),
        value("E_new", 0.5 * (after - page.data("t")) ** 2, "", "E"),
    )


def autograd(page: LessonBuilder) -> torch.Tensor:
    """Gradient of the hidden weights by torch."""
    x, W, b, v = page.tensors("x W b v")
    W.requires_grad_()
    y = torch.sigmoid(v @ torch.sigmoid(W @ x + b) + page.data("c"))
    (0.5 * (y - page.data("t")) ** 2).backward()
    assert W.grad is not None
    return W.grad


FIGURE = "x > W > h > v > y > E; t > E > delta > deltas > dW > W_new; delta > dv > v_new"
EXERCISES = (
    Exercise(
        "With the input x = [0, 0], what are the two hidden activations? Two numbers.",
        "h",
        {"x": [0.0, 0.0]},
        hint="only the biases are left: the logistic function of each",
    ),
    Exercise(
        "With v = [0, 0], what are the deltas of the two hidden units? Two numbers.",
        "deltas",
        {"v": [0.0, 0.0]},
        hint="the error comes back through the weights v",
    ),
)
READING = Reading(
    "Applied backpropagation: an MLP trained by that tape, equal to torch",
    ("delta rule", "chain rule", "gradient descent", "hidden unit"),
    ("Rumelhart, Hinton and Williams 1986, Learning representations by back-propagating errors, Nature 323",),
)
