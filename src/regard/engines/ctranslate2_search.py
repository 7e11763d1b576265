"""Beam search by CTranslate2 with the meaning of the search here: the same limits, the same ranking of hypotheses.

CTranslate2 keeps as many hypotheses as the beam is wide and ends when as many have ended, as `Beam` does. So many of
them come back, those of the best scores after its length penalty, length ** alpha, and they are ranked here by the
penalty of the settings.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from regard.decode import DecodeConfig, Hypothesis
from regard.decode.beam import power_penalty, wu_penalty
from regard.engines.ctranslate2_folder import Precision, load_folder
from regard.errors import ConfigError
from regard.tasks.translate.predict import SearchEngine
from regard.tasks.translate.prepare import Vocabularies

LEAST_PENALTY = 1e-9
"""exponent that changes no score; at exactly 0, a search ends before all of its hypotheses are found"""
UNSUPPORTED = {
    "sample": False, "coverage_penalty": 0.0, "repetition_penalty": 1.0, "no_repeat_ngram": 0, "min_length": 0,
    "exact": False,
}  # fmt: skip
"""settings of [decode] that CTranslate2 does not have, or in which it means something else, and their neutral values"""


class CTranslate2Search(SearchEngine):
    """The search of a CTranslate2 folder; threads are those of torch when it is first used."""

    name = "ctranslate2"

    def __init__(self, folder: Path, vocabularies: Vocabularies, precision: Precision) -> None:
        self.folder, self.vocabularies, self.precision = folder, vocabularies, precision

    @cached_property
    def translator(self) -> Any:
        """CTranslate2's translator."""
        return load_folder("Translator", self.folder, self.precision)

    def check(self, config: DecodeConfig, prefix: str, constrained: bool) -> None:
        for name, neutral in UNSUPPORTED.items():
            if (found := getattr(config, name)) != neutral:
                shown = str(found).lower() if isinstance(found, bool) else found
                raise ConfigError(f"decode.{name} = {shown} is not in the engine ctranslate2; leave --engine out")
        if config.length_penalty == "wu" and config.alpha and config.n_best > 1:
            raise ConfigError(
                'the n best by decode.length_penalty = "wu" are not in the engine ctranslate2, which finds the best '
                "one; leave --n-best or --engine out"
            )
        for option, given in (("--prefix", bool(prefix)), ("--require", constrained)):
            if given:
                raise ConfigError(f"{option} is not in the engine ctranslate2; leave it or --engine out")

    def search(
        self, ids: Sequence[Sequence[int]], config: DecodeConfig, limits: Sequence[int], batch_tokens: int
    ) -> list[list[Hypothesis]]:
        names = self.vocabularies.source.vocabulary
        texts = [[names[id] for id in (*row, self.vocabularies.source.eos)] for row in ids]
        exponent = max(power_exponent(config, texts), LEAST_PENALTY)
        found = self._translate(texts, config, exponent, max(limits, default=1), batch_tokens)
        longer: dict[int, list[int]] = {}  # rows with an output beyond their own limit: once more with that
        for row, (one, limit) in enumerate(zip(found, limits, strict=True)):
            if max(map(len, one.hypotheses)) > limit:
                longer.setdefault(limit, []).append(row)
        for limit, rows in longer.items():
            again = self._translate([texts[row] for row in rows], config, exponent, limit, batch_tokens)
            for row, one in zip(rows, again, strict=True):
                found[row] = one
        return [self._rank(one, config, exponent) for one in found]

    def _translate(
        self, texts: list[list[str]], config: DecodeConfig, exponent: float, limit: int, batch_tokens: int
    ) -> list[Any]:
        """CTranslate2's results: of each text as many hypotheses as the beam is wide, with at most so many tokens."""
        target = self.vocabularies.target
        banned = [[target.vocabulary[target.pad]]] if target.sos == target.pad else None
        found: list[Any] = self.translator.translate_batch(
            texts, max_batch_size=batch_tokens, batch_type="tokens", beam_size=config.beam, num_hypotheses=config.beam,
            length_penalty=exponent, return_scores=True, return_end_token=True, max_decoding_length=limit,
            min_decoding_length=0, max_input_length=0, suppress_sequences=banned,
        )  # fmt: skip
        return found

    def _rank(self, found: Any, config: DecodeConfig, exponent: float) -> list[Hypothesis]:
        """The n best of the hypotheses, by the penalty of the settings."""
        penalty = {"wu": wu_penalty, "power": power_penalty}[config.length_penalty](config.alpha)
        ranked = []
        for tokens, value in zip(found.hypotheses, found.scores, strict=True):
            score = value * len(tokens) ** exponent
            ranked.append((score / float(penalty(float(max(1, len(tokens))))), score, tokens))
        ranked.sort(key=lambda one: -one[0])
        return [self._hypothesis(tokens, value, score) for value, score, tokens in ranked[: config.n_best]]

    def _hypothesis(self, tokens: list[str], value: float, score: float) -> Hypothesis:
        ids = tuple(self._ids[token] for token in tokens)
        return Hypothesis(ids, value, score, bool(ids) and ids[-1] == self.vocabularies.target.eos)

    @cached_property
    def _ids(self) -> dict[str, int]:
        return {token: id for id, token in enumerate(self.vocabularies.target.vocabulary)}


def power_exponent(config: DecodeConfig, texts: Sequence[Sequence[str]]) -> float:
    """The exponent of the length for which length ** exponent ranks as the penalty of the settings.

    For `wu` it is the slope of log penalty over log length, at the mean length of the texts: of more hypotheses than
    the beam is wide, those are left out that either would rank last.

    >>> power_exponent(DecodeConfig(length_penalty="wu", alpha=0.6), [["a"] * 15])
    0.45
    """
    if config.length_penalty == "power" or not texts:
        return config.alpha
    mean = sum(map(len, texts)) / len(texts)
    return config.alpha * mean / (5 + mean)
