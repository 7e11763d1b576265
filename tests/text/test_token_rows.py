"""Rows of another vocabulary: tokens of every kind of tokenizer are matched by what they stand for."""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_args

import pytest
import torch
from tokenizers import decoders

from regard.text import Tokenizer, TokenizerConfig
from regard.text.token_rows import TokenStrings, map_rows, tokenizer_strings
from regard.text.tokenizer_training import TokenizerKind

LINES = ["the cats like singing", "the dogs like a song", "ça va, où es-tu ?"] * 4
KINDS = get_args(TokenizerKind)


def make(kind: Any, lines: list[str] = LINES, size: int = 330, **settings: Any) -> Tokenizer:
    return Tokenizer.train(lines, TokenizerConfig(kind=kind, vocab_size=size, **settings))


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_vocabulary_is_copied_row_by_row(kind: str) -> None:
    tokens = tokenizer_strings(make(kind))
    assert len(set(tokens.strings)) == len(tokens.strings)
    weight, wanted = torch.randn(len(tokens.strings), 3), torch.zeros(len(tokens.strings), 3)
    counts = map_rows(weight, tokens, wanted, tokens)
    assert (counts.copied, counts.from_pieces, counts.fresh) == (len(weight), 0, 0)
    assert torch.equal(wanted, weight)


@pytest.mark.parametrize("kind", ["char", "bpe", "byte-bpe", "unigram"])
@pytest.mark.parametrize("other", KINDS)
def test_a_word_is_found_as_a_token_or_cut_into_pieces_that_spell_it(kind: str, other: str) -> None:
    source, target = make(kind), make(other, [*LINES, "cats sing"], size=400)
    ours, theirs = tokenizer_strings(source), tokenizer_strings(target)
    known = set("".join([" ", *LINES]))
    for token in theirs.strings[4:]:
        pieces = [ours.strings.index(token)] if token in ours.strings else ours.segment(token)
        found = [source.vocabulary[i] for i in pieces]
        spelled = decoders.ByteLevel().decode(found) if kind == "byte-bpe" else "".join(found)
        assert spelled == token or not set(token) <= known, (token, spelled)
        assert set(spelled) <= {*token, "\N{REPLACEMENT CHARACTER}"} or "\0" in token, (token, spelled)


def test_words_without_pieces_keep_their_initial_rows() -> None:
    source, target = make("word"), make("word", [*LINES, "zebras yawn"])
    weight, wanted = torch.ones(source.size, 2), torch.full((target.size, 2), 7.0)
    counts = map_rows(weight, tokenizer_strings(source), wanted, tokenizer_strings(target))
    assert counts.fresh == 2
    assert {target.vocabulary[int(row)] for row in (wanted == 7.0).all(1).nonzero()} == {"zebras", "yawn"}


def test_case_is_that_of_the_source() -> None:
    source = tokenizer_strings(make("bpe", lowercase=True))
    pieces = source.segment(" Cats")
    assert "".join(source.strings[piece] for piece in pieces) == " cats"


def test_the_vocabulary_of_bert_has_the_same_special_tokens_and_words(tmp_path: Path) -> None:
    (tmp_path / "vocab.txt").write_text(
        "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nthe\ncats\nsing\n##ing\n", encoding="utf-8"
    )
    bert = tokenizer_strings(Tokenizer.from_wordpiece(tmp_path / "vocab.txt", lowercase=True))
    assert list(bert.strings) == ["<PAD>", "<UNK>", "<SOS>", "<EOS>", "[MASK]", " the", " cats", " sing", "ing"]
    assert bert.segment(" singing") == [7, 8]
    words = tokenizer_strings(make("word"))
    counts = map_rows(torch.randn(9, 2), bert, torch.zeros(len(words.strings), 2), words)
    assert (counts.copied, counts.from_pieces) == (6, 1)  # four special tokens, "the", "cats"; "singing" from pieces


def test_labels_are_matched_by_name_only() -> None:
    wanted = torch.zeros(3)
    counts = map_rows(
        torch.tensor([1.0, 2.0]), TokenStrings(["bad", "good"]), wanted, TokenStrings(["good", "so", "bad"])
    )
    assert (wanted.tolist(), counts.fresh) == ([2.0, 0.0, 1.0], 1)
