"""Writing with a trained model: a beginning in, what follows out, as it is written."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import torch

from regard.decode import DecodeConfig, banned, decode
from regard.errors import ConfigError, DataError
from regard.models.base import EncoderDecoder
from regard.sequence import Tokens
from regard.tasks.generate.prepare import nothing
from regard.text import Tokenizer
from regard.trace import scene, tap, tracing

LONGEST = 4096
"""tokens of a prompt: of a longer one the last are read"""
SHOWN = 5
"""strange characters that a message names, at most"""


@dataclass(frozen=True)
class Generation:
    """What was written after a prompt.

    >>> Generation(" be", (" ", "b", "e"), -2.1, False).text
    ' be'
    """

    text: str
    tokens: tuple[str, ...]
    score: float
    """log-probability, whatever it was drawn by"""
    complete: bool
    """whether it ended by itself, and not by the limit"""


@dataclass(frozen=True)
class Said:
    """One token of one sample.

    >>> Said(0, 7, -1.5, False).id
    7
    """

    sample: int
    id: int
    score: float
    """log-probability of the sample so far"""
    ended: bool
    """said <EOS>"""
    last: bool = False
    """the last one of what was read at once"""


class Spelling:
    """Ids to text as they come; bytes of a character that is not whole yet are held back.

    >>> from regard.text import TokenizerConfig
    >>> tokenizer = Tokenizer.train(["é"], TokenizerConfig(kind="byte-bpe", size=260))
    >>> spelling = Spelling(tokenizer, [])
    >>> [spelling.add(id) for id in tokenizer.encode("aé").ids]
    ['a', '', 'é']
    """

    def __init__(self, tokenizer: Tokenizer, before: Sequence[int]) -> None:
        self.tokenizer = tokenizer
        self._begin(list(before))

    def add(self, id: int) -> str:
        """The characters that are whole now."""
        self._ids.append(id)
        text = self.tokenizer.decode(self._ids)
        if text.endswith("\ufffd"):
            return ""
        new = text[len(self._told) :]
        self._begin(self._ids)
        return new

    def end(self) -> str:
        """What was held back and will never be whole."""
        return self.tokenizer.decode(self._ids)[len(self._told) :]

    def _begin(self, ids: list[int]) -> None:
        self._ids = ids[-8:]  # a few, since what a token looks like may depend on its neighbours
        self._told = self.tokenizer.decode(self._ids)


class Written(Protocol):
    """A sample, whatever it is made of."""

    @property
    def text(self) -> str:
        """What people read."""


class Writer(ABC):
    """Goes on from a prompt.

    >>> sorted(Writer.__abstractmethods__)[:3]
    ['check', 'generate', 'lines']
    """

    @abstractmethod
    def generate(self, prompt: str, length: int, n: int = 1) -> Sequence[Written]:
        """`n` samples that go on from a prompt, each of at most `length` places."""

    @abstractmethod
    def stream(self, prompt: str, length: int) -> Iterator[str]:
        """One sample, piece by piece, as it is written."""

    @abstractmethod
    def check(self, prompt: str) -> None:
        """Refuse a prompt that nothing can follow."""

    @abstractmethod
    def read(self, prompt: str) -> tuple[Tokens, list[str]]:
        """A prompt as the model reads it, and what stands at each place, for people."""

    @abstractmethod
    def shown(self, prompt: str) -> str:
        """The prompt as it stands before what follows it."""

    @property
    @abstractmethod
    def lines(self) -> bool:
        """Whether a sample is a line, so that nothing need stand between two."""


@dataclass(frozen=True)
class Generator(Writer):
    """A language model with its tokenizer and how its words are drawn.

    >>> Generator.__dataclass_fields__["reach"].default is None
    True
    """

    model: EncoderDecoder
    tokenizer: Tokenizer
    config: DecodeConfig
    ends: bool = False
    """whether it has learnt where texts begin and end: then it may begin with nothing, and stops by itself"""
    reach: int | None = None
    """tokens that are read at once, half of them what was written before; None: it goes on for ever"""

    @property
    def lines(self) -> bool:
        return self.ends

    def check(self, prompt: str) -> None:
        self.prompt_ids(prompt)

    def read(self, prompt: str) -> tuple[Tokens, list[str]]:
        ids = self.prompt_ids(prompt)
        return Tokens.of([ids]), self.tokenizer.tokens(ids)

    def shown(self, prompt: str) -> str:
        return prompt

    def generate(self, prompt: str, length: int, n: int = 1) -> list[Generation]:
        """`n` texts that go on from a prompt, each of at most `length` tokens."""
        before, found = self.prompt_ids(prompt), [Generation("", (), 0.0, False)] * n
        ids: list[list[int]] = [[] for _ in range(n)]
        for said in self.said(before, length, n):
            if not said.ended:
                ids[said.sample].append(said.id)
            found[said.sample] = replace(found[said.sample], score=said.score, complete=said.ended)
        if tracing():
            self._show(ids)
        spelled = [self.spelled(before, row) for row in ids]
        tokens = [tuple(self.tokenizer.tokens(row)) for row in ids]
        return [replace(g, text=text, tokens=t) for g, text, t in zip(found, spelled, tokens, strict=True)]

    def stream(self, prompt: str, length: int) -> Iterator[str]:
        """One text, whole characters at a time, as it is written."""
        before = self.prompt_ids(prompt)
        spelling = Spelling(self.tokenizer, before)
        for said in self.said(before, length, 1):
            text = "" if said.ended else spelling.add(said.id)
            if text:
                yield text
        if rest := spelling.end():
            yield rest

    def prompt_ids(self, prompt: str) -> list[int]:
        """A prompt as ids; a text's beginning is what follows <EOS>."""
        encoded = self.tokenizer.encode(prompt)
        strange = [prompt[a:b] for (a, b), id in zip(encoded.offsets, encoded.ids, strict=True) if id == self._unk]
        if strange:
            names = list(dict.fromkeys(strange))
            more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
            raise DataError(
                f"the prompt holds what this model has never read: {', '.join(map(_named, names[:SHOWN]))}{more}; "
                "leave it out, or train on text that has it"
            )
        ids = [self.tokenizer.eos, *encoded.ids] if self.ends else encoded.ids
        if not ids:
            raise DataError(
                "the prompt is empty, and this model has learnt one running text that never begins anew; "
                'give it something to go on from, such as "The"'
            )
        return ids[-LONGEST:]

    @property
    def _unk(self) -> int:
        return self.tokenizer.unk

    def said(self, before: Sequence[int], length: int, n: int = 1) -> Iterator[Said]:
        """The tokens of all samples as they are drawn, all samples side by side."""
        if length < 1 or n < 1:
            raise ConfigError(f"length = {length} and n = {n} must be at least 1")
        texts, scores = {number: list(before) for number in range(n)}, [0.0] * n
        kept = LONGEST if self.reach is None else max(1, self.reach // 2)
        stretch = 0
        while length and texts:
            prompt = torch.tensor([ids[-kept:] for ids in texts.values()])
            room = length if self.reach is None else min(length, max(1, self.reach - prompt.shape[1]))
            for said in self._stretch(list(texts), prompt, room, stretch):
                if said.ended:
                    del texts[said.sample]
                else:
                    texts[said.sample].append(said.id)
                yield replace(said, score=scores[said.sample] + said.score)
                if said.last:
                    scores[said.sample] += said.score
            length, stretch = length - room, stretch + 1

    def _stretch(self, numbers: list[int], prompt: torch.Tensor, room: int, stretch: int) -> Iterator[Said]:
        """What one reading of the prompts gives."""
        seed = self.config.seed + 1_000_003 * stretch  # else each stretch would draw by the same numbers
        rows, config = len(numbers), replace(self.config, beam=1, n_best=1, seed=seed)
        never = [self.tokenizer.pad, self.tokenizer.sos, self.tokenizer.unk]
        strategy = config.strategy(
            self.tokenizer.eos, rules=(banned(*never, *([] if self.ends else [self.tokenizer.eos])),)
        )
        limits = torch.full((rows,), room)
        choices = decode(self.model, nothing(rows), Tokens.full(prompt), strategy, limits, torch.tensor(numbers))
        for choice in choices:
            told = (choice.sources, choice.tokens, choice.scores, choice.ended, ~choice.live)
            yield from (Said(*values) for values in zip(*(tensor.tolist() for tensor in told), strict=True))

    def spelled(self, before: Sequence[int], ids: Sequence[int]) -> str:
        """Ids as the text that goes on from others."""
        spelling = Spelling(self.tokenizer, before)
        return "".join([*(spelling.add(id) for id in ids), spelling.end()])

    def _show(self, answers: Sequence[Sequence[int]]) -> None:
        """Which of all that was read became the answer: a view joins the steps that led to it."""
        with scene(target=[self.tokenizer.tokens(row) for row in answers], sources=torch.arange(len(answers))):
            tap(self.model, "answer", Tokens.of(answers).data, "batch position:target")


def _named(characters: str) -> str:
    return f'"{characters}"' + (f" (U+{ord(characters):04X})" if len(characters) == 1 else "")
