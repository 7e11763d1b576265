"""Lesson: the learning rate of the Transformer paper, which rises and then falls."""

from __future__ import annotations

import math
from collections.abc import Mapping

from regard.lessons.engine.builder import Page
from regard.lessons.engine.inputs import Input, Plan, Work
from regard.lessons.engine.lesson import Value
from regard.train.schedule import Noam

value = Page.value
DRAWN = 81
"""points of a curve"""

INPUTS = (
    Input("width", 512, "of the model", symbol="d", bounds=(1, 65536)),
    Input("warmup", 4000, "steps of rise", bounds=(1, 1_000_000)),
    Input("step", 1000, "one step to look at", bounds=(1, 1_000_000)),
    Input("steps", 20000, "how far the curve goes", bounds=(10, 1_000_000)),
    Input("widths", [256, 512, 1024], "models to compare", ("model",), bounds=(1, 65536)),
    Input("warmups", [2000, 4000, 8000], "warm-ups to compare", ("way",), bounds=(1, 1_000_000)),
)


def _work(given: Mapping[str, Value]) -> Work:
    """One step by the formula, the peak, and curves; every rate is the package's schedule's."""
    page = Page(given)
    width, warmup, step = (given[name].data for name in ("width", "warmup", "step"))
    schedule = Noam(width=width, warmup=warmup)
    _one(page, width, warmup, step, schedule)
    peak = schedule.rate(warmup, 1)
    page.step(
        "The peak",
        "Both meet where the step is the warm-up: until then the rate rises in a straight line, then it falls like one "
        "over the root of the step.",
        r"\frac{1}{\sqrt{d} \sqrt{\text{warmup}}}",
        "width warmup",
        value("peak", peak, "", r"\text{peak}"),
    )
    steps = _spaced(given["steps"].data)
    page.step(
        "The curve",
        "Small at first, since nothing is known yet and Adam's averages are young; large when the way is clear; "
        "smaller again to settle.",
        r"r(s) = d^{-1/2} \min(s^{-1/2}, s \cdot \text{warmup}^{-3/2})",
        "width warmup steps",
        value("curve", [schedule.rate(s, 1) for s in steps], "step", "r", {"step": [str(s) for s in steps]}, "line"),
    )
    _compared(page, given, steps)
    page.agree("the formula at this step, and the package's schedule", _formula(width, warmup, step), page["rate"].data)
    page.agree("the peak by its own formula", 1 / math.sqrt(width * warmup), peak)
    page.lecture("the peak of the base model", 6.99e-4, "peak", 5e-7)
    page.lecture("the peaks of widths 512 (base) and 1024 (big)", [6.99e-4, 4.94e-4], "base_and_big", 5e-7)
    return page.work()


def _formula(width: int, warmup: int, step: int) -> float:
    return width**-0.5 * min(step**-0.5, step * warmup**-1.5)


def _spaced(last: int) -> list[int]:
    """Steps from 1 to the last, as far apart as they can be drawn."""
    return sorted({1 + round(i * (last - 1) / (DRAWN - 1)) for i in range(DRAWN)})


def _one(page: Page, width: int, warmup: int, step: int, schedule: Noam) -> None:
    page.step(
        "Two ways to go",
        "The first rises with every step, the second falls. The smaller one counts.",
        r"s \cdot \text{warmup}^{-3/2} \quad s^{-1/2}",
        "step warmup",
        value("rising", step * warmup**-1.5, "", r"\text{rises}"),
        value("falling", step**-0.5, "", r"\text{falls}"),
    )
    page.step(
        "The rate of this step",
        "Wide models add up more numbers, so they take smaller steps.",
        r"r = \frac{1}{\sqrt{d}} \min(\text{rises}, \text{falls})",
        "rising falling width step warmup",
        value("rate", schedule.rate(step, 1), "", "r"),
    )


def _compared(page: Page, given: Mapping[str, Value], steps: list[int]) -> None:
    widths, warmups, along = given["widths"].data, given["warmups"].data, {"step": [str(s) for s in steps]}
    wide = [[Noam(width=w, warmup=given["warmup"].data).rate(s, 1) for s in steps] for w in widths]
    names = [f"width {w}" for w in widths]
    page.step(
        "By width",
        "The same shape, lower for wider models: a model four times as wide takes steps half as large.",
        r"r(s) \text{ for several } d",
        "widths warmup steps",
        value("by_width", wide, "model step", r"\text{rates}", {"model": names, **along}, "line"),
        value("peaks", [Noam(width=w, warmup=given["warmup"].data).rate(given["warmup"].data, 1) for w in widths],
              "model", r"\text{peaks}", {"model": names}),
    )  # fmt: skip
    page.step(
        "By warm-up",
        "A longer rise has a lower peak, and after it all curves are one.",
        r"r(s) \text{ for several warm-ups}",
        "warmups width steps",
        value("by_warmup", [[Noam(width=given["width"].data, warmup=w).rate(s, 1) for s in steps] for w in warmups],
              "way step", r"\text{rates}", {"way": [f"warm-up {w}" for w in warmups], **along}, "line"),
    )  # fmt: skip
    page.step(
        "Base and big",
        "The two models of the paper.",
        "",
        "warmup",
        value("base_and_big", [Noam(width=w, warmup=given["warmup"].data).rate(given["warmup"].data, 1)
                               for w in (512, 1024)], "model", r"\text{peaks}", {"model": ["base", "big"]}),
    )  # fmt: skip


PLAN = Plan(INPUTS, _work)
