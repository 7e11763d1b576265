"""Translation with a trained model: texts in, translations out, in the same order."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, TypeVar

import torch
from torch import Tensor

from regard.data.lines import printable
from regard.decode import Constraints, DecodeConfig, Hypothesis, UnsatisfiableConstraint, score, search
from regard.decode.processors import LogitsProcessor, ban
from regard.errors import DataError, LineError
from regard.models.base import EncoderDecoder
from regard.sequence import Tokens
from regard.tasks.base import check_lines, length_batches, tap_output
from regard.tasks.decoded_text import DecodedText, different_texts
from regard.tasks.translate.prepare import Vocabularies
from regard.tasks.translate.tags import SourceTags
from regard.trace import trace_context, tracing

T = TypeVar("T")
MAX_TOKENS = 4096
"""tokens of one text: a longer one is not a sentence, and would take all memory"""


class Translation(DecodedText):
    """One hypothesis of a search as a translation."""


EMPTY = Translation("", 0.0, 0.0, (), True)
"""Translation of an empty text"""


class SearchEngine(ABC):
    """The search of another library, in place of `decode.search`."""

    name: ClassVar[str]

    @abstractmethod
    def check(self, config: DecodeConfig, prefix: str, constrained: bool) -> None:
        """Refuse, by name, what this engine does not have."""

    @abstractmethod
    def search(
        self, ids: Sequence[Sequence[int]], config: DecodeConfig, limits: Sequence[int], batch_tokens: int
    ) -> list[list[Hypothesis]]:
        """The n best outputs of each source, given by its ids without <EOS>; `limits`: most tokens of each output."""


@dataclass(frozen=True)
class Translator:
    """A model with its vocabularies and the settings of the search."""

    model: EncoderDecoder
    vocabularies: Vocabularies
    config: DecodeConfig
    batch_tokens: int = 2048
    """source positions decoded at once, padding included"""
    max_positions: int | None = None
    """the model's position limit, if it has one: outputs are cut there"""
    tags: SourceTags = SourceTags()
    """the tags of the model"""
    tag: str | None = None
    """the tag of every text; None: each text starts with its own"""
    line_streams: bool = False
    """sampling: the random stream of a text depends on its line number, not on its place in a batch"""
    engine: SearchEngine | None = None
    """another library's search; None: the one here"""

    def translate(
        self,
        texts: Sequence[str],
        prefix: str = "",
        constraints: Sequence[Sequence[str]] | None = None,
        first_line: int = 1,
    ) -> list[list[Translation]]:
        """The n best translations of each text, in order, each text once; an empty text has an empty translation.

        `prefix`: beginning of every output. `constraints`: for each text, the words that must appear. `first_line`:
        line number of the first text, for errors.
        """
        check_lines(texts, first_line)
        self.check_engine(prefix, bool(constraints))
        prefix = self._check_prefix(prefix.strip())
        ids = self.encode_sources(texts, first_line)
        for number, tokens in enumerate(ids, first_line):
            if len(tokens) > MAX_TOKENS:
                raise LineError(
                    f"line {number} has {len(tokens):,} tokens; at most {MAX_TOKENS:,} can be translated at once: put "
                    "one sentence per line",
                    number,
                )
        found: list[list[Translation]] = [[EMPTY] for _ in texts]

        def decode_rows(rows: list[int]) -> list[list[Hypothesis]]:
            required = [constraints[r] for r in rows] if constraints else None
            numbers = torch.tensor([first_line + r for r in rows]) if self.line_streams else None
            return self._decode([ids[r] for r in rows], prefix, required, numbers)

        lengths = [len(row) + 1 if row else 0 for row in ids]
        budget = self.batch_tokens if self.engine is None else len(lengths) * max(lengths, default=0)  # it has batches
        for rows in length_batches(lengths, budget):
            for row, hypotheses in zip(rows, with_line_errors(decode_rows, rows, first_line), strict=True):
                found[row] = different_texts(hypotheses, self._to_translation, f"line {first_line + row}")
        return found

    def encode_sources(self, texts: Sequence[str], first_line: int = 1) -> list[list[int]]:
        """Ids of texts, that of the tag first; a model with tags needs one for each text."""
        rows = enumerate((text.strip() for text in texts), first_line)
        tagged = [self.tags.choose(text, self.tag, line) for line, text in rows] if self.tags.names else texts
        return self.tags.encode_batch(self.vocabularies.source, [text.strip() for text in tagged])

    def score(self, sources: Sequence[str], targets: Sequence[str]) -> list[float]:
        """The log-probabilities of given translations."""
        scores: list[float] = []
        vocabulary = self.vocabularies.target
        for i in range(0, len(sources), 64):
            ids = self.tags.encode_batch(self.vocabularies.source, sources[i : i + 64])
            source = self.pad_source(ids)
            ids = vocabulary.encode_batch(list(targets[i : i + 64]))
            scores += score(self.model, source, Tokens.pad(ids, (vocabulary.sos,), (vocabulary.eos,))).totals.tolist()
        return scores

    def pad_source(self, ids: Sequence[Sequence[int]]) -> Tokens:
        """Sources as the model reads them: with <EOS> at the end."""
        return Tokens.pad(ids, after=(self.vocabularies.source.eos,))

    def _decode(
        self,
        ids: list[list[int]],
        prefix: str,
        required: Sequence[Sequence[str]] | None,
        numbers: Tensor | None = None,
    ) -> list[list[Hypothesis]]:
        if self.engine is not None:
            return self.engine.search(ids, self.config, self._limits(ids), self.batch_tokens)
        vocabulary, source = self.vocabularies.target, self.pad_source(ids)
        limits = torch.tensor(self._limits(ids))
        prompt = Tokens.full(torch.full((len(ids), 1), vocabulary.sos))
        prefixes = Tokens.pad([vocabulary.encode(prefix).ids] * len(ids)) if prefix else None
        constraints = None if required is None else [self._constraint(i, words) for i, words in enumerate(required)]
        strategy = self.config.strategy(vocabulary.eos, prefixes, constraints, self._processors())
        if prefixes is not None and prefixes.data.shape[1] >= int(limits.min()):
            raise DataError(
                f"the prefix has {prefixes.data.shape[1]} tokens, and an output at most {int(limits.min())}, <EOS> "
                "included; give a shorter one, or raise decode.max_extra_tokens in the recipe"
            )
        words = [[*self.vocabularies.source.tokens(row), "<EOS>"] for row in ids] if tracing() else []
        with trace_context(source=words):
            found = search(self.model, source, prompt, strategy, limits, self.config.exact, numbers)
        if tracing():
            tap_output(self.model, vocabulary, [hypotheses[0].tokens for hypotheses in found])
        return found

    def _limits(self, ids: list[list[int]]) -> list[int]:
        """Most tokens of each output: some more than its source has, <EOS> included, and no more than positions."""
        most = math.inf if self.max_positions is None else self.max_positions
        return [int(min(len(row) + 1 + self.config.max_extra_tokens, most)) for row in ids]

    def check_engine(self, prefix: str, constrained: bool) -> None:
        """Refuse, by name, what the engine does not have."""
        if self.engine is not None:
            self.engine.check(self.config, prefix, constrained)

    def _processors(self) -> tuple[LogitsProcessor, ...]:
        """Where outputs begin with padding, as Marian's do, it is banned: training gives its logit no meaning."""
        vocabulary = self.vocabularies.target
        return (ban(vocabulary.pad),) if vocabulary.sos == vocabulary.pad else ()

    def _check_prefix(self, prefix: str) -> str:
        vocabulary = self.vocabularies.target
        if prefix and vocabulary.unk in vocabulary.encode(prefix).ids:
            raise DataError(
                f'the prefix "{printable(prefix)}" cannot begin an output: the vocabulary does not know all of it'
            )
        return prefix

    def _constraint(self, number: int, words: Sequence[str]) -> Constraints:
        """Required words as ids; a word that is not in the vocabulary can never appear."""
        vocabulary = self.vocabularies.target
        required = [tuple(vocabulary.encode(word).ids) for word in words]
        for word, ids in zip(words, required, strict=True):
            if not word.strip():
                raise UnsatisfiableConstraint(number, f'"{printable(word)}" holds no word that could appear')
            if vocabulary.unk in ids:
                why = "cannot appear in an output: the vocabulary does not know all of it"
                raise UnsatisfiableConstraint(number, f'"{printable(word)}" {why}')
        return required

    def check_required(self, words: Sequence[str]) -> None:
        """Raise a DataError if one of the words can appear in no output, whatever the text."""
        try:
            self._constraint(0, words)
        except UnsatisfiableConstraint as error:
            raise DataError(f"--require: {error.why}") from None

    def _to_translation(self, hypothesis: Hypothesis) -> Translation:
        return Translation.from_hypothesis(hypothesis, self.vocabularies.target)

    def greedy(self) -> Translator:
        """The same with greedy search: fast enough for validation."""
        return replace(self, config=DecodeConfig(beam=1, max_extra_tokens=self.config.max_extra_tokens))


def with_line_errors(process: Callable[[list[int]], T], rows: list[int], first_line: int) -> T:
    """Process rows, given by index; an error of one of them becomes a LineError."""
    try:
        return process(rows)
    except UnsatisfiableConstraint as error:
        line = first_line + rows[error.source]
        raise LineError(f"line {line}: {error.why}", line) from None
    except DataError as error:
        if len(rows) == 1:
            line = first_line + rows[0]
            raise LineError(f"line {line}: {error}", line) from None
        for row in rows:  # one at a time, to find the line
            with_line_errors(process, [row], first_line)
        raise
