"""The picture that made attention famous: how good translations are, against how long the sentence was."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from regard import metrics
from regard.look.chart import Curve, Linear
from regard.look.curves import CurvesView
from regard.tasks import Answer

STEP = 5
"""words of a sentence more, and it is one bin further"""
FEWEST = 20
"""sentences of a bin; with fewer, neighbours are taken together"""


def by_length(answers: Mapping[str, Sequence[Answer]], lowercase: bool = False) -> CurvesView | None:
    """BLEU against the words of the source, one curve a model; None if there are no sentences.

    >>> said = [Answer("a b c", "x y z w", "x y z w"), Answer("a b c d e f g", "x y z w", "x y z v")] * 20
    >>> by_length({"gru": said}).curves[0].x
    (3.0, 7.0)
    """
    curves = tuple(_curve(name, said, lowercase) for name, said in answers.items() if said)
    title = "BLEU by the length of the source"
    return CurvesView(title, Linear("source words"), Linear("BLEU"), curves) if curves else None


def _curve(name: str, answers: Sequence[Answer], lowercase: bool) -> Curve:
    words, found = [], []
    for rows in binned([len(answer.source.split()) for answer in answers]):
        chosen = [answers[row] for row in rows]
        found.append(metrics.bleu([a.output for a in chosen], [a.reference for a in chosen], lowercase=lowercase))
        words.append(round(sum(len(a.source.split()) for a in chosen) / len(chosen), 2))
    bounds = (tuple(one.low for one in found), tuple(one.high for one in found))
    return Curve(name, tuple(words), tuple(one.value for one in found), *bounds)


def binned(lengths: Sequence[int], step: int = STEP, fewest: int = FEWEST) -> list[list[int]]:
    """Rows of like length together, short ones first; a bin with too few joins the one before it.

    >>> binned([3, 12, 4, 11, 40], step=10, fewest=2)
    [[0, 2], [1, 3, 4]]
    """
    bins: dict[int, list[int]] = {}
    for row, length in enumerate(lengths):
        bins.setdefault(max(0, length - 1) // step, []).append(row)
    found: list[list[int]] = []
    for _, rows in sorted(bins.items()):
        if found and (len(rows) < fewest or len(found[-1]) < fewest):
            found[-1] = found[-1] + rows
        else:
            found.append(rows)
    return found
