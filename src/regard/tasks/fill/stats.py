"""Statistics of the prepared data of the fill task."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from regard.tasks.fill.loader import FillLoader
from regard.tasks.fill.prepare import COLUMN


def collect_statistics(kind: str, loader: FillLoader, counts: Mapping[str, Mapping[str, int]]) -> dict[str, Any]:
    """Vocabulary, counts and lengths of each split, and batches per epoch, as plain JSON."""
    lengths = {"train": loader.train.length_statistics(COLUMN), "valid": loader.valid.length_statistics(COLUMN)}
    return {
        "vocabulary": {"kind": kind, "size": loader.tokenizer.size},
        **{split: {**counts[split], **lengths[split]} for split in ("train", "valid")},
        "epoch": {"batches": loader.batches_per_epoch()},
    }


def format_statistics(statistics: Mapping[str, Any]) -> list[str]:
    """The same as lines of text."""
    lines = [f"vocabulary  {statistics['vocabulary']['kind']} {statistics['vocabulary']['size']:,}"]
    for split in ("train", "valid"):
        found = statistics[split]
        lines.append(
            f"{split:<10}  {found['sequences']:,} sequences of {found['mean']:.1f} tokens (at most {found['most']}), "
            f"{found['tokens']:,} tokens, {found['unknown']:,} unknown"
        )
    return [*lines, f"epoch       {statistics['epoch']['batches']:,} batches"]
