"""Added tokens of tokenizers with SentencePiece's normalization, against the tokenizers library."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

import pytest
import sentencepiece
import tokenizers
from tokenizers import AddedToken, Regex, decoders, models, normalizers, pre_tokenizers, processors

from helpers import refusal
from regard.errors import ModelError
from regard.exchange.sentencepiece import parse_model
from regard.text import Tokenizer
from regard.text.token_rows import tokenizer_strings

LINE = "the black cat sleeps on the table, and the dog sleeps too; où est le café? 한국어 ガ fi x>>a<b"
PARTS = [
    *"abx><,five", *"ａｂ＞＜ﬁﬃ①½é\n\t\u3000\u00a0\u200b", "the", "cat", "dog", " ", "  ", "\n", ">>a<<", "＞＞a＜＜",
    "<sep>", "＜sep＞", "sep", "</s>", "<s>", "Dog", "한국",
]  # fmt: skip
TOKENS = [
    AddedToken("\n", normalized=False),
    AddedToken("ﬁ", normalized=False),
    AddedToken(">>a<<", normalized=False),
    AddedToken("<sep>", normalized=False, lstrip=True, rstrip=True),
    AddedToken("dog", normalized=False, single_word=True),
    AddedToken("cat", normalized=True),
    AddedToken("<mask>", normalized=False, special=True),
]


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[tuple[str, float]], bytes]:
    """Pieces and normalization rules of a model."""
    folder = tmp_path_factory.mktemp("model")
    (folder / "lines").write_text((LINE + "\n") * 9, encoding="utf-8")
    sentencepiece.SentencePieceTrainer.train(
        input=str(folder / "lines"), model_prefix=str(folder / "m"), vocab_size=70, minloglevel=2, num_threads=1,
        hard_vocab_limit=False, character_coverage=1.0,
    )  # fmt: skip
    found = parse_model(Path(), (folder / "m.model").read_bytes())
    return [(text, score) for text, score, _ in found.pieces], found.charsmap


def make(
    parts: tuple[list[tuple[str, float]], bytes], tokens: list[AddedToken], scheme: str = "always"
) -> tokenizers.Tokenizer:
    inner = tokenizers.Tokenizer(models.Unigram(parts[0], 0))
    spaces = normalizers.Replace(Regex(" {2,}"), " ")
    inner.normalizer = normalizers.Sequence([normalizers.Precompiled(parts[1]), spaces])
    inner.pre_tokenizer = pre_tokenizers.Metaspace("▁", scheme)
    inner.post_processor = processors.TemplateProcessing("<s> $A </s>", None, [("<s>", 1), ("</s>", 2)])
    inner.decoder = decoders.Metaspace("▁", "never")
    inner.add_special_tokens(["<s>", "</s>"])
    inner.add_tokens(tokens)
    inner.encode_special_tokens = True
    return inner


def texts(count: int = 400) -> list[str]:
    random = Random(1)
    return ["", "\n", *("".join(random.choices([*PARTS, " "], k=random.randint(1, 9))) for _ in range(count))]


@pytest.mark.parametrize("scheme", ["always", "first", "never"])
def test_added_tokens_are_cut_out_of_the_text_as_by_the_library(
    parts: tuple[list[tuple[str, float]], bytes], scheme: str
) -> None:
    theirs = make(parts, TOKENS, scheme)
    ours = Tokenizer(theirs.to_str())
    for text, ids in zip(texts(), ours.encode_batch(texts()), strict=True):
        expected, found = theirs.encode(text, add_special_tokens=False), ours.encode(text)
        assert (found.ids, found.offsets) == (expected.ids, expected.offsets), text
        assert ids == expected.ids, text


def test_a_text_of_full_width_signs_is_no_language_code(parts: tuple[list[tuple[str, float]], bytes]) -> None:
    ours = Tokenizer(make(parts, TOKENS).to_str())
    code = ours.id_of(">>a<<")
    assert ours.encode(">>a<<").ids == [code]
    assert code not in ours.encode("＞＞a＜＜").ids and code not in ours.encode_batch(["＞＞a＜＜"])[0]
    found = ours.encode("ａ\nﬁ")
    assert [ours.vocabulary[i] for i in found.ids][-2:] == ["\n", "ﬁ"]
    assert found.offsets[-2:] == [(1, 2), (2, 3)]
    assert ours.decode(found.ids).endswith("\nﬁ")


def test_a_token_that_no_normalized_text_has_is_refused(parts: tuple[list[tuple[str, float]], bytes]) -> None:
    inner = make(parts, [AddedToken("ﬁ", normalized=True)])
    assert refusal(ModelError, lambda: Tokenizer(inner.to_str())) == (
        "The added token 'ﬁ' is looked for in normalized texts, and normalization makes it 'fi'; write it with "
        '"normalized": false'
    )
    content = json.loads(inner.to_str())
    content["added_tokens"][-1]["special"] = True  # special tokens are not looked for in a text
    assert Tokenizer(json.dumps(content)).size == inner.get_vocab_size()


def test_strings_of_another_vocabulary_are_normalized_as_texts_are(
    parts: tuple[list[tuple[str, float]], bytes],
) -> None:
    more = [(letter, -3.0) for letter in ("é", "\u0323", "한") if letter not in dict(parts[0])]
    pieces = [*parts[0], *more]
    words = Tokenizer(make((pieces, parts[1]), [], "never").to_str())
    for text in ("e\u0301\u0323", "\u1112\u1161\u11ab"):
        assert tokenizer_strings(words).segment(text) == words.encode(text).ids
        assert words.unk not in words.encode(text).ids
