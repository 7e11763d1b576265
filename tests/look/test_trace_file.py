"""Trace files: every number and token round-trips, and invalid files are refused."""

import json
import re

import pytest
import torch
from safetensors.torch import save_file

import zoo
from helpers import check_refused
from regard.decode.beam import Beam, power_penalty
from regard.decode.hypothesis import collect
from regard.decode.loop import decode
from regard.errors import InputError, ModelError, OutputError
from regard.look import Recording
from regard.sequence import SOS, Tokens
from regard.trace import Record, Trace, record, tap, trace_context

SPELLING = {"target": lambda i: ["<PAD>", "<UNK>", "<SOS>", "<EOS>", " i", " am", " a", " student"][i]}
SOURCES = [[" je", " suis", " un", " étudiant", " ."], [" من", " یک", " دانشجو"], [" 学"]]


def searched(width):
    """A beam search over three sources with its answers, whose tokens are known by their ids only."""
    model = zoo.build("transformer")
    zoo.sharpen(model)
    with record(model) as trace, trace_context(source=SOURCES):
        prompt, limits = Tokens.pad([[SOS]] * 3), torch.tensor([9, 6, 12])
        found = [
            best[0] for best in collect(decode(model, zoo.text(), prompt, Beam(width, power_penalty(1.0)), limits))
        ]
        tap(model, "answer", Tokens.pad([h.tokens for h in found]).data, "batch position")
    return Recording(trace, SPELLING)


@pytest.mark.parametrize("width", [1, 3])
def test_a_file_round_trips_every_number_and_token(tmp_path, width):
    recording = searched(width)
    recording.save(tmp_path / "a.safetensors")
    loaded = Recording.load(tmp_path / "a.safetensors")
    assert len(loaded.records) == len(recording.records)
    for one, two in zip(recording.records, loaded.records, strict=True):
        assert (one.name, one.axes, one.data.dtype, one.data.shape) == (
            two.name,
            two.axes,
            two.data.dtype,
            two.data.shape,
        )
        assert one.data.numpy().tobytes() == two.data.numpy().tobytes()
        assert one.context.keys() == two.context.keys() and one.labels.keys() == two.labels.keys()
    for row in range(3):
        for name in (None, "encoder.*", "decoder.layers.0.attention"):
            one, two = recording.attention(name, row=row), loaded.attention(name, row=row)
            assert one.to_dict() == two.to_dict()
    assert loaded.attention().svg() == recording.attention().svg()
    assert [p.name for p in tmp_path.iterdir()] == ["a.safetensors"]


def test_the_header_is_json_that_other_programs_can_read(tmp_path):
    recording = searched(3)
    recording.save(tmp_path / "a.safetensors")
    raw = (tmp_path / "a.safetensors").read_bytes()
    whole = json.loads(raw[8 : 8 + int.from_bytes(raw[:8], "little")])
    header = json.loads(whole["__metadata__"]["trace"])
    assert header["format"] == "trace/3"
    step = next(r for r in header["records"] if r["tensor"] == "decoder.layers.1.cross.weights/2")
    assert step["axes"] == ["batch", "head", "query", "key"] and step["sides"] == {"query": "target", "key": "source"}
    facts = header["contexts"][step["context"]]
    assert facts["step"] == 2 and facts["source"] == SOURCES and facts["target"]["shape"][1] == 2
    assert header["tokens"]["target"]["2"] == "<SOS>"
    assert whole["encoder.layers.0.attention.weights"]["shape"] == [3, 4, 5, 5]


def test_unusual_facts_and_types_survive_a_file(tmp_path):
    facts = {
        "none": None, "flag": True, "half": 0.5, "worst": float("-inf"), "words": ["a", "😀", "\ud800", "\x00"],
        "scores": torch.tensor([0.1, float("nan")]), "empty": torch.zeros(0, 3, dtype=torch.long),
        "table": {"a": [1, {"b": torch.tensor([True])}]},
    }  # fmt: skip
    shared = torch.randn(2, 3)
    records = [Record(f"r{i}", ("a", "b"), data, {"b": [["x"]]}, facts) for i, data in enumerate(
        (shared, shared.T, shared.bfloat16(), torch.zeros(0, 2), torch.tensor([[True]]), shared.double()))]  # fmt: skip
    Recording(Trace(records=records)).save(tmp_path / "a.safetensors")
    loaded = Recording.load(tmp_path / "a.safetensors").records
    for one, two in zip(records, loaded, strict=True):
        assert one.data.dtype == two.data.dtype and torch.equal(one.data, two.data) and two.labels == {"b": [["x"]]}
    context = loaded[0].context
    assert {k: context[k] for k in ("none", "flag", "half", "worst", "words")} == {
        k: facts[k] for k in ("none", "flag", "half", "worst", "words")
    }
    torch.testing.assert_close(context["scores"], facts["scores"], equal_nan=True, rtol=0, atol=0)
    assert context["empty"].shape == (0, 3) and context["table"]["a"][1]["b"].tolist() == [True]


def test_a_recording_with_gradients_can_be_saved(tmp_path):
    model = zoo.build("transformer")
    with record(model, gradients=True) as trace:
        model(zoo.text(), zoo.TARGET)
    Recording(trace).save(tmp_path / "a.safetensors")
    assert Recording.load(tmp_path / "a.safetensors").attention().to_dict() == Recording(trace).attention().to_dict()


def test_a_wrong_file_is_refused(tmp_path):
    missing, text, other, old = (tmp_path / name for name in ("missing", "text", "other", "old"))
    text.write_text("hello")
    save_file({"a": torch.ones(1)}, other)
    save_file({"a": torch.ones(1)}, old, {"trace": json.dumps({"format": "trace/1"})})
    check_refused(InputError, f"{missing}: no such file", lambda: Recording.load(missing))
    check_refused(InputError, f"{tmp_path}: a folder, expected a trace file", lambda: Recording.load(tmp_path))
    check_refused(
        ModelError,
        f"{other}: safetensors without a trace; expected a file written by Recording.save",
        lambda: Recording.load(other),
    )
    check_refused(
        ModelError,
        f"{old}: expected the format trace/3, found 'trace/1'; save the trace again",
        lambda: Recording.load(old),
    )
    with pytest.raises(ModelError, match=f"^{re.escape(str(text))}: not a trace: it cannot be read as safetensors"):
        Recording.load(text)


@pytest.mark.parametrize(
    "header", ["{", "[]", "{}", '{"format": "trace/3", "contexts": [], "records": [{}], "tokens": {}}']
)
def test_a_damaged_header_is_refused(tmp_path, header):
    save_file({"a": torch.ones(1)}, tmp_path / "a", {"trace": header})
    with pytest.raises(ModelError, match="the trace's header is damaged"):
        Recording.load(tmp_path / "a")


def test_a_path_that_cannot_be_written_is_refused(tmp_path):
    path = tmp_path / "nowhere" / "a.safetensors"
    check_refused(OutputError, f"{path}: cannot be written (No such file or directory)", lambda: searched(1).save(path))


def test_a_context_fact_that_cannot_be_stored_is_refused(tmp_path):
    entry = Record("w", ("a",), torch.ones(1), {}, {"thing": object()})
    check_refused(
        ModelError,
        "context.0.thing: a object cannot be stored; use text, numbers, lists or tensors",
        lambda: Recording(Trace(records=[entry])).save(tmp_path / "a"),
    )
    assert not list(tmp_path.iterdir())
