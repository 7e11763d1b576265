"""The divergence rule: does it stop a run at lr = 1000, and does it leave every recipe alone?

    python benchmarks/divergence.py record FOLDER           # loss and gradient norm of the recipes' steps, into files
    python benchmarks/divergence.py record FOLDER --whole   # resumes them, to the end of runs that take minutes
    python benchmarks/divergence.py check FOLDER            # the rule on the recorded series: steps, alarms, margins
    python benchmarks/divergence.py explode                 # lr = 1000 on four families, each in a process of its own

The rule is a pure function of the series of (loss, gradient norm), so that `check` decides exactly what training would
have decided. `record` trains without validation, on one thread, cheapest recipe first; it can be stopped and resumed.
REGARD_DATA names the folder with the corpora.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import math
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from pathlib import Path

import torch

from regard.compare.recipe import Comparison
from regard.distributed import ProcessGroup
from regard.errors import Interrupted
from regard.run import Recipe, Run
from regard.train.control import send_command
from regard.train.divergence import DivergenceRule, DivergenceState
from regard.train.events import Event, Stepped
from regard.train.trainer import train

RECIPES = Path(__file__).parents[1] / "recipes"
FIRST = 1000
"""steps of every recipe that are recorded"""
WHOLE = (
    "forecast/airline-passengers", "forecast/seattle-weather-table", "forecast/daily-temperatures", "classify/table",
    "generate/temperatures", "label/angles-chain", "forecast/seattle-weather", "forecast/seattle-temps",
    "classify/sst2-glove", "classify/sst2", "forecast/ett-h1", "classify/digits",
)  # fmt: skip
"""whole runs of about a minute, cheapest first"""
MINUTES = (
    "vectors/reviews", "generate/time-machine", "label/ewt-upos", "label/conll2000-chunks", "classify/movie-reviews",
    "label/restore-french", "generate/tiny-shakespeare-gpt", "translate/multi30k-fr-en",
)  # fmt: skip
"""runs of less than ten minutes"""
LONG = (
    "translate/es-en", "translate/multi30k-de-en-rnnsearch", "translate/multi30k-de-en-luong",
    "generate/shakespeare-bpe", "generate/shakespeare", "generate/tiny-shakespeare", "compare/fr-en",
    "compare/multi30k-de-en", "translate/multi30k-en-de", "translate/fr-en",
    "classify/mnist-cnn", "classify/mnist-vit", "translate/multi30k-fr-en-finetune", "classify/cifar10-resnet20",
    "generate/tiny-shakespeare-gpt-large",
)  # fmt: skip
PLANNED = {"demo": 1200, "translate/es-en": 2800, "compare/fr-en": 2000, "generate/tiny-shakespeare": 4000}
"""planned steps of recipes with a budget of minutes; others of that kind: 1,500"""
SEEDS = range(1, 11)
ALL = 10**9


@dataclass(frozen=True)
class Job:
    """One training to record."""

    name: str
    recipe: Recipe
    steps: int | None
    """steps to record; None: all"""
    prepared: Run | None = None
    """a run with the same prepared data"""


def jobs(folder: Path, first: int, whole: bool) -> Iterator[Job]:
    """All trainings, cheapest first."""
    for name in WHOLE:
        settings = table_settings(folder) if name == "classify/table" else ()
        yield Job(name, Recipe.read(RECIPES / f"{name}.toml", settings), None)
    demo = Recipe.read(Path(__file__).parents[1] / "src/regard/demo.toml")
    yield Job("demo/1", demo, None)
    for name in MINUTES:
        yield Job(name, Recipe.read(RECIPES / f"{name}.toml"), None if whole else first)
    for seed in SEEDS[1:]:
        yield Job(
            f"demo/{seed}", replace(demo, seed=seed), None if first >= FIRST else first, Run(folder / "runs/demo/1")
        )
    for name in LONG:
        if name.startswith("compare/"):
            comparison = Comparison.read(RECIPES / f"{name}.toml")
            shared = Run(folder / "runs" / name / "prepared")
            shared.begin(comparison.members[0].recipe)
            shared.prepare(comparison.members[0].recipe)
            for member in comparison.sized_members(shared.path):
                yield Job(f"{name}/{member.name}", member.recipe, first, shared)
        else:
            yield Job(name, Recipe.read(RECIPES / f"{name}.toml"), first)


def table_settings(folder: Path) -> list[str]:
    """Settings of classify/table: MNIST's 5,000 digits as a table; of forecast tables, none."""
    table = folder / "mnist.csv"
    if not table.exists():
        source = Path(os.environ["REGARD_DATA"]) / "mnist-5k" / "mnist_5k.csv.gz"
        rows = gzip.decompress(source.read_bytes()).decode().splitlines()
        table.parent.mkdir(parents=True, exist_ok=True)
        table.write_text("\n".join([",".join([*(f"p{i}" for i in range(784)), "label"]), *rows]) + "\n")
    return [f"data.train={table}", "data.label=label"]


