"""Lesson: the learning rate schedule of the Transformer paper: warmup, then decay."""

from __future__ import annotations

import math

from regard.lessons.engine.builder import Input, LessonBuilder, value
from regard.lessons.engine.exercises import Exercise
from regard.lessons.engine.reading import Reading
from regard.train.schedule import Noam

POINTS = 81
"""points of a curve"""

INPUTS = (
    Input("width", 512, "width of the model", symbol="d", bounds=(1, 65536)),
    Input("warmup", 4000, "warmup steps", bounds=(1, 1_000_000)),
    Input("step", 1000, "an example step", bounds=(1, 1_000_000)),
    Input("steps", 20000, "last step of the curve", bounds=(10, 1_000_000)),
    Input("widths", [256, 512, 1024], "widths to compare", ("model",), bounds=(1, 65536)),
    Input("warmups", [2000, 4000, 8000], "warmups to compare", ("way",), bounds=(1, 1_000_000)),
)


def compute(page: LessonBuilder) -> None:
    """One step by the formula, the peak, and curves; every rate comes from the package's schedule."""
    width, warmup, step = (page.data(name) for name in ("width", "warmup", "step"))
    schedule = Noam(width=width, warmup=warmup)
    _one_step(page, warmup, step, schedule)
    peak = schedule.rate(warmup, 1)
    page.step(
        "The peak",
        "Both are equal where the step is the warmup: until then the rate rises linearly, then it falls with the "
        "inverse square root of the step.",
        r"\frac{1}{\sqrt{d} \sqrt{\text{warmup}}}",
        "width warmup",
        value("peak", peak, "", r"\text{peak}"),
    )
    last = page.data("steps")
    steps = sorted({1 + round(i * (last - 1) / (POINTS - 1)) for i in range(POINTS)})
    page.step(
        "The curve",
        "Small at first, while Adam's running averages rest on few steps; large in the middle; smaller again to "
        "converge.",
        r"r(s) = d^{-1/2} \min(s^{-1/2}, s \cdot \text{warmup}^{-3/2})",
        "width warmup steps",
        value("curve", [schedule.rate(s, 1) for s in steps], "step", "r", {"step": [str(s) for s in steps]}, "line"),
    )
    _compare(page, width, warmup, steps)
    formula = width**-0.5 * min(step**-0.5, step * warmup**-1.5)
    page.compare("the formula at this step, and the package's schedule", formula, page.data("rate"))
    page.compare("the peak by its own formula", 1 / math.sqrt(width * warmup), peak)
    page.expect("the peak of the base model", 6.99e-4, "peak", 5e-7)
    page.expect("the peaks of widths 512 (base) and 1024 (big)", [6.99e-4, 4.94e-4], "base_and_big", 5e-7)


def _one_step(page: LessonBuilder, warmup: int, step: int, schedule: Noam) -> None:
    page.step(
        "Two terms",
        "The first rises with every step, the second falls. The smaller one is used.",
        r"s \cdot \text{warmup}^{-3/2} \quad s^{-1/2}",
        "step warmup",
        value("rising", step * warmup**-1.5, "", r"\text{rises}"),
        value("falling", step**-0.5, "", r"\text{falls}"),
    )
    page.step(
        "The rate of this step",
        "Wide models sum over more components, so they use smaller rates.",
        r"r = \frac{1}{\sqrt{d}} \min(\text{rises}, \text{falls})",
        "rising falling width step warmup",
        value("rate", schedule.rate(step, 1), "", "r"),
    )


def _compare(page: LessonBuilder, width: int, warmup: int, steps: list[int]) -> None:
    widths, warmups, labels = page.data("widths"), page.data("warmups"), {"step": [str(s) for s in steps]}
    by_width = [[Noam(width=w, warmup=warmup).rate(s, 1) for s in steps] for w in widths]
    by_warmup = [[Noam(width=width, warmup=w).rate(s, 1) for s in steps] for w in warmups]
    names = {"model": [f"width {w}" for w in widths]}
    page.step(
        "By width",
        "The same shape, lower for wider models: for a model four times as wide the rate is halved.",
        r"r(s) \text{ for several } d",
        "widths warmup steps",
        value("by_width", by_width, "model step", r"\text{rates}", {**names, **labels}, "line"),
        value("peaks", _peaks(widths, warmup), "model", r"\text{peaks}", names),
    )
    page.step(
        "By warmup",
        "A longer warmup has a lower peak, and after it all curves coincide.",
        r"r(s) \text{ for several warmups}",
        "warmups width steps",
        value("by_warmup", by_warmup, "way step", r"\text{rates}", {"way": [f"warmup {w}" for w in warmups], **labels},
              "line"),
    )  # fmt: skip
    page.step(
        "Base and big",
        "The two models of the paper.",
        "",
        "warmup",
        value("base_and_big", _peaks([512, 1024], warmup), "model", r"\text{peaks}", {"model": ["base", "big"]}),
    )


def _peaks(widths: list[int], warmup: int) -> list[float]:
    return [Noam(width=width, warmup=warmup).rate(warmup, 1) for width in widths]


FIGURE = "width > rising; warmup > rising > rate; step > falling > rate; warmup > peak"
EXERCISES = (
    Exercise(
        "At which step is the rate highest, with warmup = 4000?",
        "warmup",
        {"warmup": 4000},
        hint="where both terms are equal",
        tolerance=0.5,
    ),
    Exercise(
        "Twice the peak rate of a width of 512 is the peak rate of which width?",
        lambda lesson: lesson.value("width").data / 4,
        hint="the rate is proportional to one over the square root of the width",
        tolerance=0.5,
    ),
)
READING = Reading(
    "Noam learning-rate schedule",
    ("learning-rate schedule", "linear warmup", "inverse square root decay"),
    ("Vaswani et al. 2017, Attention is all you need, section 5.3",),
)
