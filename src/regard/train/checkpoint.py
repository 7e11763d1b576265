"""Checkpoints: a directory of safetensors and plain JSON that is either whole or refused, and never lost.

model.safetensors, and more groups of tensors if a run has them: optimizer, ema, rng
state.json     where the run was: data position, schedule, best score; which regard wrote it
manifest.json  the size and SHA-256 of the others, and which names are one weight (manifest.py)

How it reaches its place without ever endangering the one before it is told in checkpoint_store.py.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

import regard
from regard.errors import ConfigError, ModelError
from regard.files import cannot_write, write_file
from regard.train import checkpoint_store, manifest
from regard.train.manifest import Manifest
from regard.train.weights import mean, read_tensors, ties, write_tensors

STATE = "state.json"
GROUP = re.compile(r"[a-z][a-z0-9_]*")


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint whose every byte was found to be what was written.

    >>> import tempfile, torch
    >>> with tempfile.TemporaryDirectory() as run:
    ...     _ = save(Path(run), 800, {"model": {"bias": torch.zeros(2)}}, {"epoch": 3})
    ...     checkpoint = read(Path(run) / "last")
    ...     checkpoint.step, checkpoint.state, checkpoint.groups, checkpoint.tensors("model")
    (800, {'epoch': 3}, ('model',), {'bias': tensor([0., 0.])})
    """

    path: Path
    state: Mapping[str, Any]
    """What was handed to save: data position, schedule, best score."""
    regard: str
    """The version of regard that wrote it."""
    manifest: Manifest

    @property
    def step(self) -> int:
        """The number of updates the weights have seen."""
        return self.manifest.step

    @property
    def digest(self) -> str:
        """One hash of everything: two runs with equal digests are in the same state, to the last bit."""
        return self.manifest.digest()

    @property
    def groups(self) -> tuple[str, ...]:
        """The names that tensors() knows."""
        return tuple(name.removesuffix(".safetensors") for name in self.manifest.files if name != STATE)

    def tensors(self, group: str) -> dict[str, Tensor]:
        """A group of tensors, in memory of its own; names that were one tensor when saved are one again."""
        name = f"{group}.safetensors"
        if name not in self.manifest.files:
            raise ModelError(f"{self.path}: there is no {name}; it holds {', '.join(self.groups) or 'no tensors'}")
        return read_tensors(self.path / name, self.manifest.tied.get(group))


@dataclass(frozen=True)
class Found:
    """What newest found: a checkpoint or none, and why any newer one was refused.

    >>> newest(Path("nowhere"))
    Found(checkpoint=None, refused=())
    """

    checkpoint: Checkpoint | None
    refused: tuple[str, ...]


def save(
    run: Path,
    step: int,
    tensors: Mapping[str, Mapping[str, Tensor]],
    state: Mapping[str, Any],
    *,
    keep: int = 2,
    best: bool = False,
    spare: Collection[int] = (),
) -> Path:
    """Commit a checkpoint to a run directory, move `last` (and `best`) to it, prune old ones, and return its path.

    Whatever happens meanwhile, the checkpoint before is intact. The newest `keep` stay, and `best`, and the
    steps to spare. A step saved again is skipped if nothing differs, else it gets a directory beside the old one.

    >>> import tempfile, torch
    >>> with tempfile.TemporaryDirectory() as run:
    ...     for step in (800, 1600, 2400):
    ...         path = save(Path(run), step, {"model": {"bias": torch.ones(2)}}, {}, best=step == 800)
    ...     path.name, sorted(path.name for path in (Path(run) / "checkpoints").iterdir())
    ('00002400', ['00000800', '00001600', '00002400'])
    """
    if keep < 2:
        raise ConfigError(f"keep: expected at least 2 checkpoints, so that one is good if the other is not, got {keep}")
    if step < 0 or not all(GROUP.fullmatch(group) for group in tensors):
        raise ValueError(f"expected a step from 0 on and groups named like 'model', got {step} and {list(tensors)}")
    text = _render_state(state)

    def write(folder: Path) -> None:
        files = {
            f"{group}.safetensors": write_tensors(folder / f"{group}.safetensors", tensors[group]) for group in tensors
        }
        files[STATE] = write_file(folder / STATE, [text])
        tied = {group: table for group in tensors if (table := ties(tensors[group]))}
        write_file(folder / manifest.NAME, [Manifest(step, files, tied).render()])

    try:
        path = checkpoint_store.commit(run, step, write)
        checkpoint_store.point(run, "last", path)
        if best:
            checkpoint_store.point(run, "best", path)
        checkpoint_store.prune(run, keep, spare)
    except OSError as error:
        needed = len(text) + sum(_bytes(group) for group in tensors.values())
        raise cannot_write(run / checkpoint_store.FOLDER / f"{step:08}", needed, error) from error
    return path


