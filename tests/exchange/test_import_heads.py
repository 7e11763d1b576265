"""Imported classifiers and taggers (BERT, DistilBERT) against transformers: labels, logits, exact round trips."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import (
    AutoModelForSequenceClassification,
    AutoModelForTokenClassification,
    AutoTokenizer,
    BertConfig,
    BertForSequenceClassification,
    BertForTokenClassification,
    DistilBertConfig,
    DistilBertForSequenceClassification,
    DistilBertForTokenClassification,
    PreTrainedModel,
)

import regard
from foreign_models import BERT, DISTILBERT, TEXT, randomized, save, wordpiece
from helpers import refusal
from regard.cli import invoke
from regard.errors import ModelError
from regard.exchange.export import export_run
from regard.exchange.huggingface import import_folder
from regard.train.weights import weights

REVIEWS = ["negative", "neutral", "very positive"]
TAGS = ["O", "B-PER", "I-PER", "B-LOC"]
KINDS: dict[str, tuple[type[PreTrainedModel], Any, list[str] | None]] = {
    "bert-classifier": (BertForSequenceClassification, BertConfig(**BERT | {"num_labels": 3}), REVIEWS),
    "distilbert-classifier": (DistilBertForSequenceClassification, DistilBertConfig(**DISTILBERT), None),
    "bert-tagger": (BertForTokenClassification, BertConfig(**BERT | {"max_position_embeddings": 80}), TAGS),
    "distilbert-tagger": (
        DistilBertForTokenClassification, DistilBertConfig(**DISTILBERT | {"max_position_embeddings": 80}), TAGS,
    ),
}  # fmt: skip


def make_folder(name: str, folder: Path) -> PreTrainedModel:
    kind, config, labels = KINDS[name]
    words = wordpiece()
    config.vocab_size = words.get_vocab_size()
    if labels is not None:
        config.id2label, config.label2id = dict(enumerate(labels)), {label: i for i, label in enumerate(labels)}
    model = randomized(kind(config))
    save(model, words, folder, tokenizer_class="BertTokenizerFast")
    return model


@pytest.fixture(params=KINDS, scope="module")
def imported(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Any, Path, Path]:
    """Name, their model, its folder, and the run."""
    home = tmp_path_factory.mktemp(request.param)
    theirs = make_folder(request.param, home / "saved")
    assert import_folder(home / "saved", home / "run") == []
    return request.param, theirs, home / "saved", home / "run"


@torch.no_grad()
def test_labels_and_probabilities_are_those_of_transformers(imported: tuple[str, Any, Path, Path]) -> None:
    name, theirs, saved, run = imported
    model: Any = regard.load(run)
    words = AutoTokenizer.from_pretrained(saved)
    names = theirs.config.id2label
    if "classifier" in name:
        pairs = [(TEXT[0], TEXT[2])] * ("distil" not in name)  # its tokenizer here has segments, the model has none
        for text in [*[(text,) for text in TEXT], *pairs]:
            probs = theirs(**words(*text, return_tensors="pt")).logits.softmax(-1)[0]
            found = model.classify("\t".join(text), top=3)[0]
            order = probs.argsort(descending=True).tolist()
            assert [one.label for one in found] == [names[i] for i in order]
            assert [one.probability for one in found] == pytest.approx(probs[order].tolist(), abs=1e-5)
        assert model.classify((TEXT[0], TEXT[2])) in names.values()
        return
    text = "Many hands make light work, and she sells"
    batch = words(text, return_tensors="pt")
    logits = theirs(**{key: batch[key] for key in ("input_ids", "attention_mask")}).logits[0]
    firsts: dict[int, int] = {}
    for at, word in enumerate(batch.word_ids()):
        if word is not None:
            firsts.setdefault(word, at)
    probs = logits.softmax(-1)[list(firsts.values())]
    tokens = model.label(text).tokens
    assert [token.tag for token in tokens] == [names[i] for i in probs.argmax(-1).tolist()]
    assert [token.probability for token in tokens] == pytest.approx(probs.amax(-1).tolist(), abs=1e-5)


def test_a_round_trip_is_exact_and_transformers_reads_the_export(
    imported: tuple[str, Any, Path, Path], tmp_path: Path
) -> None:
    name, theirs, saved, run = imported
    export_run(run, tmp_path / "out")
    import_folder(tmp_path / "out", tmp_path / "again")
    before, after = regard.load(run), regard.load(tmp_path / "again")
    ours, again = weights(before.module), weights(after.module)
    assert ours.keys() == again.keys() and all(torch.equal(ours[key], again[key]) for key in ours)
    assert before.recipe.model == after.recipe.model and before.recipe.task == after.recipe.task
    reader = AutoModelForSequenceClassification if "classifier" in name else AutoModelForTokenClassification
    read = reader.from_pretrained(tmp_path / "out").eval()
    ids = AutoTokenizer.from_pretrained(tmp_path / "out")(TEXT[0], return_tensors="pt")["input_ids"]
    assert ids.tolist() == AutoTokenizer.from_pretrained(saved)(TEXT[0], return_tensors="pt")["input_ids"].tolist()
    with torch.no_grad():
        torch.testing.assert_close(read(ids).logits, theirs(ids).logits, atol=1e-5, rtol=0)
    assert read.config.id2label == theirs.config.id2label


def test_it_is_evaluated_looked_into_and_fine_tuned_with_its_head(
    imported: tuple[str, Any, Path, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    name, theirs, _, run = imported
    labels = list(theirs.config.id2label.values())
    words = [line.split() for line in TEXT for _ in range(10)]
    if "classifier" in name:
        lines = [f"{labels[i % len(labels)]}\t{' '.join(row[i % 3 :])} {i}" for i, row in enumerate(words)]
        Path("mine.tsv").write_text("label\ttext\n" + "\n".join(lines), encoding="utf-8")
        pool = "first-relu" if "distil" in name else "first"
        task, verb = f'kind = "classify", pool = "{pool}", max_length = 30', "classify"
        data, columns = 'kind = "tsv", train = "mine.tsv"', "mine.tsv"
    else:
        rows = [
            "\n".join(f"{word}{i} {labels[(i + k) % 4]}" for k, word in enumerate(row)) for i, row in enumerate(words)
        ]
        Path("mine.conll").write_text("\n\n".join(rows), encoding="utf-8")
        task, verb = 'kind = "label", tokens = "subwords", max_length = 70', "label"
        data, columns = 'kind = "conll", train = "mine.conll"', "mine.conll"
    Path("tune.toml").write_text(
        f"task = {{{task}}}\ndata = {{{data}}}\ntrain = {{steps = 2, batch_tokens = 256}}\n", encoding="utf-8"
    )
    for command in (
        [verb, run, TEXT[0]],
        ["eval", run, "--data", columns],
        ["look", run, TEXT[0]],
        ["runs", "show", run],
        ["train", "tune.toml", "--from", run, "--out", "tuned", "--quiet"],
        [verb, "tuned", TEXT[0]],
    ):
        assert invoke([str(word) for word in command]) == 0, (command, capsys.readouterr().err)
    report = json.loads(Path("tuned/init.json").read_text(encoding="utf-8"))
    assert {"readout.weight", "readout.bias"} <= set(report["loaded"])


def test_heads_that_are_not_here_are_refused_by_name(tmp_path: Path) -> None:
    make_folder("bert-classifier", tmp_path / "saved")
    path = tmp_path / "saved" / "config.json"
    config = json.loads(path.read_text(encoding="utf-8"))
    for change, expected in (
        ({"problem_type": "multi_label_classification"}, "problem_type = 'multi_label_classification'"),
        ({"id2label": {"0": "yes", "1": "no"}}, "'classifier.weight' is [3, 24], expected [2, 24]"),
        ({"id2label": {"0": "score"}}, "id2label has 1 labels"),
        ({"architectures": ["BertForMultipleChoice"]}, "2 that the model does not have ('classifier.bias'"),
        ({"architectures": ["BertForTokenClassification"]}, "it has 40 positions, and taggers here need 66 or more"),
    ):
        path.write_text(json.dumps(config | change), encoding="utf-8")
        assert expected in refusal(ModelError, lambda: import_folder(tmp_path / "saved", tmp_path / "run"))
        assert not (tmp_path / "run").exists()
