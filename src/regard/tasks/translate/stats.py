"""Statistics of the prepared sentence pairs: sizes, lengths, dropped pairs, share of padding."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from regard.data import Shards, padding_share
from regard.tasks.base import read_counts
from regard.tasks.translate.loader import PairLengths, PairLoader
from regard.tasks.translate.mix import MixedPairs
from regard.tasks.translate.prepare import PART, SIDES


def collect_statistics(run: Path, loader: PairLoader, kind: str) -> dict[str, Any]:
    """Vocabulary, and the counts, lengths and padding of each split, as plain JSON; `kind` is the tokenizer's."""
    counts, vocabularies = read_counts(run), loader.vocabularies
    found: dict[str, Any] = {"vocabulary": {"kind": kind, "shared": vocabularies.is_shared}}
    found["vocabulary"] |= {"source": vocabularies.source.size, "target": vocabularies.target.size}
    for split, shards in splits_of(loader):
        read = counts[split].pop("read")
        dropped = {reason: count for reason, count in counts[split].items() if count}
        sides = {side: shards.length_statistics(side) for side in SIDES}
        batches = list(loader.plan(shards).epoch(0))
        found[split] = {"read": read, "kept": len(shards), "dropped": dropped, **sides, "batches": len(batches)}
        lengths = {side: PairLengths(shards, i) for i, side in enumerate(SIDES)}
        found[split]["padding"] = {side: padding_share(sizes, batches) for side, sizes in lengths.items()}
    return found


def count_parts(loader: PairLoader, mix: MixedPairs) -> list[dict[str, Any]]:
    """The pairs of each part of a mix, with its weight and tag."""
    rows = {split: _part_sizes(shards, len(mix.parts)) for split, shards in splits_of(loader)}
    return [
        {"part": number + 1, "tag": part.tag, "weight": part.weight} | {split: rows[split][number] for split in rows}
        for number, part in enumerate(mix.parts)
    ]


def _part_sizes(shards: Shards, parts: int) -> list[int]:
    found: list[int] = np.bincount(shards.flat(PART), minlength=parts).tolist() if parts > 1 else [len(shards)]
    return found


def splits_of(loader: PairLoader) -> tuple[tuple[str, Shards], ...]:
    """The prepared splits, by name."""
    return ("train", loader.train), ("valid", loader.valid)


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
    for part in statistics.get("parts", ()):
        uses = f"weight {part['weight']:g}, {'tag ' + part['tag'] if part['tag'] else 'no tag'}"
        lines.append(f"part {part['part']:<5}  {part['train']:,} train, {part['valid']:,} valid pairs; {uses}")
    return lines


def format_sizes(source: int, target: int, shared: bool) -> str:
    """The sizes of the vocabularies."""
    return f"{source:,} shared" if shared else f"{source:,} and {target:,}"
