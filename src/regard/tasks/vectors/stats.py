"""Statistics of the prepared data of the vectors task."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from regard.tasks.generate.stats import format_counts
from regard.tasks.vectors.config import SEGMENT
from regard.tasks.vectors.loader import ContextLoader


def collect_statistics(kind: str, loader: ContextLoader, counts: Mapping[str, Mapping[str, int]]) -> dict[str, Any]:
    """Vocabulary, counts of each split, and batches per epoch, as plain JSON; `kind` is the tokenizer's."""
    words = loader.frequencies.counts
    kept = float((loader.keep * words).sum() / max(1, words.sum()))
    batches = {"words": loader.rows * SEGMENT, "batches": loader.batches_per_epoch(), "kept": kept}
    return {"vocabulary": {"kind": kind, "size": int(np.count_nonzero(words))}, **counts, "epoch": batches}


def format_statistics(statistics: Mapping[str, Any]) -> list[str]:
    """The same as lines of text."""
    words, epoch = statistics["vocabulary"], statistics["epoch"]
    return [
        f"vocabulary  {words['kind']} {words['size']:,}",
        *(format_counts(split, statistics[split]) for split in ("train", "valid")),
        f"epoch       {epoch['batches']:,} batches of {epoch['words']:,} words, of which subsampling keeps "
        f"{epoch['kept']:.0%}",
    ]
