"""The job of learning word vectors: words that are used alike come to lie together, and it goes on bit for bit."""

import random

import numpy as np
import pytest
import torch

from regard.errors import ConfigError, DataError, Interrupted
from regard.objective import silent
from regard.run import Run, load
from regard.tasks import Asked, Recipe
from regard.tasks.vectors.embeddings import embeddings
from regard.train.events import Stepped, Validated

LEAST = ["task.kind=vectors"]
ANIMALS, TOOLS = ("cat", "dog", "horse", "cow"), ("hammer", "saw", "drill", "file")


def book(lines=1500, seed=1):
    """Animals eat and sleep, tools cut and break: nothing else tells them apart."""
    draw = random.Random(seed)
    verbs = {ANIMALS: ("eats", "sleeps", "runs", "drinks"), TOOLS: ("cuts", "breaks", "rusts", "drops")}
    made = []
    for _ in range(lines):
        kind = draw.choice((ANIMALS, TOOLS))
        made.append(f"the {draw.choice(kind)} {draw.choice(verbs[kind])} and the {draw.choice(kind)} too .")
    return "\n".join(made) + "\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    home = tmp_path_factory.mktemp("words")
    (home / "book.txt").write_text(book(), encoding="utf-8")
    return home


def recipe(folder, *settings):
    data = f"data={{kind = 'text', train = '{folder}/book.txt', unit = 'line'}}"
    return Recipe.read(
        None,
        [*LEAST, data, "model.width=16", "task.common=0", "train.tokens=1024", "train.schedule.lr=0.02", *settings],
    )


@pytest.fixture(scope="module", params=["skipgram", "cbow"])
def told(folder, request):
    """A run, and what was told of it."""
    run, events = Run(folder / request.param), []
    made = recipe(folder, f"task.method={request.param}", "train.steps=250", "task.tried=['cat', 'saw']")
    run.train(made, listeners=[events.append])
    return run.path, events


@pytest.fixture(scope="module")
def trained(told):
    return told[0]


def test_words_that_are_used_alike_are_neighbours(trained):
    model = load(trained)
    for kind in (ANIMALS, TOOLS):
        for word in kind:
            near = [found.word for found in model.neighbours(word, 20) if found.word in (*ANIMALS, *TOOLS)]
            assert set(near[:3]) == set(kind) - {word}


def test_validation_tells_the_neighbours_of_the_words_that_are_tried(told):
    samples = [event for event in told[1] if isinstance(event, Validated)][-1].samples
    assert [sample["word"] for sample in samples] == ["cat", "saw"]
    for sample, kind in zip(samples, (ANIMALS, TOOLS), strict=True):
        assert next(word for word in sample["output"].split() if word in (*ANIMALS, *TOOLS)) in kind


def test_questions_are_answered_and_counted_by_section(trained, tmp_path):
    file = tmp_path / "questions.txt"
    file.write_text(": same\ncat cat Dog dog\n: none\ncat ghost dog ghost\n", encoding="utf-8")
    found = load(trained).evaluate(Asked([file]), silent)
    assert [score.name for score in found.scores] == ["analogies"] and found.unit == "questions"
    assert list(found.detail["sections"]) == ["same"] and found.detail["sections"]["same"][1] == 1
    assert found.told[-1] == "1 of 2 questions have unknown words"
    file.write_text(": a\ncat dog saw file\n: b\ncat dog saw file\n: a\ncat dog saw drill\n", encoding="utf-8")
    again = load(trained).evaluate(Asked([file]), silent)
    assert {name: count for name, (_, count) in again.detail["sections"].items()} == {"a": 2, "b": 1}
    file.write_text("ghost ghost ghost ghost\n", encoding="utf-8")
    with pytest.raises(DataError, match="not one of the 1 questions has four known words"):
        load(trained).evaluate(Asked([file]), silent)


def test_a_split_has_the_loss_that_validation_told(told):
    score = load(told[0]).evaluate(Asked(split="valid"), silent).scores[0]
    best = min(event.metrics["loss"] for event in told[1] if isinstance(event, Validated))
    assert score.name == "loss" and score.value == pytest.approx(best, rel=1e-6)
    assert score.low < score.value < score.high and "method:" in score.signature


