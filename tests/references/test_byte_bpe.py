"""GPT-2's byte-level BPE against tiktoken's algorithm, with ranks learned here."""

import json

import pytest
import tokenizers
from tokenizers import models, pre_tokenizers, trainers

import tiktoken_bpe
from regard.errors import ModelError
from regard.tasks.init_recipe import load_pretrained_tokenizer, tokenizer_digests
from regard.text import Tokenizer

TEXT = ["The wind blew north, and it's the sea that said nothing. We'll see 1234 été 日本 🙂 Ναι\n"] * 3


@pytest.fixture(scope="module", params=[("encoder.json", "vocab.bpe"), ("vocab.json", "merges.txt")])
def folder(request, tmp_path_factory):
    """A small vocabulary in GPT-2's two files, <|endoftext|> last."""
    learner = tokenizers.Tokenizer(models.BPE())
    learner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    learner.train_from_iterator(
        TEXT, trainers.BpeTrainer(vocab_size=330, initial_alphabet=alphabet, show_progress=False)
    )
    content = json.loads(learner.to_str())["model"]
    path, (vocabulary, merges) = tmp_path_factory.mktemp("bpe"), request.param
    ids = {**content["vocab"], "<|endoftext|>": len(content["vocab"])}
    (path / vocabulary).write_text(json.dumps(ids), encoding="utf-8")
    lines = [" ".join(pair) for pair in content["merges"]]
    (path / merges).write_text("\n".join(["#version: 0.2", *lines, ""]), encoding="utf-8")
    return path


def test_ids_equal_those_of_tiktokens_algorithm_on_ten_thousand_random_strings(folder):
    tokenizer, [vocabulary] = load_pretrained_tokenizer(folder, "target"), folder.glob("*.json")
    ranks = tiktoken_bpe.byte_ranks(json.loads(vocabulary.read_text(encoding="utf-8")))
    assert len(ranks) > 300
    texts = list(tiktoken_bpe.random_strings(10_000))
    found = tokenizer.encode_batch(texts)
    assert [text for text, ids in zip(texts, found, strict=True) if ids != tiktoken_bpe.encode(text, ranks)] == []
    assert [text for text, ids in zip(texts, found, strict=True) if tokenizer.decode(ids) != text] == []


def test_end_of_text_begins_and_ends_texts_and_is_never_made_from_text(folder, tmp_path):
    tokenizer, [vocabulary] = load_pretrained_tokenizer(folder, "target"), folder.glob("*.json")
    size = len(json.loads(vocabulary.read_text(encoding="utf-8")))
    assert tokenizer.size == size and tokenizer.eos == tokenizer.sos == tokenizer.pad == size - 1
    assert tokenizer.unk == -1 and tokenizer.eos not in tokenizer.encode("a<|endoftext|>b").ids
    tokenizer.save(tmp_path / "tokenizer.json")
    assert Tokenizer.load(tmp_path / "tokenizer.json") == tokenizer
    assert set(tokenizer_digests(folder)) == {file.name for file in folder.iterdir()}
    assert load_pretrained_tokenizer(vocabulary, "target") == tokenizer


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "found no JSON"),
        ("[1]", "found something else"),
        ('{"a": 0, "b": 2}', "found 2 tokens whose ids have gaps or repetitions"),
        ('{"a": 0}', "is not in it; byte-level BPE needs every byte and"),
    ],
)
def test_a_vocabulary_that_is_none_is_refused(content, message, tmp_path):
    (tmp_path / "encoder.json").write_text(content, encoding="utf-8")
    (tmp_path / "vocab.bpe").write_text("", encoding="utf-8")
    with pytest.raises(ModelError, match=message):
        load_pretrained_tokenizer(tmp_path, "target")


def test_a_merge_of_unknown_tokens_is_refused_with_its_line(folder, tmp_path):
    [vocabulary] = folder.glob("*.json")
    (tmp_path / "vocab.bpe").write_text("#version: 0.2\nq zzz\n", encoding="utf-8")
    with pytest.raises(ModelError, match=r"vocab\.bpe, line 2: expected two tokens of the vocabulary that merge"):
        Tokenizer.from_byte_bpe(vocabulary, tmp_path / "vocab.bpe")
