"""A run killed with kill -9 many times must end with the hash of a run that was never stopped: every task and family.

Half of the kills come during preparation, half during training; of each, half at random moments, half just before the
k-th call that changes the disk. Dropout on, a checkpoint at every step; the Transformer also with accumulation and
averaged weights. A kill during preparation starts without prepared data, later ones with checkpoints of before.
Each attempt is a forked process, so that torch is imported once.

    python benchmarks/kills.py [--kills 50] [NAME ...]
"""

from __future__ import annotations

import os

os.environ |= {"OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}

import argparse
import contextlib
import math
import random
import select
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch

from regard.run import Recipe, Run
from regard.train import checkpoint
from regard.train.events import Event

NEVER = 1 << 30
COMMON = ["train.save_every=1", "train.validate_every=25", "train.batch_tokens=256"]
PAIRS = ["data={kind = 'phrases', count = 300}", "text.vocab_size=200", "task.bleu_sentences=5"]
LINES = ["task={kind = 'generate', window = 16, samples = 0}", "data={kind = 'text', train = 'FOLDER/book.txt'}"]
REVIEWS = ["task.kind=classify", "data={kind = 'tsv', train = 'FOLDER/reviews.tsv'}"]
DIGITS = ["task={kind = 'classify', augment = {shift = 2}}", "data={kind = 'digits', count = 300}"]
CLIPS = ["data={kind = 'moving-shapes', count = 200}"]
SERIES = ["task={kind = 'forecast', horizon = 4, window = 12}", "data={kind = 'csv', train = 'FOLDER/load.csv'}"]
TAGS = ["task={kind = 'label', scheme = 'bio', crf = 'linear'}", "data={kind = 'conll', train = 'FOLDER/tags.conll'}"]
CHAINS = {
    "translate transformer": [
        *PAIRS, "model={kind = 'transformer', layers = 2, width = 32, ffn_width = 64, heads = 4, dropout = 0.2}",
        "train.accumulate=2", "train.ema=0.99", "text.dropout=0.1",
    ],
    "translate seq2seq (LSTM)": [*PAIRS, "model={kind = 'seq2seq', layers = 2, width = 16, dropout = 0.2}"],
    "translate rnnsearch": [
        *PAIRS, "model={kind = 'rnnsearch', embedding = 16, width = 16, alignment = 16, maxout = 16, dropout = 0.2}",
    ],
    "translate luong": [*PAIRS, "model={kind = 'luong', layers = 2, width = 16, dropout = 0.2}"],
    "translate gnmt": [*PAIRS, "model={kind = 'gnmt', layers = 3, width = 16, dropout = 0.2}"],
    "generate gpt": [
        *LINES, "model={kind = 'gpt', layers = 2, width = 16, heads = 2, max_positions = 16, dropout = 0.2}",
    ],
    "generate llama": [
        *LINES, "model={kind = 'llama', layers = 2, width = 16, heads = 4, kv_heads = 2, max_positions = 16}",
    ],
    "generate elmo": [
        *LINES, "text.kind=word", "model={kind = 'elmo', width = 8, cells = 8, filters = [4, 4], characters = 4}",
    ],
    "generate rnnlm": [*LINES, "model={kind = 'rnnlm', layers = 2, width = 16, dropout = 0.2}"],
    "classify recurrent": [*REVIEWS, "model={kind = 'recurrent', width = 16, dropout = 0.2}"],
    "classify convolution": [*REVIEWS, "model={kind = 'convolution', layers = 2, width = 16, dropout = 0.2}"],
    "classify transformer": [
        *REVIEWS, "model={kind = 'transformer', layers = 1, width = 16, ffn_width = 32, heads = 2, dropout = 0.2}",
    ],
    "classify bert": [
        *REVIEWS, "text.kind=wordpiece", "text.vocab_size=200", "task.pool=first",
        "model={kind = 'bert', layers = 1, width = 16, ffn_width = 32, heads = 2, dropout = 0.2}",
    ],
    "classify images (CNN)": [*DIGITS, "model={kind = 'cnn', channels = [4, 8], dropout = 0.2}"],
    "classify images (ResNet)": [*DIGITS, "model={kind = 'resnet', stem = 'small', depths = [1, 1], width = 4}"],
    "classify images (ViT)": [*DIGITS, "model={kind = 'vit', layers = 1, width = 16, heads = 2, patch = 7}"],
    "caption cnn and luong": [
        "task.kind=caption", "data={kind = 'shapes', count = 200}",
        "model={kind = 'encoder-decoder', encoder = {kind = 'cnn', channels = [4, 8], dropout = 0.2}, "
        "decoder = {kind = 'luong', layers = 1, width = 16}}",
    ],
    "classify clips (CNN and LSTM)": [
        *CLIPS, "task={kind = 'classify', pool = 'last'}", "model={kind = 'cnn-lstm', width = 16}",
    ],
    "regress clips (CNN and LSTM)": [
        *CLIPS, "task={kind = 'regress', pool = 'last'}", "model={kind = 'cnn-lstm', width = 16}",
    ],
    "fill bert": [
        "task={kind = 'fill', length = 20, next_sentence = true}", "text={kind = 'wordpiece', vocab_size = 120}",
        "data={kind = 'text', train = 'FOLDER/book.txt'}",
        "model={kind = 'bert', layers = 1, width = 16, ffn_width = 32, heads = 2, dropout = 0.2, max_positions = 32}",
    ],
    "label recurrent with CRF": [
        *TAGS, "data.valid_share=0.2", "model={kind = 'recurrent', width = 16, dropout = 0.2}",
    ],
    "forecast mlp": [*SERIES, "model={kind = 'mlp', width = 16}"],
    "forecast recurrent": [*SERIES, "model={kind = 'recurrent', width = 16, dropout = 0.2}"],
    "vectors word2vec": ["task.kind=vectors", "data={kind = 'text', train = 'FOLDER/book.txt'}", "model.width=16"],
}  # fmt: skip
CALLS = ("mkdir", "fsync", "rename", "replace", "symlink", "unlink", "rmdir")


def write_data(folder: Path) -> None:
    """Small files for the tasks that have no built-in data."""
    draw = random.Random(1)
    words = [f"{draw.choice('bdfgklmnprst')}{draw.choice('aeiou')}{draw.choice('bdlmnrs')}" for _ in range(60)]
    book = [" ".join(draw.choices(words, k=9)) + " .\n" for _ in range(600)]
    (folder / "book.txt").write_text("".join(book), encoding="utf-8")
    reviews = [f"{' '.join(draw.choices(words, k=6))}\t{draw.choice(['good', 'bad'])}\n" for _ in range(400)]
    (folder / "reviews.tsv").write_text("text\tlabel\n" + "".join(reviews), encoding="utf-8")
    tagged = [
        "".join(f"{word} {draw.choice(['O', 'B-PER'])}\n" for word in draw.choices(words, k=6)) for _ in range(200)
    ]
    (folder / "tags.conll").write_text("\n".join(tagged), encoding="utf-8")
    rows = [f"{20 + 5 * math.sin(i / 3):.4f},{math.cos(i / 5):.4f}\n" for i in range(400)]
    (folder / "load.csv").write_text("load,price\n" + "".join(rows), encoding="utf-8")


def kill_before(moment: int) -> Callable[[], int]:
    """Count the calls that change the disk from here on, and kill this process before the chosen one."""
    calls = 0

    def wrap(call: Callable[..., object]) -> Callable[..., object]:
        def wrapper(*args: object, **options: object) -> object:
            nonlocal calls
            calls += 1
            if calls == moment:
                os.kill(os.getpid(), signal.SIGKILL)
            return call(*args, **options)

        return wrapper

    for name in CALLS:
        setattr(os, name, wrap(getattr(os, name)))
    return lambda: calls


def kill_while_saving(moment: int) -> None:
    """The same, counted from the third checkpoint on: some progress between two kills."""
    original, saves = checkpoint.save, 0

    def save(*args: object, **options: object) -> Path:
        nonlocal saves
        saves += 1
        if saves == 3:
            kill_before(moment)
        return original(*args, **options)  # type: ignore[arg-type]

    checkpoint.save = save


@dataclass(frozen=True)
class Attempt:
    """A forked process that prepares, or prepares and trains; it writes its progress into a pipe."""

    process: int
    pipe: int
    """the end of the pipe to read from"""

    def wait_for(self, word: bytes) -> bool:
        """Wait until it reports a word; False if it ends before."""
        output = b""
        while word not in output:
            select.select([self.pipe], [], [])
            part = os.read(self.pipe, 4096)
            if not part:
                return False
            output += part
        return True

    def finish(self, kill: bool = False) -> int:
        """Exit status, after a kill if requested."""
        if kill:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.process, signal.SIGKILL)
        os.close(self.pipe)
        return os.waitpid(self.process, 0)[1]


