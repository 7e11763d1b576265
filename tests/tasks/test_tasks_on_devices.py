"""Every task trains, is evaluated, used and inspected on another device than the CPU, with the results of the CPU.

The other device is a pretend one that refuses what accelerators refuse (tests/pretend_device.py).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch

import regard
from pretend_device import DEVICE, pretend_device
from regard.errors import ConfigError
from regard.progress import no_progress
from regard.run import Run
from regard.tasks import EvalRequest, Recipe
from regard.tasks.vectors.predict import embedding_tables

TRAIN = ["train.steps=4", "train.validate_every=2", "train.schedule.kind=constant", "train.schedule.lr=0.01"]
TRANSFORMER = ["model.kind=transformer", "model.layers=1", "model.heads=2", "model.ffn_width=16"]


@dataclass(frozen=True)
class Case:
    settings: list[str]
    text: str
    """an input of predict_text"""


CASES = {
    "translate": Case(
        ["data={kind='phrases', count=200}", "text.vocab_size=150", "task.bleu_sentences=2", *TRANSFORMER,
         "decode.beam=2", "decode.max_extra_tokens=2", "train.batch_tokens=128"],
        "je suis là",
    ),
    "generate": Case(
        ["task.kind=generate", "data={kind='text', train='{}/verse.txt'}", "text.kind=char", "task.window=8",
         "train.batch_tokens=64", "task.length=12", "model.kind=rnnlm"],
        "the c",
    ),
    "numbers": Case(
        ["task.kind=generate", "data={kind='numbers', train='{}/numbers.csv'}", "task.window=8", "task.length=5",
         "train.batch_tokens=64", "model.kind=rnnlm"],
        "0.5,1\n0.6,2",
    ),
    "classify": Case(
        ["task.kind=classify", "data={kind='tsv', train='{}/reviews.tsv'}", "data.valid_share=0.2",
         "model.kind=recurrent", "text.kind=word"],
        "a good film",
    ),
    "table": Case(
        ["task.kind=classify", "data={kind='table', train='{}/table.csv'}", "data.valid_share=0.2", "model.kind=mlp"],
        "1,2",
    ),
    "label": Case(
        ["task.kind=label", "task.scheme=bio", "task.crf=linear", "task.char_encoder={kind='convolution', width=4}",
         "data={kind='conll', train='{}/names.conll'}", "data.valid_share=0.2", "model.kind=recurrent",
         "model.cell=gru"],
        "Ada lives here",
    ),
    "angles": Case(
        ["task.kind=label", "data={kind='conll', train='{}/angles.conll', label_type='angles'}", "data.valid_share=0.2",
         *TRANSFORMER],
        "north east",
    ),
    "forecast": Case(
        ["task.kind=forecast", "task.horizon=3", "task.window=6", "data={kind='csv', train='{}/load.csv'}",
         "model.kind=mlp", "train.batch_tokens=96"],
        "",
    ),
    "fill": Case(
        ["task.kind=fill", "data={kind='text', train='{}/book.txt', unit='line'}", "text.vocab_size=60",
         "task.length=24", "task.next_sentence=true", "model.kind=bert", "model.layers=1", "model.heads=2",
         "model.ffn_width=16", "train.batch_tokens=128"],
        "the [MASK] number 3 sleeps . [SEP] the bird [MASK]",
    ),
    "vectors": Case(
        ["task.kind=vectors", "data={kind='text', train='{}/book.txt'}", "task.shared_negatives=4",
         "train.batch_tokens=256"],
        "cat",
    ),
}  # fmt: skip


def write_data(folder: Path) -> None:
    lines = [f"the {'cat' if i % 2 else 'dog'} number {i % 7} sleeps and the bird sings .\n" for i in range(160)]
    (folder / "book.txt").write_text("".join(lines), encoding="utf-8")
    (folder / "verse.txt").write_text("".join(lines[:16]), encoding="utf-8")
    waves = [f"{math.sin(i / 3):.3f},{i % 5}\n" for i in range(80)]
    (folder / "numbers.csv").write_text("".join(["a,b\n", *waves]), encoding="utf-8")
    reviews = [f"{'good' if i % 2 else 'bad'}\ta {'good' if i % 2 else 'bad'} film {i}\n" for i in range(60)]
    (folder / "reviews.tsv").write_text("".join(["label\ttext\n", *reviews]), encoding="utf-8")
    table = [f"{i % 4},{i % 3},{'yes' if i % 2 else 'no'}\n" for i in range(60)]
    (folder / "table.csv").write_text("".join(["a,b,label\n", *table]), encoding="utf-8")
    names = [f"Ada B-PER\nlives O\nhere{i} O\n\n" for i in range(40)]
    (folder / "names.conll").write_text("".join(names), encoding="utf-8")
    angles = [f"north{i} {i % 360}\neast 90\n\n" for i in range(40)]
    (folder / "angles.conll").write_text("".join(angles), encoding="utf-8")
    load = [f"{i},{20 + 5 * math.sin(i / 3):.4f},{i % 5}\n" for i in range(120)]
    (folder / "load.csv").write_text("".join(["hour,load,price\n", *load]), encoding="utf-8")


@pytest.fixture
def on_pretend_device(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """`auto` is the pretend device."""

    def resolve(name: str, processes: int = 1, before: str | None = None) -> torch.device:
        return DEVICE if name == "auto" else torch.device(name)

    for module in ("regard.run", "regard.train.trainer"):
        monkeypatch.setattr(f"{module}.resolve_device", resolve)
    with pretend_device():
        yield


def looked_at(model: regard.Model, text: str) -> list[object]:
    """What the views of a model show, as plain data; a view that it does not have is its error."""
    found: list[object] = []
    for view in (model.saliency, lambda text: model.teacher_forced(text).gradients(model.module)):
        try:
            found.append(view(text).to_dict())
        except ConfigError as error:
            found.append(str(error))
    try:
        with model.record() as recording:
            model.run_for_trace(text)
        found.append([(row.name, row.shape, row.count) for row in recording.contents()])
        found.append(recording.condense().header()["tensors"])
    except ConfigError as error:
        found.append(str(error))
    return found


def assert_close(one: object, other: object) -> None:
    """Equal up to the rounding of numbers."""
    assert type(one) is type(other)
    if isinstance(one, dict):
        assert_close(list(one.items()), list(other.items()))
    elif isinstance(one, list | tuple):
        assert len(one) == len(other)
        for a, b in zip(one, other, strict=True):
            assert_close(a, b)
    elif isinstance(one, float):
        assert one == pytest.approx(other, rel=1e-3, abs=1e-3)
    else:
        assert one == other


def words(text: str) -> list[object]:
    """The words and the numbers of an output."""
    parts = re.split(r"([ ,\n])", text)
    return [float(part) if re.fullmatch(r"-?[0-9]+\.[0-9e+-]+", part) else part for part in parts]


@pytest.mark.parametrize("name", CASES)
def test_a_task_trains_and_answers_on_another_device_as_on_the_cpu(name, tmp_path, on_pretend_device):
    write_data(tmp_path)
    case = CASES[name]
    settings = [setting.replace("{}", str(tmp_path)) for setting in case.settings]
    Run(tmp_path / "run").train(
        Recipe.read(None, [*settings, "model.width=8", *([] if name == "vectors" else ["model.dropout=0.0"]), *TRAIN])
    )
    there, here = regard.load(tmp_path / "run"), regard.load(tmp_path / "run", "cpu")
    assert {p.device for p in there.module.parameters()} == {DEVICE}
    assert {p.device.type for p in here.module.parameters()} == {"cpu"}
    text = case.text or (tmp_path / "load.csv").read_text(encoding="utf-8")
    assert_close(words(there.predict_text(text)), words(here.predict_text(text)))
    scores = [[s.value for s in m.evaluate(EvalRequest(split="valid"), no_progress).scores] for m in (there, here)]
    assert scores[0] == pytest.approx(scores[1], rel=1e-3, abs=1e-3)
    assert_close(looked_at(there, text), looked_at(here, text))
    if name == "vectors":
        assert embedding_tables(there)["source"].words == embedding_tables(here)["source"].words
    assert_close(words(there.to("cpu").predict_text(text)), words(here.predict_text(text)))
