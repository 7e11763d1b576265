"""What prepared sentence pairs are like: how many, how long, what was dropped why, how much of a batch is padding."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from regard.data import Shards
from regard.tasks.translate import PairFeed, Vocabularies

SIDES = ("source", "target")


def counted(run: Path, feed: PairFeed, kind: str) -> dict[str, Any]:
    """What preparation found, as plain data; `kind` is the tokenizers'.

    >>> counted.__name__
    'counted'
    """
    counts = json.loads((run / "data" / "counts.json").read_text(encoding="utf-8"))
    found: dict[str, Any] = {"vocabulary": {"kind": kind, "shared": feed.vocabularies.joint}}
    found["vocabulary"] |= {"source": feed.vocabularies.source.size, "target": feed.vocabularies.target.size}
    for split, shards in (("train", feed.train), ("valid", feed.held_out)):
        read = counts[split].pop("read")
        dropped = {reason: count for reason, count in counts[split].items() if count}
        sides = {side: lengths(shards, side) for side in SIDES}
        batches = list(feed.plan(shards).epoch(0))
        found[split] = {"read": read, "kept": len(shards), "dropped": dropped, **sides, "batches": len(batches)}
        found[split]["padding"] = padding(shards, batches)
    return found


def lengths(shards: Shards, side: str) -> dict[str, float]:
    """Tokens of one side: all, and of a sentence the mean, the 99th of 100 and the most.

    >>> lengths.__name__
    'lengths'
    """
    found = shards.lengths(side)[np.arange(len(shards))]
    mean, late, most = float(found.mean()), int(np.quantile(found, 0.99)), int(found.max())
    return {"tokens": int(found.sum()), "mean": round(mean, 2), "p99": late, "most": most}


def padding(shards: Shards, batches: list[Any]) -> dict[str, float]:
    """The share of positions that hold no word, on each side.

    >>> padding.__name__
    'padding'
    """
    found = {}
    for side in SIDES:
        sizes = Counter[str]()
        for rows in batches:
            given = shards.lengths(side)[rows] + 1
            sizes["all"] += int(given.max()) * len(rows)
            sizes["words"] += int(given.sum())
        found[side] = round(1 - sizes["words"] / sizes["all"], 4)
    return found


def told(found: Mapping[str, Any]) -> list[str]:
    """The same for people.

    >>> told.__name__
    'told'
    """
    words = found["vocabulary"]
    shown = f"{words['source']:,} shared" if words["shared"] else f"{words['source']:,} and {words['target']:,}"
    lines = [f"vocabulary  {words['kind']} {shown}"]
    for split in ("train", "valid"):
        part = found[split]
        dropped = ", ".join(f"{count:,} {reason}" for reason, count in part["dropped"].items()) or "none"
        lines.append(f"{split:<10}  {part['kept']:,} of {part['read']:,} pairs; dropped: {dropped}")
        for side in SIDES:
            row = part[side]
            lines.append(
                f"  {side:<8}  {row['tokens']:,} tokens, {row['mean']} a sentence, 99 % have at most {row['p99']}, "
                f"the longest {row['most']}; padding {100 * part['padding'][side]:.1f} % of {part['batches']:,} batches"
            )
    return lines


def sizes(vocabularies: Vocabularies) -> str:
    """How many tokens there are.

    >>> from regard.text import Tokenizer, TokenizerConfig
    >>> both = Tokenizer.train(["je suis", "I am"], TokenizerConfig(size=40))
    >>> sizes(Vocabularies(both, both)).endswith(" shared")
    True
    """
    source, target = vocabularies.source.size, vocabularies.target.size
    return f"{source:,} shared" if vocabularies.joint else f"{source:,} and {target:,}"
