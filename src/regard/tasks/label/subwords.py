"""Subword input of a tagger: each word as the pieces that a tokenizer cuts it into."""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import accumulate
from typing import Any

from regard.errors import ConfigError
from regard.sequence import Tokens
from regard.spaces import Words
from regard.tasks.label.config import LabelConfig, NoCharEncoder
from regard.text import Tokenizer, TokenizerConfig
from regard.text.token_rows import TokenStrings, tokenizer_strings

FILE = "tokenizer.json"
MAX_PIECES = 64
"""Pieces of a word that are read: of a longer one, such as an address, the first."""

CACHED = 1 << 16
"""Words whose pieces are kept."""


@dataclass(frozen=True)
class SubwordEncoder:
    """Cuts words into pieces.

    >>> tokenizer = Tokenizer.train(["the lamb"] * 3 + ["lambs"], TokenizerConfig("wordpiece", vocab_size=60))
    >>> encoder = SubwordEncoder(tokenizer)
    >>> encoder.tokens(["the", "lambs"])
    ['[CLS]', 'the', 'lamb', '##s', '[SEP]']
    """

    tokenizer: Tokenizer

    @cached_property
    def separator(self) -> str:
        """What is put in front of a word: a space, if the first piece of a word holds the one before it (byte-bpe)."""
        decoder = json.loads(self.tokenizer.json)["decoder"]
        return " " if decoder and decoder["type"] == "ByteLevel" else ""

    @property
    def special_ids(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Special ids in front of a sentence and at its end: [CLS] and [SEP], if the tokenizer has them."""
        tokenizer = self.tokenizer
        return ((tokenizer.sos,), (tokenizer.eos,)) if tokenizer.has_cls else ((), ())

    @property
    def special(self) -> int:
        """How many these are."""
        return sum(map(len, self.special_ids))

    def pieces(self, word: str) -> list[int]:
        """The ids of a word's pieces; a word without one is unknown."""
        return self._cached_pieces(word)

    @cached_property
    def _cached_pieces(self) -> Callable[[str], list[int]]:
        def cut(word: str) -> list[int]:
            return self.tokenizer.encode(self.separator + word).ids[:MAX_PIECES] or [self.tokenizer.unk]

        return lru_cache(CACHED)(cut)

    def encode(self, word: str) -> list[int]:
        """The pieces of a word as they are stored and batched: counted from 1, since padding is 0."""
        return [number + 1 for number in self.pieces(word)]

    def fitting(self, words: Sequence[str], most: int) -> int:
        """How many words have at most `most` pieces together; at least one."""
        return max(1, self._count_fitting(words, most))

    def windows(self, words: Sequence[str], size: int, margin: int) -> Iterator[tuple[int, int, int, int]]:
        """Overlapping windows of words with at most `size` pieces: start and end, first and last + 1 that is used.

        Up to `margin` pieces on both sides of what is used are context; a sentence that fits is one window.
        """
        first, count = 0, len(words)
        while first < count:
            start = first - self._count_fitting(words[:first][::-1], margin)
            if self._count_fitting(words[start : first + 1], size) <= first - start:
                start = first  # a long word leaves no room for context
            end = start + max(first - start + 1, self._count_fitting(words[start:], size))
            after = self._count_fitting(words[first + 1 : end][::-1], margin)
            last = count if end >= count else end - after
            yield start, end, first, last
            first = last

    def _count_fitting(self, words: Sequence[str], most: int) -> int:
        return bisect_right(list(accumulate(len(self.pieces(word)) for word in words)), most)

    def positions(self, words: Sequence[str]) -> int:
        """Positions that a sentence takes, special tokens included."""
        return sum(len(self.pieces(word)) for word in words) + self.special

    def tokens(self, words: Sequence[str]) -> list[str]:
        """The pieces of a sentence as strings, special tokens included."""
        before, after = self.special_ids
        return self.tokenizer.tokens([*before, *(piece for word in words for piece in self.pieces(word)), *after])

    def collate(self, words: Sequence[str]) -> tuple[Tokens, list[int | None]]:
        """One sentence as an encoder reads it, and the number of the word at each position; None at special tokens."""
        before, after = self.special_ids
        rows = [self.pieces(word) for word in words]
        numbers = [number for number, row in enumerate(rows) for _ in row]
        source = Tokens.pad([[piece for row in rows for piece in row]], before, after)
        return source, [*[None] * len(before), *numbers, *[None] * len(after)]

    def space(self) -> Words:
        """Input space of the encoder."""
        return Words(self.tokenizer.size)

    def token_strings(self) -> TokenStrings:
        """The vocabulary in the form in which vocabularies are compared."""
        return tokenizer_strings(self.tokenizer)


def check_tokens(task: LabelConfig, data: Any, text: TokenizerConfig) -> None:
    """Refuse settings of words where subwords are read, and the other way round."""
    if task.tokens == "words":
        if text != TokenizerConfig():
            raise ConfigError('[text] sets up a tokenizer, and task.tokens = "words" reads none; use "subwords"')
        return
    if data.unit == "character" or data.label_type == "text":
        raise ConfigError('task.tokens = "subwords" cuts words into pieces, and the tokens here are characters')
    if not isinstance(task.char_encoder, NoCharEncoder):
        raise ConfigError(
            f'task.char_encoder.kind = "{task.char_encoder.kind}": subwords have no character encoder; use "none", or '
            'task.tokens = "words"'
        )
    if task.max_length < MAX_PIECES:
        raise ConfigError(
            f"task.max_length = {task.max_length}: a word may have {MAX_PIECES} pieces; use at least so many"
        )
    if text.dropout:
        raise ConfigError(f"text.dropout = {text.dropout}: words are tokenized once, in preparation; set it to 0")
