"""Tokenizers made of SentencePiece models against the package: ids, normalization, and what is refused."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Callable, Mapping
from pathlib import Path
from random import Random
from typing import Any

import pytest
import sentencepiece
from tokenizers import processors
from transformers import LlamaConfig, LlamaForCausalLM

import regard
from foreign_models import LLAMA
from helpers import refusal
from regard.errors import ModelError
from regard.exchange.foreign_tokenizer import ForeignTokenizer
from regard.exchange.huggingface import import_folder
from regard.exchange.sentencepiece import SentencePieceModel
from regard.exchange.sentencepiece_tokenizer import make_tokenizer, merge_pairs, own_tokenizer
from regard.exchange.settings import ForeignSettings
from regard.text import Tokenizer
from regard.text.charsmap import Charsmap

LINES = [
    "the black cat sleeps on the table, and the dog sleeps too",
    "she sells sea shells by the sea shore; où est le café de la gare?",
    "many hands make light work, and too many cooks spoil the broth",
    "aaaa aaa aa ababab bababa abcabcabc 10,000 1999 2024",
    "việt nam, tiếng việt, Ελληνικά, 한국어 문장, ガギグ 日本語",
]
PARTS = [
    *" ".join(LINES).split(), *"abcdehnot.,;?!<>/▁\u00a0\u3000\t\n\r\u200b\u00ad\x00\x07", " ", "  ", "   ",
    "e\u0301\u0323", "e\u0323\u0301", "o\u0302\u0323\u0301", "a\u0308\u0304\u0301", "ệ", "ǖ\u0323", "ﬁ\u0301",
    "½\u0308",
    "한국", "\u1112\u1161\u11ab", "\u1112\u1161", "ｶﾞ", "ﾊﾟ", "カ\u3099", "①", "㍿", "ﷺ", "¨", "̈", "ﬃ", "Å",
    "中", "国", "👍🏽", "Z\u0351\u036b\u0343\u036a", "</s>", "<s>", "<unk>", "<0x41>", "\uffff", "𝔘",
]  # fmt: skip
MODELS: Mapping[str, Mapping[str, Any]] = {
    "bpe as llama's": {
        "model_type": "bpe", "byte_fallback": True, "normalization_rule_name": "identity", "split_digits": True,
        "remove_extra_whitespaces": False, "allow_whitespace_only_pieces": True, "vocab_size": 400,
    },
    "bpe": {"model_type": "bpe", "vocab_size": 150},
    "bpe over words": {
        "model_type": "bpe", "vocab_size": 180, "split_by_whitespace": False, "add_dummy_prefix": False,
    },
    "bpe of nfkc": {
        "model_type": "bpe", "vocab_size": 150, "normalization_rule_name": "nfkc", "character_coverage": 1.0,
    },
    "unigram": {"model_type": "unigram", "vocab_size": 150},
    "unigram with bytes": {
        "model_type": "unigram", "vocab_size": 420, "byte_fallback": True, "normalization_rule_name": "nfkc_cf",
    },
    "unigram as it is": {
        "model_type": "unigram", "vocab_size": 150, "normalization_rule_name": "identity", "add_dummy_prefix": False,
        "remove_extra_whitespaces": False,
    },
}  # fmt: skip


def train(folder: Path, **settings: Any) -> Path:
    (folder / "lines").write_text("\n".join(LINES * 4), encoding="utf-8")
    settings = {"hard_vocab_limit": settings.get("model_type") == "bpe", "character_coverage": 0.99} | settings
    sentencepiece.SentencePieceTrainer.train(
        input=str(folder / "lines"), model_prefix=str(folder / "tokenizer"), minloglevel=2, num_threads=1, **settings
    )
    return folder / "tokenizer.model"


def read(path: Path) -> Tokenizer:
    inner = own_tokenizer(SentencePieceModel.read(path))
    inner.post_processor = processors.TemplateProcessing("<s> $A </s>", None, [("<s>", 1), ("</s>", 2)])
    return Tokenizer(inner.to_str())


def odd_texts(count: int, seed: int = 1) -> list[str]:
    """Texts of random parts; some in decomposed form, some cut anywhere."""
    random, found = Random(seed), list[str]()
    for _ in range(count):
        text = "".join(random.choice(PARTS) + random.choice(["", "", " "]) for _ in range(random.randint(1, 12)))
        text = unicodedata.normalize("NFD", text) if random.random() < 0.3 else text
        found.append(text[random.randint(0, 2) :] if random.random() < 0.3 else text)
    return found


def differing(words: Tokenizer, model: sentencepiece.SentencePieceProcessor, texts: list[str]) -> list[Any]:
    ours, theirs = words.encode_batch(texts), model.encode(texts)
    return [
        (text, words.tokens(a), [model.id_to_piece(id) for id in b])
        for text, a, b in zip(texts, ours, theirs, strict=True)
        if a != b
    ]


@pytest.mark.parametrize("kind", MODELS)
def test_texts_are_cut_as_by_sentencepiece_itself(kind: str, tmp_path: Path) -> None:
    path = train(tmp_path, **MODELS[kind])
    words = read(path)
    found = differing(words, sentencepiece.SentencePieceProcessor(str(path)), odd_texts(1500))
    if MODELS[kind]["model_type"] == "unigram":  # among cuts of one probability rounding decides
        found = [case for case in found if not tied(path, *case[1:])]
    assert not found, found[:5]


def tied(path: Path, *cuts: list[str]) -> bool:
    """Whether two cuts of a text have the same probability."""
    scores = SentencePieceModel.read(path).scores
    lowest = min(scores.values()) - 10
    first, second = (sum(scores.get(piece, lowest) for piece in cut) for cut in cuts)
    return "".join(cuts[0]) == "".join(cuts[1]) and abs(first - second) < 1e-4


def test_a_llama_that_has_a_sentencepiece_model_is_imported_with_its_ids(tmp_path: Path) -> None:
    (tmp_path / "saved").mkdir()
    path = train(tmp_path / "saved", **MODELS["bpe as llama's"])
    model = sentencepiece.SentencePieceProcessor(str(path))
    LlamaForCausalLM(LlamaConfig(**LLAMA, vocab_size=model.get_piece_size())).save_pretrained(tmp_path / "saved")
    import_folder(tmp_path / "saved", tmp_path / "run")
    found: Any = regard.load(tmp_path / "run")
    for text in (*LINES, "  the 한국\n\tcat  ", "</s> 👍🏽 <0x41>", "▁"):
        ids = found.generator().encode_prompt(text)[0].data[0].tolist()
        assert ids == [1, *model.encode(text)]
        assert found.modality.tokenizer.decode(ids) == text.replace("▁", " ")


CHAT = ("<|im_start|>", "<|im_end|>")


def added(start: int, special: bool) -> dict[str, Any]:
    return {str(i): {"content": name, "special": special, "normalized": True} for i, name in enumerate(CHAT, start)}


@pytest.mark.parametrize("place", ["added_tokens.json", "tokenizer_config.json"])
@pytest.mark.parametrize("special", [False, True])
def test_added_tokens_of_a_folder_have_their_ids(place: str, special: bool, tmp_path: Path) -> None:
    model = sentencepiece.SentencePieceProcessor(str(train(tmp_path, **MODELS["bpe as llama's"])))
    size = model.get_piece_size()
    content: Any = {name: size + i for i, name in enumerate(CHAT)}
    settings: Any = {"extra_special_tokens": list(CHAT)} if special else {}
    if place == "tokenizer_config.json":
        content = {"added_tokens_decoder": {"1": {"content": "<s>", "special": True}, **added(size, special)}}
    else:
        (tmp_path / "tokenizer_config.json").write_text(json.dumps(settings))
    (tmp_path / place).write_text(json.dumps(content))
    found = ForeignTokenizer.read(tmp_path, ForeignSettings(tmp_path / "config.json", {"bos_token_id": 1}))
    assert found.notes(size + 2) == []
    words = found.fill(size + 2)
    assert [words.id_of(name) for name in CHAT] == [size, size + 1]
    text = "<|im_start|>the cat<|im_end|>"
    cut = [size, *model.encode("the cat"), size + 1]
    assert words.encode(text).ids == (model.encode(text) if special else cut)
    assert words.decode(cut) == ("the cat" if special else "<|im_start|> the cat<|im_end|>")


WRONG: Mapping[str, tuple[str, Any, str]] = {
    "a gap": (
        "added_tokens.json",
        {"<|im_start|>": 900},
        "the added tokens '<|im_start|>' (id 900) cannot have these ids: others have them, or ids before them are free",
    ),
    "an id of another": (
        "tokenizer_config.json",
        {"added_tokens_decoder": added(5, True)},
        "'<|im_end|>' (id 6) cannot",
    ),
    "no id": ("added_tokens.json", {"<|im_start|>": "1"}, "expected the id of each added token, found '1' for"),
    "no token": ("tokenizer_config.json", {"added_tokens_decoder": {"9": 1}}, "'added_tokens_decoder': '9'"),
    "no table": ("tokenizer_config.json", {"added_tokens_decoder": [1]}, "'added_tokens_decoder': ''"),
}


@pytest.mark.parametrize("why", WRONG)
def test_added_tokens_that_cannot_have_their_ids_are_named(why: str, tmp_path: Path) -> None:
    place, content, expected = WRONG[why]
    train(tmp_path, **MODELS["bpe as llama's"])
    (tmp_path / place).write_text(json.dumps(content))
    message = refusal(ModelError, lambda: ForeignTokenizer.read(tmp_path, ForeignSettings(tmp_path, {})))
    assert message.startswith(str(tmp_path)) and expected in message, message


def test_a_bpe_model_has_the_ids_of_another_vocabulary(tmp_path: Path) -> None:
    path = train(tmp_path, model_type="bpe", vocab_size=150)
    model = sentencepiece.SentencePieceProcessor(str(path))
    pieces = sorted({model.id_to_piece(id) for id in range(model.get_piece_size())} - {"<s>", "</s>", "<unk>"})
    vocabulary = ["</s>", "<unk>", *pieces[::-1], "▁Haus", "<pad>"]
    inner = make_tokenizer(SentencePieceModel.read(path), vocabulary, "<unk>", ["<pad>", "</s>", "<unk>"])
    inner.post_processor = processors.TemplateProcessing(
        "<pad> $A </s>", None, [("<pad>", len(vocabulary) - 1), ("</s>", 0)]
    )
    words, texts = (
        Tokenizer(inner.to_str()),
        [text for text in odd_texts(500) if "s>" not in text and "nk>" not in text],
    )
    for text, found in zip(texts, words.encode_batch(texts), strict=True):
        expected = [piece if piece in vocabulary else "<unk>" for piece in model.encode(text, out_type=str)]
        assert words.tokens(found) == expected
    short = vocabulary[:2] + vocabulary[3:]
    message = refusal(ModelError, lambda: make_tokenizer(SentencePieceModel.read(path), short, "<unk>", ["<unk>"]))
    assert message == (
        f"{path}: 1 piece of this BPE model is not in the vocabulary; a text could not be cut as by SentencePiece"
    )


def test_normalized_texts_are_sentencepieces_own(tmp_path: Path) -> None:
    path = train(tmp_path, vocab_size=150)
    theirs, rules = sentencepiece.SentencePieceProcessor(str(path)), Charsmap(SentencePieceModel.read(path).charsmap)
    plain = sentencepiece.SentencePieceNormalizer(
        model_file=str(path), add_dummy_prefix=False, escape_whitespaces=False, remove_extra_whitespaces=False
    )
    every = [chr(i) for i in range(1, 0x30000) if not 0xD800 <= i < 0xE000]
    assert [text for text in every if rules.normalize(text) != plain.normalize(text)] == []
    texts = [part for line in LINES for part in line.split()] + odd_texts(500)
    assert [text for text in texts if rules.normalize(text) != plain.normalize(text)] == []
    assert rules.normalize("e\u0301\u0323") == "é\u0323"
    assert theirs.normalize("e\u0301\u0323") == "▁é\u0323"


def test_tokens_name_the_characters_before_normalization(tmp_path: Path) -> None:
    words = read(train(tmp_path, vocab_size=150))
    text = "  ﬁve e\u0301\u0323 ① cats"
    found = words.encode(text)
    assert found.ids == words.encode_batch([text])[0]
    at = dict(zip(found.tokens, found.offsets, strict=True))
    assert text[slice(*at["é"])] == "e\u0301"
    whole = [text[a:b] for a, b in found.offsets]
    assert "ﬁ" in whole and whole[-1].endswith("s") and found.offsets[-1][1] == len(text)


def test_a_pair_that_no_text_reaches_is_no_merge() -> None:
    assert merge_pairs({"a": -9, "b": -8, "ab": -1, "ba": -2, "aba": -3}) == [("a", "b"), ("b", "a"), ("ab", "a")]
    # "abc" alone ends as a, bc: it is in the vocabulary, and no text is cut into it
    assert merge_pairs({"a": -9, "b": -8, "c": -7, "bc": -1, "ab": -2, "cba": -3}) == [("b", "c"), ("a", "b")]


def change(path: Path, pieces: Any = None, **settings: Any) -> Path:
    """A model with other pieces or settings, written by the package's own protobuf."""
    from sentencepiece import sentencepiece_model_pb2

    found = sentencepiece_model_pb2.ModelProto()
    found.ParseFromString(path.read_bytes())
    for name, value in settings.items():
        part = found.trainer_spec if name in ("treat_whitespace_as_suffix", "model_type") else found.normalizer_spec
        setattr(part, name, value)
    if pieces:
        pieces(found.pieces)
    path.write_bytes(found.SerializeToString())
    return path


