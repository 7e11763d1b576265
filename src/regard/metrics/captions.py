"""Caption metrics: BLEU with several references per image, and exact match with any of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from regard.metrics.bootstrap import RESAMPLES, SEED, bootstrap_scores, mean_of_sums, percentile_interval
from regard.metrics.score import Score
from regard.metrics.translation import bleu_metric, check_pairs, signature, total


def caption_bleu(outputs: Sequence[str], references: Sequence[Sequence[str]], *, lowercase: bool = False) -> Score:
    """BLEU (Papineni et al. 2002) with all references of each image, whose number may vary, 0 to 100.

    >>> captions = ["a red circle above a blue square", "a blue square below a red circle"]
    >>> score = caption_bleu([captions[1], "a dog"], [captions, ["a dog"]])
    >>> round(score.value, 2), score.signature.partition("|")[0]
    (100.0, 'nrefs:var')
    """
    import numpy

    check_pairs(outputs, [rows[0] if rows else "" for rows in references])
    by, most = bleu_metric(lowercase), max(map(len, references))
    streams: Any = [[rows[i] if i < len(rows) else None for rows in references] for i in range(most)]
    stats_NS = numpy.array(by._extract_corpus_statistics(list(outputs), streams), numpy.float64)
    low, high = percentile_interval(bootstrap_scores(stats_NS, lambda sums: total(by, sums)))
    return Score("bleu", total(by, stats_NS.sum(0).tolist()), low, high, signature(by), len(outputs))


def is_exact(output: str, references: Sequence[str], *, lowercase: bool = False) -> bool:
    """Whether an output is one of the references, up to whitespace.

    >>> is_exact("a red  circle", ["a ring", "a red circle"]), is_exact("a ring", ["A ring"])
    (True, False)
    """

    def normalize(text: str) -> str:
        return " ".join((text.lower() if lowercase else text).split())

    return normalize(output) in map(normalize, references)


def exact_match(outputs: Sequence[str], references: Sequence[Sequence[str]], *, lowercase: bool = False) -> Score:
    """Share of the outputs that are one of their references, in percent.

    >>> exact_match(["a", "b"], [["a", "c"], ["c"]]).value
    50.0
    """
    import numpy

    check_pairs(outputs, [rows[0] if rows else "" for rows in references])
    exact = [is_exact(out, refs, lowercase=lowercase) for out, refs in zip(outputs, references, strict=True)]
    stats_N2 = numpy.array([[100.0 * one, 1.0] for one in exact])
    low, high = percentile_interval(bootstrap_scores(stats_N2, mean_of_sums))
    case = "lower" if lowercase else "mixed"
    return Score(
        "exact", float(stats_N2[:, 0].mean()), low, high, f"bs:{RESAMPLES}|seed:{SEED}|case:{case}", len(exact)
    )
