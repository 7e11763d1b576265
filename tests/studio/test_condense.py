"""Condensed traces contain the values that the model used, for all model families."""

import numpy as np
import pytest
import torch

from regard.decode import DecodeConfig, search
from regard.look import Recording
from regard.look.condense import sequences
from regard.look.states import is_state
from regard.sequence import SOS, Tokens
from regard.trace import record, tap, trace_context
from zoo import ZOO, build, sharpen, single_row, words

SPELL = {side: (lambda i: f"w{i}") for side in ("source", "target")}


def record_search(name, beam=3):
    """Recording of a beam search for one sentence, as the translator records it."""
    model = build(name)
    sharpen(model)
    source = single_row(ZOO[name].source(), 0)
    prompt = Tokens.pad([[SOS]])
    context = {"source": [[f"w{i}" for i in row] for row in source.data.tolist()]} if source.data.shape[1] else {}
    with record(model) as trace, trace_context(**context):
        found = search(model, source, prompt, DecodeConfig(beam=beam, max_extra_tokens=6).strategy(), torch.tensor([6]))
        answer = found[0][0].tokens
        with trace_context(target=[[f"w{i}" for i in answer]], sources=torch.arange(1)):
            tap(model, "answer", Tokens.pad([answer]).data, "batch position:target")
    return Recording(trace, SPELL), list(answer), model, source


@pytest.mark.parametrize("name", ZOO)
def test_every_name_becomes_one_tensor_whose_axes_have_matching_tokens(name):
    recording, answer, _, source = record_search(name)
    condensed = recording.condense()
    names = [r.name for r in condensed.records if not r.name.endswith(".rollout")]  # those are computed from the others
    assert names == [seen.name for seen in recording.contents()]
    context = sequences(recording.records, recording.id_to_token)
    assert context["target"] == [[f"w{i}" for i in answer]]
    assert context["read"] == [[f"w{i}" for i in [SOS, *answer[:-1]]]]
    assert ("source" in context) == bool(source.data.shape[1])
    for tensor in condensed.header(recording)["tensors"]:
        assert len(tensor["axes"]) == len(tensor["shape"])
        for axis, whose in tensor["sides"].items():
            assert tensor["shape"][tensor["axes"].index(axis)] == len(context[whose][0])
        if "query" in tensor["axes"] or "position" in tensor["axes"]:
            assert {"query", "position"} & set(tensor["sides"]), tensor["name"]


@pytest.mark.parametrize("name", ZOO)
def test_logits_equal_those_of_a_teacher_forced_pass_over_the_answer(name):
    recording, answer, model, source = record_search(name)
    with torch.no_grad():
        plain = model.readout(model(source, Tokens.pad([[SOS, *answer[:-1]]])))[0]
    shown = recording.condense().find("logits")[0].data[0]
    assert shown.shape == plain.shape
    torch.testing.assert_close(shown, plain, atol=1e-4, rtol=1e-4)
    steps = recording.condense().header(recording)["steps"]
    assert [step["chosen"]["id"] for step in steps] == answer
    for step, logs in zip(steps, plain.log_softmax(-1), strict=True):
        assert step["log_prob"] == pytest.approx(float(logs[step["chosen"]["id"]]), abs=1e-4)
        assert [c["logit"] for c in step["best"]] == sorted((c["logit"] for c in step["best"]), reverse=True)


@pytest.mark.parametrize("name", ZOO)
def test_attention_and_states_do_not_change_by_condensing(name):
    recording, *_ = record_search(name)
    condensed = recording.condense()
    for seen in recording.contents():
        if seen.name.endswith("weights"):
            heads = condensed.find(seen.name)[0].data.shape[1]
            for head in range(heads):
                before, after = (r.attention(seen.name, head=head) for r in (recording, condensed))
                np.testing.assert_array_equal(before.weights, after.weights)
                assert before.columns == after.columns
        elif is_state(recording.find(seen.name)[0]) and "gate" not in seen.axes:
            units = list(range(seen.shape[-1]))
            before = recording.states(seen.name, units=units)
            condensed_values = (
                condensed.find(seen.name)[0].data[0].numpy()
            )  # a context has a head axis, an initial state no position
            np.testing.assert_array_equal(before.values, condensed_values.reshape(before.values.shape))


@pytest.mark.parametrize("name", ["transformer", "seq2seq", "rnnsearch", "gpt"])
def test_a_condensed_trace_is_loaded_unchanged_from_its_file(name, tmp_path):
    recording, *_ = record_search(name)
    condensed = recording.condense()
    condensed.save(tmp_path / "a.safetensors")
    again = Recording.load(tmp_path / "a.safetensors")
    for before, after in zip(condensed.records, again.records, strict=True):
        assert (before.name, before.axes) == (after.name, after.axes)
        torch.testing.assert_close(before.data, after.data, equal_nan=True, rtol=0, atol=0)


@pytest.mark.parametrize("name", ["transformer", "gnmt", "gpt"])
def test_the_beam_tree_contains_the_answer_and_the_scores_of_pruned_hypotheses(name):
    recording, answer, model, source = record_search(name)
    nodes = recording.condense().header(recording)["beam"]
    chosen = [node for node in nodes if node["chosen"]]
    assert [node["token"] for node in chosen] == [f"w{i}" for i in answer]
    with torch.no_grad():
        logs = model.readout(model(source, Tokens.pad([[SOS, *answer[:-1]]])))[0].log_softmax(-1).double()
    total = 0.0
    for node, log, word in zip(chosen, logs, answer, strict=True):
        total += float(log[word])
        assert node["score"] == pytest.approx(total, abs=1e-3)
    for node in nodes:
        assert node["parent"] is None or nodes[node["parent"]]["step"] == node["step"] - 1
        if node["state"] == "pruned":
            assert node["best"] <= node["worst"] + 1e-6


def test_the_tree_of_a_greedy_search_has_no_branches():
    recording, answer, *_ = record_search("transformer", beam=1)
    nodes = recording.condense().header(recording)["beam"]
    assert [node["token"] for node in nodes] == [f"w{i}" for i in answer]
    assert all(node["chosen"] for node in nodes)


def test_a_small_vocabulary_is_listed_completely_at_each_step():
    recording, *_ = record_search("transformer")
    assert all(len(step["best"]) == words.size for step in recording.condense().header(recording)["steps"])
