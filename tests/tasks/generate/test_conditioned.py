"""Vec2Seq: texts with a condition each, from their files to generation and scores."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from regard.data.conditioned_texts import ConditionedFiles, NumberNames, SentenceKinds
from regard.data.scaling import StandardScaler
from regard.distributed import ProcessGroup
from regard.errors import ConfigError, DataError
from regard.progress import no_progress
from regard.run import Run, load
from regard.sequence import Tokens
from regard.tasks import EvalRequest, Recipe
from regard.tasks.generate.condition import ClassCondition, NumberCondition, load_condition

WORDS = {"animal": ("cat", "dog", "cow", "hen"), "color": ("red", "blue", "gold", "pink")}
ROWS = [(kind, f"the {word}s are {how}") for kind in WORDS for word in WORDS[kind] for how in ("fine", "old", "new")]


SCALER = StandardScaler(("x", "y"), (1.5, -2.0), (0.5, 300.0))


def write_table(folder: Path, name: str = "words.csv", rows: Any = ROWS) -> Path:
    path, header = folder / name, ("sort", "text")
    if name.endswith(".jsonl"):
        lines = [json.dumps(dict(zip(header, row, strict=True)), ensure_ascii=False) for row in rows]
    else:
        sign = "\t" if name.endswith(".tsv") else ","
        lines = [sign.join(map(str, row)) for row in (header, *rows)]
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def recipe(*settings: str) -> Any:
    common = [
        "task={kind = 'generate', samples = 2, length = 30}",
        "model={kind = 'rnnlm', cell = 'gru', layers = 1, width = 32, dropout = 0.0, condition = 'every'}",
        "train={steps = 60, batch_tokens = 256, schedule = {kind = 'constant', lr = 0.02}}",
    ]
    return Recipe.read(None, [*common, *settings])


@pytest.fixture(scope="module")
def by_class(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("class")
    path = write_table(folder)
    Run(folder / "run").train(recipe(f"data={{kind='conditioned', train='{path}', valid='{path}', label='sort'}}"))
    return folder / "run"


@pytest.mark.parametrize("name", ["words.csv", "words.tsv", "words.jsonl"])
def test_all_kinds_of_tables_give_the_same_examples(name, tmp_path):
    data = ConditionedFiles(train=str(write_table(tmp_path, name)), label="sort", valid_share=0.25)
    found = [*data.examples("train"), *data.examples("valid")]
    assert sorted(example[:2] for example in found) == sorted(ROWS)
    assert 0 < len(list(data.examples("valid"))) < len(ROWS) / 2
    first = next(data.examples("train"))
    assert first.where.startswith(f"{tmp_path}/{name}, line ")


def test_numbers_are_read_from_columns_counted_from_one(tmp_path):
    (tmp_path / "a.tsv").write_text("1\t2.5\tzwölf\n-3\t4e1\tété\n", encoding="utf-8")
    data = ConditionedFiles(train=str(tmp_path / "a.tsv"), test=str(tmp_path / "a.tsv"), text="3", numbers=("1", "2"))
    assert [example[:2] for example in data.examples("test")] == [((1.0, 2.5), "zwölf"), ((-3.0, 40.0), "été")]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({}, 'data: a text is conditioned on a class or on numbers; give either label = "COLUMN" or numbers = '),
        ({"label": "a", "numbers": ("b",)}, "data: a text is conditioned on a class or on numbers"),
        ({"label": "text"}, 'data.text = "text" is also a column of the condition; name another'),
    ],
)
def test_one_condition_must_be_named(settings, message):
    with pytest.raises(ConfigError) as error:
        ConditionedFiles(train="a.csv", **settings)
    assert str(error.value).startswith(message)


@pytest.mark.parametrize(
    ("content", "settings", "message"),
    [
        ("sort,text\nx,\n", {"label": "sort"}, "a.csv, line 2: the text is empty; give every row one, or leave"),
        ("sort,text\n ,b\n", {"label": "sort"}, "a.csv, line 2: the class is empty; give every text one"),
        ("sort,text\n", {"label": "sort"}, "a.csv has no row; expected a text and its condition on each line"),
        ("sort,text\nx,b\n", {"label": "kind"}, 'a.csv has no column "kind" (header: sort, text)'),
        ("size,text\nbig,b\n", {"numbers": ("size",)}, 'a.csv, line 2: "big" in column size is not a number'),
        ("size,text\ninf,b\n", {"numbers": ("size",)}, 'a.csv, line 2: "inf" in column size is not a number'),
    ],
)
def test_bad_rows_are_refused_with_their_line(content, settings, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("a.csv").write_text(content, encoding="utf-8")
    with pytest.raises(DataError) as error:
        list(ConditionedFiles(train="a.csv", test="a.csv", **settings).examples("test"))
    assert str(error.value).startswith(message)


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"text": "b"}, 'a.jsonl, line 1: there is no key "size" (keys: text)'),
        ({"text": "b", "size": True}, "a.jsonl, line 1: expected a number under \"size\", found 'True'"),
        ({"text": "b", "size": "3"}, "a.jsonl, line 1: expected a number under \"size\", found '3'"),
    ],
)
def test_a_number_of_json_lines_is_a_number(entry, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("a.jsonl").write_text(json.dumps(entry) + "\n", encoding="utf-8")
    with pytest.raises(DataError) as error:
        list(ConditionedFiles(train="a.jsonl", test="a.jsonl", numbers=("size",)).examples("test"))
    assert str(error.value) == message


def test_a_column_with_a_class_of_its_own_per_text_is_suspected():
    with pytest.raises(DataError, match=r"30 different classes for 30 texts, .*is it the column of the class\?"):
        ClassCondition.count([str(i) for i in range(30)], "a.csv")


@pytest.mark.parametrize("source", [SentenceKinds(count=400), NumberNames(), NumberNames(language="fr")])
def test_built_in_texts_are_split_without_overlap(source):
    texts = {split: {example[:2] for example in source.examples(split)} for split in source.splits()}
    assert sum(map(len, texts.values())) == len(source.all_examples())
    assert all(len(texts[split]) > 10 for split in ("valid", "test")) and len(texts["train"]) > 300


def test_number_names_are_conditioned_on_their_digits():
    assert ((0.0, 7.0, 1.0), "soixante et onze") in NumberNames(language="fr").all_examples()


def test_conditions_survive_their_file(tmp_path):
    for condition in (
        ClassCondition(("prose", "vers é"), (3, 4)),
        NumberCondition(SCALER),
    ):
        condition.save(tmp_path)
        assert load_condition(tmp_path) == condition


def test_numbers_are_shown_as_they_were_given():
    condition = NumberCondition(SCALER)
    for value in ((1.25, 0), (0, -123456), (3.1, 7)):
        assert condition.describe(condition.encode(value, "")) == ", ".join(f"{number:g}" for number in value)


def test_the_class_decides_what_is_generated(by_class):
    model = load(by_class)
    for name, words in WORDS.items():
        texts = [model.generate(condition=name, seed=seed, temperature=0.5) for seed in range(10)]
        right = [any(f" {word}s " in text for word in words) for text in texts]
        assert sum(right) >= 8, (name, texts)


def test_a_condition_and_a_seed_decide_the_text_in_every_form(by_class):
    model = load(by_class)
    text = model.generate("the ", condition="color", seed=3)
    assert text == model.generate("the ", condition=" color ", seed=3)
    assert text == "".join(model.stream("the ", condition="color", seed=3))
    assert model.generate(["the ", "the"], condition="color", seed=3)[0] == text
    assert model.predict_text("color\tthe ") == model.generate("the ", condition="color")


def test_the_score_of_a_sample_is_its_log_probability_given_the_condition(by_class):
    model = load(by_class)
    sample = model.generator(condition="animal", seed=1).generate("", 40)[0]
    ids = [*model.modality.tokenizer.encode(sample.text).ids, model.modality.tokenizer.eos]
    read = Tokens.pad([[model.modality.tokenizer.sos, *ids[:-1]]])
    with torch.no_grad():
        logits = model.module.readout(model.module(model._source("animal"), read))[0].log_softmax(-1)
    assert sample.complete
    assert float(logits[torch.arange(len(ids)), ids].sum()) == pytest.approx(sample.score, abs=1e-3)


def test_evaluation_scores_each_text_given_its_own_condition(by_class, tmp_path):
    model = load(by_class)
    right = model.evaluate(EvalRequest([write_table(tmp_path)]), no_progress)
    swapped = [("color" if kind == "animal" else "animal", text) for kind, text in ROWS]
    wrong = model.evaluate(EvalRequest([write_table(tmp_path, "swapped.csv", swapped)]), no_progress)
    assert right.unit == "texts" and len(right.per_unit) == len(ROWS)
    assert [count for _, count in right.per_unit] == [len(text) + 1 for _, text in ROWS]
    assert [score.name for score in right.scores] == ["perplexity", "bits", "bits_per_byte"]
    assert wrong.scores[0].value > 1.3 * right.scores[0].value
    nats, counts = zip(*right.per_unit, strict=True)
    assert math.exp(sum(nats) / sum(counts)) == pytest.approx(right.scores[0].value, rel=1e-9)


def test_validation_agrees_with_evaluation_and_shows_texts_of_different_conditions(by_class):
    model = load(by_class)
    objective, _, validate = model.recipe.training_parts(by_class, ProcessGroup())
    objective.model.load_state_dict(model.module.state_dict())
    metrics, samples = validate()
    found = model.evaluate(EvalRequest(split="valid"), no_progress)
    assert metrics["ppl"] == pytest.approx(found.scores[0].value, rel=1e-5)
    assert metrics["bits"] == pytest.approx(found.scores[1].value, rel=1e-5)
    assert [row["condition"] for row in samples] == ["animal", "color"]
    assert all(row["reference"].startswith("the ") and "output" in row for row in samples)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({}, "this model generates from a condition: expected one of animal, color; give it with --condition, in "),
        ({"condition": "colour"}, '--condition: expected one of animal, color, got "colour"; did you mean color?'),
        ({"condition": ""}, '--condition: expected one of animal, color, got ""'),
        ({"condition": (1, 2)}, '--condition: expected one of animal, color, got "(1, 2)"'),
    ],
)
def test_a_condition_that_does_not_fit_is_refused(by_class, settings, message):
    with pytest.raises(ConfigError) as error:
        load(by_class).generate(**settings)
    assert str(error.value).startswith(message)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("1, 2, 3", "--condition: expected 2 numbers (x, y), got 3"),
        ("1", "--condition: expected 2 numbers (x, y), got 1"),
        ("1; b", '--condition: expected 2 numbers (x, y), and "b" is not a number'),
        ((1, float("nan")), '--condition: expected 2 numbers (x, y), and "nan" is not a number'),
        ((True, 1), '--condition: expected 2 numbers (x, y), and "True" is not a number'),
    ],
)
def test_numbers_that_do_not_fit_are_refused(value, message):
    with pytest.raises(ConfigError) as error:
        NumberCondition(SCALER).encode(value, "--condition", ConfigError)
    assert str(error.value) == message


def test_a_class_that_training_had_not_is_refused_with_its_line(by_class, tmp_path):
    path = write_table(tmp_path, "more.csv", [*ROWS, ("taste", "sweet")])
    with pytest.raises(DataError, match=r"more\.csv, line 26: expected one of animal, color, got \"taste\""):
        load(by_class).evaluate(EvalRequest([path]), no_progress)


def test_the_same_texts_can_be_learned_without_their_conditions(tmp_path):
    path = write_table(tmp_path)
    data = f"data={{kind='conditioned', train='{path}', valid='{path}', label='sort'}}"
    settings = ["model={kind='gpt', layers=1, width=8, heads=2, max_positions=16}", "task.window=16", "train.steps=1"]
    Run(tmp_path / "run").train(recipe(data, *settings))
    model = load(tmp_path / "run")
    assert isinstance(model.generate(""), str)
    with pytest.raises(ConfigError, match="this model was trained without a condition; leave it out, or train one"):
        model.generate("", condition="color")


def test_a_conditional_model_needs_texts_with_conditions():
    with pytest.raises(ConfigError) as error:
        recipe("data={kind='text', train='book.txt'}")
    assert str(error.value) == (
        'model.condition = "every" expects a condition with every text, and data.kind = "text" has none; use '
        'data.kind = "conditioned", or model.condition = "none"'
    )


def test_training_is_resumed_to_the_same_weights(tmp_path):
    path = write_table(tmp_path)
    settings = [f"data={{kind='conditioned', train='{path}', valid='{path}', label='sort'}}", "train.steps=8"]
    whole, parts = Run(tmp_path / "whole"), Run(tmp_path / "parts")
    whole.train(recipe(*settings))
    parts.train(recipe(*settings, "train.steps=4"))
    parts.train(recipe(*settings))
    states = [load(run.path).module.state_dict() for run in (whole, parts)]
    assert all(np.array_equal(states[0][name], states[1][name]) for name in states[0])