def same_scores(pieces: Any) -> None:
    longest = sorted(pieces, key=lambda piece: len(piece.piece))[-2:]
    longest[0].score = longest[1].score


def one_unused(pieces: Any) -> None:
    pieces[-1].type = 5


def no_letter(pieces: Any) -> None:
    del pieces[next(i for i, piece in enumerate(pieces) if piece.piece == "t")]


REFUSED: Mapping[str, tuple[Mapping[str, Any], str]] = {
    "symbols": ({}, "has symbols that its user defined ('<sep>'), cut out before anything else"),
    "suffix": ({"treat_whitespace_as_suffix": True}, "does not mark the beginnings of words with '▁'"),
    "words": ({"model_type": 3}, "is neither Unigram nor BPE"),
    "unused": ({"pieces": one_unused}, "has pieces that are merged and cut again (unused ones)"),
    "scores": ({"pieces": same_scores}, "has several pieces with the score of "),
    "letter": ({"pieces": no_letter}, "with a character that is no piece"),
}


@pytest.mark.parametrize("why", REFUSED)
def test_what_cannot_be_cut_exactly_is_refused_with_the_reason(why: str, tmp_path: Path) -> None:
    changes, reason = REFUSED[why]
    symbols = {"user_defined_symbols": ["<sep>"]} if why == "symbols" else {}
    path = change(train(tmp_path, model_type="bpe", vocab_size=150, **symbols), **changes)
    message = refusal(ModelError, lambda: own_tokenizer(SentencePieceModel.read(path)))
    assert message.startswith(f"{path}: this SentencePiece model ") and reason in message
    assert message.endswith(", which cannot be read exactly")


