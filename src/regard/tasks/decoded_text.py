"""Decoded texts: the hypotheses of a search as text, for translations and captions."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Self, TypeVar

from regard.data.lines import printable
from regard.decode import Hypothesis
from regard.errors import ModelError
from regard.text import Tokenizer

T = TypeVar("T", bound="DecodedText")


@dataclass(frozen=True)
class DecodedText:
    """One hypothesis of a search as text."""

    text: str
    value: float
    """the score that hypotheses are ranked by: the log-probability after the length penalty"""
    score: float
    """log-probability"""
    tokens: tuple[str, ...]
    complete: bool
    """whether it ended with <EOS>, and not at the length limit"""

    @classmethod
    def from_hypothesis(cls, hypothesis: Hypothesis, vocabulary: Tokenizer) -> Self:
        """The text of a hypothesis, without special tokens."""
        ids = [i for i in hypothesis.tokens if i not in (vocabulary.eos, vocabulary.sos, vocabulary.pad)]
        tokens, text = tuple(vocabulary.tokens(ids)), printable(vocabulary.decode(ids))
        return cls(text, hypothesis.value, hypothesis.score, tokens, hypothesis.complete)


def different_texts(hypotheses: Sequence[Hypothesis], to_text: Callable[[Hypothesis], T], where: str) -> list[T]:
    """The texts of the n best hypotheses, the best first, each once: a text may have several tokenizations."""
    if not hypotheses or not all(math.isfinite(h.score) for h in hypotheses):
        raise ModelError(f"{where}: the model's outputs are not numbers; it is damaged")
    different: dict[str, T] = {}
    for found in map(to_text, hypotheses):
        different.setdefault(found.text, found)
    return list(different.values())
