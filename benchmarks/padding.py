"""Share of padding on Multi30k French-English: bucketed batches, and random ones.

REGARD_DATA=folder python benchmarks/padding.py      (the folder holds multi30k/train.fr and multi30k/train.en)
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer, models, pre_tokenizers, trainers

from regard.data import Batches, Permutation, read_lines

BUDGETS = (1024, 2048, 4096, 8192)
VOCABULARY = 8000


def main() -> None:
    folder = Path(os.environ.get("REGARD_DATA") or sys.exit("set REGARD_DATA to the folder that holds multi30k/"))
    source, target = lengths(folder / "multi30k")
    print(f"{len(source)} pairs, {source.mean():.1f} source and {target.mean():.1f} target positions on average")
    print(f"{'budget':>6}  {'batches':>7}  {'ours: target':>12}  {'source':>6}  {'random: target':>14}  {'source':>6}")
    for budget in BUDGETS:
        ours = list(Batches((source, target), budget=budget).epoch(0))
        random = list(random_batches(np.maximum(source, target), budget))
        shares = [padding_share(side, batches) for batches in (ours, random) for side in (target, source)]
        print(
            f"{budget:>6}  {len(ours):>7}  {shares[0]:>12.2%}  {shares[1]:>6.2%}  {shares[2]:>14.2%}  {shares[3]:>6.2%}"
        )


def lengths(folder: Path) -> tuple[np.ndarray, np.ndarray]:
    """Source and target lengths in subwords, with <EOS> (source) or <SOS> (target)."""
    texts = [list(read_lines(folder / f"train.{language}")) for language in ("fr", "en")]
    tokenizer = Tokenizer(models.BPE(unk_token="<UNK>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    special = ["<PAD>", "<UNK>", "<SOS>", "<EOS>"]
    trainer = trainers.BpeTrainer(vocab_size=VOCABULARY, special_tokens=special, show_progress=False)
    tokenizer.train_from_iterator([*texts[0], *texts[1]], trainer)
    french, english = (np.array([len(e.ids) + 1 for e in tokenizer.encode_batch(side)]) for side in texts)
    return french, english


def random_batches(widths: np.ndarray, budget: int) -> Iterator[np.ndarray]:
    """Batches of the same budget from shuffled rows."""
    batch: list[int] = []
    widest = 0
    for row in Permutation(len(widths), (0, 0)).at(np.arange(len(widths))):
        if batch and max(widest, widths[row]) * (len(batch) + 1) > budget:
            yield np.array(batch)
            batch, widest = [], 0
        batch.append(int(row))
        widest = max(widest, widths[row])
    yield np.array(batch)


def padding_share(side: np.ndarray, batches: list[np.ndarray]) -> float:
    return float(1 - side.sum() / sum(len(batch) * side[batch].max() for batch in batches))


if __name__ == "__main__":
    main()
