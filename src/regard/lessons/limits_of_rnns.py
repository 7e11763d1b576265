"""Lesson: limits of recurrent networks: time against length, lost context, and what theory says of their power."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import Any

import torch

from regard.lessons.engine.builder import Input, LessonBuilder, Value, value
from regard.lessons.engine.exercises import Exercise
from regard.lessons.engine.layers import recurrent_layer
from regard.lessons.engine.reading import Reading

INPUTS = (
    Input("length", 64, "words of a sequence", bounds=(1, 100_000), symbol="T"),
    Input("layers", 1, "recurrent layers", bounds=(1, 64)),
    Input("n", 20, "letters a, followed by as many b", bounds=(1, 200)),
    Input("weight", 1.0, "weight of a letter in the counter", bounds=(0.01, 10), symbol="w"),
)


def compute(page: LessonBuilder) -> None:
    """Steps that wait for each other, times and recall as measured, and two counters."""
    measured = measurements()
    _steps(page)
    _time(page, measured["time"], measured)
    _recall(page, measured["recall"], measured)
    _counters(page)


@cache
def measurements() -> dict[str, Any]:
    """Figures that benchmarks/rnn_limits.py has written."""
    text = (files("regard.lessons") / "measured" / "rnn_limits.json").read_text(encoding="utf-8")
    found: dict[str, Any] = json.loads(text)
    return found


def _steps(page: LessonBuilder) -> None:
    length, layers = page.data("length"), page.data("layers")
    page.step(
        "Each step waits for the one before",
        "A state needs the previous state: the steps of a layer cannot be computed at the same time, however many "
        "processors there are. In training a Transformer computes all positions of a layer at once; so the longest "
        "chain of computations that wait for each other is its number of layers.",
        r"h_t = f(h_{t-1}, x_t)",
        "length layers",
        value("chain", [length + layers - 1, layers], "model", r"\text{steps in sequence}",
              {"model": ["recurrent", "attention"]}),
        value("path", [length - 1, 1 if length > 1 else 0], "model", r"\text{steps between first and last word}",
              {"model": ["recurrent", "attention"]}),
    )  # fmt: skip


def _time(page: LessonBuilder, table: dict[str, Any], measured: dict[str, Any]) -> None:
    ticks = {"model": list(table["ms"]), "length": [str(n) for n in table["lengths"]]}
    growth = [row[-1] / row[0] for row in table["ms"].values()]
    words = table["lengths"][-1] / table["lengths"][0]
    counts = " and ".join(f"{name} {count:,}" for name, count in table["parameters"].items())
    page.step(
        "Time against length, measured",
        f"Milliseconds of a training step (forward and backward) of one sequence by its length: encoders of this "
        f"package ({counts} parameters), one thread, CPU time; {measured['command']}, {measured['date']}. And the "
        f"factor from the shortest to the longest, which is {words:g} times as long. A single thread does one thing "
        "at a time in both models; where thousands of units work in parallel, only the recurrent one has to wait.",
        r"\text{ms against length}",
        "length",
        value("ms", list(table["ms"].values()), "model length", r"\text{ms}", ticks, "log"),
        value("growth", growth, "model", r"\text{factor}", {"model": ticks["model"]}),
        _at_length(page, "ms_here", table["lengths"], table["ms"]),
    )


def _recall(page: LessonBuilder, table: dict[str, Any], measured: dict[str, Any]) -> None:
    ticks = {"model": list(table["accuracy"]), "length": [str(n) for n in table["lengths"]]}
    page.step(
        "Context that is lost, measured",
        f"A model reads random words and is then asked for the first one. Accuracy by length after {table['steps']} "
        f"training steps on sequences of that length; chance is {table['chance']:.4f}. ({measured['command']}, "
        f"{measured['date']}.) The first word must survive every later step of a recurrent network; attention reads "
        "it directly.",
        r"\text{accuracy against length}",
        "length",
        value("accuracy", list(table["accuracy"].values()), "model length", r"\text{accuracy}", ticks, "weights"),
        _at_length(page, "recall_here", table["lengths"], table["accuracy"]),
    )


def _at_length(page: LessonBuilder, name: str, lengths: list[int], rows: dict[str, list[float]]) -> Value:
    """The column of the measured length that is nearest to the lesson's."""
    near = min(range(len(lengths)), key=lambda i: abs(lengths[i] - page.data("length")))
    here = [row[near] for row in rows.values()]
    return value(name, here, "model", rf"\text{{at {lengths[near]} words}}", {"model": list(rows)})


