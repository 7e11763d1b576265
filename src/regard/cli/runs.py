"""regard runs: list, show, compare and remove runs."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import tomli_w

from regard.cli.console import Console, format_duration
from regard.cli.options import PATH, OrderedGroup, json_option, print_json
from regard.cli.score_format import DERIVED, format_metric, format_metrics, metric_names, metric_title
from regard.cli.streams import stdin_is_terminal
from regard.errors import ConfigError, InputError, ModelError
from regard.packs import pack_folder

if TYPE_CHECKING:
    from regard.run_summary import RunSummary


@click.group(cls=OrderedGroup)
def runs() -> None:
    """List, show, compare and remove runs.

    \b
    Examples:
      regard runs ls
      regard runs diff runs/a runs/b
    """


@runs.command("ls")
@click.argument("folder", type=PATH, default=Path("runs"))
@json_option
def list_runs(folder: Path, as_json: bool) -> None:
    """List the runs in a folder, the newest last.

    \b
    Examples:
      regard runs ls
      regard runs ls experiments --json
    """
    if not folder.is_dir():
        raise InputError(f"{folder}: there is no such folder; runs are in the folder given with --out")
    from regard.run_summary import has_recipe, summarize_run

    found = sorted((summarize_run(path) for path in folder.iterdir() if has_recipe(path)), key=lambda run: run.changed)
    if as_json:
        print_json([run_row(run) for run in found])
        return
    if not found:
        Console.of_verb().print(f"there is no run in {folder}")
        return
    rows = [run_row(run) for run in found]
    width = max(len(row["run"]) for row in rows)
    names = [name for name in metric_names(row["best"] for row in rows) if name not in DERIVED]
    titles = "".join(f" {metric_title(name):>7}" for name in names)
    click.echo(f"{'run':<{width}}  {'model':<12} {'step':>8}{titles}  changed")
    for row in rows:
        if row["unreadable"]:
            click.echo(f"{row['run']:<{width}}  unreadable: {' '.join(row['unreadable'].split())}")
            continue
        scores = "".join(f" {format_metric(name, row['best']):>{max(7, len(metric_title(name)))}}" for name in names)
        step = f"{row['step']:,}" if row["step"] is not None else "-"
        ago = f"{format_duration(time.time() - row['changed'])} ago"
        click.echo(f"{row['run']:<{width}}  {row['model']:<12} {step:>8}{scores}  {ago}")


def run_row(run: RunSummary) -> dict[str, Any]:
    """The row of a run in lists; `unreadable` says why there is nothing else in it."""
    from regard.run_summary import display_path

    row = {"run": display_path(run.path), "model": run.kind("model") or "?", "step": run.step, "steps": run.steps}
    return row | {"best": dict(run.best), "changed": run.changed, "unreadable": run.unreadable}


def read_run(path: Path) -> RunSummary:
    """The summary of a run or a pack that a command names; else a ModelError."""
    from regard.run_summary import summarize_run

    found = summarize_run(check_run(pack_folder(path)))
    if found.unreadable:
        raise ModelError(found.unreadable)
    return replace(found, path=path)


def check_run(path: Path) -> Path:
    """The path, if it is a run; else a ModelError."""
    from regard.manifest import check_is_run

    check_is_run(path)
    return path


@runs.command()
@click.argument("run", type=PATH)
@json_option
def show(run: Path, as_json: bool) -> None:
    """Show a run: its validations, its recipe, and the versions it was trained with.

    \b
    Examples:
      regard runs show runs/demo
      regard runs show runs/demo --json
    """
    from regard.config import plain
    from regard.run_summary import json_safe
    from regard.tasks.init_weights import InitReport

    summary, folder = read_run(run), pack_folder(run)
    init, environment = InitReport.load(folder), read_environment(folder) | dict(summary.made_with)
    row = run_row(summary) | {"validations": read_validations(folder), "environment": environment}
    row |= {} if init is None else {"init": plain(init)}
    if as_json:
        print_json(json_safe(row | {"recipe": summary.recipe}))
        return
    has_step = row["step"] is not None and row["steps"] is not None
    step = f"{row['step']:,} of {row['steps']:,} steps" if has_step else "no checkpoint yet"
    click.echo(f"{row['run']}: {row['model']}, {step}")
    for found in row["validations"]:
        best = "  best" if found.get("best") else ""
        names = metric_names([{name: value for name, value in found.items() if name not in ("event", "best")}])
        scores = "".join(f"  {metric_title(name)} {format_metric(name, found)}" for name in names)
        click.echo(f"  step {found['step']:>7,}{scores}{best}")
    for line in init.lines() if init else ():
        click.echo(line)
    click.echo("made with " + ", ".join(f"{name} {value}" for name, value in row["environment"].items()))
    click.echo(f"\n{tomli_w.dumps(summary.recipe)}", nl=False)


def read_validations(run: Path) -> list[dict[str, Any]]:
    """The validation rows of metrics.jsonl: step, metrics that are finite numbers, and whether it was the best."""
    from regard.files import read_json_rows
    from regard.run_summary import finite_numbers

    rows = [row for row in read_json_rows(run / "metrics.jsonl") if row.get("event") == "validated"]
    kept = [{"event": "validated", **finite_numbers(row), "best": row.get("best") is True} for row in rows]
    return [row for row in kept if isinstance(row.get("step"), int)]


def read_environment(run: Path) -> dict[str, str]:
    """The versions that a run was started with; empty if they cannot be read."""
    from regard.files import parse_json, read_bounded

    try:
        found = parse_json(read_bounded(run / "environment.json", 1 << 20))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


@runs.command()
@click.argument("first", type=PATH)
@click.argument("second", type=PATH)
@json_option
def diff(first: Path, second: Path, as_json: bool) -> None:
    """Show in which settings two runs differ, and the best metrics of each.

    \b
    Examples:
      regard runs diff runs/a runs/b
      regard runs diff runs/a runs/b --json
    """
    from regard import config

    found = [read_run(path) for path in (first, second)]
    changed = config.differences(*(run.recipe for run in found))
    bests = [dict(run.best) for run in found]
    if as_json:
        print_json({"settings": changed, "best": {str(first): bests[0], str(second): bests[1]}})
        return
    click.echo("\n".join(changed) or "the settings are the same")
    for path, best in zip((first, second), bests, strict=True):
        click.echo(f"{path}: {format_metrics(best) or 'no validation yet'}")


@runs.command("rm")
@click.argument("paths", nargs=-1, required=True, metavar="RUN...", type=PATH)
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
def remove(paths: tuple[Path, ...], yes: bool) -> None:
    """Delete runs with all their files; a folder that is not a run is never deleted.

    \b
    Examples:
      regard runs rm runs/old
      regard runs rm runs/a runs/b --yes
    """
    from regard.run_lock import remove_run

    for path in paths:
        check_run(path)
    if not yes:
        if not stdin_is_terminal():
            raise ConfigError("stdin is not a terminal, so the removal cannot be confirmed; use --yes")
        click.confirm(f"remove {', '.join(map(str, paths))}?", abort=True, err=True)
    for path in paths:
        remove_run(path)
        Console.of_verb().print(f"removed {path}")


@runs.command()
@click.argument("run", type=PATH)
def unlock(run: Path) -> None:
    """Remove the lock that a process of another host, or one that has ended, left in a run.

    A run has one writer at a time. The lock ends with its process, so this is needed only after another host has
    crashed, or where the file system has no locks. The lock of a running process of this host is never removed.

    \b
    Examples:
      regard runs unlock runs/demo
      regard runs unlock /net/shared/runs/a
    """
    from regard.run_lock import remove_lock

    removed = remove_lock(check_run(run))
    Console.of_verb().print(f"removed the lock of {run}" if removed else f"{run} is not locked")
