"""Statistics of the prepared sentence pairs: sizes, lengths, dropped pairs, share of padding."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from regard.data import padding_share
from regard.tasks.base import read_counts
from regard.tasks.translate.loader import PairLengths, PairLoader
from regard.tasks.translate.prepare import SIDES


def collect_statistics(run: Path, loader: PairLoader, kind: str) -> dict[str, Any]:
    """Vocabulary, and the counts, lengths and padding of each split, as plain JSON; `kind` is the tokenizer's."""
    counts, vocabularies = read_counts(run), loader.vocabularies
    found: dict[str, Any] = {"vocabulary": {"kind": kind, "shared": vocabularies.is_shared}}
    found["vocabulary"] |= {"source": vocabularies.source.size, "target": vocabularies.target.size}
    for split, shards in (("train", loader.train), ("valid", loader.valid)):
        read = counts[split].pop("read")
        dropped = {reason: count for reason, count in counts[split].items() if count}
        sides = {side: shards.length_statistics(side) for side in SIDES}
        batches = list(loader.plan(shards).epoch(0))
        found[split] = {"read": read, "kept": len(shards), "dropped": dropped, **sides, "batches": len(batches)}
        lengths = {side: PairLengths(shards, i) for i, side in enumerate(SIDES)}
        found[split]["padding"] = {side: padding_share(sizes, batches) for side, sizes in lengths.items()}
    return found


def format_statistics(statistics: Mapping[str, Any]) -> list[str]:
    """The same as lines of text."""
    words = statistics["vocabulary"]
    lines = [f"vocabulary  {words['kind']} {format_sizes(words['source'], words['target'], words['shared'])}"]
    for split in ("train", "valid"):
        part = statistics[split]
        dropped = ", ".join(f"{count:,} {reason}" for reason, count in part["dropped"].items()) or "none"
        lines.append(f"{split:<10}  {part['kept']:,} of {part['read']:,} pairs; dropped: {dropped}")
        for side in SIDES:
            row = part[side]
            lines.append(
                f"  {side:<8}  {row['tokens']:,} tokens, {row['mean']} per sentence, 99 % have at most {row['p99']}, "
                f"the longest {row['most']}; padding {100 * part['padding'][side]:.1f} % of {part['batches']:,} batches"
            )
    return lines


def format_sizes(source: int, target: int, shared: bool) -> str:
    """The sizes of the vocabularies."""
    return f"{source:,} shared" if shared else f"{source:,} and {target:,}"
