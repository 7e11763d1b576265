"""Statistics of prepared tagged sentences, and details of an evaluation: scores per kind of span, unseen tags."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from regard.data import padding_share
from regard.metrics.spans import Scheme, f1, is_span_tag, precision, recall, spans
from regard.tasks.base import read_counts
from regard.tasks.label.loader import LabelLoader
from regard.tasks.label.targets import TagTarget
from regard.tasks.label.vocab import WordVocab

MAX_SALIENCY_TOKENS = 120
"""Tokens of the longest text whose labels are drawn against its words."""
LISTED, LISTED_UNSEEN = 12, 5
"""Tags that are listed by name."""
NO_ISSUES = ("read", "tokens")
"""Counts of preparation that are not about problems of the data."""


def statistics(run: Path, loader: LabelLoader, vocab: WordVocab) -> dict[str, Any]:
    """Vocabulary, tags, and per split the sentences, lengths and batches, as plain JSON."""
    counts = read_counts(run)
    found: dict[str, Any] = {"words": len(vocab.words), "chars": len(vocab.chars)}
    if isinstance(loader.target, TagTarget):
        numbers = np.bincount(loader.train.flat("tags").astype(np.int64), minlength=len(loader.target.names))
        tags = Counter(dict(zip(loader.target.names, numbers.tolist(), strict=True)))
        found["tags"] = dict(tags.most_common())
    for split, shards in (("train", loader.train), ("valid", loader.valid)):
        issues = {name: count for name, count in counts[split].items() if count and name not in NO_ISSUES}
        batches = list(loader.plan(shards).epoch(0))
        found[split] = {"read": counts[split]["read"], "kept": len(shards), "issues": issues}
        found[split] |= {**shards.length_statistics("words"), "batches": len(batches)}
        found[split]["padding"] = padding_share(loader.lengths(shards), batches)
    return found


def format_issues(run: Path) -> str:
    """What preparation repaired or dropped, over all splits."""
    sums = Counter[str]()
    for counts in read_counts(run).values():
        sums.update(counts)
    return "".join(f"; {count:,} {name}" for name, count in sums.items() if count and name not in NO_ISSUES)


def format_statistics(found: Mapping[str, Any], unit: str, scheme: str) -> list[str]:
    """The statistics as lines of text."""
    chars = f" of {found['chars']:,} characters" if found["chars"] else ""
    lines = [f"vocabulary  {found['words']:,} {unit}s{chars}"]
    if "tags" in found:
        tags, total = found["tags"], sum(found["tags"].values())
        frequent = list(tags.items())[:LISTED]
        shares = ", ".join(f"{_visible(tag)} {100 * count / total:.1f} %" for tag, count in frequent)
        lines.append(f"tags        {len(tags):,}: {shares}{', ...' if len(tags) > LISTED else ''}")
        if scheme == "none" and "O" in tags and all(is_span_tag(tag, "bioes") for tag in tags):
            guess = "bio" if all(is_span_tag(tag, "bio") for tag in tags) else "bioes"
            lines.append(f'{"":<10}  they look like spans; task.scheme = "{guess}" would score and repair them as such')
    for split in ("train", "valid"):
        row = found[split]
        issues = "".join(f"; {count:,} {name}" for name, count in row["issues"].items())
        lines.append(f"{split:<10}  {row['kept']:,} of {row['read']:,} sentences{issues}")
        lines.append(
            f"            {row['tokens']:,} {unit}s, {row['mean']} per sentence, 99 % have at most {row['p99']}, the "
            f"longest {row['most']}; padding {100 * row['padding']:.1f} % of {row['batches']:,} batches"
        )
    return lines


def _visible(tag: str) -> str:
    """A tag in quotes if it is empty or has spaces, as written forms may."""
    return tag if tag.split() == [tag] else f'"{tag}"'


@dataclass(frozen=True)
class DataIssues:
    """Problems of the data that a model is scored on."""

    repaired: int = 0
    """tags that violated the scheme"""
    unseen: Counter[str] = field(default_factory=Counter)
    """tags that are not in training, which count as errors"""

    def summary_lines(self) -> list[str]:
        """The problems as lines of text."""
        lines = [f"note       {self.repaired:,} tags were repaired"] if self.repaired else []
        if self.unseen:
            tags = ", ".join(_visible(tag) for tag, _ in self.unseen.most_common(LISTED_UNSEEN))
            more = ", ..." if len(self.unseen) > LISTED_UNSEEN else ""
            lines.append(f"note       {self.unseen.total():,} tokens have tags that are not in training: {tags}{more}")
        return lines


def evaluation_details(
    outputs: Sequence[Sequence[str]], references: Sequence[Sequence[str]], scheme: Scheme | None, issues: DataIssues
) -> tuple[list[str], dict[str, Any]]:
    """Details of an evaluation as lines and as plain JSON: F1 per kind of span, and problems of the data.

    >>> print(*evaluation_details([["B-A", "O"]], [["B-A", "B-B"]], "bio", DataIssues())[0], sep="\\n")
    A              1 spans  F1 100.00, precision 100.00, recall 100.00
    B              1 spans  F1   0.00, precision   0.00, recall   0.00
    """
    problems: dict[str, Any] = {"repaired": issues.repaired, "unseen": dict(issues.unseen)}
    lines, detail = list[str](), {name: value for name, value in problems.items() if value}
    if scheme is not None:
        detail["kinds"] = {
            kind: {"spans": sums[2], "f1": f1(sums), "precision": precision(sums), "recall": recall(sums)}
            for kind, sums in spans_by_kind(outputs, references).items()
        }
        for kind, row in detail["kinds"].items():
            scores = f"F1 {row['f1']:6.2f}, precision {row['precision']:6.2f}, recall {row['recall']:6.2f}"
            lines.append(f"{kind:<10} {row['spans']:>5,} spans  {scores}")
    return [*lines, *issues.summary_lines()], detail


def spans_by_kind(outputs: Sequence[Sequence[str]], references: Sequence[Sequence[str]]) -> dict[str, list[float]]:
    """For each kind of span, the most frequent first: correct, predicted and reference spans."""
    correct, predicted, actual = Counter[str](), Counter[str](), Counter[str]()
    for output, reference in zip(outputs, references, strict=True):
        a, b = set(spans(output)), set(spans(reference))
        correct.update(span.kind for span in a & b)
        predicted.update(span.kind for span in a)
        actual.update(span.kind for span in b)
    kinds = sorted(actual | predicted, key=lambda kind: (-actual[kind], kind))
    return {kind: [correct[kind], predicted[kind], actual[kind]] for kind in kinds}
