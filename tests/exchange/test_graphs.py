"""Graphs of models as torch programs and ONNX files: the same results as the model's, and nothing is half-written."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
import tokenizers
import torch
from torch import Tensor

import regard
import zoo
from helpers import refusal
from readers import LOAD, NAMES, READERS, REVIEWS
from regard.cli import invoke
from regard.errors import ConfigError, ModelError, OutputError
from regard.exchange.decoder_graphs import DecoderPlan, decoder_graphs
from regard.exchange.graph import Graph, GraphPlan, Run
from regard.exchange.graph_export import check_graphs, export_graphs
from regard.exchange.graph_inputs import PixelInput, TokenInput
from regard.exchange.graph_plans import plan_graphs
from regard.exchange.onnx import OnnxFormat
from regard.exchange.torch_program import TorchFormat
from regard.tasks import Recipe

DECODERS = {**zoo.ZOO, **zoo.CAPTIONERS}
WITHOUT = ("elmo", "elmo-projected", "rnnlm-every")
"""models that are refused: characters of words, and a condition"""


def eager(plan: GraphPlan) -> Run:
    """Runs the modules of the graphs themselves."""
    graphs = {graph.name: graph.module for graph in plan.graphs}
    return lambda name, inputs: list(graphs[name](*inputs))


def plan_decoder(name: str) -> DecoderPlan:
    model = zoo.build(name).requires_grad_(False)
    zoo.sharpen(model)
    is_text = DECODERS[name].source is zoo.text
    inputs = PixelInput(3, 8, 8) if name in zoo.CAPTIONERS else TokenInput(zoo.V, "source") if is_text else None
    return DecoderPlan(decoder_graphs(model, inputs, zoo.V), {}, {}, inputs, zoo.V)


@pytest.mark.parametrize("name", [name for name in DECODERS if name not in WITHOUT])
def test_steps_of_a_decoder_with_a_growing_state_give_what_the_model_gives(name: str) -> None:
    plan = plan_decoder(name)
    assert plan.check(eager(plan)) < 5e-6
    decoder = plan.graphs[-1]
    inputs, outputs = ({port.name for port in ports} for ports in (decoder.inputs, decoder.outputs))
    assert {f"past{name.removeprefix('present')}" for name in outputs - {"logits"}} <= inputs
    if len(plan.graphs) == 2:  # what the encoder gives is what the decoder takes
        assert {port.name for port in plan.graphs[0].outputs} <= inputs


@pytest.mark.slow
@pytest.mark.parametrize("name", ["transformer", "llama-grouped", "gnmt"])
def test_a_torch_program_takes_any_batch_and_any_length(name: str, tmp_path: Path) -> None:
    plan, form = plan_decoder(name), TorchFormat()
    for graph in plan.graphs:
        form.write(graph, tmp_path / f"{graph.name}.pt2")
    assert check_graphs(plan, form, tmp_path) < 5e-6


HEADS = ("model.layers=1", "model.width=16", "model.heads=2")
STEPS = ("train.steps=2", "train.batch_tokens=256")
TASKS: dict[str, tuple[str, ...]] = {
    "texts": READERS["critic"],
    "pairs": (
        "task.kind=classify", "data={{kind='tsv',train='{}/pairs.tsv',text='text',second='second'}}", "task.pool=first",
        "text.kind=wordpiece", "text.vocab_size=60", "model.kind=bert", *HEADS, "model.max_positions=300",
    ),
    "table": ("task.kind=classify", "data={{kind='table',train='{}/table.csv',label='kind'}}", "model.kind=mlp"),
    "images": ("task.kind=classify", "data={{kind='digits',count=60}}", "model={{kind='cnn',channels=[4,8]}}"),
    "words and CRF": (
        "task.kind=label", "data={{kind='conll',train='{}/names.conll'}}", "model.kind=recurrent", "model.width=8",
        "task.char_encoder.kind=convolution", "task.char_encoder.width=3", "task.crf=linear",
    ),
    "subwords": (
        "task.kind=label", "data={{kind='conll',train='{}/names.conll'}}", "task.tokens=subwords",
        "text.kind=wordpiece", "text.vocab_size=60", "model.kind=bert", *HEADS, "model.max_positions=600",
    ),
    "masks": (
        "task.kind=fill", "data={{kind='text',train='{}/book.txt'}}", "text.vocab_size=60", "model.kind=bert", *HEADS,
        "task.length=32", "model.max_positions=32", "task.next_sentence=true",
    ),
}  # fmt: skip
OUTPUTS = {"words and CRF": ["emissions"], "masks": ["logits", "next_sentence"]}
BOOK = "the cat sees the dog. the dog sees a bird.\n" * 60
TABLE = "width,height,kind\n" + "".join(f"{i % 7},{i % 5},{'ab'[i % 2]}\n" for i in range(60))
PAIRS = "text\tsecond\tlabel\n" + "".join(f"a film {i % 9}\tbad {i % 4}\t{'yn'[i % 2]}\n" for i in range(60))


def train(folder: Path, settings: Sequence[str]) -> Path:
    files = {"reviews.tsv": REVIEWS, "names.conll": NAMES, "book.txt": BOOK, "table.csv": TABLE, "pairs.tsv": PAIRS}
    for file, text in {**files, "load.csv": LOAD}.items():
        (folder / file).write_text(text, encoding="utf-8")
    regard.Run(folder / "run").train(Recipe.read(None, [*(one.format(folder) for one in settings), *STEPS]))
    return folder / "run"


@pytest.mark.parametrize("name", TASKS)
def test_each_task_has_a_graph_that_answers_as_the_model(name: str, tmp_path: Path) -> None:
    run = train(tmp_path, TASKS[name])
    plan = plan_graphs(regard.load(run), run)
    assert plan.check(eager(plan)) < 5e-6
    assert [port.name for port in plan.graphs[0].outputs] == OUTPUTS.get(name, ["logits"])
    assert ("crf.json" in plan.files) == (name == "words and CRF")


@pytest.fixture(scope="module")
def translator(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("translator")
    shape = ["model.kind=luong", "model.layers=1", "model.width=16", "text.vocab_size=120", "task.bleu_sentences=0"]
    return train(folder, ["data={{kind='phrases',count=300}}", *shape, "task.share_vocab=false"])


def check_no_paths(out: Path) -> None:
    """No file names the place of the code on this machine."""
    here = str(Path(regard.__file__).parent).encode()
    assert [path.name for path in out.iterdir() if here in path.read_bytes()] == []


LOAD_ALONE = """
import json, sys, torch
folder = sys.argv[1]
program = torch.export.load(f"{folder}/encoder.pt2").module()
ids = torch.tensor([[5, 6, 7, 3], [8, 3, 0, 0]])
outputs = program(ids, torch.tensor([[1, 1, 1, 1], [1, 1, 0, 0]]))
assert not any(name.split(".")[0] == "regard" for name in sys.modules)
print(json.dumps([outputs[0].tolist(), outputs[1].tolist()]))
"""


@torch.no_grad()
def test_a_torch_program_is_loaded_without_the_code_of_regard(
    translator: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    assert invoke(["export", str(translator), "--to", "torch", "-o", str(out)]) == 0
    assert "its outputs differ from those of regard by at most" in capsys.readouterr().err
    names = {"README.md", "encoder.pt2", "decoder.pt2", "graphs.json", "tokenizer.source.json", "tokenizer.target.json"}
    assert {path.name for path in out.iterdir()} == names
    check_no_paths(out)
    ran = subprocess.run([sys.executable, "-c", LOAD_ALONE, str(out)], cwd=tmp_path, capture_output=True, env={})
    assert ran.returncode == 0, ran.stderr.decode()
    found = [torch.tensor(one) for one in json.loads(ran.stdout)]
    inputs = torch.tensor([[5, 6, 7, 3], [8, 3, 0, 0]]), torch.tensor([[1, 1, 1, 1], [1, 1, 0, 0]])
    own = plan_graphs(regard.load(translator), translator).graphs[0].module(*inputs)
    for theirs, ours in zip(found, own, strict=False):
        torch.testing.assert_close(theirs, ours.to(theirs.dtype), atol=1e-6, rtol=0)


@pytest.mark.slow
def test_onnxruntime_translates_as_regard_does(translator: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert export_graphs(translator, out, OnnxFormat()) < 1e-5
    check_no_paths(out)
    facts = json.loads((out / "graphs.json").read_text())
    encoder, decoder = (onnxruntime.InferenceSession(out / f"{name}.onnx") for name in ("encoder", "decoder"))
    assert [port.shape for port in encoder.get_inputs()] == [["batch", "source"]] * 2
    words = tokenizers.Tokenizer.from_file(str(out / "tokenizer.source.json"))
    target = tokenizers.Tokenizer.from_file(str(out / "tokenizer.target.json"))
    text = "je suis étudiant"
    ids = np.array([words.encode(text).ids])
    given = dict(
        zip(
            [port.name for port in encoder.get_outputs()],
            encoder.run(None, {"input_ids": ids, "attention_mask": np.ones_like(ids)}),
            strict=True,
        )
    )
    last, outputs = facts["start_id"], list[int]()
    while len(outputs) < 5:
        feeds = {port.name: given.get(port.name) for port in decoder.get_inputs()} | {"input_ids": np.array([[last]])}
        logits, *state = decoder.run(None, feeds)
        given |= {
            port.name.replace("present", "past", 1): value
            for port, value in zip(decoder.get_outputs()[1:], state, strict=True)
        }
        logits[..., [facts["pad_id"], facts["start_id"]]] = -np.inf
        last = int(logits.argmax())
        if last == facts["end_id"]:
            break
        outputs.append(last)
    model: Any = regard.load(translator)
    found = model.translator(beam=1).translate([text])[0][0]
    assert target.decode(outputs) == model.vocabularies.target.decode(outputs)
    assert found.tokens[: len(outputs)] == tuple(model.vocabularies.target.tokens(outputs))


def test_what_graphs_cannot_hold_is_refused_by_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = train(tmp_path, READERS["teller"])
    assert invoke(["export", str(run), "--to", "torch", "-o", str(tmp_path / "out")]) == 3
    expected = 'a model of the task forecast with data.kind = "csv" cannot be written as graphs; there are the tasks'
    assert expected in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


class WrongFormat:
    """A format whose graphs give other numbers."""

    name, suffix, title, tolerance = "torch", ".pt2", "torch program", 1e-6

    def __init__(self) -> None:
        self.graphs: dict[str, Graph] = {}

    def write(self, graph: Graph, path: Path) -> None:
        path.write_bytes(b"")
        self.graphs[graph.name] = graph

    def run(self, name: str, inputs: Sequence[Tensor]) -> list[Tensor]:
        return [one * 1.01 if one.is_floating_point() else one for one in self.graphs[name].module(*inputs)]


def test_graphs_that_differ_from_the_model_are_not_written(translator: Path, tmp_path: Path) -> None:
    message = refusal(ModelError, lambda: export_graphs(translator, tmp_path / "out", WrongFormat()))
    assert "the graphs of the torch program files differ from the model's by" in message
    assert "at most 1e-06 is expected, so they are not written" in message
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "out").mkdir()
    message = refusal(OutputError, lambda: export_graphs(translator, tmp_path / "out", WrongFormat()))
    assert message == f"{tmp_path / 'out'} exists already; name another with -o"


def test_without_the_packages_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    message = refusal(ConfigError, OnnxFormat)
    assert message.endswith('install them with: pip install "regard[onnx]", or pip install onnx onnxscript onnxruntime')
