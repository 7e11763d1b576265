"""Subword input of a tagger: pieces, windows, training, use and fine-tuning; equal to BertForTokenClassification."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from transformers import BertConfig as TheirConfig
from transformers import BertForTokenClassification

import regard
from regard.errors import ConfigError
from regard.models.bert import BertConfig
from regard.models.subword_tagger import SubwordTagger
from regard.progress import no_progress
from regard.run import Run
from regard.spaces import Classes
from regard.tasks import EvalRequest, Recipe
from regard.tasks.label.subwords import SubwordEncoder
from regard.tasks.label.vocab import WordTypes
from regard.text import Tokenizer, TokenizerConfig

SENTENCE = "Anna B-PER\nLindqvist I-PER\nlives O\nin O\nRome B-LOC\n\nRome B-LOC\nis O\nfar O\n\n"
MODEL = "model={kind='bert', layers=1, width=16, ffn_width=32, heads=2, max_positions=80}"
TASK = "task={kind='label', tokens='subwords', scheme='bio', max_length=64}"


def settings(folder: Path, *more: str) -> list[str]:
    (folder / "a.conll").write_text(SENTENCE * 30, encoding="utf-8")
    data = f"data={{kind='conll', train='{folder}/a.conll', valid='{folder}/a.conll'}}"
    return [data, TASK, MODEL, "text={kind='wordpiece', vocab_size=60}", "train.steps=2", *more]


def encoder() -> SubwordEncoder:
    lines = ["the lamb lives in rome"] * 3 + ["lambs"]
    return SubwordEncoder(Tokenizer.train(lines, TokenizerConfig("wordpiece", vocab_size=60)))


def test_logits_are_those_of_bert_for_token_classification() -> None:
    pieces, shape = encoder(), BertConfig(layers=2, width=16, ffn_width=32, heads=2, dropout=0.0, max_positions=16)
    torch.manual_seed(1)
    model = SubwordTagger(shape.build_encoder(pieces.space()), Classes(3), 16, pieces.special_ids).eval()
    theirs = BertForTokenClassification(
        TheirConfig(
            vocab_size=pieces.tokenizer.size, hidden_size=16, num_hidden_layers=2, num_attention_heads=2,
            intermediate_size=32, max_position_embeddings=16, num_labels=3,
        )
    ).eval()  # fmt: skip
    weights = theirs.state_dict()
    own = model.state_dict()
    parts = {
        "encoder.embed.weight": "bert.embeddings.word_embeddings.weight",
        "encoder.positions.table.weight": "bert.embeddings.position_embeddings.weight",
        "encoder.segments.weight": "bert.embeddings.token_type_embeddings.weight",
        "readout.weight": "classifier.weight",
        "readout.bias": "classifier.bias",
    }
    for kind in ("weight", "bias"):
        parts[f"encoder.norm.{kind}"] = f"bert.embeddings.LayerNorm.{kind}"
        for i in range(2):
            ours, other = f"encoder.layers.{i}.", f"bert.encoder.layer.{i}."
            parts[f"{ours}attention.out.{kind}"] = f"{other}attention.output.dense.{kind}"
            parts[f"{ours}attention_norm.{kind}"] = f"{other}attention.output.LayerNorm.{kind}"
            parts[f"{ours}ffn.up.{kind}"] = f"{other}intermediate.dense.{kind}"
            parts[f"{ours}ffn.down.{kind}"] = f"{other}output.dense.{kind}"
            parts[f"{ours}ffn_norm.{kind}"] = f"{other}output.LayerNorm.{kind}"
            qkv = [weights[f"{other}attention.self.{part}.{kind}"] for part in ("query", "key", "value")]
            own[f"{ours}attention.qkv.{kind}"] = torch.cat(qkv)
    own |= {name: weights[other] for name, other in parts.items()}
    model.load_state_dict(own)
    sentences = [["the", "lambs", "lives"], ["rome", "lambs", "lambs", "in"]]
    words = sorted({word for row in sentences for word in row})
    batch = WordTypes.encode(words, pieces).collate(
        [torch.tensor([words.index(w) for w in row]).numpy() for row in sentences]
    )
    with torch.no_grad():
        found = model.readout(model(batch))
        for row, sentence in enumerate(sentences):
            ids = [pieces.tokenizer.sos, *(i for word in sentence for i in pieces.pieces(word)), pieces.tokenizer.eos]
            logits, at = theirs(torch.tensor([ids])).logits[0], 1
            for number, word in enumerate(sentence):
                torch.testing.assert_close(found[row, number], logits[at], atol=1e-5, rtol=1e-5)
                at += len(pieces.pieces(word))


def test_windows_of_pieces_use_every_word_once_and_never_exceed_the_size() -> None:
    pieces = encoder()
    words = ["lambs", "the", "rome", "zzz"] * 12
    windows = list(pieces.windows(words, 20, 4))
    assert [i for _, _, first, last in windows for i in range(first, last)] == list(range(len(words)))
    assert all(start <= first < last <= end for start, end, first, last in windows)
    assert all(pieces.positions(words[start:end]) - pieces.special <= 20 for start, end, _, _ in windows)
    assert list(pieces.windows(words[:3], 20, 4)) == [(0, 3, 0, 3)]


@pytest.mark.parametrize("crf", ["none", "linear"])
def test_a_tagger_of_subwords_trains_labels_and_is_scored(crf: str, tmp_path: Path) -> None:
    Run(tmp_path / "run").train(Recipe.read(None, settings(tmp_path, f"task.crf={crf}")))
    model = regard.load(tmp_path / "run")
    found = model.label("Anna Lindqvist lives in Rome.")
    assert [token.text for token in found.tokens] == ["Anna", "Lindqvist", "lives", "in", "Rome", "."]
    assert len(model.label("Rome is far " * 60).tokens) == 180
    assert len(model.evaluate(EvalRequest(), no_progress).examples) == 60
    assert len(model.saliency("Rome is far").rows) == 3
    with regard.record(model) as trace:
        model.label("Anna lives")
    assert trace.find("*attention.weights")[0].labels["key"][0][0] == "[CLS]"
    with model.record() as recording:
        labeled = model.label("Anna lives")
    lens = recording.lens()  # of the first piece of each word
    assert lens.tokens == ["Anna", "lives"] and lens.actual == [token.tag for token in labeled.tokens]
    assert [output.place for output in model.replay("Anna lives").outputs[:2]] == ["Anna", "lives"]
    with model.record() as recording:  # the first text has more pieces, and fewer words
        labeled = model.label(["Annannanna Annannanna", "Anna lives in Rome"])[0]
    assert recording.condense().find("logits")[0].data.shape[1] == 2
    lens = recording.lens()
    assert lens.tokens == [token.text for token in labeled.tokens] == ["Annannanna"] * 2
    assert lens.actual == [token.tag for token in labeled.tokens]
    more = Recipe.read(None, [*settings(tmp_path)[:2], f"model.init={tmp_path}/run", "train.steps=1"])
    assert more.text.kind == "wordpiece" and more.model.width == 16
    run = Run(tmp_path / "more")
    run.train(more)
    assert (tmp_path / "more" / "tokenizer.json").read_text() == (tmp_path / "run" / "tokenizer.json").read_text()


def test_a_long_sentence_is_truncated_after_the_last_word_that_fits(tmp_path: Path) -> None:
    recipe = Recipe.read(None, settings(tmp_path))
    (tmp_path / "a.conll").write_text(SENTENCE * 30 + "Rome B-LOC\n" * 100, encoding="utf-8")
    counts = recipe.preparation().run(tmp_path / "data", no_progress)
    assert counts["train"]["truncated"] == 1


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["task.char_encoder.kind=lstm"], "subwords have no character encoder"),
        (["task.max_length=10"], "a word may have 64 pieces"),
        (["task.max_length=79"], "set task.max_length to 78, for \\[CLS\\] and \\[SEP\\]"),
        (["task.tokens=words"], 'task.tokens = "words" reads none'),
    ],
)
def test_settings_that_do_not_fit_subwords_are_refused(more: list[str], message: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=message):
        Recipe.read(None, settings(tmp_path, *more))
