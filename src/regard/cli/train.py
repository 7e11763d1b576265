"""regard train."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from regard.cli.console import Console, StageProgress
from regard.cli.loading import load_recipe, strict_option, with_strict
from regard.cli.options import PATH, global_options, json_option, print_json, recipe_arguments, run_option
from regard.cli.score_format import format_metrics
from regard.config import override
from regard.errors import ConfigError, Diverged, Interrupted, ModelError, RankLost, Terminated
from regard.program import quote_path, runnable

if TYPE_CHECKING:
    from regard.tasks import Recipe
    from regard.train.events import Listener
    from regard.train.state import TrainReport


@click.command()
@recipe_arguments
@run_option
@click.option("--fresh", is_flag=True, help="Start over: the content of the run directory is deleted.")
@click.option("--dry-run", is_flag=True, help="Only estimate parameters, memory and time.")
@click.option("--nproc", type=click.IntRange(1), default=1, help="Number of data-parallel processes on this machine.")
@click.option("--from", "init", type=PATH, metavar="RUN", help="Start from the weights of a run: model.init=RUN.")
@strict_option
@json_option
def train(
    recipe: Path,
    settings: tuple[str, ...],
    out: Path | None,
    fresh: bool,
    dry_run: bool,
    nproc: int,
    init: Path | None,
    strict: bool,
    as_json: bool,
) -> int:
    """Train a model, or resume training.

    RECIPE is a TOML file or a run directory. Ctrl-C writes a checkpoint before it stops; the same command resumes from
    the last checkpoint.

    \b
    Examples:
      regard train mine.toml train.steps=2000 model.layers=3 --dry-run
      regard train mine.toml --from runs/base
    """
    settings = (*with_strict(settings, strict), *global_options().training_settings())
    if init is not None:
        model = override({}, settings).get("model")
        if isinstance(model, dict) and "init" in model:
            raise ConfigError(f"--from {init} and model.init are the same setting; give one of them")
        settings = (*settings, f"model.init={json.dumps(str(init))}")
    chosen, path = load_recipe(recipe, settings, out)
    if dry_run:
        from regard.cli.dry_run import dry_run as estimate_run

        estimate_run(chosen, path, as_json)
        return 0
    if nproc > 1 and "RANK" not in os.environ:
        from regard.train.parallel import launch

        flags = [flag for flag, given in (("--fresh", fresh), ("--json", as_json)) if given]
        command = ["train", str(recipe), *settings, "--out", str(path), *flags, *global_options().output_flags()]
        return launch(nproc, [sys.executable, "-m", "regard", *command])
    report = train_run(chosen, path, fresh)
    if report is not None and as_json:
        print_json(result_json(path, report))
    elif report is not None:
        click.echo(closing_line(path, report, chosen))
    return 0


def result_json(path: Path, report: TrainReport) -> dict[str, object]:
    """The result of a training, and what it started from if that was a model."""
    from regard.config import plain
    from regard.tasks.init_weights import InitReport

    found = {"run": str(path), "step": report.step, "reason": report.reason, "best": dict(report.best)}
    init = InitReport.load(path)
    return found if init is None else {**found, "init": plain(init)}


def train_run(recipe: Recipe, path: Path, fresh: bool) -> TrainReport | None:
    """Train and print progress; None on every rank but the main one."""
    from regard.cli.train_log import TrainLog
    from regard.distributed import ProcessGroup
    from regard.run import Run
    from regard.train.events import MetricsFile, TensorBoard
    from regard.train.parallel import follow_launcher, tune_malloc

    follow_launcher()
    tune_malloc()
    if not fresh:
        check_trainable(path)
    group = ProcessGroup.init(recipe.train.timeout)
    console = Console.of_verb() if group.is_main else Console(quiet=True)
    try:
        with StageProgress(console) as stages, TrainLog(console, path, recipe, group.size) as log:
            if group.is_main:
                recipe.fetch(stages.download)
            group.wait_for_main()
            listeners: list[Listener] = [MetricsFile(path), log]
            if recipe.train.tensorboard and group.is_main:
                listeners.append(TensorBoard(path))
            if recipe.train.probe is not None and group.is_main:
                from regard.train.probe import Probe

                listeners.append(Probe(path, recipe.train.probe, log.warn))
            report = Run(path).train(recipe, group=group, listeners=listeners, progress=stages, fresh=fresh)
    except (Interrupted, Terminated, Diverged) as error:
        if not group.is_main:  # all ranks stop for the same reason; the main one reports it
            raise click.exceptions.Exit(error.exit_code) from None
        raise
    except RankLost as error:
        if error.is_reported:
            raise click.exceptions.Exit(error.exit_code) from None
        raise
    finally:
        group.close()
    return report if group.is_main else None


def check_trainable(path: Path) -> None:
    """Refuse to resume from an average of checkpoints, which has no optimizer state."""
    from regard.train.checkpoint_store import resolve_link

    last = resolve_link(path, "last")
    if last is not None and not (last / "optimizer.safetensors").exists() and (last / "model.safetensors").exists():
        raise ModelError(f"{path} has weights but no optimizer state to resume from; use --out for a new run")


def closing_line(path: Path, report: TrainReport, recipe: Recipe) -> str:
    """The last line: the best metrics, where the run is, and the next commands."""
    early = ", stopped early" if report.reason == "early" else ""
    scores = format_metrics(report.best, recipe.train.best_metric)
    result = f"best {scores} at step {report.best['step']:.0f}" if report.best else f"step {report.step}"
    following = f"{runnable(recipe.usage(path))}    {runnable(f'regard eval {quote_path(path)}')}"
    return f" {result}{early} -> {path}      next: {following}"
