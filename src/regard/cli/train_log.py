"""Training output: data and model, one row per validation, a progress bar with an ETA; the same rows go to log.txt."""

from __future__ import annotations

import resource
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from regard.cli.console import Console, ProgressReporter, SilentProgress, format_duration
from regard.cli.score_format import format_metric, format_value, metric_names, metric_title

if TYPE_CHECKING:
    from regard.tasks import Recipe
    from regard.tasks.init_weights import InitReport
    from regard.train.events import Event, Stepped, Validated

SPEED_STEPS = 10
"""updates after which the speed is reported"""
SAMPLE_WIDTH = 60
"""columns of the screen for the input and for the output of a sample; samples.jsonl has all of both"""


class TrainLog:
    """A training listener that prints progress to a console and appends it to the run's log.txt."""

    def __init__(self, console: Console, run: Path, recipe: Recipe, processes: int = 1) -> None:
        self.console, self.run, self.recipe, self.processes = console, run, recipe, processes
        self.step = self.steps = 0
        self.device = "cpu"
        self._progress: ProgressReporter = SilentProgress()
        self._recent: list[Stepped] = []
        self._speed_reported = False
        self._columns: list[str] = []
        self._smoothing = 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.console.close()

    def __call__(self, event: Event) -> None:
        from regard.train import events

        match event:
            case events.Began():
                self.on_began(event)
            case events.Stepped():
                self.on_step(event)
            case events.Validated():
                self.on_validation(event)
            case events.Skipped():
                self.write(f" step {event.step} was skipped: {event.reason}")
            case events.RolledBack():
                self.write(
                    f" step {event.diverged_at} diverged: {event.reason}; training goes on from step {event.step} with "
                    f"{event.lr_factor:g} x the learning rate"
                )
            case events.Ended():
                self.console.close()

    def write(self, text: str, always: bool = False) -> None:
        """Print a line, cut to the terminal's width, and append all of it to log.txt; `always`: also with --quiet."""
        from regard.files import append_line
        from regard.look.tokens import isolate_bidi, truncate

        self.console.print(isolate_bidi(truncate(text, self.console.width)), always)
        append_line(self.run / "log.txt", text)

    def warn(self, text: str) -> None:
        """Write a warning, which --quiet does not hide."""
        self.write(text, always=True)

    @property
    def speed_title(self) -> str:
        """Header of the column of the speed."""
        unit = self.recipe.speed_unit()
        return "tok/s" if unit == "tokens" else f"{unit}/s"

    @property
    def speed_width(self) -> int:
        return max(8, len(self.speed_title))

    def on_began(self, event: Any) -> None:
        self.step, self.steps = event.step, event.steps
        for refused in event.refused:
            self.warn(f" warning  {refused}")
        from regard.tasks.init_weights import InitReport

        for line in summary_lines(self.run, self.recipe, event.parameters, InitReport.load(self.run)):
            self.write(line)
        if not event.step:
            for warning in self.recipe.data_warnings(self.run):
                self.warn(f" warning  {warning}")
        self.device = event.device
        if event.moved_from:
            now = event.device.partition(" ")[0]
            self.write(f" warning  trained on {event.moved_from} so far, from here on {now}: the last bits differ")
        self._smoothing = event.label_smoothing
        if event.step > event.steps:
            self.write(f" finished at step {event.step:,} already; {event.steps:,} steps ask for no more training")
        elif event.step:
            self.write(f" resumed  at step {event.step:,} of {event.steps:,}")
        if event.step < event.steps:
            self._progress = self.console.progress("training", event.steps, event.step)

    def on_step(self, event: Stepped) -> None:
        self.step = event.step
        self._recent.append(event)
        self._progress.update(event.step, f"loss {format_value(event.loss, 3)}")
        if len(self._recent) == SPEED_STEPS:
            self.report_speed()

    def report_speed(self) -> None:
        """Report the speed once, as soon as it is known."""
        if self._speed_reported or not self._recent:
            return
        self._speed_reported = True
        speed, step_time = throughput(self._recent)
        remaining, unit = (self.steps - self.step) * step_time, self.recipe.speed_unit()
        self.write(device_line(speed, remaining, self.processes, self.device, unit))

    def on_validation(self, event: Validated) -> None:
        from regard.data.lines import printable
        from regard.look.tokens import truncate

        self.report_speed()
        names = metric_names([event.metrics])
        if names != self._columns:
            if not self._columns and self._smoothing:
                self.write(smoothing_note(self._smoothing))
            self._columns = names
            titles = [f"{metric_title(name):>{column_width(name)}}" for name in names]
            self.write(" ".join([" step  ", *titles]) + f"   lr       grad {self.speed_title:>8}")
        last = self._recent[-1] if self._recent else None
        cells = [f" {event.step:<6}"]
        cells += [f"{format_metric(name, event.metrics):>{column_width(name)}}" for name in names]
        cells += ["        -", "     -", f"{'-':>{self.speed_width}}"]
        if last:
            speed = f"{throughput(self._recent)[0]:,.0f}"
            cells[-3:] = [f"  {last.rate:.1e}", f" {format_value(last.norm, 2):>5}", f"{speed:>{self.speed_width}}"]
        row = " ".join(cells)
        samples = [sample for sample in event.samples if "sample_input" not in sample]
        if samples:  # the first two fields of a sample are its input and its output
            text, *output = list(samples[0].values())[:2]
            row += f"   {' -> '.join(truncate(str(part), SAMPLE_WIDTH) for part in (text, *output))}"
        self.write(printable(row))
        for sample in event.samples:
            if "sample_input" in sample:
                parts = (sample["sample_input"], str(sample["output"]))
                self.write(printable(f"    {' -> '.join(truncate(part, SAMPLE_WIDTH) for part in parts)}"))
        self._recent = []