class SeriesFile:
    """Listener that appends step, loss and gradient norm to a CSV file; rows after a resumed step are dropped."""

    def __init__(self, path: Path, last: int | None, run: Path) -> None:
        self.path, self.last, self.run = path, last, run

    def __call__(self, event: Event) -> None:
        if isinstance(event, Stepped):
            with self.path.open("a") as file:
                file.write(f"{event.step},{event.loss!r},{event.norm!r}\n")
            if event.step == self.last:
                send_command(self.run, "stop")


def record(job: Job, folder: Path) -> None:
    """Train without validation and write the series to FOLDER/series/NAME.csv; resumes where it stopped."""
    run, series = Run(folder / "runs" / job.name), folder / "series" / f"{job.name}.csv"
    series.parent.mkdir(parents=True, exist_ok=True)
    finished = series.with_suffix(".done")
    if finished.exists() and int(finished.read_text()) >= (job.steps or ALL):
        return
    started, recipe, group = time.perf_counter(), job.recipe, ProcessGroup()
    recipe.fetch()
    run.begin(recipe)
    if job.prepared:
        job.prepared.share_prepared(run, recipe)
    run.prepare(recipe)
    config = replace(recipe.train, validate_every=10**9, save_every=250, patience=0)
    config = replace(config, divergence=DivergenceRule(loss_factor=0, norm_factor=0))
    if config.minutes:
        name = "demo" if job.name.startswith("demo/") else "/".join(job.name.split("/")[:2])
        config = replace(config, minutes=None, steps=PLANNED.get(name, 1500))
    objective, loader, _ = recipe.training_parts(run.path, group)
    run.init_model(objective.model, recipe)
    drop_later_rows(series, run.path)
    listener = SeriesFile(series, job.steps, run.path)
    metrics = {recipe.train.best_metric: 0.0}
    try:
        train(objective, loader, config, run.path, group, [listener], lambda: (metrics, ()), recipe.seed)
        finished.write_text(str(ALL))
    except Interrupted:
        finished.write_text(str(job.steps))
    seconds = time.perf_counter() - started
    print(f"{job.name}: {len(read_series(series)):,} steps, {seconds:.0f} s", flush=True)


def drop_later_rows(series: Path, run: Path) -> None:
    """Drop rows of steps after the newest checkpoint: they will be recorded again."""
    from regard.train import checkpoint

    found = checkpoint.newest(run).checkpoint
    rows = [row for row in read_series(series) if found and row[0] <= found.step] if series.exists() else []
    series.write_text("".join(f"{step},{loss!r},{norm!r}\n" for step, loss, norm in rows))


def read_series(path: Path) -> list[tuple[int, float, float]]:
    """Step, loss and gradient norm of each step; an incomplete last line is left out."""
    rows = [row for row in csv.reader(path.read_text().splitlines()) if len(row) == 3]
    return [(int(step), float(loss), float(norm)) for step, loss, norm in rows]


def check(folder: Path) -> int:
    """Apply the rule with its default settings to all recorded series; returns the number of false alarms."""
    rule, steps, alarms = DivergenceRule(), 0, 0
    print("series: steps, too large, diverged at; largest excess of the loss / limit, largest norm / limit")
    for path in sorted((folder / "series").rglob("*.csv")):
        state, faults, stopped, excess, ratio = DivergenceState(), 0, 0, 0.0, 0.0
        for step, loss, norm in (rows := read_series(path)):
            first = loss if state.first_loss is None else state.first_loss
            excess = max(excess, (loss - first) / (rule.loss_factor * max(abs(first), 1.0)))
            ratio = max(ratio, norm / (rule.norm_factor * max(math.exp(state.log_norm), 1.0)) if state.seen else 0.0)
            fault = rule.observe(state, step, loss, norm, clip_norm=1.0)
            faults += fault is not None
            stopped = stopped or (step if fault is not None and fault.diverged else 0)
        steps, alarms = steps + len(rows), alarms + bool(stopped)
        name = path.relative_to(folder / "series").with_suffix("")
        whole = path.with_suffix(".done").exists() and int(path.with_suffix(".done").read_text()) == ALL
        print(
            f"{name}: {len(rows):,}{' (whole run)' if whole else ''}, {faults}, {stopped or 'never'}; "
            f"{excess:.3f}, {ratio:.3f}"
        )
    print(f"{steps:,} steps, {alarms} false alarms")
    return alarms


