"""What the page shows of a model is what the model used, whatever its family."""

import numpy as np
import pytest
import torch

from regard.decode import DecodeConfig, search
from regard.look import Recording
from regard.look.condense import sequences
from regard.look.states import is_state
from regard.sequence import SOS, Tokens
from regard.trace import record, scene, tap
from zoo import ZOO, alone, build, sharpen, words

SPELL = {side: (lambda i: f"w{i}") for side in ("source", "target")}


def recorded(name, beam=3):
    """One sentence, decoded by a beam, as the translator records it."""
    model = build(name)
    sharpen(model)
    source = alone(ZOO[name].source(), 0)
    prompt = Tokens.of([[SOS]])
    told = {"source": [[f"w{i}" for i in row] for row in source.data.tolist()]} if source.data.shape[1] else {}
    with record(model) as trace, scene(**told):
        found = search(model, source, prompt, DecodeConfig(beam=beam, extra=6).strategy(), torch.tensor([6]))
        said = found[0][0].tokens
        with scene(target=[[f"w{i}" for i in said]], sources=torch.arange(1)):
            tap(model, "answer", Tokens.of([said]).data, "batch position:target")
    return Recording(trace, SPELL), list(said), model, source


@pytest.mark.parametrize("name", ZOO)
def test_every_name_becomes_one_tensor_whose_axes_wear_words_that_fit(name):
    recording, said, _, source = recorded(name)
    short = recording.condensed()
    assert [r.name for r in short.records] == [seen.name for seen in recording.names()]
    told = sequences(recording.records, recording.spell)
    assert told["target"] == [[f"w{i}" for i in said]]
    assert told["read"] == [[f"w{i}" for i in [SOS, *said[:-1]]]]
    assert ("source" in told) == bool(source.data.shape[1])
    for tensor in short.header(recording)["tensors"]:
        assert len(tensor["axes"]) == len(tensor["shape"])
        for axis, whose in tensor["sides"].items():
            assert tensor["shape"][tensor["axes"].index(axis)] == len(told[whose][0])
        if "query" in tensor["axes"] or "position" in tensor["axes"]:
            assert {"query", "position"} & set(tensor["sides"]), tensor["name"]


@pytest.mark.parametrize("name", ZOO)
def test_logits_are_those_of_one_plain_pass_over_the_answer(name):
    recording, said, model, source = recorded(name)
    with torch.no_grad():
        plain = model.readout(model(source, Tokens.of([[SOS, *said[:-1]]])))[0]
    shown = recording.condensed().find("logits")[0].data[0]
    assert shown.shape == plain.shape
    torch.testing.assert_close(shown, plain, atol=1e-4, rtol=1e-4)
    steps = recording.condensed().header(recording)["steps"]
    assert [step["chosen"]["id"] for step in steps] == said
    for step, logs in zip(steps, plain.log_softmax(-1), strict=True):
        assert step["log"] == pytest.approx(float(logs[step["chosen"]["id"]]), abs=1e-4)
        assert [c["logit"] for c in step["best"]] == sorted((c["logit"] for c in step["best"]), reverse=True)


@pytest.mark.parametrize("name", ZOO)
def test_attention_and_states_are_the_same_before_and_after(name):
    recording, *_ = recorded(name)
    short = recording.condensed()
    for seen in recording.names():
        if seen.name.endswith("weights"):
            heads = short.find(seen.name)[0].data.shape[1]
            for head in range(heads):
                before, after = (r.attention(seen.name, head=head) for r in (recording, short))
                np.testing.assert_array_equal(before.weights, after.weights)
                assert before.columns == after.columns
        elif is_state(recording.find(seen.name)[0]) and "gate" not in seen.axes:
            units = list(range(seen.shape[-1]))
            before = recording.states(seen.name, units=units)
            held = short.find(seen.name)[0].data[0].numpy()  # a context has a head, what a decoder begins from no place
            np.testing.assert_array_equal(before.values, held.reshape(before.values.shape))


@pytest.mark.parametrize("name", ["transformer", "seq2seq", "rnnsearch", "gpt"])
def test_a_condensed_trace_survives_its_file(name, tmp_path):
    recording, *_ = recorded(name)
    short = recording.condensed()
    short.save(tmp_path / "a.safetensors")
    again = Recording.load(tmp_path / "a.safetensors")
    for before, after in zip(short.records, again.records, strict=True):
        assert (before.name, before.axes) == (after.name, after.axes)
        torch.testing.assert_close(before.data, after.data, equal_nan=True, rtol=0, atol=0)


@pytest.mark.parametrize("name", ["transformer", "gnmt", "gpt"])
def test_the_tree_of_a_beam_holds_the_answer_and_says_why_others_were_left(name):
    recording, said, model, source = recorded(name)
    nodes = recording.condensed().header(recording)["beam"]
    chosen = [node for node in nodes if node["chosen"]]
    assert [node["token"] for node in chosen] == [f"w{i}" for i in said]
    with torch.no_grad():
        logs = model.readout(model(source, Tokens.of([[SOS, *said[:-1]]])))[0].log_softmax(-1).double()
    total = 0.0
    for node, log, word in zip(chosen, logs, said, strict=True):
        total += float(log[word])
        assert node["score"] == pytest.approx(total, abs=1e-3)
    for node in nodes:
        assert node["parent"] is None or nodes[node["parent"]]["step"] == node["step"] - 1
        if node["state"] == "left":
            assert node["best"] <= node["worst"] + 1e-6


def test_a_greedy_search_has_a_tree_without_branches():
    recording, said, *_ = recorded("transformer", beam=1)
    nodes = recording.condensed().header(recording)["beam"]
    assert [node["token"] for node in nodes] == [f"w{i}" for i in said]
    assert all(node["chosen"] for node in nodes)


def test_the_vocabulary_of_the_zoo_is_what_the_headers_best_are_from():
    recording, *_ = recorded("transformer")
    assert all(len(step["best"]) == words.size for step in recording.condensed().header(recording)["steps"])
