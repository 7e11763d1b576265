from __future__ import annotations

import pickle
import subprocess
import sys
import time
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers import child_environment
from regard.errors import ConfigError, DataError, InputError, ModelError, OutputError
from regard.text import Tokenizer, TokenizerConfig
from regard.text.tokenizer_training import TokenizerKind

KINDS: list[TokenizerKind] = ["char", "word", "bpe", "byte-bpe", "unigram"]
PROVERBS = [
    "Como un cordero al matadero",
    "Like a lamb to the slaughter",
    "Donde hay humo, hay fuego",
    "Where there's smoke, there's fire",
    "Que sera, sera",
    "L'habit ne fait pas l'homme, dit-on aujourd'hui.",
    "از تو حرکت از خدا برکت، می‌گویند",
    "猫に小判。 花より団子",
    "Ünï çödé ＡＢＣ ﬁn 12 345",
    "<EOS> is text, and <PAD> <UNK> <SOS> too",
]


def trained(kind: TokenizerKind, size: int = 600, **settings: object) -> Tokenizer:
    return Tokenizer.train(PROVERBS * 3, TokenizerConfig(kind=kind, vocab_size=size, **settings))  # type: ignore[arg-type]


LOSSLESS = {kind: trained(kind, normalization="none") for kind in KINDS}
any_text = st.text(st.characters(exclude_categories=["Cs"]), max_size=60)


@settings(max_examples=300, deadline=None)
@given(any_text)
def test_byte_bpe_gives_any_text_back_exactly(text: str) -> None:
    tokenizer = LOSSLESS["byte-bpe"]
    assert tokenizer.decode(tokenizer.encode(text).ids) == text
    assert tokenizer.unk not in tokenizer.encode(text).ids


@pytest.mark.parametrize("kind", ["char", "bpe", "unigram"])
@settings(max_examples=200, deadline=None)
@given(st.data())
def test_text_of_known_characters_comes_back_exactly(kind: TokenizerKind, data: st.DataObject) -> None:
    text = data.draw(st.text(st.sampled_from(sorted(set("".join(PROVERBS)))), max_size=60))
    assert LOSSLESS[kind].decode(LOSSLESS[kind].encode(text).ids) == text


@pytest.mark.parametrize(
    "text", ["", " ", "  two  spaces ", "é e\u0301", "👩‍👩‍👧 ok", "می‌روم", "中文", "\x00\x07\x7f", "a\r\n\tb"]
)
def test_byte_bpe_keeps_every_script_and_every_space(text: str) -> None:
    assert LOSSLESS["byte-bpe"].decode(LOSSLESS["byte-bpe"].encode(text).ids) == text


def test_word_joins_words_and_signs_by_single_spaces() -> None:
    tokenizer = LOSSLESS["word"]
    assert tokenizer.decode(tokenizer.encode("Donde  hay humo,hay fuego ").ids) == "Donde hay humo , hay fuego"


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=60, deadline=None)
@given(text=any_text)
def test_a_batch_has_the_ids_of_its_texts_and_offsets_lie_in_the_text(kind: TokenizerKind, text: str) -> None:
    tokenizer = LOSSLESS[kind]
    encoded = tokenizer.encode(text)
    assert tokenizer.encode_batch([text, "hay"])[0] == encoded.ids
    assert encoded.tokens == tokenizer.tokens(encoded.ids)
    assert len(encoded.offsets) == len(encoded.ids)
    assert all(0 <= a <= b <= len(text) for a, b in encoded.offsets)


def test_offsets_point_into_the_text_as_it_was_given_under_nfkc() -> None:
    text = "ﬁn  ＡＢＣ lamb"
    for kind in KINDS:
        encoded = trained(kind).encode(text)
        covered = "".join(text[a:b] for (a, b), token in zip(encoded.offsets, encoded.tokens) if "l" in token)
        assert covered.strip().startswith("l"), kind
        assert encoded.offsets[-1][1] == len(text), kind
    words = trained("word").encode(text)
    assert [text[a:b] for a, b in words.offsets] == ["ﬁn", "ＡＢＣ", "lamb"]


def test_nfkc_writes_equal_looking_characters_in_one_way_and_none_does_not() -> None:
    assert trained("bpe").decode(trained("bpe").encode("ＡＢＣ ﬁn").ids) == "ABC fin"
    assert LOSSLESS["bpe"].decode(LOSSLESS["bpe"].encode("ＡＢＣ ﬁn").ids) == "ＡＢＣ ﬁn"


