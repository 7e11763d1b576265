from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import tokenizers
import torch
from tokenizers import models, pre_tokenizers, trainers

from regard.errors import ConfigError, InputError, ModelError
from regard.text import Tokenizer, TokenizerConfig
from regard.text.token_rows import map_rows, tokenizer_strings
from regard.text.tokenizer_training import TokenizerKind
from regard.text.wordpiece import learn_wordpieces

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


LINES = ["the lambs like the lamb, unlike lambkins", "Like a lamb to the slaughter", "Ünlike l'été 12 345"] * 5


def trained(size: int = 80, lowercase: bool = True) -> Tokenizer:
    return Tokenizer.train(LINES, TokenizerConfig("wordpiece", size, lowercase=lowercase))


def test_a_trained_vocabulary_has_berts_special_tokens_and_pieces_that_continue_words() -> None:
    tokenizer = trained()
    assert tokenizer.vocabulary[:5] == ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    assert (tokenizer.pad, tokenizer.unk, tokenizer.sos, tokenizer.eos, tokenizer.mask) == (0, 1, 2, 3, 4)
    assert tokenizer.encode("The lambs, ÜNLIKE lamblike").tokens == ["the", "lambs", ",", "unlike", "lamb", "##like"]
    assert tokenizer.decode(tokenizer.encode("unlike lambs").ids) == "unlike lambs"
    assert tokenizer.encode("[MASK] <EOS>").ids.count(4) == 0
    assert 40 < tokenizer.size <= 80
    cased = trained(lowercase=False)
    assert "Like" in cased.vocabulary and cased.encode("Like").ids != cased.encode("like").ids


def test_the_vocabulary_file_of_a_trained_one_gives_the_same_tokenizer(tmp_path: Path) -> None:
    tokenizer, path = trained(), tmp_path / "vocab.txt"
    path.write_text("\n".join(tokenizer.vocabulary), encoding="utf-8")
    text = "unlike lambs, the été"
    assert Tokenizer.from_wordpiece(path, lowercase=True).encode(text) == tokenizer.encode(text)


def test_training_gives_one_result_in_every_process_and_with_any_number_of_threads() -> None:
    code = (
        "from regard.text import Tokenizer, TokenizerConfig; import itertools;"
        "words = [''.join(w) for w in itertools.product('abcdef', repeat=3)];"
        "print(Tokenizer.train(words * 2, TokenizerConfig('wordpiece', 90)).fingerprint())"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", code],
            env=os.environ | {"RAYON_NUM_THREADS": threads, "PYTHONHASHSEED": threads},
            capture_output=True, text=True, check=True,
        ).stdout
        for threads in ("1", "2", "3")
    }  # fmt: skip
    assert len(found) == 1 and len(found.pop().strip()) == 64


def test_pieces_are_those_of_the_librarys_trainer_where_no_counts_are_equal() -> None:
    counts = {"lambs": 50, "lamb": 31, "slam": 17, "lama": 7}
    lines = [" ".join([word] * times) for word, times in counts.items()]
    learner = tokenizers.Tokenizer(models.WordPiece(unk_token="[UNK]"))
    learner.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    trainer = trainers.WordPieceTrainer(vocab_size=19, special_tokens=["[UNK]"], show_progress=False)
    learner.train_from_iterator(lines, trainer)
    assert {*learn_wordpieces(counts, 18), "[UNK]"} == set(learner.get_vocab())


def test_more_characters_than_the_vocabulary_has_room_for_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"text.vocab_size = 20 is too small for the \d+ different characters"):
        trained(20)


@pytest.mark.parametrize("kind", ["char", "word", "bpe", "byte-bpe", "unigram"])
def test_every_kind_can_get_a_mask(kind: TokenizerKind) -> None:
    tokenizer = Tokenizer.train(LINES, TokenizerConfig(kind, 300))
    masked = tokenizer.with_mask()
    assert tokenizer.mask is None and masked.mask == tokenizer.size == masked.size - 1
    assert masked.with_mask() is masked
    assert masked.encode("[MASK] lambs").ids == tokenizer.encode("[MASK] lambs").ids
    assert Tokenizer(masked.json) == masked and masked.decode([masked.mask]) == ""


def test_a_mask_is_matched_between_vocabularies_and_never_made_of_pieces() -> None:
    pieces, words = trained(), Tokenizer.train(LINES, TokenizerConfig("word", 60))
    assert tokenizer_strings(pieces).strings[4] == tokenizer_strings(words.with_mask()).strings[-1] == "[MASK]"
    rows = torch.arange(float(words.size))[:, None]
    target = torch.full((pieces.size, 1), -1.0)
    map_rows(rows, tokenizer_strings(words), target, tokenizer_strings(pieces))
    assert target[4].item() == -1.0
