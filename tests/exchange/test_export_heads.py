"""BERT that was fine-tuned here, in transformers: the same logits; heads that it does not have are refused by name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForSequenceClassification, AutoModelForTokenClassification, AutoTokenizer

import regard
from helpers import refusal
from readers import NAMES, REVIEWS
from regard.errors import ModelError
from regard.exchange.export import export_run
from regard.tasks import Recipe

BERT = (
    "model.kind=bert", "model.layers=1", "model.width=16", "model.heads=2", "model.ffn_width=32",
    "model.max_positions=300", "text.kind=wordpiece", "text.vocab_size=60", "train.steps=2", "train.batch_tokens=256",
)  # fmt: skip
PAIRS = "text\tsecond\tlabel\n" + "".join(f"a film {i % 9}\tbad {i % 4}\t{'yn'[i % 2]}\n" for i in range(60))
CLASSIFY, LABEL = ("task.kind=classify", "data.kind=tsv"), ("task.kind=label", "data.kind=conll", "task.max_length=200")


def train(folder: Path, *settings: str) -> Any:
    for name, text in {"reviews.tsv": REVIEWS, "names.conll": NAMES, "pairs.tsv": PAIRS}.items():
        (folder / name).write_text(text, encoding="utf-8")
    regard.Run(folder / "run").train(Recipe.read(None, [*BERT, *(one.format(folder) for one in settings)]))
    return regard.load(folder / "run")


def test_a_classifier_says_the_same_in_transformers(tmp_path: Path) -> None:
    for name, file, more in (("one", "reviews", ()), ("pair", "pairs", ("data.second=second",))):
        (tmp_path / name).mkdir()
        model = train(tmp_path / name, *CLASSIFY, f"data.train={{}}/{file}.tsv", "task.pool=first", *more)
        export_run(tmp_path / name / "run", tmp_path / name / "out")
        theirs = AutoModelForSequenceClassification.from_pretrained(tmp_path / name / "out").eval()
        words = AutoTokenizer.from_pretrained(tmp_path / name / "out")
        text = ("this film is great", "bad 3")[: len(more) + 1]
        batch = words(*text, return_tensors="pt")
        source = model.input_encoder.collate([model.input_encoder.encode(["\t".join(text)])[0].row])
        assert batch["input_ids"].tolist() == source.data.tolist()
        if more:
            assert batch["token_type_ids"].tolist() == source.segments.tolist()
        with torch.no_grad():
            expected = theirs(**batch).logits
        torch.testing.assert_close(model.module.readout(model.module(source)), expected, atol=1e-5, rtol=0)
        assert tuple(theirs.config.id2label.values()) == model.labels.names


def test_a_tagger_of_subwords_says_the_same_in_transformers(tmp_path: Path) -> None:
    model = train(tmp_path, *LABEL, "data.train={}/names.conll", "task.tokens=subwords")
    export_run(tmp_path / "run", tmp_path / "out")
    theirs = AutoModelForTokenClassification.from_pretrained(tmp_path / "out").eval()
    batch = AutoTokenizer.from_pretrained(tmp_path / "out")("Ada lives in Rome", return_tensors="pt")
    source, _ = model.artifacts.subwords.collate(["Ada", "lives", "in", "Rome"])
    assert batch["input_ids"].tolist() == source.data.tolist()
    found = model.module.readout(model.module.encoder(source).states.data)
    torch.testing.assert_close(found, theirs(**batch).logits.detach(), atol=1e-5, rtol=0)
    assert tuple(theirs.config.id2label.values()) == model.target.names


REFUSED = {
    "mean pooling": (
        (*CLASSIFY, "data.train={}/reviews.tsv"),
        'task.pool = "mean"; BertForSequenceClassification',
    ),
    "CRF": (
        (*LABEL, "data.train={}/names.conll", "task.tokens=subwords", "task.crf=linear"),
        'task.crf = "linear"; BertForTokenClassification has no CRF',
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_other_heads_are_refused_by_name(name: str, tmp_path: Path) -> None:
    settings, expected = REFUSED[name]
    train(tmp_path, *settings)
    assert expected in refusal(ModelError, lambda: export_run(tmp_path / "run", tmp_path / "out"))
    assert not (tmp_path / "out").exists()
