"""Events of training and their listeners. A listener is any function of an event; it does not change the training."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from regard.errors import ConfigError
from regard.files import MAX_LINE, append_line, cannot_write, open_regular, parse_json, write_bytes_atomically


@dataclass(frozen=True)
class Began:
    """Training started, or resumed at a step."""

    step: int
    steps: int
    parameters: int
    refused: Sequence[str] = ()
    """why newer checkpoints could not be used"""
    device: str = "cpu"
    """the device, with its product and memory"""
    moved_from: str | None = None
    """the kind of device that the run was trained on so far, if it was another"""
    label_smoothing: float = 0.0
    """label smoothing of the training loss; the validation loss has none"""


@dataclass(frozen=True)
class Stepped:
    """The weights were updated."""

    step: int
    loss: float
    """training loss per prediction"""
    rate: float
    """learning rate"""
    norm: float
    """gradient norm before clipping"""
    tokens: int
    """predictions, over all processes"""
    seconds: float


@dataclass(frozen=True)
class Validated:
    """The model was validated; `best` says whether it is the best so far."""

    step: int
    metrics: Mapping[str, float]
    best: bool
    samples: Sequence[Mapping[str, Any]] = ()


@dataclass(frozen=True)
class Saved:
    """A checkpoint was committed."""

    step: int
    path: Path


@dataclass(frozen=True)
class Skipped:
    """An update was skipped because its loss or gradient norm was too large or not finite."""

    step: int
    reason: str


@dataclass(frozen=True)
class RolledBack:
    """Training diverged and goes on from a checkpoint, after the batches that it had reached."""

    step: int
    """step of the checkpoint"""
    diverged_at: int
    reason: str
    lr_factor: float
    """factor of the learning rate from here on"""


@dataclass(frozen=True)
class Ended:
    """Training ended: "done", "early", "diverged", "interrupted", "terminated" or, by the control file, "stopped"."""

    step: int
    reason: str
    best: Mapping[str, float] = field(default_factory=dict)


Event = Began | Stepped | Validated | Saved | Skipped | RolledBack | Ended
Listener = Callable[[Event], None]


class MetricsFile:
    """Listener that writes metrics.jsonl and samples.jsonl: one JSON object per `every` steps and per validation.

    A killed run resumes from its last checkpoint; lines of later steps are dropped then: no step is logged twice.
    """

    def __init__(self, run: Path, every: int = 10) -> None:
        self.run, self.every = run, every

    def __call__(self, event: Event) -> None:
        match event:
            case Stepped() if event.step % self.every:
                return
            case Began() | RolledBack():
                for name in ("metrics", "samples"):
                    drop_after(self.run / f"{name}.jsonl", event.step)
                self._write("metrics", event, asdict(event))
            case Validated():
                self._write("metrics", event, {"step": event.step, **event.metrics, "best": event.best})
                for sample in event.samples:
                    self._write("samples", event, {"step": event.step, **sample})
            case Saved():
                self._write("metrics", event, {"step": event.step, "path": event.path.name})
            case _:
                self._write("metrics", event, asdict(event))

    def _write(self, name: str, event: Event, row: Mapping[str, Any]) -> None:
        text = json.dumps({"event": type(event).__name__.lower(), **row}, ensure_ascii=False)
        append_line(self.run / f"{name}.jsonl", text)


def drop_after(path: Path, step: int) -> None:
    """Drop the lines of later steps and an incomplete last line; the file is replaced atomically."""
    try:
        with open_regular(path) as file:
            data = file.read()
    except FileNotFoundError:
        return
    except OSError as error:
        raise cannot_write(path, 0, error) from error
    lines = b"".join(line for line in data.splitlines(keepends=True) if _is_up_to(line, step))
    if lines != data:
        write_bytes_atomically(path, lines)


def _is_up_to(line: bytes, step: int) -> bool:
    """Whether a line is complete JSON of this step or an earlier one; a power cut may leave anything."""
    try:
        row = parse_json(line) if line.endswith(b"\n") and len(line) <= MAX_LINE else None
    except ValueError:
        return False
    return isinstance(row, dict) and isinstance(row.get("step"), int) and row["step"] <= step


class TensorBoard:
    """Listener that writes event files for TensorBoard (the `tensorboard` extra)."""

    def __init__(self, run: Path) -> None:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError:
            raise ConfigError(
                "train.tensorboard = true needs the package tensorboard; install it, or leave the setting out"
            ) from None
        self._open = lambda step: SummaryWriter(str(run / "tensorboard"), purge_step=step + 1)

    def __call__(self, event: Event) -> None:
        match event:
            case Began() | RolledBack():  # hides what was logged of later steps
                self.writer = self._open(event.step)
            case Stepped():
                rows = {"loss": event.loss, "rate": event.rate, "norm": event.norm}
                self._write("train", event.step, rows | {"predictions per second": event.tokens / event.seconds})
            case Validated():
                self._write("valid", event.step, event.metrics)
            case Ended():
                self.writer.close()

    def _write(self, split: str, step: int, rows: Mapping[str, float]) -> None:
        for name, value in rows.items():
            self.writer.add_scalar(f"{split}/{name}", value, step)
