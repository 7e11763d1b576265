"""Metrics for display: titles, and as many digits as are meaningful."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from regard.metrics.score import format_value

TITLES = {
    "bleu": "BLEU", "chrf": "chrF", "ter": "TER", "f1": "F1", "mae": "MAE", "rmse": "RMSE", "mase": "MASE", "r2": "R²",
    "bits_per_byte": "bits/byte",
}  # fmt: skip
"""Titles of metrics that differ from their names."""
DIGITS = {"bleu": 1, "chrf": 1, "ter": 1, "ppl": 1, "accuracy": 1, "f1": 1}
"""Digits after the decimal point; all others have 3."""
ERRORS = frozenset({"mae", "rmse", "mase", "r2"})
"""Scores of numbers."""
DERIVED = frozenset({"ppl"})
"""Metrics that are computed from another one; left out where space is short."""


def metric_title(name: str) -> str:
    """The title of a metric."""
    return TITLES.get(name, name)


def format_score(name: str, value: float) -> str:
    """The value of a score of `regard eval`: errors in the units of the data may be small, and have a digit more.

    >>> format_score("bleu", 27.312), format_score("mae", 0.0912)
    ('27.31', '0.091')
    """
    return format_value(value, 3 if name in ERRORS else 2)


def format_metric(name: str, metrics: Mapping[str, float]) -> str:
    """The value of a metric, or a dash if it was not measured.

    >>> format_metric("ppl", {"ppl": 12.345}), format_metric("ppl", {"ppl": 1e304})
    ('12.3', '1.0e+304')
    """
    return format_value(metrics[name], DIGITS.get(name, 3)) if name in metrics else "-"


def format_metrics(metrics: Mapping[str, float], first: str = "loss") -> str:
    """All metrics on one line, `first` leading, without the step and derived ones.

    >>> format_metrics({"loss": 1.5, "bleu": 24.6, "step": 2000.0}, first="bleu")
    'BLEU 24.6, loss 1.500'
    """
    others = [name for name in metrics if name != "step" and name not in DERIVED]
    names = dict.fromkeys(name for name in (first, *others) if name in metrics)
    return ", ".join(f"{metric_title(name)} {format_metric(name, metrics)}" for name in names)


def metric_names(rows: Iterable[Mapping[str, float]]) -> list[str]:
    """The names of all metrics in any row, the loss first, then in order of appearance."""
    names = dict.fromkeys(name for row in rows for name in row if name != "step")
    return sorted(names, key=lambda name: name != "loss")