def set_fifth(**values: Any) -> Callable[[Any], None]:
    def set_values(pieces: Any) -> None:
        for name, value in values.items():
            setattr(pieces[5], name, value)

    return set_values


def named(pieces: Any, name: str) -> Any:
    return next(piece for piece in pieces if piece.piece == name)


DAMAGED: Mapping[str, tuple[str, Callable[[Any], object], str]] = {
    "a score that is no number": ("unigram", set_fifth(score=float("nan")), "the score of piece 5, "),
    "an infinite score": ("unigram", set_fifth(score=float("inf")), "the score of piece 5, "),
    "an infinite penalty": ("unigram", set_fifth(score=float("-inf")), "the score of piece 5, "),
    "an empty piece": ("unigram", set_fifth(piece=""), "piece 5 is empty"),
    "a piece twice": ("unigram", lambda pieces: set_fifth(piece=pieces[6].piece)(pieces), "2 pieces are "),
    "two unknown pieces": ("unigram", set_fifth(type=2), "2 pieces are the unknown one, expected 1"),
    "no unknown piece": ("bpe", lambda pieces: setattr(pieces[0], "type", 3), "0 pieces are the unknown one"),
    "a missing byte": (
        "unigram with bytes",
        lambda pieces: pieces.remove(named(pieces, "<0x41>")),
        "expected 256 pieces for bytes, '<0x41>' is missing or one too many",
    ),
    "a byte that is none": (
        "bpe as llama's",
        lambda pieces: setattr(named(pieces, "<0x41>"), "piece", "<0x4>"),
        "expected 256 pieces for bytes, '<0x41>' is missing or one too many",
    ),
    "a byte that is a normal piece": (
        "unigram with bytes",
        lambda pieces: setattr(named(pieces, "<0x41>"), "type", 1),
        "expected 256 pieces for bytes, '<0x41>' is missing or one too many",
    ),
    "a byte without need": ("unigram", set_fifth(type=6), "expected 0 pieces for bytes, "),
}


