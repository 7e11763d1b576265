"""BLEU by source length: the plot that made attention famous (Bahdanau et al. 2015, figure 2)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from regard import metrics
from regard.look.chart import Curve, LinearAxis, LineChart
from regard.tasks import ScoredExample

STEP = 5
"""width of a bin, in words"""
MIN_SENTENCES = 20
"""sentences per bin; smaller bins are merged with a neighbor"""


def bleu_by_length(examples: Mapping[str, Sequence[ScoredExample]], lowercase: bool = False) -> LineChart | None:
    """BLEU against the number of source words, one curve per model; None if there are no sentences."""
    curves = tuple(_curve(name, own, lowercase) for name, own in examples.items() if own)
    title = "BLEU by the length of the source"
    return LineChart(title, LinearAxis("source words"), LinearAxis("BLEU"), curves) if curves else None


def _curve(name: str, examples: Sequence[ScoredExample], lowercase: bool) -> Curve:
    words, found = [], []
    for rows in bin_by_length([len(example.source.split()) for example in examples]):
        binned = [examples[row] for row in rows]
        found.append(metrics.bleu([e.output for e in binned], [e.reference for e in binned], lowercase=lowercase))
        words.append(round(sum(len(e.source.split()) for e in binned) / len(binned), 2))
    bounds = (tuple(one.low for one in found), tuple(one.high for one in found))
    return Curve(name, tuple(words), tuple(one.value for one in found), *bounds)


def bin_by_length(lengths: Sequence[int], step: int = STEP, min_rows: int = MIN_SENTENCES) -> list[list[int]]:
    """Row numbers binned by length, shortest first; a bin with too few rows is merged with the one before it.

    >>> bin_by_length([3, 12, 4, 11, 40], step=10, min_rows=2)
    [[0, 2], [1, 3, 4]]
    """
    bins: dict[int, list[int]] = {}
    for row, length in enumerate(lengths):
        bins.setdefault(max(0, length - 1) // step, []).append(row)
    found: list[list[int]] = []
    for _, rows in sorted(bins.items()):
        if found and (len(rows) < min_rows or len(found[-1]) < min_rows):
            found[-1] = found[-1] + rows
        else:
            found.append(rows)
    return found
