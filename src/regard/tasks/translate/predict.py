"""Translating with a trained model: text in, text out, in the order it came."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import torch

from regard.decode import Constraints, DecodeConfig, Hypothesis, Unmet, score, search
from regard.errors import DataError, ModelError
from regard.models.base import EncoderDecoder
from regard.sequence import Tokens
from regard.tasks.translate.prepare import Vocabularies, tokens_of
from regard.text.kinds import check_characters
from regard.trace import scene, tap, tracing

T = TypeVar("T")
LONGEST = 4096
"""tokens of one text: a longer one is not a sentence, and would take all memory"""


@dataclass(frozen=True)
class Translation:
    """One output, and how sure the model is of it.

    >>> Translation("I am a student.", -1.2, -2.4, ("I", " am"), True).text
    'I am a student.'
    """

    text: str
    value: float
    """what outputs are ranked by: the log-probability after the length penalty"""
    score: float
    """log-probability"""
    tokens: tuple[str, ...]
    complete: bool
    """whether it ended by itself, and not by the limit"""


EMPTY = Translation("", 0.0, 0.0, (), True)
"""What an empty text becomes."""


@dataclass(frozen=True)
class Translator:
    """A model with its vocabularies and the settings of the search.

    >>> Translator.__dataclass_fields__["tokens"].default
    2048
    """

    model: EncoderDecoder
    vocabularies: Vocabularies
    config: DecodeConfig
    tokens: int = 2048
    """source positions decoded at once, padding included"""
    places: int | None = None
    """the most places that the model can read, if there is a most: outputs are cut there"""

    def translate(
        self,
        texts: Sequence[str],
        prefix: str = "",
        constraints: Sequence[Sequence[str]] | None = None,
        first_line: int = 1,
    ) -> list[list[Translation]]:
        """The n best translations of each text, in order; an empty text has an empty translation.

        `prefix`: every output begins with it. `constraints`: of each text, words that must appear. `first_line` is
        the number of the first text, for messages.
        """
        for number, text in enumerate(texts, first_line):
            check_characters(text, f"line {number}")
        prefix = self._sayable(prefix.strip())
        ids = self.vocabularies.source.encode_batch([text.strip() for text in texts])
        for number, words in enumerate(ids, first_line):
            if len(words) > LONGEST:
                raise DataError(
                    f"line {number} has {len(words):,} tokens; at most {LONGEST:,} can be translated at once: "
                    "put one sentence on a line"
                )
        found: list[list[Translation]] = [[EMPTY] for _ in texts]

        def decoded(rows: list[int]) -> list[list[Hypothesis]]:
            asked = [constraints[r] for r in rows] if constraints else None
            return self._decode([ids[r] for r in rows], prefix, asked)

        for rows in self._grouped(ids):
            for row, hypotheses in zip(rows, by_line(decoded, rows, first_line), strict=True):
                if not hypotheses or not all(math.isfinite(h.score) for h in hypotheses):
                    raise ModelError(f"line {first_line + row}: the model's outputs are not numbers; it is damaged")
                found[row] = [self._spelled(h) for h in hypotheses]
        return found

    def stream(self, lines: Iterator[str], prefix: str = "", chunk: int = 256) -> Iterator[list[Translation]]:
        """Translate line by line, many at a time; a line out for each line in."""
        number, waiting = 1, []
        for line in lines:
            waiting.append(line)
            if len(waiting) == chunk:
                yield from self.translate(waiting, prefix, first_line=number)
                number, waiting = number + len(waiting), []
        yield from self.translate(waiting, prefix, first_line=number)

    def score(self, sources: Sequence[str], targets: Sequence[str]) -> list[float]:
        """The log-probability of given translations."""
        scores: list[float] = []
        for i in range(0, len(sources), 64):
            source = self.source(self.vocabularies.source.encode_batch(list(sources[i : i + 64])))
            theirs = self.vocabularies.target
            target = tokens_of(theirs.encode_batch(list(targets[i : i + 64])), (theirs.sos,), (theirs.eos,))
            scores += score(self.model, source, target).totals.tolist()
        return scores

    def source(self, ids: Sequence[Sequence[int]]) -> Tokens:
        """Sources as the model reads them: ended by <EOS>."""
        return tokens_of(ids, (), (self.vocabularies.source.eos,))

    def _grouped(self, ids: Sequence[Sequence[int]]) -> Iterator[list[int]]:
        """Texts of like length together; empty ones are left out."""
        rows = sorted((i for i, row in enumerate(ids) if row), key=lambda i: -len(ids[i]))
        at = 0
        while at < len(rows):
            count = max(1, self.tokens // (len(ids[rows[at]]) + 1))
            yield rows[at : at + count]
            at += count

    def _decode(
        self, ids: list[list[int]], prefix: str, asked: Sequence[Sequence[str]] | None
    ) -> list[list[Hypothesis]]:
        theirs, source = self.vocabularies.target, self.source(ids)
        prompt = Tokens.full(torch.full((len(ids), 1), theirs.sos))
        prefixes = Tokens.of([theirs.encode(prefix).ids] * len(ids)) if prefix else None
        must = None if asked is None else [self._required(number, words) for number, words in enumerate(asked)]
        strategy = self.config.strategy(theirs.eos, prefixes, must)
        limits = self.config.limits(source)
        limits = limits if self.places is None else limits.clamp(max=self.places)
        if prefixes is not None and prefixes.data.shape[1] >= int(limits.min()):
            raise DataError(
                f"the prefix has {prefixes.data.shape[1]} tokens, and an output at most {int(limits.min())}, <EOS> "
                "included; give a shorter one, or raise decode.extra in the recipe"
            )
        words = [[*self.vocabularies.source.tokens(row), "<EOS>"] for row in ids] if tracing() else []
        with scene(source=words):
            found = search(self.model, source, prompt, strategy, limits, self.config.exact)
        if tracing():
            self._show([hypotheses[0].tokens for hypotheses in found])
        return found

    def _sayable(self, prefix: str) -> str:
        theirs = self.vocabularies.target
        if prefix and theirs.unk in theirs.encode(prefix).ids:
            raise DataError(
                f'the prefix "{printable(prefix)}" cannot begin an output: the vocabulary does not know all of it'
            )
        return prefix

    def _required(self, number: int, words: Sequence[str]) -> Constraints:
        """Words as ids; what the vocabulary cannot spell can never appear."""
        theirs = self.vocabularies.target
        spelled = [tuple(theirs.encode(word).ids) for word in words]
        for word, ids in zip(words, spelled, strict=True):
            if not word.strip():
                raise Unmet(number, f'"{printable(word)}" holds no word that could appear')
            if theirs.unk in ids:
                why = "cannot appear in an output: the vocabulary does not know all of it"
                raise Unmet(number, f'"{printable(word)}" {why}')
        return spelled

    def _show(self, answers: Sequence[Sequence[int]]) -> None:
        """Which of all that was read became the answer: a view joins the steps that led to it."""
        words = [self.vocabularies.target.tokens(row) for row in answers]
        with scene(target=words, sources=torch.arange(len(answers))):
            tap(self.model, "answer", Tokens.of(answers).data, "batch position:target")

    def _spelled(self, hypothesis: Hypothesis) -> Translation:
        theirs = self.vocabularies.target
        ids = [i for i in hypothesis.tokens if i not in (theirs.eos, theirs.sos, theirs.pad)]
        text = printable(theirs.decode(ids))
        return Translation(text, hypothesis.value, hypothesis.score, tuple(theirs.tokens(ids)), hypothesis.complete)

    def greedy(self) -> Translator:
        """The same with a beam of one: fast enough for validation."""
        return replace(self, config=DecodeConfig(beam=1, extra=self.config.extra))


def by_line(act: Callable[[list[int]], T], rows: list[int], first_line: int) -> T:
    """Do something with texts, given by their places; an error about one of them names its line.

    >>> def shout(rows: list[int]) -> None:
    ...     if 7 in rows:
    ...         raise DataError("it is too loud")
    >>> by_line(shout, [5, 7], first_line=1)
    Traceback (most recent call last):
    regard.errors.DataError: line 8: it is too loud
    """
    try:
        return act(rows)
    except Unmet as error:
        raise DataError(f"line {first_line + rows[error.source]}: {error.why}") from None
    except DataError as error:
        if len(rows) == 1:
            raise DataError(f"line {first_line + rows[0]}: {error}") from None
        for row in rows:  # which one it is shows when each is alone
            by_line(act, [row], first_line)
        raise


_STEERING = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
"""Marks that turn the direction of what follows on the screen; joiners and single direction marks are left alone."""


def printable(text: str) -> str:
    """One line that shows what it holds: line ends and other control characters become spaces, steering marks go.

    >>> printable("a\\nb\\u202ec")
    'a bc'
    """
    kept = (" " if unicodedata.category(c) in ("Cc", "Zl", "Zp") else c for c in text if c not in _STEERING)
    return "".join(kept)