def test_lowercase_removes_capital_letters() -> None:
    tokenizer = trained("bpe", lowercase=True)
    assert tokenizer.encode("LAMB").ids == tokenizer.encode("lamb").ids


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("text", ["<EOS>", "a <EOS> b", "<SOS><PAD><EOS>", "＜EOS＞", "<UNK>"])
def test_a_special_token_written_in_a_text_is_text(kind: TokenizerKind, text: str) -> None:
    tokenizer = trained(kind)
    for copy in (tokenizer, pickle.loads(pickle.dumps(tokenizer)), Tokenizer(tokenizer.json)):
        for ids in (copy.encode(text).ids, copy.encode_batch([text])[0]):
            assert not {copy.pad, copy.sos, copy.eos} & set(ids)
            if kind in ("char", "bpe", "byte-bpe"):
                assert copy.decode(ids) == unicodedata.normalize("NFKC", text)


def test_special_tokens_are_the_first_four_and_decoding_shows_only_the_unknown() -> None:
    for kind in KINDS:
        tokenizer = LOSSLESS[kind]
        assert (tokenizer.pad, tokenizer.unk, tokenizer.sos, tokenizer.eos) == (0, 1, 2, 3)
        assert tokenizer.vocabulary[:4] == ["<PAD>", "<UNK>", "<SOS>", "<EOS>"]
        ids = tokenizer.encode("hay").ids
        assert tokenizer.decode([2, *ids, 3, 0, 0]) == "hay"
    assert LOSSLESS["char"].decode([1]) == "<UNK>"


@pytest.mark.parametrize("kind", ["char", "word", "bpe", "unigram"])
def test_unseen_characters_are_unknown(kind: TokenizerKind) -> None:
    assert LOSSLESS[kind].unk in LOSSLESS[kind].encode("Ж").ids
    assert "<UNK>" in LOSSLESS[kind].decode(LOSSLESS[kind].encode("hay Ж").ids)


@pytest.mark.parametrize("kind", KINDS)
def test_nul_and_control_characters_are_encoded(kind: TokenizerKind) -> None:
    assert LOSSLESS[kind].encode("a\x00\x1b\x9f\ufffe\U0010ffff").ids


def test_half_a_surrogate_pair_is_refused() -> None:
    for call in (LOSSLESS["bpe"].encode, lambda text: LOSSLESS["bpe"].encode_batch([text])):
        with pytest.raises(DataError, match=r"character 3 is U\+D800, half of a surrogate pair and no character"):
            call("ab\ud800")
    with pytest.raises(DataError, match=r"^line 2 of the text to train on: character 1 is U\+DFFF"):
        Tokenizer.train(["ok", "\udfff"], TokenizerConfig())


@pytest.mark.parametrize("kind", KINDS)
def test_a_line_without_spaces_is_fast(kind: TokenizerKind) -> None:
    start = time.process_time()
    for text in ("a" * 50_000, "abcdefghij" * 50_000, " " * 50_000, "'a" * 25_000):
        ids = LOSSLESS[kind].encode(text).ids
        assert kind == "word" or LOSSLESS[kind].decode(ids) == text
    Tokenizer.train(["a" * 50_000, "abcdefghij" * 10_000], TokenizerConfig(kind=kind))
    assert time.process_time() - start < 15


@pytest.mark.parametrize("kind", KINDS)
def test_a_saved_tokenizer_is_the_same_when_loaded(kind: TokenizerKind, tmp_path: Path) -> None:
    LOSSLESS[kind].save(tmp_path / "tokenizer.json")
    loaded = Tokenizer.load(tmp_path / "tokenizer.json")
    assert loaded == LOSSLESS[kind]
    assert loaded.fingerprint() == LOSSLESS[kind].fingerprint()
    assert loaded.encode_batch(PROVERBS) == LOSSLESS[kind].encode_batch(PROVERBS)
    assert [path.name for path in tmp_path.iterdir()] == ["tokenizer.json"]
    assert loaded != trained(kind, lowercase=True)


TRAINING = """
from regard.text import Tokenizer, TokenizerConfig
import sys
sounds = ["ka", "ri", "to", "é", "n", "s", "tion", "猫"]
lines = [" ".join(sounds[i * j % 8] + sounds[(i + j) % 8] + sounds[i * i % 8] for j in range(9)) for i in range(400)]
for kind in sys.argv[1:]:
    print(kind, Tokenizer.train(iter(lines), TokenizerConfig(kind=kind, vocab_size=320)).fingerprint())
"""


