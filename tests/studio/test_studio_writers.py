"""Language models in the studio: prompt, generated tokens and logits."""

import numpy as np
import pytest
import torch

import regard
from regard.sequence import Tokens
from regard.studio.service import Studio, TraceRequest

BOOK = "".join(f"The wind blew {word}, and the sea said nothing.\n" for word in ("north", "south", "east", "west") * 60)
SETTINGS = (
    "task.kind=generate", "task.window=32", "data.kind=text", "train.steps=20", "train.validate_every=20",
    "train.batch_tokens=256", "train.schedule.kind=constant", "train.schedule.lr=0.02", "task.samples=0",
)  # fmt: skip
MODELS = {
    "rnnlm": ("model.kind=rnnlm", "model.layers=1", "model.width=16", "model.dropout=0.0", "task.length=12"),
    "gpt": (
        "model.kind=gpt",
        "model.layers=1",
        "model.width=16",
        "model.heads=2",
        "model.max_positions=32",
        "task.length=12",
    ),
    "gpt-far": (
        "model.kind=gpt",
        "model.layers=1",
        "model.width=16",
        "model.heads=2",
        "model.max_positions=32",
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


def run_trace(studio, name):
    model_id = {entry.name: entry.id for entry in studio.model_store.entries()}[name]
    return studio.trace(TraceRequest(model_id, PROMPT))


@pytest.mark.parametrize("name", ["rnnlm", "gpt"])
def test_a_trace_has_the_prompt_and_the_generated_tokens(studio, name):
    trace = run_trace(studio, name)
    words, steps = trace.header["sequences"], trace.header["steps"]
    answer = "".join(word["token"] for word in words["target"])
    assert answer == trace.header["answer"] and len(steps) == 12
    read = "".join(word["token"] for word in words["read"])
    assert read == (PROMPT + answer)[: len(read)] and len(read) == len(PROMPT) + 11
    assert "source" not in words


@pytest.mark.parametrize("name", ["rnnlm", "gpt"])
def test_logits_equal_those_of_a_teacher_forced_pass(studio, name):
    trace = run_trace(studio, name)
    model = regard.load(studio.root / name)
    tokenizer = studio.model_store.encode(studio.model_store.entry(trace.header["model"]["id"]), PROMPT)
    answer = [step["chosen"]["id"] for step in trace.header["steps"]]
    with torch.no_grad():
        features = model.module(Tokens.pad([[]]), Tokens.pad([[*tokenizer.ids, *answer[:-1]]]))
        plain = model.module.readout(features)[0, len(tokenizer.ids) - 1 :]
    recorded = trace.recording.find("logits")[0].data[0]
    np.testing.assert_allclose(recorded.numpy(), plain.numpy(), atol=1e-4)


def test_the_trace_of_a_long_text_has_its_first_window(studio):
    header = run_trace(studio, "gpt-far").header
    words = {name: "".join(word["token"] for word in row) for name, row in header["sequences"].items()}
    assert len(header["answer"]) == 60
    assert header["answer"].startswith(words["target"]) and len(words["target"]) == len(header["steps"]) < 60
    assert words["read"] == (PROMPT + words["target"])[: len(words["read"])]
