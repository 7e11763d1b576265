"""Probe: records the attention on one fixed text at each validation, to show how it develops during training.

A probe is a listener. It loads the checkpoint that was just written, so it does not affect training, whatever the task.
It stores the attention weights (hidden states for a model without attention) in one small file per validation, in the
run's folder `probe/`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path

import regard
from regard.errors import RegardError
from regard.files import read_bounded, write_text_atomically
from regard.look import Recording
from regard.trace import Record, Trace
from regard.train.events import Began, Event, Saved, Validated

FOLDER, SENTENCE = "probe", "sentence.txt"
MAX_FILES = 48
"""validations that are kept; beyond that, steps closest to their neighbors are dropped"""
MAX_NUMBERS = 2_000_000
"""numbers per file; of a large model only the last layers are stored"""
MAX_TEXT = 1 << 20
"""bytes of the longest text"""
NAME = re.compile(r"(\d{8,})\.safetensors")


class Probe:
    """Listener that records one text at each validation; after a failure it warns once, and training continues."""

    def __init__(self, run: Path, text: str, warn: Callable[[str], None]) -> None:
        self.run, self.text, self.warn = run, text.strip(), warn
        self.validated: int | None = None
        self.failed = False

    def __call__(self, event: Event) -> None:
        if self.failed:
            return
        try:
            match event:
                case Began():
                    self.begin(event.step)
                case Validated():
                    self.validated = event.step
                case Saved() if event.step == self.validated:
                    self.validated = None
                    self.record(event)
        except (RegardError, OSError) as error:
            self.failed = True
            self.warn(f" warning  train.probe failed and is disabled from here on: {error}")

    def begin(self, step: int) -> None:
        """Remove files of another text, and of steps that a resumed run repeats."""
        folder, changed = self.run / FOLDER, probe_text(self.run) != self.text
        folder.mkdir(exist_ok=True)
        for old in probe_steps(self.run):
            if changed or old > step:
                probe_path(self.run, old).unlink(missing_ok=True)
        if changed:
            write_text_atomically(folder / SENTENCE, f"{self.text}\n")

    def record(self, saved: Saved) -> None:
        """Record the text with the model of a checkpoint, and store the recording."""
        model = regard.load(saved.path, "cpu")
        with model.record() as recording:
            model.run_for_trace(self.text)
        whole = recording.condense()
        selected = Recording(Trace(records=select_records(whole.records)), whole.id_to_token)
        selected.save(probe_path(self.run, saved.step))
        for old in steps_to_drop(probe_steps(self.run)):
            probe_path(self.run, old).unlink(missing_ok=True)


def select_records(records: Sequence[Record]) -> list[Record]:
    """Attention weights, or hidden states where there are none; of the last layers, as many as fit."""
    kinds = {"weights": ("weights",), "states": ("hidden", "residual")}
    by_kind = {kind: [r for r in records if r.name.rpartition(".")[2] in ends] for kind, ends in kinds.items()}
    selected: list[Record] = []
    numbers = 0
    for record in reversed(by_kind["weights"] or by_kind["states"]):
        numbers += record.data.numel()
        if numbers > MAX_NUMBERS:
            break
        selected.insert(0, record)
    return selected


def probe_path(run: Path, step: int) -> Path:
    """File of the recording at a step."""
    return run / FOLDER / f"{step:08}.safetensors"


def probe_steps(run: Path) -> list[int]:
    """Steps that have a recording."""
    try:
        found = [NAME.fullmatch(file.name) for file in (run / FOLDER).iterdir()]
    except OSError:
        return []
    return sorted(int(match[1]) for match in found if match)


def probe_text(run: Path) -> str | None:
    """The text that is recorded; None if the run has no probe."""
    try:
        return read_bounded(run / FOLDER / SENTENCE, MAX_TEXT).decode(errors="replace").strip()
    except OSError:
        return None


def steps_to_drop(steps: Sequence[int], limit: int = MAX_FILES) -> list[int]:
    """Steps to drop so that `limit` are left, spread over the training; the first and the last always stay."""
    left, dropped = list(steps), []
    while len(left) > max(limit, 2):
        at = min(range(1, len(left) - 1), key=lambda i: left[i + 1] - left[i - 1])
        dropped.append(left.pop(at))
    return sorted(dropped)
