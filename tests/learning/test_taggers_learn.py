"""Each encoder learns to label in seconds; a CRF and a character encoder help where they should."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

import regard
from regard.progress import no_progress
from regard.run import Run
from regard.tasks import EvalRequest, Recipe

READERS = {
    "lstm": 'model={kind = "recurrent", width = 32, dropout = 0.0}',
    "gru": 'model={kind = "recurrent", cell = "gru", width = 32, dropout = 0.0}',
    "tanh": 'model={kind = "recurrent", cell = "tanh", width = 32, dropout = 0.0}',
    "convolution": 'model={kind = "convolution", layers = 2, width = 32, dropout = 0.0}',
    "transformer": (
        'model={kind = "transformer", layers = 1, width = 32, ffn_width = 64, heads = 2, dropout = 0.0, norm = "pre"}'
    ),
}
TRAIN = ["task.kind=label", "train.batch_tokens=512", "train.validate_every=1000", "train.schedule.warmup=10"]


def conll(folder: Path, name: str, rows: list[list[tuple[str, str]]]) -> str:
    text = "".join("".join(f"{word} {tag}\n" for word, tag in row) + "\n" for row in rows)
    (folder / name).write_text(text, encoding="utf-8")
    return str(folder / name)


def train_and_score(folder: Path, train: str, test: str, *settings: str) -> dict[str, float]:
    """The scores on a test file after training."""
    data = ["data.kind=conll", f"data.train={train}", f"data.valid={test}", f"data.test={test}"]
    run = Run(folder / "run")
    run.train(Recipe.read(None, [*TRAIN, *data, *settings]))
    return {score.name: score.value for score in regard.load(run.path).evaluate(EvalRequest(), no_progress).scores}


def neighbours(draw: random.Random, count: int) -> list[list[tuple[str, str]]]:
    """Letters, each tagged by whether the next one comes later in the alphabet."""
    rows = []
    for _ in range(count):
        letters = draw.choices("abcdefgh", k=draw.randint(3, 10))
        rows.append([(a, "up" if a < b else "down") for a, b in zip(letters, [*letters[1:], "a"], strict=True)])
    return rows


def learns(reader: str, folder: Path) -> tuple[float, float]:
    draw = random.Random(1)
    train, test = conll(folder, "a", neighbours(draw, 300)), conll(folder, "b", neighbours(draw, 60))
    steps = 400 if reader == "transformer" else 100  # which word is the next one it has to find out
    found = train_and_score(folder, train, test, READERS[reader], f"train.steps={steps}", "train.schedule.lr=0.01")
    return found["accuracy"], found["baseline"]


@pytest.mark.parametrize("reader", ["gru", *(pytest.param(n, marks=pytest.mark.slow) for n in READERS if n != "gru")])
def test_a_tag_that_depends_on_the_next_word_is_learned(reader: str, tmp_path: Path) -> None:
    accuracy, baseline = learns(reader, tmp_path)
    assert accuracy > 95 > 90 > baseline


@pytest.mark.slow
def test_an_encoder_of_single_words_is_no_better_than_the_baseline(tmp_path: Path) -> None:
    READERS["mlp"] = 'model={kind = "mlp", width = 32}'
    try:
        accuracy, baseline = learns("mlp", tmp_path)
    finally:
        del READERS["mlp"]
    assert abs(accuracy - baseline) < 3


@pytest.mark.slow
@pytest.mark.parametrize("letters", ["convolution", "lstm"])
def test_a_character_encoder_tags_unseen_words(letters: str, tmp_path: Path) -> None:
    """Words with endings; those of the test are all new."""
    draw = random.Random(1)

    def rows(count: int) -> list[list[tuple[str, str]]]:
        kinds = {"ing": "VERB", "ly": "ADV", "ness": "NOUN"}
        made = []
        for _ in range(count):
            ends = draw.choices(list(kinds), k=6)
            made.append([("".join(draw.choices("bcdfgklmrt", k=6)) + end, kinds[end]) for end in ends])
        return made

    train, test = conll(tmp_path, "a", rows(150)), conll(tmp_path, "b", rows(30))
    settings = [READERS["gru"], "train.steps=100", "train.schedule.lr=0.01", "task.min_count=2"]
    blind = train_and_score(tmp_path / "blind", train, test, *settings)["accuracy"]
    sharp = train_and_score(
        tmp_path / "sharp", train, test, *settings, f"task.char_encoder.kind={letters}", "task.char_encoder.width=16"
    )
    assert blind < 50 and sharp["accuracy"] > 97


@pytest.mark.slow
def test_a_crf_learns_transitions_between_tags(tmp_path: Path) -> None:
    """Tags alternate, and no word shows which of the two comes first: only the transitions can be learned."""
    draw = random.Random(1)

    def rows(count: int) -> list[list[tuple[str, str]]]:
        made = []
        for _ in range(count):
            first = draw.randint(0, 1)
            made.append([("x" if draw.random() < 0.5 else "yz"[t % 2], "AB"[t % 2]) for t in range(first, first + 9)])
        return made

    train, test = conll(tmp_path, "a", rows(200)), conll(tmp_path, "b", rows(60))
    settings = ['model={kind = "mlp", width = 16}', "train.steps=150", "train.schedule.lr=0.02"]
    independent = train_and_score(tmp_path / "alone", train, test, *settings)["accuracy"]
    chained = train_and_score(tmp_path / "chained", train, test, *settings, "task.crf=linear")["accuracy"]
    assert independent < 85 and chained > 97


@pytest.mark.slow
def test_only_recurrent_and_attention_encoders_learn_the_turn_of_a_chain(tmp_path: Path) -> None:
    errors = {}
    for name in ("lstm", "convolution"):
        run = Run(tmp_path / name)
        settings = ["data.kind=chains", "data.count=600", READERS[name], "train.steps=250", "train.schedule.lr=0.01"]
        run.train(Recipe.read(None, [*TRAIN, *settings, "train.best_metric=mae"]))
        errors[name] = regard.load(run.path).evaluate(EvalRequest(), no_progress).scores[0].value
    assert errors["lstm"] < 15 < 40 < errors["convolution"]
