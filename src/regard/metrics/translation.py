"""BLEU, chrF and TER of a corpus, by sacrebleu (Post 2018), one reference per sentence; intervals by bootstrap.py."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, get_args

from regard.errors import ConfigError, DataError
from regard.metrics.bootstrap import RESAMPLES, SEED, bootstrap_scores, percentile_interval
from regard.metrics.score import Score

if TYPE_CHECKING:
    from sacrebleu.metrics.base import Metric

    from regard.metrics.bootstrap import FloatArray

Tokenize = Literal["13a", "intl", "zh", "char", "none"]
"""sacrebleu's tokenizers; its others download a model or need another package"""
Name = Literal["bleu", "chrf", "ter"]


def bleu(
    outputs: Sequence[str], references: Sequence[str], *, lowercase: bool = False, tokenize: Tokenize = "13a"
) -> Score:
    """BLEU (Papineni et al. 2002) of detokenized text, 0 to 100.

    >>> score = bleu(["the cat sat on the mat"], ["the cat sat on the mat"])
    >>> round(score.value, 2), score.signature.rpartition("|version")[0]
    (100.0, 'nrefs:1|bs:1000|seed:12345|case:mixed|eff:no|tok:13a|smooth:exp')
    """
    return _corpus("bleu", bleu_metric(lowercase, tokenize), outputs, references)


def tokenized_bleu(outputs: Sequence[str], references: Sequence[str]) -> Score:
    """BLEU of lowercased text tokenized by 13a: bleu(lowercase=True), under its own name.

    Older papers report BLEU of text that was lowercased and tokenized by Moses. This is the closest reproducible score,
    not the same: Moses splits "don't" into "don 't" where 13a keeps one word. Differences of a few tenths mean nothing.

    >>> round(tokenized_bleu(["The cat sat on the mat ."], ["the cat sat on the mat."]).value, 2)
    100.0
    """
    return _corpus("tokenized_bleu", bleu_metric(lowercase=True, tokenize="13a"), outputs, references)


def chrf(outputs: Sequence[str], references: Sequence[str], *, lowercase: bool = False) -> Score:
    """chrF2 (Popović 2015), an F-score of character 6-grams, 0 to 100: suited to languages with rich morphology.

    >>> round(chrf(["abcd"], ["abce"]).value, 2)  # 3/4, 2/3, 1/2 and 0/1 of the n-grams match; there are no longer ones
    47.92
    """
    return _corpus("chrf", sacrebleu_metric("chrf", lowercase), outputs, references)


def ter(outputs: Sequence[str], references: Sequence[str]) -> Score:
    """TER (Snover et al. 2006): edits per 100 reference words; lower is better, and it may exceed 100.

    >>> ter(["a dog runs"], ["a cat runs fast"]).value
    50.0
    """
    return _corpus("ter", sacrebleu_metric("ter"), outputs, references)


def sacrebleu_metric(name: Name, lowercase: bool = False) -> Metric:
    """sacrebleu's metric, with the settings of this module."""
    from sacrebleu.metrics import CHRF, TER

    if name == "bleu":
        return bleu_metric(lowercase)
    return CHRF(lowercase=lowercase) if name == "chrf" else TER()


def bleu_metric(lowercase: bool = False, tokenize: Tokenize = "13a") -> Metric:
    """sacrebleu's BLEU, without its warning about 100 lines that end in " .".

    >>> bleu_metric(tokenize="mecab")
    Traceback (most recent call last):
    regard.errors.ConfigError: tokenize = "mecab": expected one of 13a, intl, zh, char, none
    """
    if tokenize not in get_args(Tokenize):
        raise ConfigError(f'tokenize = "{tokenize}": expected one of {", ".join(get_args(Tokenize))}')
    from sacrebleu.metrics import BLEU

    return BLEU(lowercase=lowercase, tokenize=tokenize, force=True)


def check_pairs(outputs: Sequence[str], references: Sequence[str], name: str = "outputs") -> None:
    """Check that every output has a reference, and that there is at least one.

    >>> check_pairs(["a", "b"], ["a"])
    Traceback (most recent call last):
    regard.errors.DataError: there are 2 outputs and 1 references; line i of one must match line i of the other
    """
    if len(outputs) != len(references):
        raise DataError(
            f"there are {len(outputs)} {name} and {len(references)} references; "
            "line i of one must match line i of the other"
        )
    if not outputs:
        raise DataError(f"there is nothing to score: 0 {name} and 0 references")


def statistics(by: Metric, outputs: Sequence[str], references: Sequence[str]) -> FloatArray:
    """(N, S): sacrebleu's statistics of each sentence; a corpus is scored from their sums.

    >>> statistics(sacrebleu_metric("ter"), ["a dog runs", ""], ["a cat runs fast", "b"])
    array([[2., 4.],
           [1., 1.]])
    """
    import numpy

    return numpy.array(by._extract_corpus_statistics(list(outputs), [list(references)]), numpy.float64)


def total(by: Metric, sums: list[float]) -> float:
    """The score of a corpus with these sums.

    >>> total(sacrebleu_metric("ter"), [3.0, 5.0])
    60.0
    """
    return float(by._compute_score_from_stats(sums).score)


def signature(by: Metric) -> str:
    """Signature of `by`, with our resamples and seed; sacrebleu knows it after scoring something.

    >>> by = sacrebleu_metric("chrf")
    >>> _ = statistics(by, ["a"], ["a"])
    >>> signature(by).rpartition("|version")[0]
    'nrefs:1|bs:1000|seed:12345|case:mixed|eff:yes|nc:6|nw:0|space:no'
    """
    found = by.get_signature()
    found.update("bs", RESAMPLES)
    found.update("seed", SEED)
    return str(found)


def _corpus(name: str, by: Metric, outputs: Sequence[str], references: Sequence[str]) -> Score:
    check_pairs(outputs, references)
    stats_NS = statistics(by, outputs, references)
    low, high = percentile_interval(bootstrap_scores(stats_NS, lambda sums: total(by, sums)))
    return Score(name, total(by, stats_NS.sum(0).tolist()), low, high, signature(by), len(outputs))