def test_a_run_that_was_stopped_goes_on_bit_for_bit(folder, tmp_path):
    made = recipe(folder, "train.steps=6", "train.every=2")

    def stop(event):
        if isinstance(event, Stepped) and event.step == 3:
            raise Interrupted("enough")

    whole, parted = Run(tmp_path / "whole"), Run(tmp_path / "parted")
    whole.train(made)
    with pytest.raises(Interrupted):
        parted.train(made, listeners=[stop])
    parted.train(made)
    assert load(whole.path).table.words == load(parted.path).table.words
    assert np.array_equal(load(whole.path).table.numbers, load(parted.path).table.numbers)


def test_any_model_that_reads_words_has_a_table_of_them(tmp_path):
    shape = ["model.kind=seq2seq", "model.layers=1", "model.width=8", "train.steps=1", "text.kind=word"]
    Run(tmp_path).train(Recipe.read(None, ["data={kind='phrases', count=200}", "task.joint=false", *shape]))
    model = load(tmp_path)
    source, target = embeddings(model), embeddings(model, "target")
    assert "je" in source.places and "the" in target.places
    row = source.place("je") + 4
    assert torch.from_numpy(source.numbers[source.place("je")]).equal(model.module.encoder.embed.weight[row])


def test_pieces_of_bytes_are_spelled_as_letters(tmp_path):
    shape = [
        "model.kind=seq2seq",
        "model.layers=1",
        "model.width=8",
        "train.steps=1",
        "text.kind=byte-bpe",
        "text.size=400",
    ]
    Run(tmp_path).train(Recipe.read(None, ["data={kind='phrases', count=200}", *shape]))
    table = embeddings(load(tmp_path))
    assert any("é" in word for word in table.words) and not any("\u0120" in word for word in table.words)
    assert table.pieces and len(table.whole) > 10


def test_a_split_without_known_words_has_no_loss(folder, tmp_path):
    (tmp_path / "other.txt").write_text("ぬ " * 300, encoding="utf-8")
    (tmp_path / "short.txt").write_text("cat " * 5, encoding="utf-8")
    run = Run(tmp_path / "run")
    run.train(recipe(folder, "train.steps=1", f"data.test={tmp_path}/other.txt"))
    with pytest.raises(DataError, match="test: no two known words stand together"):
        load(run.path).evaluate(Asked(split="test"), silent)
    short = Run(tmp_path / "short")
    short.train(recipe(folder, "train.steps=1", f"data.test={tmp_path}/short.txt"))
    with pytest.raises(DataError, match="test: there are 6 words to score; at least 128 are needed"):
        load(short.path).evaluate(Asked(split="test"), silent)


def test_a_model_of_numbers_has_no_words(tmp_path):
    (tmp_path / "a.csv").write_text(
        "width,label\n" + "".join(f"{i},{'ab'[i % 2]}\n" for i in range(60)), encoding="utf-8"
    )
    data = f"data={{kind='table', train='{tmp_path}/a.csv'}}"
    Run(tmp_path / "run").train(
        Recipe.read(None, ["task.kind=classify", data, "model.kind=mlp", "train.steps=1", "task.held_out=0.4"])
    )
    with pytest.raises(ConfigError, match="has no vectors of words"):
        embeddings(load(tmp_path / "run"))


def test_a_side_that_a_model_has_not_is_refused(trained):
    with pytest.raises(ConfigError, match="--side target: this model has only its source"):
        embeddings(load(trained), "target")


@pytest.mark.parametrize(
    ("setting", "told"),
    [
        ("train.tokens=100", "a batch has at least 128 words"),
        ("train.smoothing=0.1", "guesses are told from noise"),
        ("model.width=0", "must be at least 1"),
        ("train.probe=cat", "task.tried names words to show"),
        ("task.method=glove", "skipgram"),
    ],
)
def test_settings_that_mean_nothing_are_refused(setting, told):
    with pytest.raises(ConfigError, match=told):
        Recipe.read(None, [*LEAST, setting])


def test_a_word_that_is_tried_and_unknown_is_told_before_anything_is_learnt(folder, tmp_path):
    with pytest.raises(DataError, match='"hose" is none of the'):
        Run(tmp_path / "run").train(recipe(folder, "task.tried=['hose']"))
    assert not (tmp_path / "run" / "checkpoints").exists()
