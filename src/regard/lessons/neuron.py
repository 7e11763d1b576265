"""Lesson: a McCulloch-Pitts neuron, its truth table, and XOR by three of them."""

from __future__ import annotations

from regard.lessons.engine.builder import Input, LessonBuilder, value
from regard.lessons.engine.exercises import Exercise
from regard.lessons.engine.reading import Reading
from regard.origins.neuron import AND_NOT, OR, ThresholdNeuron, truth_table, xor

INPUTS = (
    Input("x", [1, 0], "two inputs, each 1 (on) or 0 (off)", ("input",), bounds=(0, 1)),
    Input("threshold", 2, "excitatory inputs that must be on", bounds=(0, 3), symbol=r"\theta"),
    Input("inhibitory", [0, 0], "1 where an input is inhibitory", ("input",), bounds=(0, 1)),
)


def compute(page: LessonBuilder) -> None:
    """One neuron for one input, for all inputs, and three neurons that compute XOR."""
    x, marks = page.data("x"), page.data("inhibitory")
    neuron = ThresholdNeuron(page.data("threshold"), tuple(i for i, on in enumerate(marks) if on))
    page.step(
        "Excitation",
        "The neuron counts the excitatory inputs that are on. An inhibitory input that is on keeps it from firing, "
        "however many others are on.",
        r"\text{excitation} = x_1 + x_2",
        "x inhibitory",
        value("excitation", neuron.excitation(x), "", r"\text{excitation}"),
        value("inhibited", int(any(a and b for a, b in zip(x, marks))), "", r"\text{inhibited}"),
    )
    page.step(
        "The output",
        "It fires if the excitation reaches the threshold. Nothing here is learned: McCulloch and Pitts chose the "
        "threshold by hand.",
        r"y = 1 \text{ if } \text{excitation} \ge \theta",
        "excitation inhibited threshold",
        value("y", neuron.fire(x)),
    )
    rows = truth_table(neuron.fire, 2)
    page.step(
        "The truth table",
        "The same neuron for all inputs. With threshold 2 it is AND, with threshold 1 it is OR; with threshold 0 and "
        "an inhibitory input it is NOT of that input.",
        "",
        "threshold inhibitory",
        value("table", [list(row) for row in rows], "row column", labels={"column": ["x1", "x2", "y"]}),
    )
    both = [AND_NOT.fire(x), AND_NOT.fire(x[::-1])]
    page.step(
        "Exclusive or needs a second layer",
        "No threshold makes one neuron compute XOR. Two neurons that each fire for one input without the other, and an "
        "OR of the two, do: the first network with a hidden layer, built by hand.",
        r"\text{xor} = (x_1 \text{ and not } x_2) \text{ or } (x_2 \text{ and not } x_1)",
        "x",
        value("hidden", both, "unit"),
        value("xor", OR.fire(both), "", r"\text{xor}"),
    )
    page.compare("the network of three neurons and Python's x1 ^ x2", x[0] ^ x[1], xor(x), 0)
    page.expect("threshold 2 is AND", [[0, 0, 0], [0, 1, 0], [1, 0, 0], [1, 1, 1]], "table")


FIGURE = "x > excitation > threshold > y; inhibitory > y"
EXERCISES = (
    Exercise(
        "With x = [1, 0], inhibitory = [0, 0] and threshold = 1, does the neuron fire? Answer 1 or 0.",
        "y",
        {"x": [1, 0], "threshold": 1},
        hint="count the inputs that are on, and compare with the threshold",
    ),
    Exercise(
        "Which threshold turns the two-input neuron into OR? Answer with the threshold.",
        lambda lesson: lesson.value("threshold").data,
        {"threshold": 1},
        hint="OR fires as soon as one input is on",
    ),
)
READING = Reading(
    "The McCulloch-Pitts neuron: AND, OR, NOT; XOR by three",
    ("artificial neuron", "threshold logic unit", "excitatory and inhibitory inputs"),
    ("McCulloch and Pitts 1943, A logical calculus of the ideas immanent in nervous activity",),
)
