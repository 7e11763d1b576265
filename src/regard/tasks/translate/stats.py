"""What prepared sentence pairs are like: how many, how long, what was dropped why, how much of a batch is padding."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from regard.data import Shards
from regard.tasks.translate.prepare import PairFeed, Vocabularies

SIDES = ("source", "target")


def counted(run: Path, feed: PairFeed, kind: str) -> dict[str, Any]:
    """What preparation found, as plain data; `kind` is the tokenizers'.

    >>> import tempfile, regard
    >>> settings = ["data.kind=phrases", "data.count=300", "model.preset=transformer-tiny"]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     run, recipe = regard.Run(Path(folder)), regard.Recipe.read(None, settings)
    ...     run.prepare(recipe)
    ...     found = counted(run.path, run.parts(recipe)[1], "bpe")
    >>> list(found), found["train"]["read"] >= found["train"]["kept"]
    (['vocabulary', 'train', 'valid'], True)
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

    >>> import tempfile
    >>> from regard.data import ShardWriter
    >>> with tempfile.TemporaryDirectory() as name:
    ...     with ShardWriter(Path(name, "train"), {"source": 9, "target": 9}) as writer:
    ...         writer.append([([4, 5], [7]), ([6], [8])])
    ...     lengths(Shards.open(Path(name, "train")), "source")
    {'tokens': 3, 'mean': 1.5, 'p99': 1, 'most': 2}
    """
    found = shards.lengths(side)[np.arange(len(shards))]
    mean, late, most = float(found.mean()), int(np.quantile(found, 0.99)), int(found.max())
    return {"tokens": int(found.sum()), "mean": round(mean, 2), "p99": late, "most": most}


def padding(shards: Shards, batches: list[Any]) -> dict[str, float]:
    """The share of positions that hold no word, on each side.

    >>> import tempfile
    >>> from regard.data import ShardWriter
    >>> with tempfile.TemporaryDirectory() as name:
    ...     with ShardWriter(Path(name, "train"), {"source": 9, "target": 9}) as writer:
    ...         writer.append([([4, 5, 6], [7]), ([6], [8])])
    ...     padding(Shards.open(Path(name, "train")), [np.array([0, 1])])
    {'source': 0.25, 'target': 0.0}
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

    >>> side = {"tokens": 3, "mean": 1.5, "p99": 2, "most": 2}
    >>> split = {"read": 3, "kept": 2, "dropped": {"empty": 1}, "source": side, "target": side, "batches": 1}
    >>> split["padding"] = {"source": 0.25, "target": 0.0}
    >>> words = {"kind": "bpe", "shared": True, "source": 40, "target": 40}
    >>> told({"vocabulary": words, "train": split, "valid": split})[:2]
    ['vocabulary  bpe 40 shared', 'train       2 of 3 pairs; dropped: 1 empty']
    """
    words = found["vocabulary"]
    lines = [f"vocabulary  {words['kind']} {_sizes(words['source'], words['target'], words['shared'])}"]
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
    return _sizes(vocabularies.source.size, vocabularies.target.size, vocabularies.joint)


def _sizes(source: int, target: int, shared: bool) -> str:
    return f"{source:,} shared" if shared else f"{source:,} and {target:,}"
