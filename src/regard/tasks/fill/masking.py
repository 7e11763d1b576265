"""Masking of Devlin et al. 2019, section 3.1: which tokens of a row are predicted, and what is read in their place.

Of the predicted tokens 80 % become [MASK], 10 % a random token, and 10 % stay. All of it is drawn from one seed per
row, so that it is a pure function of seed, epoch and row.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from regard.data.splitmix import splitmix64_uniform
from regard.tasks.fill.config import FillConfig
from regard.text import Tokenizer
from regard.text.token_rows import tokenizer_strings


@dataclass(frozen=True, eq=False)
class MaskedRow:
    """A row of ids as it is read, and which of its positions are predicted."""

    ids: np.ndarray
    masked: np.ndarray
    """boolean, True where the original token is predicted"""


@dataclass(frozen=True, eq=False)
class Masking:
    """Draws the masks of rows.

    >>> masking = Masking(mask=4, words=np.arange(5, 30), share=0.5)
    >>> row = masking.apply(np.arange(10, 18), seed=1)
    >>> row.ids.tolist(), row.masked.astype(int).tolist()
    ([4, 11, 12, 4, 4, 15, 16, 4], [1, 0, 0, 1, 1, 0, 0, 1])
    """

    mask: int
    """id of [MASK]"""
    words: np.ndarray
    """ids that random tokens are drawn from: all but the special ones"""
    share: float = 0.15
    mask_token_share: float = 0.8
    random_token_share: float = 0.1
    starts_word: np.ndarray | None = None
    """(V,) whether a token begins a word: whole words are masked; None: single tokens are"""

    @classmethod
    def build(cls, tokenizer: Tokenizer, task: FillConfig) -> Masking:
        """The masking of a task, with the vocabulary of a tokenizer that has [MASK]."""
        assert tokenizer.mask is not None
        special = {tokenizer.pad, tokenizer.unk, tokenizer.sos, tokenizer.eos, tokenizer.mask}
        words = np.array([i for i in range(tokenizer.size) if i not in special])
        starts = word_starts(tokenizer) if task.whole_words else None
        return cls(tokenizer.mask, words, task.mask_share, task.mask_token_share, task.random_token_share, starts)

    def apply(self, ids: np.ndarray, seed: int | np.integer) -> MaskedRow:
        """A row of ids with masks; at least one position is predicted."""
        order, fate, other = splitmix64_uniform(int(seed), 3 * len(ids)).reshape(3, -1)
        masked = self.choose(ids, order)
        words = self.words[(other * len(self.words)).astype(np.int64)]
        change = self.mask_token_share + self.random_token_share
        read = np.where(masked & (fate < change), words, ids)
        return MaskedRow(np.where(masked & (fate < self.mask_token_share), self.mask, read), masked)

    def choose(self, ids: np.ndarray, order: np.ndarray) -> np.ndarray:
        """Which positions are predicted: those that come first in a random order, up to the share."""
        count = max(1, round(self.share * len(ids)))
        masked = np.zeros(len(ids), bool)
        if self.starts_word is None:
            masked[np.argsort(order, kind="stable")[:count]] = True
            return masked
        word = np.cumsum(self.starts_word[ids])
        word -= word[0]
        sizes = np.bincount(word)
        for number in np.argsort(order[: len(sizes)], kind="stable").tolist():
            if sizes[number] <= count:  # a longer word would be more than the share
                masked |= word == number
                count -= sizes[number]
            if not count:
                break
        return masked if masked.any() else word == word[np.argmin(order)]


def word_starts(tokenizer: Tokenizer) -> np.ndarray:
    """(V,) whether each token begins a word; without such a mark, as of characters, every token does.

    >>> from regard.text import TokenizerConfig
    >>> tokenizer = Tokenizer.train(["lamb lambs"] * 2, TokenizerConfig(kind="wordpiece", vocab_size=18))
    >>> tokenizer.tokens(np.flatnonzero(~word_starts(tokenizer)).tolist())
    ['##a', '##b', '##m', '##s', '##mb']
    """
    strings = tokenizer_strings(tokenizer).strings
    special = {tokenizer.pad, tokenizer.unk, tokenizer.sos, tokenizer.eos, tokenizer.mask}
    if not any(string.startswith(" ") for string in strings):
        return np.ones(len(strings), bool)
    return np.array([i in special or string.startswith(" ") for i, string in enumerate(strings)])
