"""BPE-dropout (Provilkov et al. 2020) that obeys a seed: a word is cut in other ways, and its parts are learnt."""

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

REMEMBERED = 50_000
"""words and cuts remembered at most: frequent words come early and again; what comes out does not depend on it"""
PLACES = 1 << 16
"""more than a word has symbols"""


@final
class Dropout:
    """Ids in, ids of the same text out, with each possible merge left out with probability `rate`, again at each step.

    It works from ids, because that is what shards hold, and is a pure function of (ids, seed).

    >>> from regard.text.kinds import TokenizerConfig
    >>> tokenizer = Tokenizer.train(["a lamb", "a lamb"], TokenizerConfig(size=100))
    >>> tokenizer.tokens(Dropout(tokenizer, 1.0)(tokenizer.encode("a lamb").ids, seed=1))
    [' ', 'a', ' ', 'l', 'a', 'm', 'b']
    """

    def __init__(self, tokenizer: Tokenizer, rate: float) -> None:
        if not 0 <= rate <= 1:
            raise ConfigError(f"dropout: expected a share from 0 to 1, got {rate}.")
        model = json.loads(tokenizer.json)["model"]
        if model["type"] != "BPE" or not model["merges"]:
            raise ConfigError("dropout: this tokenizer has no merges to leave out; train one of kind bpe or byte-bpe.")
        self.rate = rate
        self._merges = Merges(tokenizer.vocabulary, [(a, b) for a, b in model["merges"]])
        self._joints = Joints(tokenizer)

    def __call__(self, ids: Sequence[int], seed: int) -> list[int]:
        """Other ids for the same text; the same again for the same seed."""
        whole, steps = [int(i) for i in ids], self._merges.steps
        if self.rate in (0, 1):
            return whole if self.rate == 0 else self._merges.symbols(whole)
        draws, result = Draws(self.rate, seed), list[int]()
        for word in self._joints.words(whole):
            wanted = sum([steps[i] for i in word])
            if draws.kept >= wanted:  # nothing is dropped until the word is as it was
                draws.kept -= wanted
                result.extend(word)
            else:
                result.extend(self._cut(word, draws))
        return result

    def _cut(self, word: tuple[int, ...], draws: Draws) -> tuple[int, ...]:
        cut = self._merges.whole(word)
        while cut.merges:
            k = draws.dropped()
            if k >= len(cut.merges):
                break
            cut = cut.nexts[k] or self._merges.step(cut, k)
        return cut.ids


@final
class Draws:
    """How many merges are dropped before one is made, step after step: k with probability (1 - rate) * rate ** k.

    Steps without a dropped merge come in runs, and one draw gives the length of a run, so most words need none.

    >>> draws = Draws(0.5, seed=1)
    >>> [draws.dropped() for _ in range(12)]
    [3, 0, 0, 1, 2, 1, 0, 0, 3, 3, 1, 1]
    """

    def __init__(self, rate: float, seed: int) -> None:
        self._random = Random(seed).random
        self._run, self._drop = 1 / log1p(-rate), 1 / log(rate)
        self.kept = self._count(self._run)
        """steps from here on at which nothing is dropped"""

    def dropped(self) -> int:
        if self.kept:
            self.kept -= 1
            return 0
        self.kept = self._count(self._run)
        return 1 + self._count(self._drop)

    def _count(self, scale: float) -> int:
        return int(log(1.0 - self._random()) * scale)


@dataclass(frozen=True, slots=True)
class Cut:
    """A word in symbols, the merges that are possible in it, best first, and what each of them leads to.

    >>> Cut((4, 5), [0], [None]).ids
    (4, 5)
    """

    ids: tuple[int, ...]
    merges: list[int]
    """rank * PLACES + place of the left symbol: plain numbers sort fast and cost the garbage collector nothing"""
    nexts: list[Cut | None]
    """a cut for each merge, once somebody has asked for it"""