def start(run: Path, settings: list[str], only_prepare: bool = False, moment: int = 0) -> Attempt:
    """Fork a process that works on the run; `moment`: it dies before that call that changes the disk."""
    reader, writer = os.pipe()
    process = os.fork()
    if process:
        os.close(writer)
        return Attempt(process, reader)
    os.close(reader)
    code = 1
    try:
        torch.set_num_threads(1)
        recipe = Recipe.read(None, settings)

        def report(word: str) -> None:
            with contextlib.suppress(BrokenPipeError):
                os.write(writer, word.encode())

        def report_event(event: Event) -> None:
            report(type(event).__name__)

        if only_prepare:
            count = kill_before(moment or NEVER)
            report("begun")
            Run(run).begin(recipe)
            Run(run).prepare(recipe)
            report(f" {count()}")
        else:
            if moment:
                kill_while_saving(moment)
            Run(run).train(recipe, listeners=[report_event])
        code = 0
    except Exception:
        traceback.print_exc()
    finally:
        os._exit(code)


@dataclass
class Chain:
    """One run that is killed again and again."""

    run: Path
    settings: list[str]
    draw: random.Random
    seconds: float
    """of preparation"""
    calls: int
    """of preparation that change the disk"""
    lost: int = 0
    step: int = -1

    def kill_in_preparation(self, number: int) -> bool:
        """Start without prepared data and kill before it is done; whether that came about."""
        shutil.rmtree(self.run / "data", ignore_errors=True)
        if number % 2:
            return start(self.run, self.settings, True, self.draw.randint(1, self.calls)).finish() != 0
        attempt = start(self.run, self.settings, True)
        attempt.wait_for(b"begun")
        time.sleep(self.draw.uniform(0.0, 0.9 * self.seconds))
        return attempt.finish(kill=True) != 0

    def kill_in_training(self, number: int) -> bool:
        """Kill while it trains or saves; whether that came about."""
        if number % 2:
            return start(self.run, self.settings, moment=1 + number // 2).finish() != 0
        attempt = start(self.run, self.settings)
        if attempt.wait_for(b"Stepped"):
            time.sleep(self.draw.uniform(0.0, 0.1))
        return attempt.finish(kill=True) != 0

    def count_lost(self) -> None:
        found = checkpoint.newest(self.run).checkpoint
        self.lost += self.step >= 0 and (found is None or found.step < self.step)
        self.step = found.step if found else self.step


def measure_preparation(run: Path, settings: list[str]) -> tuple[float, int]:
    """Seconds of an uninterrupted preparation, and how many calls change the disk."""
    attempt = start(run, settings, only_prepare=True, moment=NEVER)
    assert attempt.wait_for(b"begun")
    started, output = time.perf_counter(), b""
    while part := os.read(attempt.pipe, 4096):
        output += part
    assert attempt.finish() == 0
    return time.perf_counter() - started, int(output.split()[-1])


def try_chain(name: str, settings: list[str], folder: Path, kills: int) -> bool:
    """Kill one run `kills` times, print the figures; whether it ended as one that was never stopped."""
    place = folder / name.replace(" ", "-")
    steps = 20 + 2 * kills
    settings = [setting.replace("FOLDER", str(folder)) for setting in (*settings, *COMMON, f"train.steps={steps}")]
    seconds, calls = measure_preparation(place / "whole", settings)
    assert start(place / "whole", settings).finish() == 0
    chain = Chain(place / "killed", settings, random.Random(1), seconds, calls)
    preparing = training = 0
    for number in range(kills // 2):
        preparing += any(chain.kill_in_preparation(number) for _ in range(5))  # a random moment may come too late
        chain.count_lost()
        training += chain.kill_in_training(number)
        chain.count_lost()
    reached = chain.step
    assert start(chain.run, settings).finish() == 0
    found = [checkpoint.newest(run).checkpoint for run in (place / "whole", chain.run)]
    digests = [one.digest if one else "none" for one in found]
    same = digests[0] == digests[1]
    result = f"{digests[0][:12]} and {digests[1][:12]}: {'the same' if same else 'DIFFERENT'}"
    print(
        f"{name:<26} {preparing:3} kills in preparation, {training:3} in training (to step {reached} of {steps}), "
        f"{chain.lost} checkpoints lost, {result}",
        flush=True,
    )
    shutil.rmtree(place)
    return same and not chain.lost


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--kills", type=int, default=50, help="kills of each run")
    options.add_argument("names", nargs="*", help=f"of {', '.join(CHAINS)}; default: all")
    args = options.parse_args()
    chosen = {name: settings for name, settings in CHAINS.items() if not args.names or name in args.names}
    with tempfile.TemporaryDirectory() as folder:
        write_data(Path(folder))
        good = [try_chain(name, settings, Path(folder), args.kills) for name, settings in chosen.items()]
    print(f"{sum(good)} of {len(good)} runs ended as if never stopped")
    sys.exit(not all(good))


if __name__ == "__main__":
    main()
