"""regard train."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from regard.cli.console import Console, Stages
from regard.cli.loading import chosen_recipe, fetch, strict_option, with_strict
from regard.cli.model_card import write_card
from regard.cli.options import json_option, manners, polite, print_json
from regard.cli.score_format import sentence
from regard.errors import Diverged, Interrupted, ModelError, Terminated

if TYPE_CHECKING:
    from regard.tasks import Recipe
    from regard.train.events import Listener
    from regard.train.trainer import Report


@click.command()
@click.argument("recipe", type=click.Path(path_type=Path))
@click.argument("settings", nargs=-1, metavar="[KEY=VALUE]...")
@click.option("--out", type=click.Path(path_type=Path), help="The run directory.  [default: runs/NAME-OF-RECIPE]")
@click.option("--fresh", is_flag=True, help="Start anew: what the run directory holds is removed.")
@click.option("--dry-run", is_flag=True, help="Only tell parameters, memory and time expected.")
@click.option("--nproc", type=click.IntRange(1), default=1, help="Processes that train together on this machine.")
@strict_option
@json_option
@polite()
def train(
    recipe: Path,
    settings: tuple[str, ...],
    out: Path | None,
    fresh: bool,
    dry_run: bool,
    nproc: int,
    strict: bool,
    as_json: bool,
) -> int:
    """Train by a recipe, or go on where the run stopped.

    RECIPE is a TOML file, or a run directory. The same command again goes on; Ctrl-C writes a checkpoint first.

    \b
    Examples:
      regard train mine.toml train.steps=2000 model.layers=3
      regard train mine.toml --dry-run
    """
    settings = with_strict(settings, strict)
    chosen, path = chosen_recipe(recipe, settings, out)
    if dry_run:
        from regard.cli.dry_run import expect

        expect(chosen, path, as_json)
        return 0
    if nproc > 1 and "RANK" not in os.environ:
        from regard.train.parallel import launch

        flags = [flag for flag, given in (("--fresh", fresh), ("--json", as_json), ("-q", manners().quiet)) if given]
        command = ["train", str(recipe), *settings, "--out", str(path), *flags]
        return launch(nproc, [sys.executable, "-m", "regard", *command])
    report = carry_out(chosen, path, fresh)
    if report is not None and as_json:
        print_json({"run": str(path), "step": report.step, "reason": report.reason, "best": dict(report.best)})
    elif report is not None:
        click.echo(closing(path, report, chosen))
    return 0


def carry_out(recipe: Recipe, path: Path, fresh: bool) -> Report | None:
    """Train, showing how; None on a rank that does not lead."""
    from regard.cli.train_log import Watching
    from regard.distributed import World
    from regard.run import Run
    from regard.train.events import MetricsFile, TensorBoard
    from regard.train.parallel import steady_memory

    steady_memory()
    if not fresh:
        check_trainable(path)
    world = World.join()
    console = Console.of_verb() if world.leads else Console(quiet=True)
    try:
        with Stages(console) as stages, Watching(console, path, recipe, world.size) as watching:
            if world.leads:
                fetch(recipe, stages)
            listeners: list[Listener] = [MetricsFile(path), watching]
            if recipe.train.tensorboard and world.leads:
                listeners.append(TensorBoard(path))
            if recipe.train.probe is not None and world.leads:
                from regard.train.probe import Probe

                listeners.append(Probe(path, recipe.train.probe, watching.line))
            report = Run(path).train(recipe, world=world, listeners=listeners, tell=stages, fresh=fresh)
    except (Interrupted, Terminated, Diverged) as error:
        if not world.leads:  # all ranks stop for the same reason; one of them says so
            raise click.exceptions.Exit(error.exit_code) from None
        raise
    except RuntimeError as error:
        if not world.leads and "gloo" in str(error):  # the leader has gone, and has said why
            raise click.exceptions.Exit(1) from None
        raise
    finally:
        world.leave()
    if not world.leads:
        return None
    write_card(path, recipe, report)
    return report


def check_trainable(path: Path) -> None:
    """An average of checkpoints has no optimiser to go on with.

    >>> check_trainable(Path("nowhere"))
    """
    from regard.train.checkpoint_store import target

    last = target(path, "last")
    if last is not None and not (last / "optimizer.safetensors").exists() and (last / "model.safetensors").exists():
        raise ModelError(f"{path} holds weights without what training needs to go on; use --out for a new run")


def closing(path: Path, report: Report, recipe: Recipe) -> str:
    """The last line: how good it became, where it is, what to do next.

    >>> from regard.tasks import Recipe
    >>> from regard.train.trainer import Report
    >>> recipe = Recipe.read(None, ["data.kind=phrases", "model.preset=transformer-tiny", "train.select=bleu"])
    >>> report = Report(2000, "done", {"loss": 1.5, "bleu": 24.6, "step": 2000.0})
    >>> closing(Path("runs/a"), report, recipe).split("  ")[0]
    ' best BLEU 24.6, loss 1.500 at step 2000 -> runs/a'
    """
    early = ", stopped early" if report.reason == "early" else ""
    scores = sentence(report.best, recipe.train.select)
    said = f"best {scores} at step {report.best['step']:.0f}" if report.best else f"step {report.step}"
    return f" {said}{early} -> {path}      next: {recipe.usage(path)}    regard eval {path}"
