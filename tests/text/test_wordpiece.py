from __future__ import annotations

from pathlib import Path

import pytest

from regard.errors import InputError, ModelError
from regard.text import Tokenizer

ENTRIES = [
    "[PAD]",
    "[UNK]",
    "[CLS]",
    "[SEP]",
    "[MASK]",
    "the",
    "lamb",
    "##s",
    "un",
    "##able",
    ",",
    "[",
    "]",
    "cafe",
    "sep",
]


@pytest.fixture
def vocabulary(tmp_path: Path) -> Path:
    path = tmp_path / "vocab.txt"
    path.write_text("\n".join(ENTRIES) + "\n", encoding="utf-8")
    return path


def test_words_are_tokenized_as_by_bert(vocabulary: Path) -> None:
    tokenizer = Tokenizer.from_wordpiece(vocabulary, lowercase=True)
    encoded = tokenizer.encode("The lambs, unable  café zebra")
    assert encoded.tokens == ["the", "lamb", "##s", ",", "un", "##able", "cafe", "[UNK]"]
    assert encoded.offsets[1:3] == [(4, 8), (8, 9)]
    assert tokenizer.vocabulary == ENTRIES
    assert tokenizer.decode(encoded.ids) == "the lambs, unable cafe [UNK]"
    assert Tokenizer.from_wordpiece(vocabulary, lowercase=False).encode("The").tokens == ["[UNK]"]


def test_special_tokens_are_those_of_the_file_and_never_read_from_a_text(vocabulary: Path) -> None:
    tokenizer = Tokenizer.from_wordpiece(vocabulary, lowercase=True)
    assert (tokenizer.pad, tokenizer.unk, tokenizer.sos, tokenizer.eos, tokenizer.mask) == (0, 1, 2, 3, 4)
    assert tokenizer.encode("[SEP]").tokens == ["[", "sep", "]"]
    assert tokenizer.decode([2, 5, 3, 0]) == "the"


def test_a_long_word_is_unknown_at_once(vocabulary: Path) -> None:
    assert Tokenizer.from_wordpiece(vocabulary, lowercase=True).encode("a" * 1_000_000).tokens == ["[UNK]"]


def test_it_is_the_same_when_loaded_from_its_json(vocabulary: Path, tmp_path: Path) -> None:
    tokenizer = Tokenizer.from_wordpiece(vocabulary, lowercase=True)
    tokenizer.save(tmp_path / "tokenizer.json")
    assert Tokenizer.load(tmp_path / "tokenizer.json") == tokenizer


def test_a_wrong_vocabulary_is_named(tmp_path: Path) -> None:
    path = tmp_path / "vocab.txt"
    with pytest.raises(InputError, match="the tokenizer cannot be read: No such file"):
        Tokenizer.from_wordpiece(path, lowercase=True)
    path.write_text("[PAD]\n[UNK]\nthe\n", encoding="utf-8")
    with pytest.raises(ModelError) as error:
        Tokenizer.from_wordpiece(path, lowercase=True)
    assert str(error.value) == f"{path}: expected a WordPiece vocabulary, one token per line; [CLS] is not in it"
    path.write_text("\n".join([*ENTRIES, "the"]), encoding="utf-8")
    with pytest.raises(ModelError) as error:
        Tokenizer.from_wordpiece(path, lowercase=True)
    assert str(error.value) == f"{path}: line 6 holds 'the', and so does a later one"
