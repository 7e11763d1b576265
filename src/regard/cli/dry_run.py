"""regard train --dry-run: parameters, memory and time, from a few real updates of which nothing is kept."""

from __future__ import annotations

import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from regard.cli.console import Console, Stages, minutes
from regard.cli.options import print_json
from regard.cli.train_log import described, peak, rate

if TYPE_CHECKING:
    from regard.run import Run
    from regard.tasks import Recipe
    from regard.train.events import Event

TRIED, WARM = 12, 2
"""updates that are measured, and those before that are not"""


@dataclass(frozen=True)
class Expected:
    """What training would take.

    >>> Expected(26_152, 100, 0.5, 9_800.0, 0.9).seconds
    50.0
    """

    parameters: int
    steps: int
    seconds_a_step: float
    tokens_a_second: float
    memory_gib: float

    @property
    def seconds(self) -> float:
        return self.steps * self.seconds_a_step


def expect(recipe: Recipe, path: Path, as_json: bool) -> None:
    """Tell what training by this recipe would take; the run directory is not touched."""
    from regard.cli.loading import fetch
    from regard.run import Run

    with tempfile.TemporaryDirectory() as folder:
        run = Run(path)
        with Stages(Console.of_verb()) as stages:
            fetch(recipe, stages)
            if not run.prepared(recipe):
                run = Run(Path(folder))
                run.prepare(recipe, stages)
        found = measured(run, recipe, Path(folder))
        lines = described(run.path, recipe, found.parameters)
    if as_json:
        print_json({**asdict(found), "seconds": found.seconds})
        return
    lines += [
        f" steps    {found.steps:,} of about {found.seconds_a_step:.2f} s, {found.tokens_a_second:,.0f} tokens/s",
        f" memory   {found.memory_gib:.1f} GiB at most",
        f" time     about {minutes(found.seconds)}, validation not counted",
    ]
    click.echo("\n".join(lines))


def measured(run: Run, recipe: Recipe, aside: Path) -> Expected:
    """A few updates of a model that is then forgotten; `aside` is an empty folder that a trainer may look into."""
    from regard.distributed import World
    from regard.train.events import Began, Stepped
    from regard.train.trainer import Trainer

    events: list[Event] = []
    objective, feed, _ = run.parts(recipe)
    trainer = Trainer(objective, feed, recipe.train, aside, World(), [events.append], None, recipe.seed)
    stream = feed.stream(None)
    for _ in range(TRIED):
        trainer.step([next(stream) for _ in range(recipe.train.accumulate)])
    speed, each = rate([event for event in events if isinstance(event, Stepped)][WARM:])
    parameters = next(event.parameters for event in events if isinstance(event, Began))
    return Expected(parameters, trainer.progress.steps, each, speed, peak())