@pytest.mark.parametrize("damage", DAMAGED)
def test_pieces_that_sentencepiece_refuses_are_refused(damage: str, tmp_path: Path) -> None:
    kind, pieces, reason = DAMAGED[damage]
    path = change(train(tmp_path, **MODELS[kind]), pieces)
    with pytest.raises(RuntimeError):
        sentencepiece.SentencePieceProcessor(str(path))
    message = refusal(ModelError, lambda: SentencePieceModel.read(path))
    assert message.startswith(f"{path}: expected a SentencePiece model ({reason}"), message
    assert message.endswith("; it is damaged or was cut off")


def test_a_piece_that_looks_like_a_language_code_is_cut_as_by_sentencepiece(tmp_path: Path) -> None:
    path = train(tmp_path, **MODELS["unigram"] | {"vocab_size": 160})
    change(path, lambda pieces: pieces.add(piece=">>x<<", score=-9.0, type=1))
    model, texts = sentencepiece.SentencePieceProcessor(str(path)), ["the >>x<< cat", ">>x<<>>x<<", "a>>x<<b"]
    assert differing(read(path), model, texts) == []


def test_damaged_rules_are_refused(tmp_path: Path) -> None:
    path = train(tmp_path, vocab_size=150)
    rules = SentencePieceModel.read(path).charsmap
    for damaged in (rules[: len(rules) // 2], rules[:5], b"\x04\0\0\0\0\0\0\0"):
        change(path, precompiled_charsmap=damaged)
        assert "expected a SentencePiece model" in refusal(ModelError, lambda: SentencePieceModel.read(path))