def _bytes(group: Mapping[str, Tensor]) -> int:
    aliases = ties(group)
    return sum(tensor.nbytes for name, tensor in group.items() if name not in aliases)


def _render_state(state: Mapping[str, Any]) -> bytes:
    text = json.dumps({"regard": regard.__version__, "state": state}, indent=1, sort_keys=True, allow_nan=False)
    if json.loads(text)["state"] != state:
        raise ValueError("the state must be plain JSON: string keys, lists and not tuples, finite numbers")
    return (text + "\n").encode()


def read(path: Path) -> Checkpoint:
    """Open a checkpoint directory after checking every byte of it, or raise a ModelError that says what is wrong.

    >>> read(Path("run/best"))
    Traceback (most recent call last):
    regard.errors.ModelError: run/best: there is no checkpoint; expected a directory with a manifest.json
    """
    held = manifest.read_manifest(path)
    if STATE not in held.files:
        raise ModelError(f"{path / manifest.NAME}: does not list {STATE}; this is not a checkpoint of regard")
    manifest.verify(path, held)
    try:
        content = json.loads((path / STATE).read_bytes())
        return Checkpoint(path, content["state"], content["regard"], held)
    except OSError as error:
        raise manifest.cannot_read(path / STATE, error) from error
    except (ValueError, KeyError, TypeError, RecursionError):
        raise ModelError(
            f"{path / STATE}: expected an object with 'regard' and 'state', found something else"
        ) from None


def newest(run: Path) -> Found:
    """The newest good checkpoint of a run; for each newer one that is not good the reason is given.

    >>> import tempfile, torch
    >>> with tempfile.TemporaryDirectory() as run:
    ...     for step in (800, 1600):
    ...         path = save(Path(run), step, {"model": {"bias": torch.ones(2)}}, {})
    ...     (path / "state.json").unlink()
    ...     found = newest(Path(run))
    ...     found.checkpoint.step, found.refused[0].replace(run, "run")
    (800, 'run/checkpoints/00001600: state.json is missing; this checkpoint is damaged, use another')
    """
    try:
        for _ in range(5):
            found, vanished = _newest(run)
            if found.checkpoint or not vanished:
                break
    except OSError as error:
        raise manifest.cannot_read(run, error) from error
    return found


def _newest(run: Path) -> tuple[Found, bool]:
    refused: list[str] = []
    vanished = False
    for path in checkpoint_store.candidates(run):
        try:
            return Found(read(path), tuple(refused)), False
        except ModelError as error:
            if path.is_dir():
                refused.append(str(error))
            else:
                vanished = True  # pruned by the writer while we read it: there is a newer one now
    return Found(None, tuple(refused)), vanished


def best(run: Path) -> Checkpoint | None:
    """The best checkpoint of a run, or None if none was called the best.

    >>> best(Path("nowhere")) is None
    True
    """
    try:
        path = checkpoint_store.target(run, "best")
    except OSError as error:
        raise manifest.cannot_read(run, error) from error
    return None if path is None else read(path)


def average(paths: Iterable[Path], group: str = "model") -> dict[str, Tensor]:
    """The mean of the weights of checkpoints: summed in float64, returned in float32.

    >>> import tempfile, torch
    >>> with tempfile.TemporaryDirectory() as run:
    ...     paths = [save(Path(run), step, {"model": {"bias": torch.ones(1) * step}}, {}) for step in (1, 2)]
    ...     average(paths)
    {'bias': tensor([1.5000])}
    """
    return mean((str(path), read(path).tensors(group)) for path in paths)