SMALL = "model.layers=2 model.width=32"
EXPLODED = {
    "transformer (translate)": f"data.kind=phrases data.count=2000 text.vocab_size=500 model.kind=transformer {SMALL} "
    "model.ffn_width=64 model.heads=2",
    "gpt (generate)": f"task.kind=generate data.kind=text data.train=book.txt task.window=16 model.kind=gpt {SMALL} "
    "model.heads=2 model.max_positions=16",
    "rnnsearch (translate)": "data.kind=phrases data.count=2000 text.vocab_size=500 model.kind=rnnsearch "
    "model.embedding=32 model.width=32 model.alignment=32 model.maxout=32",
    "mlp (classify)": f"task.kind=classify data.kind=table data.train=table.csv model.kind=mlp {SMALL}",
    "lstm (classify)": "task.kind=classify data.kind=lines data.train=lines.txt model.kind=recurrent model.width=32",
    "convolution (classify)": f"task.kind=classify data.kind=lines data.train=lines.txt model.kind=convolution {SMALL}",
    "rnnlm (generate)": "task.kind=generate data.kind=text data.train=book.txt task.window=16 model.kind=rnnlm "
    "model.layers=1 model.width=32",
    "gru, Gaussian (numbers)": 'task.kind=generate data.kind=numbers data.train=load.csv data.columns=["load"] '
    "task.window=8 task.length=5 model.kind=rnnlm model.cell=gru model.layers=1 model.width=16",
    "mlp, Laplace (forecast)": "task.kind=forecast data.kind=csv data.train=load.csv task.horizon=4 task.window=8 "
    "task.head=laplace model.kind=mlp model.width=16",
    "lstm, CRF (label)": "task.kind=label task.scheme=bio task.crf=linear data.kind=conll data.train=names.conll "
    "model.kind=recurrent model.width=16",
    "lstm, angles (label)": "task.kind=label data.kind=chains data.count=200 model.kind=recurrent model.width=16",
}
"""families trained at lr = 1000; the first four are required, the loss of the last is bounded"""
RATE = "train.schedule.kind=constant train.schedule.lr=1000 train.schedule.warmup=0"


def write_data(folder: Path) -> None:
    """Small files for the exploded families."""
    draw = random.Random(1)
    nouns, words = ("cat", "dog", "bird", "king", "queen"), ("great", "fine", "bad", "awful")
    book = [f"the {draw.choice(nouns)} saw the {draw.choice(nouns)} and left." for _ in range(600)]
    lines = [f"{int(word in words[:2])} the {draw.choice(nouns)} was {word}" for word in draw.choices(words, k=400)]
    table = [f"{draw.gauss(i % 2, 1):.3f},{draw.random():.3f},{'ab'[i % 2]}" for i in range(400)]
    load = [f"{date(2022, 1, 1) + timedelta(i)},{20 + i % 7 + draw.random():.3f}" for i in range(400)]
    names = [f"{draw.choice(nouns)} B-X\nlives O\nin O\nRome B-Y\n" for _ in range(300)]
    files = {
        "book.txt": book, "lines.txt": lines, "table.csv": ["x,y,label", *table], "load.csv": ["date,load", *load],
        "names.conll": names,
    }  # fmt: skip
    for name, content in files.items():
        (folder / name).write_text("\n".join(content) + "\n")


def explode(only: Sequence[str]) -> None:
    """Train every family at lr = 1000 by the command line, and print the exit code, the step and the message."""
    with tempfile.TemporaryDirectory() as folder:
        write_data(Path(folder))
        for name, settings in EXPLODED.items():
            if name.startswith(tuple(only)):
                (Path(folder) / "recipe.toml").write_text("")
                command = [*settings.split(), *RATE.split(), "train.batch_tokens=256", "train.steps=200"]
                command = [sys.executable, "-m", "regard", "train", "recipe.toml", *command, "--fresh", "-q"]
                found = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
                step = re.search(r"at step (\d+)", found.stderr)
                print(f"{name}: exit code {found.returncode}, step {step[1] if step else '-'}: {found.stderr.strip()}")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("action", choices=["record", "check", "explode"])
    options.add_argument("folder", nargs="?", type=Path)
    options.add_argument("--whole", action="store_true", help="record runs of less than ten minutes to their end")
    options.add_argument("--first", type=int, default=FIRST, help="steps of the longer runs")
    options.add_argument("--only", nargs="*", default=[""], help="names that start with one of these")
    args = options.parse_args()
    torch.set_num_threads(1)
    if args.action == "check":
        return sys.exit(bool(check(args.folder)))
    if args.action == "explode":
        return explode(args.only)
    for job in jobs(args.folder, args.first, args.whole):
        if job.name.startswith(tuple(args.only)):
            try:
                record(job, args.folder)
            except Exception as error:  # the next recipe goes on
                print(f"{job.name}: {type(error).__name__}: {error}", flush=True)


if __name__ == "__main__":
    main()
