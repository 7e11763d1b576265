"""What training looks like: what is trained on what, a row a validation, a bar with an ETA; the same in log.txt."""

from __future__ import annotations

import resource
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from regard.cli.console import Console, Progress, Silent, minutes
from regard.cli.score_format import columns, figure, title

if TYPE_CHECKING:
    from regard.tasks import Recipe
    from regard.train.events import Event, Stepped, Validated

MEASURED = 10
"""updates after which the speed is told"""
ASKED = 60
"""Columns of the screen for what was asked: of a whole review the answer would never be seen."""


class Watching:
    """A listener that shows a run on a console and writes what it shows into the run's log.txt.

    >>> import io, tempfile
    >>> from regard.cli.console import Console
    >>> from regard.tasks import Recipe
    >>> from regard.train.events import Validated
    >>> screen, recipe = io.StringIO(), Recipe.read(None, ["data.kind=phrases", "model.kind=seq2seq"])
    >>> with tempfile.TemporaryDirectory() as run, Watching(Console(file=screen), Path(run), recipe) as watching:
    ...     watching(Validated(100, {"loss": 2.5}, best=True))
    ...     screen.getvalue() == Path(run, "log.txt").read_text(encoding="utf-8")
    True
    """

    def __init__(self, console: Console, run: Path, recipe: Recipe, processes: int = 1) -> None:
        self.console, self.run, self.recipe, self.processes = console, run, recipe, processes
        self.step = self.steps = 0
        self._progress: Progress = Silent()
        self._recent: list[Stepped] = []
        self._spoke = False
        self._columns: list[str] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.console.close()

    def __call__(self, event: Event) -> None:
        from regard.train import events

        match event:
            case events.Began():
                self.began(event)
            case events.Stepped():
                self.stepped(event)
            case events.Validated():
                self.validated(event)
            case events.Skipped():
                self.line(f" step {event.step} was left out: {event.culprit} is not a number")
            case events.Ended():
                self.console.close()

    def line(self, text: str) -> None:
        """Say a line, as much of it as fits, and keep it whole."""
        from regard.files import append_line

        self.console.say(cut_to(text, self.console.width))
        append_line(self.run / "log.txt", text)

    def began(self, event: Any) -> None:
        self.step, self.steps = event.step, event.steps
        for refused in event.refused:
            self.line(f" warning  {refused}")
        for line in described(self.run, self.recipe, event.parameters):
            self.line(line)
        if event.step:
            self.line(f" resumed  at step {event.step:,} of {event.steps:,}")
        if event.step < event.steps:
            self._progress = self.console.progress("training", event.steps, event.step)

    def stepped(self, event: Stepped) -> None:
        self.step = event.step
        self._recent.append(event)
        self._progress.update(event.step, f"loss {event.loss:.3f}")
        if len(self._recent) == MEASURED:
            self.speak()

    def speak(self) -> None:
        """Tell the speed, once, as soon as it is known."""
        if self._spoke or not self._recent:
            return
        self._spoke = True
        speed, each = rate(self._recent)
        self.line(device(speed, (self.steps - self.step) * each, self.processes))

    def validated(self, event: Validated) -> None:
        from regard.look.tokens import cut
        from regard.tasks.translate.predict import printable

        self.speak()
        names = columns([event.metrics])
        if names != self._columns:
            self._columns = names
            self.line(head(names))
        last = self._recent[-1] if self._recent else None
        cells = [f" {event.step:<6}", *(f"{figure(name, event.metrics):>{wide(name)}}" for name in names)]
        cells += [
            f"  {last.rate:.1e}" if last else "        -",
            f" {last.norm:5.2f}" if last else "     -",
            f" {rate(self._recent)[0]:7,.0f}" if last else "       -",
        ]
        row = " ".join(cells)
        samples = [sample for sample in event.samples if "tried" not in sample]
        if samples:  # what was asked and what was answered come first in a sample
            asked, *answer = list(samples[0].values())[:2]
            row += f"   {' -> '.join([cut(str(asked), ASKED), *map(str, answer)])}"
        self.line(printable(row))
        for sample in event.samples:
            if "tried" in sample:
                self.line(printable(f"    {cut(sample['tried'], ASKED)} -> {sample['output']}"))
        self._recent = []


def wide(name: str) -> int:
    """Columns of the screen for a score.

    >>> wide("loss"), wide("bits per word")
    (7, 13)
    """
    return max(7, len(title(name)))


def head(names: Sequence[str]) -> str:
    """The titles above the rows of validations.

    >>> head(["loss", "ppl", "bleu"])
    ' step      loss     ppl    BLEU   lr       grad    tok/s'
    """
    scores = [f"{title(name):>{wide(name)}}" for name in names]
    return " ".join([" step  ", *scores]) + "   lr       grad    tok/s"


def cut_to(text: str, width: int) -> str:
    """A line that fits.

    >>> cut_to("je suis étudiant", 8)
    'je suis…'
    """
    from regard.look.tokens import cut, isolated

    return isolated(cut(text, width))


def rate(steps: Sequence[Stepped]) -> tuple[float, float]:
    """Predictions a second, and seconds a step.

    >>> from regard.train.events import Stepped
    >>> rate([Stepped(1, 2.0, 1e-3, 1.0, tokens=100, seconds=0.5)])
    (200.0, 0.5)
    """
    seconds = sum(step.seconds for step in steps)
    return sum(step.tokens for step in steps) / max(seconds, 1e-9), seconds / len(steps)


def described(run: Path, recipe: Recipe, parameters: int) -> list[str]:
    """What learns from what, in two lines."""
    return [
        f" data     {recipe.described(run)}",
        f" model    {recipe.model.shape}, {millions(parameters)} parameters",
    ]


def millions(count: int) -> str:
    """A large number as people say it.

    >>> millions(7_600_000), millions(26_152)
    ('7.6 M', '26,152')
    """
    return f"{count / 1e6:.1f} M" if count >= 1_000_000 else f"{count:,}"


def peak() -> float:
    """The most memory this process has had so far, in GiB.

    >>> peak() > 0
    True
    """
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most / (1 << 30 if sys.platform == "darwin" else 1 << 20)


def device(speed: float, seconds: float, processes: int = 1) -> str:
    """Where it runs, how fast, how long still, with how much memory.

    >>> device(9800.0, 840.0).split(", about ")[1].split(", peak")[0]
    '9,800 tokens/s, ETA 14 min'
    """
    import torch

    threads = torch.get_num_threads()
    spoken = f"cpu, {f'{processes} x ' if processes > 1 else ''}{threads} thread{'s' if threads > 1 else ''}"
    return f" device   {spoken}, about {speed:,.0f} tokens/s, ETA {minutes(seconds)}, peak {peak():.1f} GiB"
