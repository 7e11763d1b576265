"""The vectors task: words used alike become neighbors, and training resumes bit for bit."""

import random

import numpy as np
import pytest
import torch

from regard.errors import ConfigError, DataError, Interrupted
from regard.progress import no_progress
from regard.run import Run, load
from regard.tasks import EvalRequest, Recipe
from regard.tasks.vectors.predict import embedding_table
from regard.train.events import Stepped, Validated

BASE = ["task.kind=vectors"]
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
        [
            *BASE,
            data,
            "model.width=16",
            "task.subsample=0",
            "train.batch_tokens=1024",
            "train.schedule.lr=0.02",
            *settings,
        ],
    )


@pytest.fixture(scope="module", params=["skipgram", "cbow"])
def run_and_events(folder, request):
    """A run and its events."""
    run, events = Run(folder / request.param), []
    made = recipe(folder, f"task.method={request.param}", "train.steps=250", "task.sample_inputs=['cat', 'saw']")
    run.train(made, listeners=[events.append])
    return run.path, events


@pytest.fixture(scope="module")
def trained(run_and_events):
    return run_and_events[0]


def test_words_that_are_used_alike_are_neighbors(trained):
    model = load(trained)
    for kind in (ANIMALS, TOOLS):
        for word in kind:
            near = [found.word for found in model.neighbors(word, 20) if found.word in (*ANIMALS, *TOOLS)]
            assert set(near[:3]) == set(kind) - {word}


def test_validation_shows_the_neighbors_of_the_sample_inputs(run_and_events):
    samples = [event for event in run_and_events[1] if isinstance(event, Validated)][-1].samples
    assert [sample["word"] for sample in samples] == ["cat", "saw"]
    for sample, kind in zip(samples, (ANIMALS, TOOLS), strict=True):
        assert next(word for word in sample["output"].split() if word in (*ANIMALS, *TOOLS)) in kind


def test_questions_are_answered_and_counted_by_section(trained, tmp_path):
    file = tmp_path / "questions.txt"
    file.write_text(": same\ncat cat Dog dog\n: none\ncat ghost dog ghost\n", encoding="utf-8")
    found = load(trained).evaluate(EvalRequest([file]), no_progress)
    assert [score.name for score in found.scores] == ["analogies"] and found.unit == "questions"
    assert list(found.detail["sections"]) == ["same"] and found.detail["sections"]["same"][1] == 1
    assert found.summary_lines[-1] == "1 of 2 questions have unknown words"
    file.write_text(": a\ncat dog saw file\n: b\ncat dog saw file\n: a\ncat dog saw drill\n", encoding="utf-8")
    again = load(trained).evaluate(EvalRequest([file]), no_progress)
    assert {name: count for name, (_, count) in again.detail["sections"].items()} == {"a": 2, "b": 1}
    file.write_text("ghost ghost ghost ghost\n", encoding="utf-8")
    with pytest.raises(DataError, match="not one of the 1 questions has four known words"):
        load(trained).evaluate(EvalRequest([file]), no_progress)


def test_a_split_has_the_loss_that_validation_reported(run_and_events):
    score = load(run_and_events[0]).evaluate(EvalRequest(split="valid"), no_progress).scores[0]
    best = min(event.metrics["loss"] for event in run_and_events[1] if isinstance(event, Validated))
    assert score.name == "loss" and score.value == pytest.approx(best, rel=1e-6)
    assert score.low < score.value < score.high and "method:" in score.signature


def test_a_run_that_was_stopped_goes_on_bit_for_bit(folder, tmp_path):
    made = recipe(folder, "train.steps=6", "train.validate_every=2")

    def stop(event):
        if isinstance(event, Stepped) and event.step == 3:
            raise Interrupted("enough")

    whole, resumed = Run(tmp_path / "whole"), Run(tmp_path / "parted")
    whole.train(made)
    with pytest.raises(Interrupted):
        resumed.train(made, listeners=[stop])
    resumed.train(made)
    assert load(whole.path).table.words == load(resumed.path).table.words
    assert np.array_equal(load(whole.path).table.vectors, load(resumed.path).table.vectors)


