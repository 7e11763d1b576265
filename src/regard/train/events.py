"""What a trainer tells whoever listens. A listener is any function of an event; it changes nothing."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from regard.errors import ConfigError
from regard.files import append_line, cannot_write, write_text_atomically


@dataclass(frozen=True)
class Began:
    """Training starts, or goes on from a step.

    >>> Began(step=800, steps=2000, parameters=7_600_000).step
    800
    """

    step: int
    steps: int
    parameters: int
    refused: Sequence[str] = ()
    """why newer checkpoints could not be used"""


@dataclass(frozen=True)
class Stepped:
    """The weights were updated.

    >>> Stepped(step=1, loss=9.0, rate=1e-4, norm=1.5, tokens=4000, seconds=0.5).tokens
    4000
    """

    step: int
    loss: float
    """what was minimised, per prediction"""
    rate: float
    """the learning rate"""
    norm: float
    """the gradient's length before clipping"""
    tokens: int
    """predictions, over all processes"""
    seconds: float


@dataclass(frozen=True)
class Validated:
    """The model was tried on data it does not learn from.

    >>> Validated(step=100, metrics={"loss": 2.0}, best=True).best
    True
    """

    step: int
    metrics: Mapping[str, float]
    best: bool
    samples: Sequence[Mapping[str, Any]] = ()


@dataclass(frozen=True)
class Saved:
    """A checkpoint was committed.

    >>> Saved(step=100, path=Path("runs/a/checkpoints/00000100")).step
    100
    """

    step: int
    path: Path


@dataclass(frozen=True)
class Skipped:
    """An update was left out because a gradient was not a number.

    >>> Skipped(step=7, culprit="decoder.layers.2.cross").culprit
    'decoder.layers.2.cross'
    """

    step: int
    culprit: str


@dataclass(frozen=True)
class Ended:
    """Training is over: "done", "early", "interrupted", "terminated" or, by the control file, "stopped".

    >>> Ended(step=2000, reason="done").reason
    'done'
    """

    step: int
    reason: str
    best: Mapping[str, float] = field(default_factory=dict)


Event = Began | Stepped | Validated | Saved | Skipped | Ended
Listener = Callable[[Event], None]


class MetricsFile:
    """Writes metrics.jsonl and samples.jsonl: one JSON object a line, every `every` steps and at each validation.

    A run that was killed goes on from its last checkpoint: what it had written of later steps is dropped then, so that
    no step is told twice.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as run:
    ...     MetricsFile(Path(run))(Validated(5, {"loss": 2.0}, True))
    ...     (Path(run) / "metrics.jsonl").read_text()
    '{"event": "validated", "step": 5, "loss": 2.0, "best": true}\\n'
    """

    def __init__(self, run: Path, every: int = 10) -> None:
        self.run, self.every = run, every

    def __call__(self, event: Event) -> None:
        match event:
            case Stepped() if event.step % self.every:
                return
            case Began():
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
    """Drop the lines of later steps, and what a crash left of a line; whoever reads sees the old file or the new one.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as run:
    ...     file = Path(run) / "metrics.jsonl"
    ...     _ = file.write_text('{"step": 1}\\n{"step": 2}\\n{"step": 3}\\n{"st')
    ...     drop_after(file, 2)
    ...     file.read_text()
    '{"step": 1}\\n{"step": 2}\\n'
    """
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return
    except OSError as error:
        raise cannot_write(path, 0, error) from error
    kept = b"".join(line for line in data.splitlines(keepends=True) if _is_upto(line, step))
    if kept != data:
        write_text_atomically(path, kept.decode())


def _is_upto(line: bytes, step: int) -> bool:
    """Whether a line is whole and of this step or an earlier one; a power cut may leave anything."""
    try:
        row = json.loads(line) if line.endswith(b"\n") else None
    except (ValueError, RecursionError):
        return False
    return isinstance(row, dict) and isinstance(row.get("step"), int) and row["step"] <= step


class TensorBoard:
    """Writes event files for TensorBoard (the `tensorboard` extra).

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as run:
    ...     tell = TensorBoard(Path(run))
    ...     for event in (Began(0, 10, 99), Validated(5, {"loss": 2.5}, best=True), Ended(10, "done")):
    ...         tell(event)
    ...     [file.name.split(".")[0] for file in Path(run, "tensorboard").iterdir()]
    ['events']
    """

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
            case Began():  # what a killed run has told of later steps is not shown
                self.writer = self._open(event.step)
            case Stepped():
                rows = {"loss": event.loss, "rate": event.rate, "norm": event.norm}
                self._write("train", event.step, rows | {"tokens per second": event.tokens / event.seconds})
            case Validated():
                self._write("valid", event.step, event.metrics)
            case Ended():
                self.writer.close()

    def _write(self, side: str, step: int, rows: Mapping[str, float]) -> None:
        for name, value in rows.items():
            self.writer.add_scalar(f"{side}/{name}", value, step)
