"""One sentence that is looked into at each validation: how a model's attention comes about while it learns.

A probe is a listener. It opens the checkpoint that was just written, so it changes nothing of the training, whatever
the job is; of what it sees it keeps the attention weights (of a model without any, its hidden states), in one small
file a validation under the run's `probe/`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path

import regard
from regard.errors import RegardError
from regard.files import write_text_atomically
from regard.look import Recording
from regard.trace import Record, Trace
from regard.train.events import Began, Event, Saved, Validated

FOLDER, SENTENCE = "probe", "sentence.txt"
KEPT = 48
"""validations that are kept: of more, those that stand closest to their neighbours go"""
ROOM = 2_000_000
"""numbers of one file: of a large model the last layers are kept"""
NAME = re.compile(r"(\d{8,})\.safetensors")


class Probe:
    """Looks into one sentence at each validation of a run; what goes wrong is told once, and training goes on.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as run:
    ...     probe = Probe(Path(run), "je suis étudiant", print)
    ...     probe(Began(0, 100, 9))
    ...     probe(Validated(50, {"loss": 2.0}, best=True))
    ...     probe(Saved(50, Path(run, "nowhere")))
    ...     steps(Path(run)), sentence(Path(run))
     warning  train.probe cannot be looked into, ...
    ([], 'je suis étudiant')
    """

    def __init__(self, run: Path, text: str, complain: Callable[[str], None]) -> None:
        self.run, self.text, self.complain = run, text.strip(), complain
        self.due: int | None = None
        self.broken = False

    def __call__(self, event: Event) -> None:
        if self.broken:
            return
        try:
            match event:
                case Began():
                    self.begin(event.step)
                case Validated():
                    self.due = event.step
                case Saved() if event.step == self.due:
                    self.due = None
                    self.look(event)
        except (RegardError, OSError) as error:
            self.broken = True
            self.complain(f" warning  train.probe cannot be looked into, and is left out from here on: {error}")

    def begin(self, step: int) -> None:
        """What was seen of another sentence, or of steps that a resumed run takes again, goes."""
        folder, anew = self.run / FOLDER, sentence(self.run) != self.text
        folder.mkdir(exist_ok=True)
        for old in steps(self.run):
            if anew or old > step:
                place(self.run, old).unlink(missing_ok=True)
        if anew:
            write_text_atomically(folder / SENTENCE, f"{self.text}\n")

    def look(self, saved: Saved) -> None:
        """Keep what the model of a checkpoint does with the sentence."""
        model = regard.load(saved.path)
        with model.record() as recording:
            model.observe(self.text)
        whole = recording.condensed()
        Recording(Trace(records=chosen(whole.records)), whole.spell).save(place(self.run, saved.step))
        for old in crowded(steps(self.run)):
            place(self.run, old).unlink(missing_ok=True)


def chosen(records: Sequence[Record]) -> list[Record]:
    """What is kept: attention weights, or hidden states where there are none; the last layers, as many as fit.

    >>> import torch
    >>> seen = {name: Record(name, ("batch", "key"), torch.ones(1, 2), {}, {}) for name in ("a.weights", "a.hidden")}
    >>> [record.name for record in chosen(list(seen.values()))]
    ['a.weights']
    """
    kinds = {"weights": ("weights",), "states": ("hidden", "residual")}
    named = {kind: [r for r in records if r.name.rpartition(".")[2] in ends] for kind, ends in kinds.items()}
    kept: list[Record] = []
    room = ROOM
    for record in reversed(named["weights"] or named["states"]):
        room -= record.data.numel()
        if room < 0:
            break
        kept.insert(0, record)
    return kept


def place(run: Path, step: int) -> Path:
    """Where the file of a step is.

    >>> place(Path("runs/a"), 50).as_posix()
    'runs/a/probe/00000050.safetensors'
    """
    return run / FOLDER / f"{step:08}.safetensors"


def steps(run: Path) -> list[int]:
    """The steps that were looked at.

    >>> steps(Path("nowhere"))
    []
    """
    try:
        found = [NAME.fullmatch(file.name) for file in (run / FOLDER).iterdir()]
    except OSError:
        return []
    return sorted(int(match[1]) for match in found if match)


def sentence(run: Path) -> str | None:
    """The sentence that is looked into; None if there is none.

    >>> sentence(Path("nowhere")) is None
    True
    """
    try:
        return (run / FOLDER / SENTENCE).read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return None


def crowded(steps: Sequence[int], most: int = KEPT) -> list[int]:
    """The steps that go, so that `most` are left, spread over the training; the first and the last always stay.

    >>> crowded([1, 2, 3, 10, 20], most=3)
    [2, 3]
    """
    left, gone = list(steps), []
    while len(left) > max(most, 2):
        at = min(range(1, len(left) - 1), key=lambda i: left[i + 1] - left[i - 1])
        gone.append(left.pop(at))
    return sorted(gone)
