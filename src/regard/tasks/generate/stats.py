"""Statistics of the prepared data of the generate task."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from regard.tasks.generate.conditioned import ConditionedLoader
from regard.tasks.generate.loader import StreamLoader
from regard.tasks.generate.modality import Modality


def collect_statistics(
    modality: Modality, loader: StreamLoader, counts: Mapping[str, Mapping[str, int]]
) -> dict[str, Any]:
    """Vocabulary, counts of each split, and batches per epoch, as plain JSON."""
    batches = {"rows": loader.rows, "window": loader.window, "batches": loader.batches_per_epoch()}
    return {"vocabulary": {"kind": modality.unit, "size": modality.size_label}, **counts, "epoch": batches}


def conditioned_statistics(
    modality: Modality, loader: ConditionedLoader, counts: Mapping[str, Mapping[str, int]]
) -> dict[str, Any]:
    """Vocabulary, condition, counts of each split, and batches per epoch, as plain JSON."""
    vocabulary = {"kind": modality.unit, "size": modality.size_label}
    batches = {"batches": loader.batches_per_epoch(), "texts": len(loader.train)}
    return {"vocabulary": vocabulary, "condition": loader.condition.plain(), **counts, "epoch": batches}


def format_statistics(statistics: Mapping[str, Any]) -> list[str]:
    """The same as lines of text."""
    vocabulary, epoch = statistics["vocabulary"], statistics["epoch"]
    if "condition" in statistics:
        condition = statistics["condition"]
        return [
            f"vocabulary  {vocabulary['kind']} {vocabulary['size']}",
            f"condition   {condition['kind']}: {', '.join(condition['names'])}",
            *(format_counts(split, statistics[split]) for split in ("train", "valid")),
            f"epoch       {epoch['batches']:,} batches of {epoch['texts']:,} texts in all",
        ]
    return [
        f"vocabulary  {vocabulary['kind']} {vocabulary['size']}",
        *(format_counts(split, statistics[split]) for split in ("train", "valid")),
        f"epoch       {epoch['batches']:,} batches of {epoch['rows']} windows of {epoch['window']} positions",
    ]


def format_counts(split: str, counts: Mapping[str, int]) -> str:
    """The counts of one split in a line."""
    if "positions" in counts:
        return f"{split:<10}  {counts['positions']:,} positions"
    per_token = counts["characters"] / max(1, counts["tokens"])
    texts = f" in {counts['texts']:,} texts" if counts["texts"] else ""
    return (
        f"{split:<10}  {counts['characters']:,} characters{texts}, {counts['tokens']:,} tokens, "
        f"{per_token:.2f} characters per token, {counts['unknown']:,} unknown"
    )
