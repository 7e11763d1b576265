"""regard average."""

from __future__ import annotations

import shutil
from pathlib import Path

import click

from regard.cli.console import Console
from regard.cli.options import polite
from regard.errors import ModelError, OutputError

MOST = 5
"""Checkpoints that are averaged unless somebody asks for another number"""


@click.command(short_help="Average a run's newest checkpoints.")
@click.argument("run", type=click.Path(path_type=Path))
@click.option("--last", type=click.IntRange(1), help="How many checkpoints.  [default: all that are kept, up to 5]")
@click.option("--out", type=click.Path(path_type=Path), help="The new model directory.  [default: RUN-average]")
@polite()
def average(run: Path, last: int | None, out: Path | None) -> None:
    """Average the weights of a run's newest checkpoints into a model of its own.

    The mean of the last few is often better than each of them. A run keeps as many as train.keep says.

    \b
    Examples:
      regard average runs/demo --last 5
      regard average runs/demo --last 3 --out models/demo
    """
    from regard.files import cannot_write
    from regard.run import Run
    from regard.train import checkpoint, checkpoint_store

    recipe = Run(run).recipe()
    paths = checkpoint_store.checkpoints(run)[-(last or MOST) :]
    if not paths:
        raise ModelError(f"{run} has no finished checkpoint; train it first")
    if last is not None and len(paths) < last:
        has = f"{len(paths)} checkpoint{'s' if len(paths) > 1 else ''}"
        raise ModelError(
            f"{run} has {has}, {last} were asked for; train with train.keep={last}, or use --last {len(paths)}"
        )
    out = out or run.with_name(f"{run.resolve().name}-average")
    if out.exists():
        raise OutputError(f"{out} exists already; name another with --out")
    steps = [checkpoint.read(path).step for path in paths]
    weights = checkpoint.average(paths)
    try:
        out.mkdir(parents=True)
        kept = [file for pattern in recipe.kept for file in run.glob(pattern)]
        for file in (run / "recipe.toml", run / "environment.json", *kept):
            if file.exists():
                shutil.copy2(file, out / file.name)
    except OSError as error:
        raise cannot_write(out, sum(w.nbytes for w in weights.values()), error) from error
    state = {"averaged": steps, "step": steps[-1], "steps": steps[-1]}
    checkpoint.save(out, steps[-1], {"model": weights}, state, best=True)
    Console.of_verb().say(f"the mean of steps {', '.join(f'{step:,}' for step in steps)}")
    click.echo(str(out))
