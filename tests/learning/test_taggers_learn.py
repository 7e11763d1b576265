"""Each kind of encoder learns to label in seconds; a chain and letters are of use where they should be."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

import regard
from regard.objective import silent
from regard.run import Run
from regard.tasks import Asked, Recipe

READERS = {
    "lstm": 'model={kind = "recurrent", width = 32, dropout = 0.0}',
    "gru": 'model={kind = "recurrent", cell = "gru", width = 32, dropout = 0.0}',
    "tanh": 'model={kind = "recurrent", cell = "tanh", width = 32, dropout = 0.0}',
    "convolution": 'model={kind = "convolution", layers = 2, width = 32, dropout = 0.0}',
    "transformer": (
        'model={kind = "transformer", layers = 1, width = 32, inner = 64, heads = 2, dropout = 0.0, norm = "pre"}'
    ),
}
TRAIN = ["task.kind=label", "train.tokens=512", "train.every=1000", "train.schedule.warmup=10"]


def conll(folder: Path, name: str, rows: list[list[tuple[str, str]]]) -> str:
    text = "".join("".join(f"{word} {tag}\n" for word, tag in row) + "\n" for row in rows)
    (folder / name).write_text(text, encoding="utf-8")
    return str(folder / name)


def taught(folder: Path, train: str, test: str, *settings: str) -> dict[str, float]:
    """The scores on a test file after training."""
    data = ["data.kind=conll", f"data.train={train}", f"data.valid={test}", f"data.test={test}"]
    run = Run(folder / "run")
    run.train(Recipe.read(None, [*TRAIN, *data, *settings]))
    return {score.name: score.value for score in regard.load(run.path).evaluate(Asked(), silent).scores}


def neighbours(draw: random.Random, count: int) -> list[list[tuple[str, str]]]:
    """Letters, each with a tag that says whether the next one comes later in the alphabet."""
    rows = []
    for _ in range(count):
        letters = draw.choices("abcdefgh", k=draw.randint(3, 10))
        rows.append([(a, "up" if a < b else "down") for a, b in zip(letters, [*letters[1:], "a"], strict=True)])
    return rows


def learns(reader: str, folder: Path) -> tuple[float, float]:
    draw = random.Random(1)
    train, test = conll(folder, "a", neighbours(draw, 300)), conll(folder, "b", neighbours(draw, 60))
    steps = 400 if reader == "transformer" else 100  # which word is the next one it has to find out
    found = taught(folder, train, test, READERS[reader], f"train.steps={steps}", "train.schedule.lr=0.01")
    return found["accuracy"], found["baseline"]


@pytest.mark.parametrize("reader", ["gru", *(pytest.param(n, marks=pytest.mark.slow) for n in READERS if n != "gru")])
def test_a_tag_that_depends_on_the_next_word_is_learnt(reader: str, tmp_path: Path) -> None:
    accuracy, baseline = learns(reader, tmp_path)
    assert accuracy > 95 > 90 > baseline


@pytest.mark.slow
def test_what_reads_each_word_alone_is_no_better_than_the_usual_answers(tmp_path: Path) -> None:
    READERS["mlp"] = 'model={kind = "mlp", width = 32}'
    try:
        accuracy, baseline = learns("mlp", tmp_path)
    finally:
        del READERS["mlp"]
    assert abs(accuracy - baseline) < 3


@pytest.mark.slow
@pytest.mark.parametrize("letters", ["convolution", "lstm"])
def test_letters_tell_what_words_that_were_never_seen_are(letters: str, tmp_path: Path) -> None:
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
    settings = [READERS["gru"], "train.steps=100", "train.schedule.lr=0.01", "task.least=2"]
    blind = taught(tmp_path / "blind", train, test, *settings)["accuracy"]
    sharp = taught(tmp_path / "sharp", train, test, *settings, f"task.letters.kind={letters}", "task.letters.width=16")
    assert blind < 50 and sharp["accuracy"] > 97


@pytest.mark.slow
def test_a_chain_learns_what_tags_alone_can_tell(tmp_path: Path) -> None:
    """Tags take turns, and no word tells with which of the two a sentence begins: only the steps can be learnt."""
    draw = random.Random(1)

    def rows(count: int) -> list[list[tuple[str, str]]]:
        made = []
        for _ in range(count):
            first = draw.randint(0, 1)
            made.append([("x" if draw.random() < 0.5 else "yz"[t % 2], "AB"[t % 2]) for t in range(first, first + 9)])
        return made

    train, test = conll(tmp_path, "a", rows(200)), conll(tmp_path, "b", rows(60))
    settings = ['model={kind = "mlp", width = 16}', "train.steps=150", "train.schedule.lr=0.02"]
    alone = taught(tmp_path / "alone", train, test, *settings)["accuracy"]
    chained = taught(tmp_path / "chained", train, test, *settings, "task.crf=linear")["accuracy"]
    assert alone < 85 and chained > 97


@pytest.mark.slow
def test_only_what_remembers_learns_to_which_side_a_chain_turns(tmp_path: Path) -> None:
    errors = {}
    for name in ("lstm", "convolution"):
        run = Run(tmp_path / name)
        settings = ["data.kind=chains", "data.count=600", READERS[name], "train.steps=250", "train.schedule.lr=0.01"]
        run.train(Recipe.read(None, [*TRAIN, *settings, "train.select=mae"]))
        errors[name] = regard.load(run.path).evaluate(Asked(), silent).scores[0].value
    assert errors["lstm"] < 8 < 40 < errors["convolution"]
