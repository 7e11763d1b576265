"""regard train --dry-run: parameters, memory and time, estimated from a few real updates; nothing is kept."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from regard.cli.console import Console, StageProgress, format_duration
from regard.cli.options import print_json
from regard.cli.train_log import peak_memory, summary_lines, throughput

if TYPE_CHECKING:
    from regard.run import Run
    from regard.tasks import Recipe
    from regard.tasks.init_weights import InitReport
    from regard.train.events import Event

STEPS, WARMUP = 12, 2
"""updates that are run, and those at the start that are not timed"""


@dataclass(frozen=True)
class Estimate:
    """Estimated cost of a training run."""

    parameters: int
    steps: int
    seconds_per_step: float
    predictions_per_second: float
    unit: str
    """what is predicted: tokens, examples, windows ..."""
    memory_gib: float
    init: InitReport | None = None
    """what the model starts from"""

    @property
    def seconds(self) -> float:
        return self.steps * self.seconds_per_step


def dry_run(recipe: Recipe, path: Path, as_json: bool) -> None:
    """Print the estimated cost of training by this recipe; the run directory is not touched."""
    from regard.config import plain
    from regard.run import Run

    with tempfile.TemporaryDirectory() as folder:
        run = Run(path)
        run.check_init(recipe)
        with StageProgress(Console.of_verb()) as stages:
            recipe.fetch(stages.download)
            if not run.is_prepared(recipe):
                run = Run(Path(folder))
                run.prepare(recipe, stages)
        found = estimate(run, recipe, Path(folder))
        lines = summary_lines(run.path, recipe, found.parameters, found.init)
    if as_json:
        print_json({**plain(found), "seconds": found.seconds})
        return
    lines += [
        f" steps    {found.steps:,} of about {found.seconds_per_step:.2f} s, {found.predictions_per_second:,.0f} "
        f"{found.unit}/s",
        f" memory   {found.memory_gib:.1f} GiB at most",
        f" time     about {format_duration(found.seconds)}, validation not counted",
    ]
    click.echo("\n".join(lines))


def estimate(run: Run, recipe: Recipe, folder: Path) -> Estimate:
    """Run a few updates of a model that is then discarded; `folder` is an empty run directory for the trainer."""
    from regard.distributed import ProcessGroup
    from regard.train.events import Began, Stepped
    from regard.train.trainer import Trainer

    events: list[Event] = []
    objective, loader, _ = recipe.training_parts(run.path, ProcessGroup())
    init = run.init_model(objective.model, recipe)
    trainer = Trainer(objective, loader, recipe.train, folder, ProcessGroup(), [events.append], None, recipe.seed)
    stream = loader.train_batches(None)
    for _ in range(STEPS):
        trainer.step([next(stream) for _ in range(recipe.train.accumulate)])
    speed, step_time = throughput([event for event in events if isinstance(event, Stepped)][WARMUP:])
    parameters = next(event.parameters for event in events if isinstance(event, Began))
    memory = peak_memory(str(trainer.device))
    return Estimate(parameters, trainer.state.steps, step_time, speed, recipe.speed_unit(), memory, init)
