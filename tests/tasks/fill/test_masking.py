"""Masking: shares, whole words, and draws that depend on the seed alone."""

from __future__ import annotations

import numpy as np
import pytest

from regard.tasks.fill.config import FillConfig
from regard.tasks.fill.masking import Masking, word_starts
from regard.text import Tokenizer, TokenizerConfig

TEXT = ["the lambs are sleeping near the walls"] * 3
WORDPIECE = Tokenizer.train(TEXT, TokenizerConfig(kind="wordpiece", vocab_size=42)).with_mask()
LONG = np.random.default_rng(1).integers(5, 900, 20_000)


def test_shares_are_those_of_the_paper():
    row = Masking(4, np.arange(5, 900)).apply(LONG, seed=3)
    assert row.masked.sum() == round(0.15 * len(LONG))
    before, after = LONG[row.masked], row.ids[row.masked]
    assert np.array_equal(LONG[~row.masked], row.ids[~row.masked])
    is_mask, same = after == 4, after == before
    assert is_mask.mean() == pytest.approx(0.8, abs=0.02)
    assert same.mean() == pytest.approx(0.1, abs=0.02)
    others = after[~is_mask & ~same]
    assert len(others) / len(after) == pytest.approx(0.1, abs=0.02)
    assert others.min() >= 5 and len(set(others.tolist())) > 150  # drawn from the whole vocabulary


def test_masks_depend_on_the_seed_alone():
    masking = Masking(4, np.arange(5, 900))
    first, again, other = (masking.apply(LONG, seed) for seed in (7, 7, 8))
    assert np.array_equal(first.ids, again.ids) and np.array_equal(first.masked, again.masked)
    assert not np.array_equal(first.masked, other.masked)


@pytest.mark.parametrize("length", [1, 2, 5])
def test_a_short_row_has_at_least_one_mask(length):
    for whole in (None, np.ones(900, bool)):
        masking = Masking(4, np.arange(5, 900), starts_word=whole)
        assert all(masking.apply(LONG[:length], seed).masked.sum() == 1 for seed in range(20))


def test_whole_words_are_masked_as_wholes_and_keep_to_the_share():
    ids = np.array(WORDPIECE.encode(" ".join(TEXT)).ids * 4)
    masking = Masking.build(WORDPIECE, FillConfig(whole_words=True))
    word = np.cumsum(masking.starts_word[ids])
    assert len(set(word.tolist())) < len(ids)  # some words have several pieces
    counts = []
    for seed in range(50):
        masked = masking.apply(ids, seed).masked
        assert all(len(set(masked[word == number].tolist())) == 1 for number in set(word.tolist()))
        counts.append(masked.sum())
    assert max(counts) <= round(0.15 * len(ids)) and np.mean(counts) > 0.12 * len(ids)


def test_a_text_that_is_one_long_word_is_masked_as_a_whole():
    masking = Masking(4, np.arange(5, 900), starts_word=np.arange(900) == 7)
    assert masking.apply(np.array([7, 8, 9, 10]), seed=1).masked.all()


def test_beginnings_of_words_are_known_for_every_kind_of_tokenizer():
    for kind in ("wordpiece", "bpe", "word", "char", "byte-bpe", "unigram"):
        size = 400 if kind == "byte-bpe" else 60
        tokenizer = Tokenizer.train(TEXT, TokenizerConfig(kind=kind, vocab_size=size)).with_mask()
        ids = tokenizer.encode("the lambs are near").ids
        starts = int(word_starts(tokenizer)[ids].sum())
        assert starts == {"char": 3, "byte-bpe": 3}.get(kind, 4)  # these two have no space before the first word


def test_random_tokens_are_no_special_ones():
    masking = Masking.build(WORDPIECE, FillConfig(mask_token_share=0.0, random_token_share=1.0))
    ids = np.array(WORDPIECE.encode(" ".join(TEXT)).ids * 20)
    row = masking.apply(ids, seed=1)
    assert not {0, 1, 2, 3, 4} & set(row.ids[row.masked].tolist())
