from __future__ import annotations

import json
import math
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.errors import ConfigError
from regard.text import BPEDropout, Tokenizer, TokenizerConfig, bpe_dropout

LINES = [
    "the lambs weren't there, there's the lamb...   unrelated   related",
    "l'homme qu'on a vu aujourd'hui: 1234 5678 12",
    "می‌گویند که از تو حرکت از خدا برکت",
    "a\tb\n\nc  '' 'quoted' d''e !!! ???",
] * 4
TOKENIZERS = {
    kind: Tokenizer.train(LINES, TokenizerConfig(kind=kind, vocab_size=500, max_pretoken=9))
    for kind in ("bpe", "byte-bpe")
}
DROPS = {
    kind: [BPEDropout(tokenizer, rate) for rate in (0.0, 0.1, 0.5, 0.9, 1.0)] for kind, tokenizer in TOKENIZERS.items()
}
known_text = st.lists(st.sampled_from([*set("".join(LINES)), *LINES[:4], "lamb", "there", "Ж", "猫"]), max_size=20)


def both(test: object) -> object:
    return pytest.mark.parametrize("kind", ["bpe", "byte-bpe"])(test)


@both
@settings(max_examples=200, deadline=None)
@given(parts=known_text, seed=st.integers(0, 2**63))
def test_the_text_stays_the_same_at_any_rate(kind: str, parts: list[str], seed: int) -> None:
    tokenizer, text = TOKENIZERS[kind], "".join(parts)
    ids = tokenizer.encode(text).ids
    for drop in DROPS[kind]:
        assert tokenizer.decode(drop(ids, seed)) == tokenizer.decode(ids)


@both
@settings(max_examples=300, deadline=None)
@given(parts=known_text)
def test_merging_again_without_dropout_gives_the_same_ids(kind: str, parts: list[str]) -> None:
    tokenizer = TOKENIZERS[kind]
    ids = tokenizer.encode("".join(parts)).ids
    drop = DROPS[kind][0]
    assert drop.rate == 0
    assert drop(ids, seed=1) == ids
    words = drop._boundaries.words(ids)
    assert [i for word in words for i in word] == ids
    for word in words:  # every word walks through its merges, best first
        pieces = drop._merges.split_word(word)
        while pieces.merges:
            pieces = drop._merges.apply(pieces, 0)
        assert pieces.ids == word


@both
def test_rate_one_gives_characters_or_bytes(kind: str) -> None:
    tokenizer = TOKENIZERS[kind]
    ids = BPEDropout(tokenizer, 1.0)(tokenizer.encode("the lamb می").ids, seed=5)
    length = len(" the lamb می") if kind == "bpe" else len("the lamb می".encode())
    assert all(len(tokenizer.vocabulary[id]) == 1 for id in ids)
    assert len(ids) == length


@both
def test_the_seed_decides(kind: str) -> None:
    tokenizer = TOKENIZERS[kind]
    ids = tokenizer.encode(LINES[0]).ids
    warm = BPEDropout(tokenizer, 0.3)
    for seed in range(50):
        warm(ids, seed)
    assert [warm(ids, seed) for seed in range(20)] == [BPEDropout(tokenizer, 0.3)(ids, seed) for seed in range(20)]
    assert len({tuple(warm(ids, seed)) for seed in range(20)}) > 15


def test_unknown_and_special_tokens_stay() -> None:
    tokenizer = TOKENIZERS["bpe"]
    ids = [tokenizer.sos, *tokenizer.encode("the Ж lamb").ids, tokenizer.eos, tokenizer.pad]
    for seed in range(20):
        pieces = BPEDropout(tokenizer, 0.7)(ids, seed)
        assert pieces[0] == tokenizer.sos
        assert pieces[-2:] == [tokenizer.eos, tokenizer.pad]
        assert pieces.count(tokenizer.unk) == 1


def test_the_size_of_the_cache_does_not_change_results(monkeypatch: pytest.MonkeyPatch) -> None:
    tokenizer = TOKENIZERS["bpe"]
    ids = tokenizer.encode(LINES[0]).ids
    expected = [BPEDropout(tokenizer, 0.4)(ids, seed) for seed in range(30)]
    monkeypatch.setattr(bpe_dropout, "CACHE_SIZE", 3)
    forgetful = BPEDropout(tokenizer, 0.4)
    assert [forgetful(ids, seed) for seed in range(30)] == expected
    assert len(forgetful._merges._segmentations) == 3


def test_segmentations_are_as_frequent_as_skipping_each_merge_by_itself_makes_them() -> None:
    # "ab" twice, "abab" once: merges (a, b) then (ab, ab). From a b a b two merges are possible, then one, then one.
    tokenizer = Tokenizer.train(["xabab"] * 2 + ["ab"] * 3, TokenizerConfig(vocab_size=12, normalization="none"))
    merges = bpe_dropout.MergeTable(["a", "b", "ab", "abab"], [("a", "b"), ("ab", "ab")])
    drop = BPEDropout(tokenizer, 0.3)
    drop._merges = merges
    n, p = 20_000, 0.3
    draws = [drop._resegment((3,), bpe_dropout.SkipDraws(p, seed)) for seed in range(n)]
    share = {pieces: times / n for pieces, times in Counter(draws).items()}
    first, second = 1 - p, (1 - p) * p  # the left or the right pair is merged first
    expected = {
        (0, 1, 0, 1): p * p,
        (2, 0, 1): first * p,
        (0, 1, 2): second * p,
        (2, 2): (first + second) * (1 - p) * p,
        (3,): (first + second) * (1 - p) ** 2,
    }
    assert set(share) == set(expected)
    for pieces, chance in expected.items():
        assert share[pieces] == pytest.approx(chance, abs=5 * math.sqrt(chance / n))


@pytest.mark.parametrize("kind", ["char", "word", "unigram"])
def test_a_tokenizer_without_merges_is_refused(kind: str) -> None:
    tokenizer = Tokenizer.train(LINES, TokenizerConfig(kind=kind, vocab_size=500))  # type: ignore[arg-type]
    with pytest.raises(ConfigError) as error:
        BPEDropout(tokenizer, 0.1)
    assert str(error.value) == ("dropout: this tokenizer has no merges to skip; train one of kind bpe or byte-bpe")


def test_a_tokenizer_that_merges_whole_texts_is_refused() -> None:
    content = json.loads(TOKENIZERS["bpe"].json) | {"pre_tokenizer": None}
    with pytest.raises(ConfigError) as error:
        BPEDropout(Tokenizer(json.dumps(content)), 0.1)
    assert str(error.value) == (
        "dropout: this tokenizer, as Llama's, merges whole texts and knows no words; set dropout = 0"
    )


def test_a_rate_outside_zero_and_one_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"^dropout = -0.1 must be from 0 to 1$"):
        BPEDropout(TOKENIZERS["bpe"], -0.1)


def test_words_are_found_in_ids():
    tokenizer = Tokenizer.train(["no lamb 12!"], TokenizerConfig(vocab_size=100))
    words = bpe_dropout.WordBoundaries(tokenizer).words(tokenizer.encode("no lamb 12!").ids)
    assert ["".join(tokenizer.tokens(word)) for word in words] == [" no", " lamb", " 12", "!"]
