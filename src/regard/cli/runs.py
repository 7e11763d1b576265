"""regard runs: list, show, compare and remove runs."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import click

from regard.cli.console import Console, format_duration
from regard.cli.options import PATH, OrderedGroup, json_option, print_json
from regard.cli.score_format import DERIVED, format_metric, format_metrics, metric_names, metric_title
from regard.cli.streams import stdin_is_terminal
from regard.errors import ConfigError, InputError, ModelError


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
    found = [summarize_run(path) for path in sorted(folder.iterdir()) if (path / "recipe.toml").is_file()]
    found.sort(key=lambda row: row["changed"])
    if as_json:
        print_json(found)
        return
    if not found:
        Console.of_verb().print(f"there is no run in {folder}")
        return
    width = max(len(row["run"]) for row in found)
    names = [name for name in metric_names(row["best"] for row in found) if name not in DERIVED]
    titles = "".join(f" {metric_title(name):>7}" for name in names)
    click.echo(f"{'run':<{width}}  {'model':<12} {'step':>8}{titles}  changed")
    for row in found:
        scores = "".join(f" {format_metric(name, row['best']):>{max(7, len(metric_title(name)))}}" for name in names)
        step = f"{row['step']:,}" if row["step"] is not None else "-"
        ago = f"{format_duration(time.time() - row['changed'])} ago"
        click.echo(f"{row['run']:<{width}}  {row['model']:<12} {step:>8}{scores}  {ago}")


def summarize_run(path: Path) -> dict[str, Any]:
    """Model, step and best metrics of a run, without reading its weights."""
    from regard import config

    table, state = config.read(path / "recipe.toml"), read_state(path)
    model = table.get("model", {}).get("kind", "?")
    changed = (path / "last").stat().st_mtime if (path / "last").exists() else path.stat().st_mtime
    row = {"run": str(path), "model": model, "step": state.get("step"), "steps": state.get("steps")}
    return row | {"best": state.get("best", {}), "changed": changed}


def read_state(path: Path) -> dict[str, Any]:
    """The training state of the newest checkpoint; empty if there is none."""
    from regard.train.checkpoint_store import resolve_link

    try:
        last = resolve_link(path, "last")
        content = json.loads((last / "state.json").read_bytes())["state"] if last else {}
    except (OSError, ValueError, KeyError, TypeError):
        return {}
    return content if isinstance(content, dict) else {}


def check_run(path: Path) -> Path:
    """The path, if it is a run; else a ModelError."""
    if not (path / "recipe.toml").is_file():
        why = "it has no recipe.toml" if path.is_dir() else "there is no such directory"
        raise ModelError(f"{path} is not a run: {why}")
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
    from regard.tasks.init_weights import InitReport

    check_run(run)
    made_with = run / "environment.json"
    environment = json.loads(made_with.read_text(encoding="utf-8")) if made_with.exists() else {}
    environment |= {
        name: value for name, value in read_state(run).items() if name in ("device", "threads", "processes")
    }
    init = InitReport.load(run)
    found = summarize_run(run) | {"validations": read_validations(run), "environment": environment}
    found |= {} if init is None else {"init": plain(init)}
    recipe = (run / "recipe.toml").read_text(encoding="utf-8")
    if as_json:
        import tomllib

        print_json(found | {"recipe": tomllib.loads(recipe)})
        return
    step = f"{found['step']:,} of {found['steps']:,} steps" if found["steps"] else "no checkpoint yet"
    click.echo(f"{run}: {found['model']}, {step}")
    for row in found["validations"]:
        best = "  best" if row["best"] else ""
        metrics = {name: value for name, value in row.items() if name not in ("event", "step", "best")}
        scores = "".join(f"  {metric_title(name)} {format_metric(name, row)}" for name in metric_names([metrics]))
        click.echo(f"  step {row['step']:>7,}{scores}{best}")
    for line in init.lines() if init else ():
        click.echo(line)
    click.echo("made with " + ", ".join(f"{name} {value}" for name, value in found["environment"].items()))
    click.echo(f"\n{recipe}", nl=False)


def read_validations(run: Path) -> list[dict[str, Any]]:
    """The validation rows of metrics.jsonl."""
    from regard.files import read_complete_lines

    if not (run / "metrics.jsonl").exists():
        return []
    rows = (json.loads(line) for line in read_complete_lines(run / "metrics.jsonl"))
    return [row for row in rows if row.get("event") == "validated"]


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

    tables = [config.read(check_run(path) / "recipe.toml") for path in (first, second)]
    changed = config.differences(*tables)
    bests = [summarize_run(path)["best"] for path in (first, second)]
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
