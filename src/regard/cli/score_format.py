"""Scores as people read them: a title and as many digits as mean something."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

TITLES = {"bleu": "BLEU", "chrf": "chrF", "ter": "TER", "f1": "F1", "mae": "MAE", "rmse": "RMSE", "mase": "MASE"}
"""What a score is called where its name is not it."""
DIGITS = {"bleu": 1, "chrf": 1, "ter": 1, "ppl": 1, "accuracy": 1, "f1": 1}
"""Digits after the point; all others have 3."""
DERIVED = frozenset({"ppl"})
"""Scores that say in other words what another one says; left out where room is short."""


def title(name: str) -> str:
    """What people call a score.

    >>> title("bleu"), title("loss")
    ('BLEU', 'loss')
    """
    return TITLES.get(name, name)


def figure(name: str, scores: Mapping[str, float]) -> str:
    """A score's number; a dash if it was not measured.

    >>> figure("loss", {"loss": 1.23456}), figure("bleu", {})
    ('1.235', '-')
    """
    return f"{scores[name]:.{DIGITS.get(name, 3)}f}" if name in scores else "-"


def sentence(scores: Mapping[str, float], first: str = "loss") -> str:
    """All scores in a line, one of them first; the step is none, and what is derived is left out.

    >>> sentence({"loss": 1.5, "bleu": 24.6, "step": 2000.0}, first="bleu")
    'BLEU 24.6, loss 1.500'
    """
    others = [name for name in scores if name != "step" and name not in DERIVED]
    names = dict.fromkeys(name for name in (first, *others) if name in scores)
    return ", ".join(f"{title(name)} {figure(name, scores)}" for name in names)


def columns(rows: Iterable[Mapping[str, float]]) -> list[str]:
    """The names of all scores that any row has, the loss first, in the order in which they come.

    >>> columns([{"loss": 2.0, "step": 5.0}, {"loss": 1.0, "bleu": 3.0}])
    ['loss', 'bleu']
    """
    names = dict.fromkeys(name for row in rows for name in row if name != "step")
    return sorted(names, key=lambda name: name != "loss")
