"""BPE-dropout (Provilkov et al. 2020), deterministic for a seed: words are segmented in varying ways.

The `dropout` of the tokenizers library takes no seed, and it works on text, not on the ids that shards hold.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import log, log1p
from random import Random
from typing import final

import tokenizers
from tokenizers import decoders, pre_tokenizers

from regard.errors import ConfigError
from regard.text.tokenizer import Tokenizer

CACHE_SIZE = 50_000
"""most words and segmentations in the caches: frequent words come early and again; results do not depend on it"""
PLACES = 1 << 16
"""above the number of symbols of a word"""


@final
class BPEDropout:
    """Re-segments ids, skipping each possible merge with probability `rate` at each step.

    A pure function of (ids, seed); it works on ids because that is what shards hold.

    >>> from regard.text import TokenizerConfig
    >>> tokenizer = Tokenizer.train(["a lamb", "a lamb"], TokenizerConfig(vocab_size=100))
    >>> tokenizer.tokens(BPEDropout(tokenizer, 1.0)(tokenizer.encode("a lamb").ids, seed=1))
    [' ', 'a', ' ', 'l', 'a', 'm', 'b']
    """

    def __init__(self, tokenizer: Tokenizer, rate: float) -> None:
        if not 0 <= rate <= 1:
            raise ConfigError(f"dropout = {rate} must be from 0 to 1")
        content = json.loads(tokenizer.json)
        model = content["model"]
        if model["type"] != "BPE" or not model["merges"]:
            raise ConfigError("dropout: this tokenizer has no merges to skip; train one of kind bpe or byte-bpe")
        if content["pre_tokenizer"] is None:
            raise ConfigError(
                "dropout: this tokenizer, as Llama's, merges whole texts and knows no words; set dropout = 0"
            )
        self.rate = rate
        self._merges = MergeTable(tokenizer.vocabulary, [(a, b) for a, b in model["merges"]])
        self._boundaries = WordBoundaries(tokenizer)

    def __call__(self, ids: Sequence[int], seed: int) -> list[int]:
        """Ids of the same text in another segmentation, which depends on the seed alone."""
        whole, steps = [int(i) for i in ids], self._merges.steps
        if self.rate in (0, 1):
            return whole if self.rate == 0 else self._merges.symbols(whole)
        draws, result = SkipDraws(self.rate, seed), list[int]()
        for word in self._boundaries.words(whole):
            wanted = sum([steps[i] for i in word])
            if draws.kept >= wanted:  # no merge is skipped within this word
                draws.kept -= wanted
                result.extend(word)
            else:
                result.extend(self._resegment(word, draws))
        return result

    def _resegment(self, word: tuple[int, ...], draws: SkipDraws) -> tuple[int, ...]:
        found = self._merges.split_word(word)
        while found.merges:
            k = draws.next_skips()
            if k >= len(found.merges):
                break
            found = found.nexts[k] or self._merges.apply(found, k)
        return found.ids


@final
class SkipDraws:
    """Numbers of merges skipped before one is applied: k with probability (1 - rate) * rate ** k.

    Steps without a skipped merge come in runs, and one draw gives the length of a run, so most words need none.
    """

    def __init__(self, rate: float, seed: int) -> None:
        self._random = Random(seed).random
        self._run, self._drop = 1 / log1p(-rate), 1 / log(rate)
        self.kept = self._count(self._run)
        """coming steps at which no merge is skipped"""

    def next_skips(self) -> int:
        if self.kept:
            self.kept -= 1
            return 0
        self.kept = self._count(self._run)
        return 1 + self._count(self._drop)

    def _count(self, scale: float) -> int:
        return int(log(1.0 - self._random()) * scale)


@dataclass(frozen=True, slots=True)
class Segmentation:
    """A word as symbols, its possible merges, best first, and the segmentation after each of them."""

    ids: tuple[int, ...]
    merges: list[int]
    """rank * PLACES + place of the left symbol: plain numbers sort fast and cost the garbage collector nothing"""
    nexts: list[Segmentation | None]
    """the segmentation after each merge, computed on demand"""


@final
class MergeTable:
    """The merges of a vocabulary, by rank; segmentations are cached, so that a repeated word costs only its draws."""

    def __init__(self, vocabulary: Sequence[str], pairs: Sequence[tuple[str, str]]) -> None:
        number = {token: i for i, token in enumerate(vocabulary)}
        self._size = len(vocabulary)
        self._rank: dict[int, int] = {}
        self._made: list[int] = []
        # Tokens that no merge makes have no parts: characters, <UNK>, <EOS>.
        self._parts: list[tuple[int, ...]] = [(i,) for i in range(len(vocabulary))]
        for rank, (left, right) in enumerate(pairs):
            a, b, both = number[left], number[right], number[left + right]
            self._rank.setdefault(a * self._size + b, rank)
            self._made.append(both)
            self._parts[both] = self._parts[a] + self._parts[b]
        self.steps = [len(parts) - 1 for parts in self._parts]
        """number of merges that make each token"""
        self._segmentations: dict[tuple[int, ...], Segmentation] = {}
        self._words: dict[tuple[int, ...], Segmentation] = {}

    def symbols(self, ids: Sequence[int]) -> list[int]:
        """The same text as characters, or bytes."""
        return [part for i in ids for part in self._parts[i]]

    def split_word(self, word: tuple[int, ...]) -> Segmentation:
        """A word without any merge."""
        found = self._words.get(word)
        if found is None:
            found = self._segment(tuple(self.symbols(word)))
            if len(self._words) < CACHE_SIZE:
                self._words[word] = found
        return found

    def apply(self, before: Segmentation, k: int) -> Segmentation:
        """The segmentation after merge number k."""
        rank, place = divmod(before.merges[k], PLACES)
        after = self._segment((*before.ids[:place], self._made[rank], *before.ids[place + 2 :]))
        if len(self._segmentations) < CACHE_SIZE:  # else the chain below a cached segmentation would grow without limit
            before.nexts[k] = after
        return after

    def _segment(self, ids: tuple[int, ...]) -> Segmentation:
        found = self._segmentations.get(ids)
        if found is None:
            rank, size = self._rank.get, self._size
            ranks = [rank(left * size + right) for left, right in pairwise(ids)]
            merges = sorted([r * PLACES + place for place, r in enumerate(ranks) if r is not None])
            found = Segmentation(ids, merges, [None] * len(merges))
            if len(self._segmentations) < CACHE_SIZE:
                self._segmentations[ids] = found
        return found


@final
class WordBoundaries:
    """Splits ids into words. In doubt a word begins: two parts of a word, segmented apart, are still its parts."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        inner = tokenizers.Tokenizer.from_str(tokenizer.json)
        cutter, texts = inner.pre_tokenizer, tokenizer.vocabulary
        if isinstance(inner.decoder, decoders.ByteLevel):
            texts = [inner.decoder.decode([token]) for token in texts]
        self._longest = len(cutter.pre_tokenize_str("a" * 2000)[0][0])
        self._length = [len(text.strip()) for text in texts]
        self._spaced = [text[:1] == " " for text in texts]
        self._tail = [_joins(text, cutter) for text in texts]
        self._head = [0 if spaced else sort for spaced, sort in zip(self._spaced, self._tail)]

    def words(self, ids: Sequence[int]) -> list[tuple[int, ...]]:
        head, tail, doubtful = self._head, self._tail, self._doubtful(ids)
        bounds = [k for k, (i, j) in enumerate(pairwise(ids), 1) if not tail[i] & head[j] or k in doubtful]
        return [tuple(ids[a:b]) for a, b in pairwise((0, *bounds, len(ids)))]

    def _doubtful(self, ids: Sequence[int]) -> set[int]:
        """Places in runs too long for one pre-token: they were split somewhere, and ids do not say where."""
        length, longest, places = self._length, self._longest, set[int]()
        if sum([length[i] for i in ids]) <= longest:
            return places
        spaces = [k for k, i in enumerate(ids) if self._spaced[i]]
        for a, b in pairwise((0, *spaces, len(ids))):
            if sum([length[i] for i in ids[a:b]]) > longest:
                places.update(range(a + 1, b))
        return places


def _joins(text: str, cutter: pre_tokenizers.PreTokenizer) -> int:
    """Which of letters (1), digits (2) and signs (4) join this text in one pre-token; 0 if that is not certain."""
    if text == " ":
        return 7
    if "\ufffd" in text:  # a part of a character
        return 0
    before = text[:1] != " "
    sorts = [
        sort for sort, c in ((1, "a"), (2, "0"), (4, "!")) if len(cutter.pre_tokenize_str(c * before + text + c)) == 1
    ]
    return sorts[0] if len(sorts) == 1 else 0