def test_any_model_that_reads_words_has_a_table_of_them(tmp_path):
    shape = ["model.kind=seq2seq", "model.layers=1", "model.width=8", "train.steps=1", "text.kind=word"]
    Run(tmp_path).train(Recipe.read(None, ["data={kind='phrases', count=200}", "task.share_vocab=false", *shape]))
    model = load(tmp_path)
    source, target = embedding_table(model), embedding_table(model, "target")
    assert "je" in source.indices and "the" in target.indices
    row = source.index("je") + 4
    assert torch.from_numpy(source.vectors[source.index("je")]).equal(model.module.encoder.embed.weight[row])


def test_pieces_of_bytes_are_spelled_as_letters(tmp_path):
    shape = [
        "model.kind=seq2seq",
        "model.layers=1",
        "model.width=8",
        "train.steps=1",
        "text.kind=byte-bpe",
        "text.vocab_size=400",
    ]
    Run(tmp_path).train(Recipe.read(None, ["data={kind='phrases', count=200}", *shape]))
    table = embedding_table(load(tmp_path))
    assert any("é" in word for word in table.words) and not any("\u0120" in word for word in table.words)
    assert table.has_subwords and len(table.whole_words) > 10


def test_a_split_without_known_words_has_no_loss(folder, tmp_path):
    (tmp_path / "other.txt").write_text("ぬ " * 300, encoding="utf-8")
    (tmp_path / "short.txt").write_text("cat " * 5, encoding="utf-8")
    run = Run(tmp_path / "run")
    run.train(recipe(folder, "train.steps=1", f"data.test={tmp_path}/other.txt"))
    with pytest.raises(DataError, match="test: no two words of the vocabulary occur together"):
        load(run.path).evaluate(EvalRequest(split="test"), no_progress)
    short = Run(tmp_path / "short")
    short.train(recipe(folder, "train.steps=1", f"data.test={tmp_path}/short.txt"))
    with pytest.raises(DataError, match="test: there are 6 words to score; at least 128 are needed"):
        load(short.path).evaluate(EvalRequest(split="test"), no_progress)


def test_a_model_of_numbers_has_no_words(tmp_path):
    (tmp_path / "a.csv").write_text(
        "width,label\n" + "".join(f"{i},{'ab'[i % 2]}\n" for i in range(60)), encoding="utf-8"
    )
    data = f"data={{kind='table', train='{tmp_path}/a.csv'}}"
    Run(tmp_path / "run").train(
        Recipe.read(None, ["task.kind=classify", data, "model.kind=mlp", "train.steps=1", "data.valid_share=0.4"])
    )
    with pytest.raises(ConfigError, match="has no word vectors"):
        embedding_table(load(tmp_path / "run"))


def test_a_side_that_a_model_has_not_is_refused(trained):
    with pytest.raises(ConfigError, match="--side target: this model has only its source"):
        embedding_table(load(trained), "target")


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("train.batch_tokens=100", "a batch has at least 128 words"),
        ("train.label_smoothing=0.1", "negative sampling has no label smoothing"),
        ("model.width=0", "must be at least 1"),
        ("train.probe=cat", "name words to show in task.sample_inputs"),
        ("task.method=glove", "skipgram"),
    ],
)
def test_settings_that_mean_nothing_are_refused(setting, message):
    with pytest.raises(ConfigError, match=message):
        Recipe.read(None, [*BASE, setting])


def test_an_unknown_sample_input_is_refused_before_training(folder, tmp_path):
    with pytest.raises(DataError, match='"hose" is none of the'):
        Run(tmp_path / "run").train(recipe(folder, "task.sample_inputs=['hose']"))
    assert not (tmp_path / "run" / "checkpoints").exists()
