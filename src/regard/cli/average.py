"""regard average."""

from __future__ import annotations

import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from regard.cli.console import Console
from regard.cli.loading import open_run
from regard.cli.options import PATH
from regard.errors import ModelError, OutputError
from regard.plurals import count_noun

if TYPE_CHECKING:
    from torch import Tensor

DEFAULT_LAST = 5
"""Checkpoints that are averaged without --last"""
ATTEMPTS = 5
"""times that checkpoints are read when the trainer removes one of them meanwhile"""
ENVIRONMENT = "environment.json"


@click.command(short_help="Average a run's newest checkpoints.")
@click.argument("run", type=PATH)
@click.option("--last", type=click.IntRange(1), help="Number of checkpoints.  [default: all that are kept, up to 5]")
@click.option("--out", type=PATH, help="The new model directory.  [default: RUN-average]")
def average(run: Path, last: int | None, out: Path | None) -> None:
    """Average the weights of a run's newest checkpoints into a new model.

    The average of the last few is often better than each of them. A run keeps train.keep_checkpoints checkpoints.

    \b
    Examples:
      regard average runs/demo --last 5
      regard average runs/demo --last 3 --out models/demo
    """
    open_run(run)
    from regard.files import cannot_write
    from regard.run import Run
    from regard.run_lock import RunLock, clear_run

    Run(run).recipe()
    out = out or run.with_name(f"{run.resolve().name}-average")
    if out.exists():
        raise OutputError(f"{out} exists already; name another with --out")
    files = read_files(run)
    steps, weights = read_average(run, last)
    try:
        out.mkdir(parents=True)
    except FileExistsError:  # another process makes it at this moment
        raise OutputError(f"{out} exists already; name another with --out") from None
    except OSError as error:
        raise cannot_write(out, 0, error) from error
    try:
        with RunLock(out):
            try:
                write_average(out, files, steps, weights)
            except BaseException:
                with suppress(OSError):
                    clear_run(out)
                raise
    except BaseException:
        with suppress(OSError):
            out.rmdir()  # so that the same command can be tried again
        raise
    Console.of_verb().print(f"the mean of steps {', '.join(f'{step:,}' for step in steps)}")
    click.echo(str(out))


@dataclass(frozen=True)
class RunFiles:
    """Contents of the files that a model of a run needs beside its weights, by name."""

    kept: dict[str, bytes]
    """those that the manifest lists: the recipe and the artifacts"""
    others: dict[str, bytes]


def read_files(run: Path) -> RunFiles:
    """The files of a run that its average needs too."""
    from regard.files import read_bounded
    from regard.manifest import MAX_KEPT, RECIPE, read_kept, require_manifest
    from regard.tasks.init_weights import INIT_FILE

    try:
        kept = {name: read_kept(run / name) for name in (RECIPE, *require_manifest(run).artifacts)}
        others = [name for name in (ENVIRONMENT, INIT_FILE) if (run / name).is_file()]
        return RunFiles(kept, {name: read_bounded(run / name, MAX_KEPT) for name in others})
    except OSError as error:
        raise ModelError(f"{error.filename or run}: cannot be read ({error.strerror or error})") from error


def write_average(out: Path, files: RunFiles, steps: list[int], weights: dict[str, Tensor]) -> None:
    """Write the averaged model into an empty, locked directory."""
    from regard.files import cannot_write, fsync_folder, write_bytes_atomically
    from regard.manifest import list_files
    from regard.train import checkpoint

    try:
        for name, data in (files.kept | files.others).items():
            write_bytes_atomically(out / name, data)
        list_files(out, [out / name for name in files.kept])
        fsync_folder(out.parent)
    except OSError as error:
        raise cannot_write(out, sum(w.nbytes for w in weights.values()), error) from error
    state = {"averaged": steps, "step": steps[-1], "steps": steps[-1]}
    checkpoint.save(out, steps[-1], {"model": weights}, state, best=True)


def read_average(run: Path, last: int | None) -> tuple[list[int], dict[str, Tensor]]:
    """Steps and mean weights of the newest checkpoints; the run may be in training, which removes old ones."""
    from regard.train import checkpoint

    for attempt in range(1, ATTEMPTS + 1):
        paths = newest_checkpoints(run, last)
        try:
            return [checkpoint.read(path).step for path in paths], checkpoint.average(paths)
        except ModelError:
            if all(path.is_dir() for path in paths) or attempt == ATTEMPTS:
                raise
    raise AssertionError("unreachable: the last attempt returns or raises")


def newest_checkpoints(run: Path, last: int | None) -> list[Path]:
    """Folders of the newest checkpoints: `last` of them, or all that are kept, up to DEFAULT_LAST."""
    paths = trained_checkpoints(run)[-(last or DEFAULT_LAST) :]
    if not paths:
        raise ModelError(f"{run} has no finished checkpoint; train it first")
    if last is not None and len(paths) < last:
        has = count_noun(len(paths), "checkpoint")
        remedy = f"train with train.keep_checkpoints={last}, or use --last {len(paths)}"
        raise ModelError(f"{run} has {has}, {last} were asked for; {remedy}")
    return paths


def trained_checkpoints(run: Path) -> list[Path]:
    """Checkpoints up to the one that `last` names, one per step, oldest first; the initial weights only if alone.

    Those after `last` are left over from before the run was rolled back, such as after a divergence.
    """
    from regard.train.checkpoint_store import checkpoints, parse_name, resolve_link
    from regard.train.manifest import read_manifest

    found = {parse_name(path) or (0, 0): path for path in checkpoints(run)}
    if (newest := resolve_link(run, "last")) is not None:
        limit = parse_name(newest) or (read_manifest(newest).step, sys.maxsize)  # a folder may be copied in its place
        found = {key: path for key, path in found.items() if key <= limit}
    by_step = {step: path for (step, _), path in found.items()}  # the highest revision is the last of its step
    return [path for step, path in by_step.items() if step > 0] or list(by_step.values())
