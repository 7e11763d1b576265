"""Text generation with a trained model: prompts are continued by sampling or beam search, streamed where possible."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Protocol

import torch
from torch import Tensor

from regard.decode import DecodeConfig, Hypothesis, Strategy, ban, decode, search
from regard.decode.int8_search import FeaturesOnly, int8_strategy
from regard.errors import ConfigError, DataError, at_line
from regard.models.base import EncoderDecoder
from regard.sequence import Tokens
from regard.tasks.base import tap_output
from regard.tasks.generate.chat import ChatML
from regard.tasks.generate.loader import empty_source
from regard.tasks.generate.streaming import BatchExtender, TextBuilder
from regard.text import Tokenizer
from regard.trace import tracing

MAX_PROMPT = 4096
"""tokens of a prompt that a model without a fixed context reads, which bounds the memory"""
MAX_ROWS = 64
"""samples that are generated in parallel"""
MAX_LISTED = 5
"""unknown characters that a message lists"""
SEGMENT_SEED = 1_000_003
"""distance of the seeds of consecutive segments: else each would draw the same random numbers"""


@dataclass(frozen=True)
class GeneratedText:
    """Continuation of a prompt."""

    text: str
    """cut before the first stop string"""
    tokens: tuple[str, ...]
    """all generated tokens, those of a stop string included"""
    score: float
    """log-probability of the tokens under the model, whatever the sampling settings"""
    complete: bool
    """whether it ended with <EOS> or a stop string, and not at the length limit"""


class Sample(Protocol):
    """A generated sample of any modality."""

    @property
    def text(self) -> str:
        """The sample as text."""


class ContinuationEngine(ABC):
    """Greedy search of another library, in place of `decode`."""

    name: ClassVar[str]

    @abstractmethod
    def check(self, config: DecodeConfig) -> None:
        """Refuse, by name, what this engine does not have."""

    @abstractmethod
    def continue_ids(
        self, ids: Sequence[Sequence[int]], limits: Sequence[int], excluded: Collection[int]
    ) -> list[Hypothesis]:
        """A continuation of each prompt by at most so many tokens, none of them excluded."""


class Generator(ABC):
    """Continues prompts."""

    @abstractmethod
    def generate(self, prompt: str, length: int, n: int = 1) -> Sequence[Sample]:
        """`n` continuations of a prompt, each of at most `length` positions."""

    @abstractmethod
    def generate_batch(
        self, prompts: Sequence[str], length: int, n: int = 1, first: int = 0
    ) -> Sequence[Sequence[Sample]]:
        """`n` continuations of each prompt, in the order of the prompts; `first` is the number of the first one."""

    @abstractmethod
    def stream(self, prompt: str, length: int) -> Iterator[str]:
        """One continuation, piece by piece, as it is generated."""

    @abstractmethod
    def check_prompt(self, prompt: str) -> None:
        """Refuse a prompt that cannot be continued."""

    @abstractmethod
    def encode_prompt(self, prompt: str) -> tuple[Tokens, list[str]]:
        """A prompt as the model's input, and the text of each position."""

    @abstractmethod
    def display_prompt(self, prompt: str) -> str:
        """The prompt as it is printed before its continuation."""

    @property
    @abstractmethod
    def samples_are_lines(self) -> bool:
        """Whether each sample is one line, so that no separator is needed."""

    @property
    def continues_lines(self) -> bool:
        """Whether a prompt may be a single line."""
        return True


