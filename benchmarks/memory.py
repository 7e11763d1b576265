"""Peak anonymous memory of preparing and training on 10 MB and on 1 GB of generated pairs.

python benchmarks/memory.py [MEGABYTES...]      (default 10 1000; needs about three times as much disk)
python benchmarks/memory.py --mix [MEGABYTES...]    the pairs as a part, and reversed as another, with weights and tags

Anonymous memory is not backed by files: RssAnon in /proc/self/status, sampled 100 times per second.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from regard.run import Recipe, Run
from regard.tasks.translate.filters import format_filter_counts

LIMIT = 100
SETTINGS = [
    "model.kind=transformer", "model.layers=2", "model.width=64", "model.ffn_width=128", "model.heads=4",
    "text.vocab_size=8000", "train.steps=60", "train.validate_every=60", "train.batch_tokens=2048",
    "task.bleu_sentences=20",
]  # fmt: skip


def main(sizes: list[int], mixed: bool) -> None:
    peaks = {}
    for size in sizes:
        with tempfile.TemporaryDirectory() as folder:
            generate(Path(folder), size)
            command = [sys.executable, __file__, "--prepare-mix" if mixed else "--prepare", folder]
            report = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)
        peaks[size] = report["peak"]
        memory = f"peak {report['peak']:.1f} MB anonymous (at the start {report['start']:.1f})"
        print(f"{size:>5} MB: {memory}; {report['text']}")
    more = max(peaks.values()) - peaks[min(peaks)]
    print(f"more for {max(sizes)} MB than for {min(sizes)} MB: {more:.1f} MB; the limit is {LIMIT} MB")
    if more > LIMIT:
        sys.exit("above the limit")


def generate(folder: Path, megabytes: int) -> None:
    """Two aligned files of made-up words, `megabytes` together; about one pair in twenty is a duplicate."""
    numbers = np.random.default_rng(0)
    words = np.array(["".join(numbers.choice(list("aeioubdfklmnprst"), 6)) for _ in range(20000)])
    remaining = megabytes * 1_000_000
    with (folder / "source").open("w") as source, (folder / "target").open("w") as target:
        while remaining > 0:
            block = sentences(numbers, words)
            duplicates = [block[i] for i in numbers.integers(0, len(block), len(block) // 20)]
            texts = ["\n".join(side) + "\n" for side in zip(*block, *duplicates)]
            source.write(texts[0])
            target.write(texts[1])
            remaining -= len(texts[0]) + len(texts[1])


def sentences(numbers: np.random.Generator, words: np.ndarray) -> list[tuple[str, str]]:
    lengths = numbers.integers(3, 25, 4000)
    every = [words[numbers.zipf(1.2, size=lengths.sum()) % len(words)] for _ in range(2)]
    cuts = lengths.cumsum()[:-1]
    return [(" ".join(a), " ".join(b)) for a, b in zip(*(np.split(side, cuts) for side in every))]


def prepare(folder: Path, mixed: bool) -> None:
    """A real run: read, clean, tokenizer, shards, and some steps of training with a checkpoint."""
    start, peaks, done = anonymous_memory(), [0.0], threading.Event()
    sampler = threading.Thread(target=sample_memory, args=(peaks, done))
    sampler.start()
    corpus = f'{{kind="files", train=["{folder}/source", "{folder}/target"], valid_share=0.001}}'
    if mixed:
        parts = f'{{corpus={corpus}, tag="<a>", weight=0.5}}, {{corpus={corpus}, tag="<b>", weight=2, reverse=true}}'
        corpus = f'{{kind="mix", parts=[{parts}]}}'
    recipe = Recipe.read(None, [f"data={corpus}", *SETTINGS])
    run, started = Run(folder / "run"), time.perf_counter()
    run.begin(recipe)
    run.prepare(recipe)
    prepared, middle = time.perf_counter() - started, max(peaks)
    run.train(recipe)
    done.set()
    sampler.join()
    counts: Counter[str] = Counter(json.loads((run.path / "data" / "counts.json").read_text())["train"])
    text = f"{format_filter_counts(counts)}; prepared in {prepared:.0f} s (peak {middle:.1f} MB)"
    text += f", trained {recipe.train.steps} steps"
    print(json.dumps({"start": start, "peak": max(peaks), "text": text}))


def sample_memory(peaks: list[float], done: threading.Event) -> None:
    while not done.wait(0.01):
        peaks[0] = max(peaks[0], anonymous_memory())


def anonymous_memory() -> float:
    """RssAnon in MB."""
    lines: Iterator[str] = (line for line in Path("/proc/self/status").read_text().splitlines() if "RssAnon" in line)
    return int(next(lines).split()[1]) / 1000


if __name__ == "__main__":
    if sys.argv[1:2] in (["--prepare"], ["--prepare-mix"]):
        prepare(Path(sys.argv[2]), sys.argv[1] == "--prepare-mix")
    else:
        given = [word for word in sys.argv[1:] if word != "--mix"]
        main([int(size) for size in given] or [10, 1000], "--mix" in sys.argv)