def smoothing_note(smoothing: float) -> str:
    """Note above the table of validations: its losses and the training loss are not the same quantity."""
    return f" losses   of validation, without label smoothing; the training loss has label smoothing {smoothing:g}"


def column_width(name: str) -> int:
    """Columns of the screen for a metric."""
    return max(7, len(metric_title(name)))


def throughput(steps: Sequence[Stepped]) -> tuple[float, float]:
    """Predictions per second, and seconds per step."""
    seconds = sum(step.seconds for step in steps)
    return sum(step.tokens for step in steps) / max(seconds, 1e-9), seconds / len(steps)


def summary_lines(run: Path, recipe: Recipe, parameters: int, init: InitReport | None = None) -> list[str]:
    """Lines that describe the data, the model, and what it starts from."""
    model = f" model    {recipe.model.summary}, {format_count(parameters)} parameters"
    return [f" data     {recipe.summary(run)}", model, *(init.lines() if init else ())]


def format_count(count: int) -> str:
    """A count, in millions if it is large.

    >>> format_count(7_600_000), format_count(26_152)
    ('7.6 M', '26,152')
    """
    return f"{count / 1e6:.1f} M" if count >= 1_000_000 else f"{count:,}"


def peak_memory(device: str = "cpu") -> float:
    """Peak memory on a device, in GiB: of CUDA what torch allocated, else the resident memory of this process."""
    if device.startswith("cuda"):
        import torch

        return torch.cuda.max_memory_allocated() / (1 << 30)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1 << 30 if sys.platform == "darwin" else 1 << 20)


def device_line(speed: float, seconds: float, processes: int = 1, device: str = "cpu", unit: str = "tokens") -> str:
    """Device, speed, remaining time and peak memory."""
    import torch

    threads = torch.get_num_threads()
    times = f"{processes} x " if processes > 1 else ""
    where = f"cpu, {times}{threads} thread{'s' if threads > 1 else ''}" if device == "cpu" else f"{times}{device}"
    speed_and_time = f"about {speed:,.0f} {unit}/s, ETA {format_duration(seconds)}"
    return f" device   {where}, {speed_and_time}, peak {peak_memory(device):.1f} GiB"