@dataclass(frozen=True)
class TextGenerator(Generator):
    """Text generation with a language model, its tokenizer and the decoding settings."""

    model: EncoderDecoder
    tokenizer: Tokenizer
    config: DecodeConfig
    context: int | None = None
    """positions that the model reads at once; when full, the last half is read again. None: unlimited"""
    stop: tuple[str, ...] = ()
    """stop strings: a text ends before the first of them"""
    sliding_window: bool = False
    """read the last tokens of a prompt that is longer than the context, instead of refusing it"""
    source: Callable[[int], Tokens] = empty_source
    """the source of so many rows: the condition x of p(y | x), or nothing"""
    begin: int | None = None
    """the token that begins every text: then the prompt may be empty"""
    samples_are_lines: bool = False
    excluded: frozenset[int] = frozenset()
    """tokens that are never generated"""
    chat: ChatML | None = None
    """chat format: a prompt is a message to answer; None: it is continued"""
    engine: ContinuationEngine | None = None
    """another library that continues prompts; None: the model itself"""

    def __post_init__(self) -> None:
        if not all(self.stop):
            raise ConfigError("an empty stop string would end every text before its first character; leave it out")

    def check_prompt(self, prompt: str) -> None:
        self.prompt_ids(prompt)

    def encode_prompt(self, prompt: str) -> tuple[Tokens, list[str]]:
        ids = self.prompt_ids(prompt)
        return Tokens.pad([ids]), self.tokenizer.tokens(ids)

    def display_prompt(self, prompt: str) -> str:
        return prompt if self.chat is None else ""

    def generate(self, prompt: str, length: int, n: int = 1) -> list[GeneratedText]:
        """`n` continuations of a prompt, each of at most `length` tokens."""
        return self._generate([self.prompt_ids(prompt)], length, n, 0)[0]

    def generate_batch(
        self, prompts: Sequence[str], length: int, n: int = 1, first: int = 0
    ) -> list[list[GeneratedText]]:
        """`n` continuations of each prompt. A sample depends on the seed, its prompt and their numbers alone."""
        before = []
        for line, prompt in enumerate(prompts, first + 1):
            with at_line(line) as where:
                before.append(self.prompt_ids(prompt, f"{where}: the prompt"))
        size, found = max(1, MAX_ROWS // n), []
        for start in range(0, len(before), size):
            found += self._generate(before[start : start + size], length, n, first + start)
        return found

    def stream(self, prompt: str, length: int) -> Iterator[str]:
        """One continuation, in whole characters; a beam search gives its text when it has ended."""
        before = self.prompt_ids(prompt)
        if self._searches():
            yield self._generate([before], length, 1, 0)[0][0].text
            return
        row = TextBuilder(self.tokenizer, 0, before, self.stop)
        for _, text in self._sample([row], length):
            if text:
                yield text
        if rest := row.flush():
            yield rest

    def prompt_ids(self, prompt: str, what: str = "the prompt") -> list[int]:
        """A prompt as ids, after the token that begins a text."""
        encoded, unk = self.tokenizer.encode(prompt), self.tokenizer.unk
        unknown = [prompt[a:b] for (a, b), id in zip(encoded.offsets, encoded.ids, strict=True) if id == unk]
        if unknown:
            names = list(dict.fromkeys(unknown))
            more = f" and {len(names) - MAX_LISTED} more" if len(names) > MAX_LISTED else ""
            raise DataError(
                f"{what} has tokens that this model does not know: "
                f"{', '.join(map(_quote, names[:MAX_LISTED]))}{more}; leave it out, or train on text that has it"
            )
        ids = encoded.ids if self.begin is None else [self.begin, *encoded.ids]
        if self.chat is not None:
            ids = self.chat.prompt_ids(self.tokenizer, prompt)
        if not ids:
            raise DataError(
                f"{what} is empty, and this model was trained on one running text without beginnings; "
                'give it a prompt, such as "The"'
            )
        limit = self.context or MAX_PROMPT
        if not self.sliding_window:
            first = "" if self.begin is None else self.tokenizer.vocabulary[self.begin]
            unit = f"tokens, {first} before it included," if first else "tokens,"
            check_prompt_length(len(ids), limit, unit, what)
        return ids[-limit:]

    def _searches(self) -> bool:
        return self.engine is not None or (self.config.beam > 1 and not self.config.sample)

    def _generate(self, before: Sequence[list[int]], length: int, n: int, first: int) -> list[list[GeneratedText]]:
        """`n` continuations of each prompt, which has been encoded."""
        if length < 1 or n < 1:
            raise ConfigError(f"length = {length} and n = {n} must be at least 1")
        rows = [
            TextBuilder(self.tokenizer, (first + i) * n + sample, ids, self.stop)
            for i, ids in enumerate(before)
            for sample in range(n)
        ]
        if self._searches():
            self._search(rows, length, n)
        else:
            for _ in self._sample(rows, length):
                pass
        for row in rows:
            row.flush()
        if tracing():
            tap_output(self.model, self.tokenizer, [row.ids for row in rows])
        found = [
            GeneratedText(row.text, tuple(self.tokenizer.tokens(row.ids)), row.score, row.is_complete) for row in rows
        ]
        return [found[start : start + n] for start in range(0, len(found), n)]

    def _sample(self, rows: Sequence[TextBuilder], length: int) -> Iterator[tuple[TextBuilder, str]]:
        """Sample all rows in parallel, token by token: a row, and its text that can be printed."""
        if length < 1:
            raise ConfigError(f"length = {length} and n = {len(rows)} must be at least 1")
        segment, live = 0, list(rows)
        while live:
            extender = BatchExtender(live)
            prompt, limits, numbers = self._read_rows(live, length, segment)
            strategy = self._strategy(live, replace(self.config, beam=1, n_best=1), segment)
            fast = int8_strategy(self.model, len(live), strategy)
            model = self.model if fast is None else FeaturesOnly(self.model)
            for _ in decode(model, self.source(len(live)), prompt, fast or strategy, limits, numbers, extender):
                yield from extender.new
            if fast is not None:
                live[0].score += fast.total_score()
            live, segment = [row for row in live if not row.is_complete and len(row.ids) < length], segment + 1

    def _search(self, rows: Sequence[TextBuilder], length: int, n: int) -> None:
        """Beam search: the n best of each prompt, and of each of these the best in every later segment."""
        segment, live = 0, list(rows)
        while live:
            first, best = (live[::n], n) if not segment else (live, 1)
            found = self._find_hypotheses(first, length, segment, best)
            hypotheses = [hypothesis for several in found for hypothesis in _exactly(several, best)]
            for row, hypothesis in zip(live, hypotheses, strict=True):
                self._extend_row(row, hypothesis)
            live, segment = [row for row in live if not row.is_complete and len(row.ids) < length], segment + 1

    def _find_hypotheses(
        self, rows: Sequence[TextBuilder], length: int, segment: int, best: int
    ) -> list[list[Hypothesis]]:
        """The best continuations of each row, by the engine or by beam search."""
        prompt, limits, numbers = self._read_rows(rows, length, segment)
        if self.engine is not None:
            ids = [row[:size] for row, size in zip(prompt.data.tolist(), prompt.lengths.tolist(), strict=True)]
            return [[one] for one in self.engine.continue_ids(ids, limits.tolist(), self.excluded)]
        strategy = self._strategy(rows, replace(self.config, n_best=best), segment)
        return search(
            self.model, self.source(len(rows)), prompt, strategy, limits, self.config.exact, numbers_B=numbers
        )

    def _extend_row(self, row: TextBuilder, hypothesis: Hypothesis) -> None:
        for id in hypothesis.tokens:
            if id != self.tokenizer.eos and not row.is_complete:
                row.add(id)
        row.score += hypothesis.score
        row.is_complete = row.is_complete or hypothesis.complete

    def _read_rows(self, rows: Sequence[TextBuilder], length: int, segment: int) -> tuple[Tokens, Tensor, Tensor]:
        """What is read before the next segment, how many tokens may follow in each row, and the numbers of the rows.

        A model with a context reads the whole prompt, then again the last half of its context whenever it is full.
        """
        kept = 0 if self.context is None or not segment else max(1, self.context // 2)
        ids = [row.history[-kept:] for row in rows]
        left = [length - len(row.ids) for row in rows]
        if self.context is not None:  # the last token of a segment is not read
            left = [min(count, self.context + 1 - len(read)) for count, read in zip(left, ids, strict=True)]
        return Tokens.pad(ids), torch.tensor(left), torch.tensor([row.number for row in rows])

    def _strategy(self, rows: Sequence[TextBuilder], config: DecodeConfig, segment: int) -> Strategy:
        words, generated = self.tokenizer, min(len(row.ids) for row in rows)
        config = replace(
            config, seed=config.seed + SEGMENT_SEED * segment, min_length=max(0, config.min_length - generated)
        )
        prompts = torch.tensor([row.number for row in rows]), [row.history for row in rows]
        never = (ban(*sorted(self.excluded)),) if self.excluded else ()
        return config.strategy(words.eos, processors=never, prompts=prompts)


def check_prompt_length(found: int, limit: int, unit: str, what: str = "the prompt") -> None:
    """Refuse a prompt that is longer than the context of the model."""
    if found > limit:
        raise DataError(
            f"{what} has {found:,} {unit} and this model reads at most {limit:,} at once; shorten it, or request "
            f"a sliding window (--sliding-window, in Python sliding_window=True), which reads its last {limit:,}"
        )


def _exactly(found: list[Hypothesis], n: int) -> list[Hypothesis]:
    """Exactly n hypotheses: a small vocabulary may have fewer, then the last is repeated."""
    return [*found, *[found[-1]] * n][:n]


def _quote(characters: str) -> str:
    return f'"{characters}"' + (f" (U+{ord(characters):04X})" if len(characters) == 1 else "")
