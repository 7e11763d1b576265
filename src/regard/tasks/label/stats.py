"""What prepared tagged sentences are like, and what else an evaluation of labels tells: scores by kind of span."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from regard.data import Shards
from regard.metrics.spans import Scheme, f1, is_span_tag, precision, recall, spans
from regard.tasks.label.prepare import LabelFeed
from regard.tasks.label.targets import Answers, Tags
from regard.text.word_vocab import Spelling

SHOWN = 120
"""places of the longest text whose labels are drawn against its words"""
LISTED, FEW = 12, 5
"""tags that are told of by name: those of training, and those it never had"""


COUNTED = ("read", "places")
"""of what preparation counts, that with which nothing is wrong"""


def counted(run: Path, feed: LabelFeed, spelling: Spelling) -> dict[str, Any]:
    """What preparation found, as plain data.

    >>> import tempfile
    >>> from regard.tasks import Recipe
    >>> from regard.run import Run
    >>> recipe = Recipe.read(None, ["data.kind=chains", "data.count=20", "task.kind=label", "model.kind=mlp"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     Run(Path(folder)).prepare(recipe)
    ...     found = recipe.statistics(Path(folder))
    >>> found["words"], found["train"]["kept"], found["valid"]["kept"]
    (8, 20, 2)
    """
    counts = json.loads((run / "data" / "counts.json").read_text(encoding="utf-8"))
    found: dict[str, Any] = {"words": len(spelling.words), "letters": len(spelling.letters)}
    if isinstance(feed.answers, Tags):
        numbers = np.bincount(feed.train.flat("tags").astype(np.int64), minlength=len(feed.answers.names))
        tags = Counter(dict(zip(feed.answers.names, numbers.tolist(), strict=True)))
        found["tags"] = dict(tags.most_common())
    for split, shards in (("train", feed.train), ("valid", feed.held_out)):
        read = counts[split].pop("read")
        places = counts[split].pop("places")
        noted = {reason: count for reason, count in counts[split].items() if count}
        batches = list(feed.plan(shards).epoch(0))
        found[split] = {"read": read, "kept": len(shards), "noted": noted, "places": places, **lengths(shards, batches)}
    return found


def noted(run: Path) -> str:
    """What preparation repaired or left out, over all splits.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as run:
    ...     Path(run, "data").mkdir()
    ...     train, valid = {"read": 7, "places": 9, "repaired tags": 2}, {"repaired tags": 1, "too long": 0}
    ...     _ = Path(run, "data", "counts.json").write_text(json.dumps({"train": train, "valid": valid}))
    ...     noted(Path(run))
    '; 3 repaired tags'
    """
    sums = Counter[str]()
    for counts in json.loads((run / "data" / "counts.json").read_text(encoding="utf-8")).values():
        sums.update(counts)
    return "".join(f"; {count:,} {reason}" for reason, count in sums.items() if count and reason not in COUNTED)


def lengths(shards: Shards, batches: Sequence[np.ndarray]) -> dict[str, float]:
    """Places of a sentence: the mean, the 99th of 100, the most; batches, and the share of them that is padding.

    >>> import tempfile
    >>> from regard.data import ShardWriter
    >>> with tempfile.TemporaryDirectory() as name:
    ...     with ShardWriter(Path(name, "train"), {"words": 9}) as writer:
    ...         writer.append([([4, 5, 6],), ([6],)])
    ...     lengths(Shards.open(Path(name, "train")), [np.array([0, 1])])
    {'mean': 2.0, 'p99': 2, 'most': 3, 'batches': 1, 'padding': 0.3333}
    """
    found = shards.lengths("words")[np.arange(len(shards))]
    given = sum(int(found[rows].max()) * len(rows) for rows in batches)
    return {
        "mean": round(float(found.mean()), 2),
        "p99": int(np.quantile(found, 0.99)),
        "most": int(found.max()),
        "batches": len(batches),
        "padding": round(1 - float(found.sum()) / given, 4),
    }


def told(found: Mapping[str, Any], unit: str, scheme: str) -> list[str]:
    """The same for people.

    >>> split = {"read": 3, "kept": 2, "noted": {"too long": 1}, "places": 5, "mean": 2.5, "p99": 3, "most": 3}
    >>> split |= {"batches": 1, "padding": 0.25}
    >>> found = {"words": 4, "letters": 0, "tags": {"O": 4, "B-X": 1}, "train": split, "valid": split}
    >>> print(*told(found, "word", "none")[:4], sep="\\n")
    vocabulary  4 words
    tags        2: O 80.0 %, B-X 20.0 %
                they look like spans; task.scheme = "bio" would score and repair them as such
    train       2 of 3 sentences; 1 too long
    """
    letters = f" of {found['letters']:,} letters" if found["letters"] else ""
    lines = [f"vocabulary  {found['words']:,} {unit}s{letters}"]
    if "tags" in found:
        tags, total = found["tags"], sum(found["tags"].values())
        few = list(tags.items())[:LISTED]
        shares = ", ".join(f"{_visible(tag)} {100 * count / total:.1f} %" for tag, count in few)
        lines.append(f"tags        {len(tags):,}: {shares}{', ...' if len(tags) > LISTED else ''}")
        if scheme == "none" and "O" in tags and all(is_span_tag(tag, "bioes") for tag in tags):
            guess = "bio" if all(is_span_tag(tag, "bio") for tag in tags) else "bioes"
            lines.append(f'{"":<10}  they look like spans; task.scheme = "{guess}" would score and repair them as such')
    for split in ("train", "valid"):
        part = found[split]
        noted = "".join(f"; {count:,} {reason}" for reason, count in part["noted"].items())
        lines.append(f"{split:<10}  {part['kept']:,} of {part['read']:,} sentences{noted}")
        lines.append(
            f"            {part['places']:,} {unit}s, {part['mean']} a sentence, 99 % have at most {part['p99']}, the "
            f"longest {part['most']}; padding {100 * part['padding']:.1f} % of {part['batches']:,} batches"
        )
    return lines


def _visible(tag: str) -> str:
    """A tag that can be seen: those of characters may be a space, or nothing."""
    return tag if tag.split() == [tag] else f'"{tag}"'


@dataclass(frozen=True)
class Amiss:
    """What was amiss in data that a model is scored on.

    >>> Amiss(2, Counter({"B-GPE": 3})).told()
    ['noted      2 tags were repaired', 'noted      3 places have tags that training never had: B-GPE']
    """

    repaired: int = 0
    """tags that broke the scheme of spans"""
    unseen: Counter[str] = field(default_factory=Counter)
    """tags that training never had, which count as faults"""

    def told(self) -> list[str]:
        """The same for people."""
        lines = [f"noted      {self.repaired:,} tags were repaired"] if self.repaired else []
        if self.unseen:
            few = ", ".join(_visible(tag) for tag, _ in self.unseen.most_common(FEW))
            more = ", ..." if len(self.unseen) > FEW else ""
            lines.append(f"noted      {self.unseen.total():,} places have tags that training never had: {few}{more}")
        return lines


def details(
    said: Sequence[Sequence[str]], wanted: Sequence[Sequence[str]], scheme: Scheme | None, amiss: Amiss
) -> tuple[list[str], dict[str, Any]]:
    """What an evaluation tells besides its scores, in lines and as plain data: F1 by kind, and what was amiss.

    >>> print(*details([["B-A", "O"]], [["B-A", "B-B"]], "bio", Amiss())[0], sep="\\n")
    A              1 spans  F1 100.00, precision 100.00, recall 100.00
    B              1 spans  F1   0.00, precision   0.00, recall   0.00
    """
    noted: dict[str, Any] = {"repaired": amiss.repaired, "unseen": dict(amiss.unseen)}
    lines, detail = list[str](), {name: value for name, value in noted.items() if value}
    if scheme is not None:
        detail["kinds"] = {
            kind: {"spans": sums[2], "f1": f1(sums), "precision": precision(sums), "recall": recall(sums)}
            for kind, sums in by_kind(said, wanted).items()
        }
        for kind, row in detail["kinds"].items():
            scores = f"F1 {row['f1']:6.2f}, precision {row['precision']:6.2f}, recall {row['recall']:6.2f}"
            lines.append(f"{kind:<10} {row['spans']:>5,} spans  {scores}")
    return [*lines, *amiss.told()], detail


def by_kind(said: Sequence[Sequence[str]], wanted: Sequence[Sequence[str]]) -> dict[str, list[float]]:
    """Of each kind of span, the most frequent first: how many are right, were said, are there.

    >>> by_kind([["B-A", "O"]], [["B-A", "B-B"]])
    {'A': [1, 1, 1], 'B': [0, 0, 1]}
    """
    right, ours, theirs = Counter[str](), Counter[str](), Counter[str]()
    for output, reference in zip(said, wanted, strict=True):
        a, b = set(spans(output)), set(spans(reference))
        right.update(span.kind for span in a & b)
        ours.update(span.kind for span in a)
        theirs.update(span.kind for span in b)
    kinds = sorted(theirs | ours, key=lambda kind: (-theirs[kind], kind))
    return {kind: [right[kind], ours[kind], theirs[kind]] for kind in kinds}


def asked(out_LC: Tensor, answers: Answers, said: Sequence[str], log_odds: Callable[[Tensor], Tensor]) -> Tensor:
    """(L,) what is looked into at each place: the log-odds of the tag that is said, or the number itself.

    >>> import torch
    >>> asked(torch.tensor([[2.0, 0.0], [1.0, 4.0]]), Tags(("A", "B")), ["A", "A"], lambda out: out)
    tensor([2., 1.])
    """
    if isinstance(answers, Tags):
        ids = [answers.names.index(label) for label in said]
        return log_odds(out_LC)[range(len(ids)), ids]
    return answers.space().next(out_LC)[:, 0]
