"""regard runs: what was trained, what it is made of, how two differ."""

from __future__ import annotations

import json
import shutil
import sys
import time
from pathlib import Path
from typing import Any

import click

from regard.cli.console import Console, minutes
from regard.cli.options import Verbs, json_option, polite, print_json
from regard.cli.score_format import DERIVED, columns, figure, sentence, title
from regard.errors import ConfigError, InputError, ModelError, OutputError


@click.group(cls=Verbs)
def runs() -> None:
    """List, show, compare and remove runs.

    \b
    Examples:
      regard runs ls
      regard runs diff runs/a runs/b
    """


@runs.command("ls")
@click.argument("folder", type=click.Path(path_type=Path), default=Path("runs"))
@json_option
@polite()
def list_runs(folder: Path, as_json: bool) -> None:
    """The runs in a folder, the newest last.

    \b
    Examples:
      regard runs ls
      regard runs ls experiments --json
    """
    if not folder.is_dir():
        raise InputError(f"{folder}: there is no such folder; runs are in the folder that --out named")
    found = [summary(path) for path in sorted(folder.iterdir()) if (path / "recipe.toml").is_file()]
    found.sort(key=lambda row: row["changed"])
    if as_json:
        print_json(found)
        return
    if not found:
        Console.of_verb().say(f"there is no run in {folder}")
        return
    width = max(len(row["run"]) for row in found)
    names = [name for name in columns(row["best"] for row in found) if name not in DERIVED]
    titles = "".join(f" {title(name):>7}" for name in names)
    click.echo(f"{'run':<{width}}  {'model':<12} {'step':>8}{titles}  changed")
    for row in found:
        scores = "".join(f" {figure(name, row['best']):>{max(7, len(title(name)))}}" for name in names)
        step = f"{row['step']:,}" if row["step"] is not None else "-"
        ago = f"{minutes(time.time() - row['changed'])} ago"
        click.echo(f"{row['run']:<{width}}  {row['model']:<12} {step:>8}{scores}  {ago}")


def summary(path: Path) -> dict[str, Any]:
    """A run in a line, without reading its weights."""
    from regard import config

    table, state = config.read(path / "recipe.toml"), state_of(path)
    model = table.get("model", {}).get("kind", "?")
    changed = (path / "last").stat().st_mtime if (path / "last").exists() else path.stat().st_mtime
    row = {"run": str(path), "model": model, "step": state.get("step"), "steps": state.get("steps")}
    return row | {"best": state.get("best", {}), "changed": changed}


def state_of(path: Path) -> dict[str, Any]:
    """What the newest checkpoint says of itself; nothing if there is none.

    >>> state_of(Path("nowhere"))
    {}
    """
    from regard.train.checkpoint_store import target

    try:
        last = target(path, "last")
        content = json.loads((last / "state.json").read_bytes())["state"] if last else {}
    except (OSError, ValueError, KeyError, TypeError):
        return {}
    return content if isinstance(content, dict) else {}


def checked(path: Path) -> Path:
    """A path that is a run.

    >>> checked(Path("runs/none"))
    Traceback (most recent call last):
    regard.errors.ModelError: runs/none is not a run: there is no such directory
    """
    if not (path / "recipe.toml").is_file():
        why = "it has no recipe.toml" if path.is_dir() else "there is no such directory"
        raise ModelError(f"{path} is not a run: {why}")
    return path


@runs.command()
@click.argument("run", type=click.Path(path_type=Path))
@json_option
@polite()
def show(run: Path, as_json: bool) -> None:
    """How a run went: its validations, its recipe, and what it was made with.

    \b
    Examples:
      regard runs show runs/demo
      regard runs show runs/demo --json
    """
    checked(run)
    found = summary(run) | {"validations": validations(run), "environment": environment(run)}
    recipe = (run / "recipe.toml").read_text(encoding="utf-8")
    if as_json:
        import tomllib

        print_json(found | {"recipe": tomllib.loads(recipe)})
        return
    step = f"{found['step']:,} of {found['steps']:,} steps" if found["steps"] else "no checkpoint yet"
    click.echo(f"{run}: {found['model']}, {step}")
    for row in found["validations"]:
        best = "  best" if row["best"] else ""
        scores = "".join(f"  {title(name)} {figure(name, row)}" for name in columns([measured(row)]))
        click.echo(f"  step {row['step']:>7,}{scores}{best}")
    click.echo("made with " + ", ".join(f"{name} {value}" for name, value in found["environment"].items()))
    click.echo(f"\n{recipe}", nl=False)


def validations(run: Path) -> list[dict[str, Any]]:
    """The rows of metrics.jsonl that are validations.

    >>> validations(Path("nowhere"))
    []
    """
    from regard.files import read_lines

    if not (run / "metrics.jsonl").exists():
        return []
    rows = (json.loads(line) for line in read_lines(run / "metrics.jsonl"))
    return [row for row in rows if row.get("event") == "validated"]


def measured(row: dict[str, Any]) -> dict[str, float]:
    """The scores in a row of metrics.jsonl.

    >>> measured({"event": "validated", "step": 5, "loss": 2.0, "best": True})
    {'loss': 2.0}
    """
    return {name: value for name, value in row.items() if name not in ("event", "step", "best")}


def environment(run: Path) -> dict[str, Any]:
    """What the run was made with.

    >>> environment(Path("nowhere"))
    {}
    """
    path = run / "environment.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


@runs.command()
@click.argument("first", type=click.Path(path_type=Path))
@click.argument("second", type=click.Path(path_type=Path))
@json_option
@polite()
def diff(first: Path, second: Path, as_json: bool) -> None:
    """In which settings two runs differ, and how well each did.

    \b
    Examples:
      regard runs diff runs/a runs/b
      regard runs diff runs/a runs/b --json
    """
    from regard import config

    tables = [config.read(checked(path) / "recipe.toml") for path in (first, second)]
    changed = config.differences(*tables)
    bests = [summary(path)["best"] for path in (first, second)]
    if as_json:
        print_json({"settings": changed, "best": {str(first): bests[0], str(second): bests[1]}})
        return
    click.echo("\n".join(changed) or "the settings are the same")
    for path, best in zip((first, second), bests, strict=True):
        click.echo(f"{path}: {sentence(best) or 'no validation yet'}")


@runs.command("rm")
@click.argument("paths", nargs=-1, required=True, metavar="RUN...", type=click.Path(path_type=Path))
@click.option("--yes", is_flag=True, help="Do not ask.")
@polite()
def remove(paths: tuple[Path, ...], yes: bool) -> None:
    """Remove runs with all that is in them; what is not a run is never removed.

    \b
    Examples:
      regard runs rm runs/old
      regard runs rm runs/a runs/b --yes
    """
    for path in paths:
        checked(path)
    if not yes:
        if not sys.stdin.isatty():
            raise ConfigError("nobody can be asked whether to remove; say --yes")
        click.confirm(f"remove {', '.join(map(str, paths))}?", abort=True, err=True)
    for path in paths:
        try:
            shutil.rmtree(path)
        except OSError as error:
            raise OutputError(f"{path}: cannot be removed ({error.strerror})") from None
        Console.of_verb().say(f"removed {path}")