def _counters(page: LessonBuilder) -> None:
    n, weight = page.data("n"), page.data("weight")
    letters = torch.tensor([[1.0]] * n + [[-1.0]] * n, dtype=torch.float64)
    curves = {kind: _count(kind, letters, weight) for kind in ("relu", "tanh")}
    ticks = {"cell": ["ReLU", "tanh"], "step": [str(t + 1) for t in range(2 * n)]}
    page.step(
        "What theory says: counting",
        "Is a text n letters a and then n letters b? A cell with one unit can count: plus w for an a, minus w for a b. "
        "With ReLU the state is the count, and is 0 at the end. With tanh it saturates below 1: after a few letters "
        "one more makes hardly a difference, and the count is lost.",
        r"h_t = f(h_{t-1} \pm w)",
        "n weight",
        value("states", list(curves.values()), "cell step", "h_t", ticks, "line"),
        value("highest", [max(row) for row in curves.values()], "cell", r"\text{after n letters a, at most}",
              {"cell": ticks["cell"]}),
        value("final", [row[-1] for row in curves.values()], "cell", r"\text{at the end}", {"cell": ticks["cell"]}),
    )  # fmt: skip
    rows = [
        ["weights and states are rational numbers of any length, and time is unbounded",
         "can simulate any Turing machine (Siegelmann and Sontag 1995)"],
        ["states have a fixed number of digits",
         "is a finite automaton: it accepts regular languages (Minsky 1967; Merrill et al. 2020)"],
        ["LSTM and ReLU cells with a state that may grow with the length",
         "can count, as above; GRU and tanh cells cannot (Weiss, Goldberg and Yahav 2018)"],
    ]  # fmt: skip
    page.step(
        "What theory says: the power of recurrent networks",
        "What a recurrent network can compute depends on the precision of its numbers. These theorems say what "
        "suitable weights could do, not what training finds: the measured recall above is about the latter.",
        "",
        "n",
        value("theory", rows, "case column", r"\text{power}",
              {"case": ["unbounded precision", "fixed precision", "a counter"], "column": ["if", "it"]}, "records"),
    )  # fmt: skip
    page.compare("the ReLU counter at the end and 0", 0.0, curves["relu"][-1], 1e-6)


def _count(kind: str, letters: torch.Tensor, weight: float) -> list[float]:
    """States of a cell with one unit over the letters, by the package's layer."""
    one = torch.ones(1, 1, dtype=torch.float64)
    layer = recurrent_layer(kind, weight * one, one, torch.zeros(1, dtype=torch.float64))  # type: ignore[arg-type]
    state, found = layer.zeros(letters[:1]), []
    with torch.no_grad():
        for letter in letters:
            hidden, state = layer.step(letter[None], state)
            found.append(float(hidden))
    return found


FIGURE = (
    "length > chain; length > path; n > letters > ReLU > highest; letters > tanh > highest; "
    "weight > ReLU; weight > tanh"
)
EXERCISES = (
    Exercise(
        "A sentence of 100 words: how many recurrent steps lie between its first and its last word?",
        lambda lesson: lesson.value("path").data[0],
        {"length": 100},
        hint="one step per word after the first",
    ),
    Exercise(
        "After 7 letters a, with w = 1, what is the state of the ReLU counter?",
        lambda lesson: lesson.value("highest").data[0],
        {"n": 7},
        hint="it counts",
    ),
)
READING = Reading(
    "Limits of RNNs: time against length, context lost, and their power",
    (
        "sequential computation",
        "long-range dependency",
        "maximum path length",
        "Turing completeness",
        "finite precision",
    ),
    (
        "Vaswani et al. 2017, Attention is all you need, section 4 and table 1",
        "Siegelmann and Sontag 1995, On the computational power of neural nets",
        "Weiss, Goldberg and Yahav 2018, On the practical computational power of finite precision RNNs for "
        "language recognition",
        "Merrill et al. 2020, A formal hierarchy of RNN architectures",
    ),
)
