"""A language model in the studio: what it read and what it wrote, one token after the other."""

import numpy as np
import pytest
import torch

import regard
from regard.sequence import Tokens
from regard.studio.service import Studio, Wish

BOOK = "".join(f"The wind blew {word}, and the sea said nothing.\n" for word in ("north", "south", "east", "west") * 60)
SETTINGS = (
    "task.kind=generate", "task.window=32", "data.kind=text", "train.steps=20", "train.every=20", "train.tokens=256",
    "train.schedule.kind=constant", "train.schedule.lr=0.02", "task.samples=0",
)  # fmt: skip
MODELS = {
    "rnnlm": ("model.kind=rnnlm", "model.layers=1", "model.width=16", "model.dropout=0.0", "task.length=12"),
    "gpt": (
        "model.kind=gpt",
        "model.layers=1",
        "model.width=16",
        "model.heads=2",
        "model.longest=32",
        "task.length=12",
    ),
    "gpt-far": (
        "model.kind=gpt",
        "model.layers=1",
        "model.width=16",
        "model.heads=2",
        "model.longest=32",
        "task.length=60",
    ),
}
PROMPT = "The wind"


@pytest.fixture(scope="module")
def studio(tmp_path_factory):
    folder = tmp_path_factory.mktemp("writers")
    (folder / "book.txt").write_text(BOOK, encoding="utf-8")
    for name, settings in MODELS.items():
        recipe = regard.Recipe.read(None, [*SETTINGS, *settings, f"data.train={folder / 'book.txt'}"])
        regard.Run(folder / "runs" / name).train(recipe)
    return Studio(folder / "runs", folder / "cache")


def shown(studio, name):
    number = {entry.name: entry.id for entry in studio.library.entries()}[name]
    return studio.trace(Wish(number, PROMPT))


@pytest.mark.parametrize("name", ["rnnlm", "gpt"])
def test_a_prompt_is_read_and_what_follows_is_written(studio, name):
    kept = shown(studio, name)
    words, steps = kept.header["sequences"], kept.header["steps"]
    said = "".join(word["token"] for word in words["target"])
    assert said == kept.header["answer"] and len(steps) == 12
    read = "".join(word["token"] for word in words["read"])
    assert read == (PROMPT + said)[: len(read)] and len(read) == len(PROMPT) + 11
    assert "source" not in words


@pytest.mark.parametrize("name", ["rnnlm", "gpt"])
def test_its_logits_are_those_of_one_plain_pass(studio, name):
    kept = shown(studio, name)
    model = regard.load(studio.root / name)
    tokenizer = studio.library.tokens(studio.library.entry(kept.header["model"]["id"]), PROMPT)
    said = [step["chosen"]["id"] for step in kept.header["steps"]]
    with torch.no_grad():
        features = model.module(Tokens.of([[]]), Tokens.of([[*tokenizer.ids, *said[:-1]]]))
        plain = model.module.readout(features)[0, len(tokenizer.ids) - 1 :]
    recorded = kept.recording.find("logits")[0].data[0]
    np.testing.assert_allclose(recorded.numpy(), plain.numpy(), atol=1e-4)


def test_of_a_text_that_is_written_in_windows_the_first_is_shown(studio):
    header = shown(studio, "gpt-far").header
    words = {name: "".join(word["token"] for word in row) for name, row in header["sequences"].items()}
    assert len(header["answer"]) == 60
    assert header["answer"].startswith(words["target"]) and len(words["target"]) == len(header["steps"]) < 60
    assert words["read"] == (PROMPT + words["target"])[: len(words["read"])]
