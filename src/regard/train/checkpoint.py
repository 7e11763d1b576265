"""Checkpoint writing and reading: directories of safetensors and plain JSON; each is complete or refused.

model.safetensors  weights; further groups if a run has them: optimizer, trained (without EMA), hidden_state
state.json         training state: data position, schedule, best metrics; the version of regard
manifest.json      size and SHA-256 of the other files, and which names share one weight (manifest.py)

checkpoint_store.py writes them so that a crash never endangers the previous one.
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
from regard.files import cannot_write, parse_json, read_bounded, write_file
from regard.manifest import OtherVersion
from regard.train import checkpoint_store, manifest
from regard.train.manifest import Manifest
from regard.train.weights import average_weights, read_tensors, tied_names, write_tensors

STATE = "state.json"
MAX_STATE = 16 << 20
"""bytes of the largest training state; it is a few hundred"""
GROUP = re.compile(r"[a-z][a-z0-9_]*")


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint that was verified byte by byte.

    >>> import tempfile, torch
    >>> with tempfile.TemporaryDirectory() as run:
    ...     _ = save(Path(run), 800, {"model": {"bias": torch.zeros(2)}}, {"epoch": 3})
    ...     checkpoint = read(Path(run) / "last")
    ...     checkpoint.step, checkpoint.state, checkpoint.groups, checkpoint.tensors("model")
    (800, {'epoch': 3}, ('model',), {'bias': tensor([0., 0.])})
    """

    path: Path
    state: Mapping[str, Any]
    """Training state as given to `save`."""
    regard: str
    """Version of regard that wrote it."""
    manifest: Manifest

    @property
    def step(self) -> int:
        """Updates of the weights so far."""
        return self.manifest.step

    @property
    def digest(self) -> str:
        """SHA-256 of everything: two runs with equal digests are in the same state, to the last bit."""
        return self.manifest.digest()

    @property
    def groups(self) -> tuple[str, ...]:
        """Names of the tensor groups, such as model and optimizer."""
        return tuple(name.removesuffix(".safetensors") for name in self.manifest.files if name != STATE)

    def tensors(self, group: str) -> dict[str, Tensor]:
        """The tensors of a group, as copies; names that shared one tensor when saved share one again."""
        name = f"{group}.safetensors"
        if name not in self.manifest.files:
            raise ModelError(f"{self.path}: there is no {name}; it holds {', '.join(self.groups) or 'no tensors'}")
        return read_tensors(self.path / name, self.manifest.tied.get(group))


@dataclass(frozen=True)
class FoundCheckpoint:
    """Result of `newest`: a checkpoint or None, and why newer ones were refused."""

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
    keep_steps: Collection[int] = (),
) -> Path:
    """Commit a checkpoint to a run, point `last` (and `best`) to it, prune old ones, and return its path.

    A crash at any moment leaves the previous checkpoint intact. The newest `keep` stay, and `best`, and those of
    `keep_steps`. A step saved again is skipped if nothing differs, else it gets a directory of its own (revision 2).
    """
    if keep < 2:
        raise ConfigError(f"keep: expected at least 2 checkpoints, in case one is damaged, got {keep}")
    if step < 0 or not all(GROUP.fullmatch(group) for group in tensors):
        raise ValueError(f"expected a step from 0 on and groups named like 'model', got {step} and {list(tensors)}")
    text = _render_state(state)

    def write(folder: Path) -> None:
        names = {f"{group}.safetensors": group for group in tensors}
        files = {name: write_tensors(folder / name, tensors[group]) for name, group in names.items()}
        files[STATE] = write_file(folder / STATE, [text])
        tied = {group: table for group in tensors if (table := tied_names(tensors[group]))}
        write_file(folder / manifest.NAME, [Manifest(step, files, tied).render()])

    try:
        path = checkpoint_store.commit(run, step, write)
        checkpoint_store.set_link(run, "last", path)
        if best:
            checkpoint_store.set_link(run, "best", path)
        checkpoint_store.prune(run, keep, keep_steps)
    except OSError as error:
        needed = len(text) + sum(_size(group) for group in tensors.values())
        raise cannot_write(run / checkpoint_store.FOLDER / f"{step:08}", needed, error) from error
    return path


def _size(group: Mapping[str, Tensor]) -> int:
    aliases = tied_names(group)
    return sum(tensor.nbytes for name, tensor in group.items() if name not in aliases)


def _render_state(state: Mapping[str, Any]) -> bytes:
    text = json.dumps({"regard": regard.__version__, "state": state}, indent=1, sort_keys=True, allow_nan=False)
    if json.loads(text)["state"] != state:
        raise ValueError("the state must be plain JSON: string keys, lists and not tuples, finite numbers")
    return (text + "\n").encode()


def read(path: Path) -> Checkpoint:
    """Open a checkpoint after verifying every byte of it; a damaged one raises a ModelError that names the fault."""
    listed = manifest.read_manifest(path)
    if STATE not in listed.files:
        raise ModelError(f"{path / manifest.NAME}: does not list {STATE}; this is not a checkpoint of regard")
    manifest.verify(path, listed)
    try:
        content = parse_json(read_bounded(path / STATE, MAX_STATE))
        if not isinstance(content["state"], dict):
            raise TypeError
        return Checkpoint(path, content["state"], content["regard"], listed)
    except OSError as error:
        raise manifest.read_error(path / STATE, error) from error
    except (ValueError, KeyError, TypeError):
        expected = "expected an object with 'regard' and 'state'"
        raise ModelError(f"{path / STATE}: {expected}, found something else") from None


def newest(run: Path) -> FoundCheckpoint:
    """The newest good checkpoint of a run, and the faults of newer ones."""
    try:
        for _ in range(5):
            found, vanished = _newest(run)
            if found.checkpoint or not vanished:
                break
    except OSError as error:
        raise manifest.read_error(run, error) from error
    return found


def _newest(run: Path) -> tuple[FoundCheckpoint, bool]:
    errors: list[ModelError] = []
    vanished = False
    for path in checkpoint_store.search_order(run):
        try:
            return FoundCheckpoint(read(path), tuple(map(str, errors))), False
        except ModelError as error:
            if path.is_dir():
                errors.append(error)
            else:
                vanished = True  # pruned by the writer during the read: there is a newer one now
    if errors and all(isinstance(error, OtherVersion) for error in errors):
        raise errors[0]
    return FoundCheckpoint(None, tuple(map(str, errors))), vanished


def best(run: Path) -> Checkpoint | None:
    """The best checkpoint of a run, or None if there is none."""
    try:
        path = checkpoint_store.resolve_link(run, "best")
    except OSError as error:
        raise manifest.read_error(run, error) from error
    return None if path is None else read(path)


def average(paths: Iterable[Path], group: str = "model") -> dict[str, Tensor]:
    """Checkpoint averaging: the mean of the weights, summed in float64, returned in float32."""
    return average_weights((str(path), read(path).tensors(group)) for path in paths)