@final
class Merges:
    """The merges of a vocabulary, by rank; cuts are remembered, so that a word met again costs only its draws.

    >>> merges = Merges(["a", "b", "ab"], [("a", "b")])
    >>> merges.step(merges.whole((2,)), 0).ids
    (2,)
    """

    def __init__(self, vocabulary: Sequence[str], pairs: Sequence[tuple[str, str]]) -> None:
        number = {token: i for i, token in enumerate(vocabulary)}
        self._size = len(vocabulary)
        self._rank: dict[int, int] = {}
        self._made: list[int] = []
        # What no merge makes has no parts: characters, <UNK>, <EOS>.
        self._parts: list[tuple[int, ...]] = [(i,) for i in range(len(vocabulary))]
        for rank, (left, right) in enumerate(pairs):
            a, b, both = number[left], number[right], number[left + right]
            self._rank.setdefault(a * self._size + b, rank)
            self._made.append(both)
            self._parts[both] = self._parts[a] + self._parts[b]
        self.steps = [len(parts) - 1 for parts in self._parts]
        """merges that it takes to make each token"""
        self._cuts: dict[tuple[int, ...], Cut] = {}
        self._words: dict[tuple[int, ...], Cut] = {}

    def symbols(self, ids: Sequence[int]) -> list[int]:
        """The same text in characters, or bytes."""
        return [part for i in ids for part in self._parts[i]]

    def whole(self, word: tuple[int, ...]) -> Cut:
        """A word of which nothing is merged."""
        found = self._words.get(word)
        if found is None:
            found = self._cut(tuple(self.symbols(word)))
            if len(self._words) < REMEMBERED:
                self._words[word] = found
        return found

    def step(self, cut: Cut, k: int) -> Cut:
        """The cut after the merge number k."""
        rank, place = divmod(cut.merges[k], PLACES)
        after = self._cut((*cut.ids[:place], self._made[rank], *cut.ids[place + 2 :]))
        if len(self._cuts) < REMEMBERED:  # else the chain below a remembered cut would grow without end
            cut.nexts[k] = after
        return after

    def _cut(self, ids: tuple[int, ...]) -> Cut:
        found = self._cuts.get(ids)
        if found is None:
            rank, size = self._rank.get, self._size
            ranks = [rank(left * size + right) for left, right in pairwise(ids)]
            merges = sorted([r * PLACES + place for place, r in enumerate(ranks) if r is not None])
            found = Cut(ids, merges, [None] * len(merges))
            if len(self._cuts) < REMEMBERED:
                self._cuts[ids] = found
        return found


@final
class Joints:
    """Where words begin among ids. In doubt one begins: parts of a word that are cut apart are still its parts.

    >>> from regard.text.kinds import TokenizerConfig
    >>> tokenizer = Tokenizer.train(["no lamb 12!"], TokenizerConfig(size=100))
    >>> words = Joints(tokenizer).words(tokenizer.encode("no lamb 12!").ids)
    >>> ["".join(tokenizer.tokens(word)) for word in words]
    [' no', ' lamb', ' 12', '!']
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        inner = tokenizers.Tokenizer.from_str(tokenizer.json)
        cutter, texts = inner.pre_tokenizer, tokenizer.vocabulary
        if isinstance(inner.decoder, decoders.ByteLevel):
            texts = [inner.decoder.decode([token]) for token in texts]
        self._longest = len(cutter.pre_tokenize_str("a" * 2000)[0][0])
        self._length = [len(text.strip()) for text in texts]
        self._spaced = [text[:1] == " " for text in texts]
        self._tail = [_neighbours(text, cutter) for text in texts]
        self._head = [0 if spaced else sort for spaced, sort in zip(self._spaced, self._tail)]

    def words(self, ids: Sequence[int]) -> list[tuple[int, ...]]:
        head, tail, doubtful = self._head, self._tail, self._doubtful(ids)
        bounds = [k for k, (i, j) in enumerate(pairwise(ids), 1) if not tail[i] & head[j] or k in doubtful]
        return [tuple(ids[a:b]) for a, b in pairwise((0, *bounds, len(ids)))]

    def _doubtful(self, ids: Sequence[int]) -> set[int]:
        """Places in stretches too long to be one pre-token: they were cut somewhere, and ids do not say where."""
        length, longest, places = self._length, self._longest, set[int]()
        if sum([length[i] for i in ids]) <= longest:
            return places
        spaces = [k for k, i in enumerate(ids) if self._spaced[i]]
        for a, b in pairwise((0, *spaces, len(ids))):
            if sum([length[i] for i in ids[a:b]]) > longest:
                places.update(range(a + 1, b))
        return places


def _neighbours(text: str, cutter: pre_tokenizers.PreTokenizer) -> int:
    """Which of letters (1), digits (2) and signs (4) go into one pre-token with this text; 0 if that is not sure."""
    if text == " ":
        return 7
    if "\ufffd" in text:  # a part of a character
        return 0
    before = text[:1] != " "
    sorts = [
        sort for sort, c in ((1, "a"), (2, "0"), (4, "!")) if len(cutter.pre_tokenize_str(c * before + text + c)) == 1
    ]
    return sorts[0] if len(sorts) == 1 else 0