def test_training_gives_the_same_tokenizer_in_every_process() -> None:
    runs = {
        subprocess.run(
            [sys.executable, "-c", TRAINING, *KINDS],
            env=child_environment(PYTHONHASHSEED=seed, RAYON_NUM_THREADS=threads),
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed, threads in (("0", "1"), ("1", "2"), ("2", "2"), ("3", "2"))
    }
    assert len(runs) == 1
    assert len(set(runs.pop().split())) == 2 * len(KINDS)


def test_equally_frequent_tokens_are_cut_off_by_their_spelling() -> None:
    for kind in ("char", "word"):
        tokenizer = Tokenizer.train(["d c b a", "d c"], TokenizerConfig(kind=kind, vocab_size=7, normalization="none"))
        assert tokenizer.vocabulary[4:] == {"char": [" ", "c", "d"], "word": ["c", "d", "a"]}[kind]


def test_training_reads_an_iterator_once_to_its_end() -> None:
    read = iter([*PROVERBS, *PROVERBS])
    Tokenizer.train(read, TokenizerConfig(vocab_size=300))
    assert next(read, None) is None


@pytest.mark.parametrize("kind", KINDS)
def test_a_size_beyond_what_the_text_gives_is_no_error(kind: TokenizerKind) -> None:
    tokenizer = Tokenizer.train(["a b a b"], TokenizerConfig(kind=kind, vocab_size=100_000))
    assert tokenizer.size < 300


@pytest.mark.parametrize("kind", KINDS)
def test_no_vocabulary_is_larger_than_asked(kind: TokenizerKind) -> None:
    assert trained(kind, size=300).size <= 300


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_a_size_too_small_for_the_characters_names_the_least(kind: TokenizerKind) -> None:
    with pytest.raises(ConfigError) as error:
        Tokenizer.train(["abc"], TokenizerConfig(kind=kind, vocab_size=6))
    assert str(error.value) == (
        "text.vocab_size = 6 is too small for the 4 different characters of the text; "
        'set it to at least 8, or text.kind to "byte-bpe"'
    )
    assert Tokenizer.train(["abc"], TokenizerConfig(kind=kind, vocab_size=8)).size == 8


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"kind": "bpp"}, "kind: expected one of char, word, bpe, byte-bpe, unigram, wordpiece, got 'bpp'"),
        ({"normalization": "nfc"}, "normalization: expected nfkc or none, got 'nfc'"),
        ({"vocab_size": 4}, 'vocab_size = 4 must be at least 5 for kind = "bpe"'),
        ({"kind": "byte-bpe", "vocab_size": 259}, 'vocab_size = 259 must be at least 260 for kind = "byte-bpe"'),
        ({"dropout": 1.5}, "dropout = 1.5 must be from 0 to 1"),
        (
            {"kind": "word", "dropout": 0.1},
            'dropout = 0.1 needs merges to skip, and kind = "word" has none; set dropout = 0, or kind to bpe or '
            "byte-bpe",
        ),
        ({"max_pretoken": 0}, "max_pretoken = 0 must be from 1 to 1000 characters"),
    ],
)
def test_a_wrong_setting_is_named(wrong: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError) as error:
        TokenizerConfig(**wrong)  # type: ignore[arg-type]
    assert str(error.value) == message


@pytest.mark.parametrize("lines", [[], ["", "  "]])
@pytest.mark.parametrize("kind", KINDS)
def test_training_on_nothing_is_refused(kind: TokenizerKind, lines: list[str]) -> None:
    with pytest.raises(DataError, match=r"^A tokenizer needs text to train on, and every line was empty;"):
        Tokenizer.train(lines, TokenizerConfig(kind=kind))


def test_a_file_that_is_missing_or_no_tokenizer_is_named(tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    with pytest.raises(InputError) as missing:
        Tokenizer.load(path)
    assert str(missing.value) == f"{path}: the tokenizer cannot be read: No such file or directory"
    for content in (b"", b"{}", b"[1, 2]", b"\xff\xfe", LOSSLESS["bpe"].json[:-9].encode()):
        path.write_bytes(content)
        with pytest.raises(ModelError) as error:
            Tokenizer.load(path)
        assert str(error.value).startswith(f"{path}: ")
        assert "xpected" in str(error.value)
    with pytest.raises(OutputError, match=r"cannot be written \(No such file or directory\)"):
        LOSSLESS["bpe"].save(tmp_path / "none" / "tokenizer.json")


def test_a_vocabulary_without_special_tokens_is_refused() -> None:
    with pytest.raises(ModelError, match=r"^Expected a vocabulary with <EOS> or \[SEP\], found neither"):
        Tokenizer(LOSSLESS["char"].json.replace("<EOS>", "<END>"))


def test_ids_of_another_vocabulary_are_refused() -> None:
    size = LOSSLESS["bpe"].size
    for wrong in (-1, size):
        with pytest.raises(DataError) as error:
            LOSSLESS["bpe"].decode([5, wrong])
        assert str(error.value) == f"Expected ids from 0 to {size - 1}, got {wrong}: another vocabulary made them"


def test_importing_text_imports_neither_torch_nor_transformers() -> None:
    code = "import regard.text, sys; print({'torch', 'transformers'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"
