"""Interventions: each changes what it should and nothing else, for all models; invalid ones are refused."""

import math
import shutil
from dataclasses import replace

import numpy as np
import pytest
import torch

import regard
from regard.nn.kv_cache import KVCache
from regard.sequence import Tokens
from regard.studio.interventions import parse_intervention
from regard.studio.service import Studio, TraceRequest

TEXT = "je suis étudiant"
CROSS = "decoder.layers.1.cross.weights"
SELF = "decoder.layers.0.attention.weights"


@pytest.fixture(scope="module")
def studio(server):
    return server.studio


def run_trace(studio, name, beam=2):
    number = next(entry.id for entry in studio.model_store.entries() if entry.name == name)
    return studio.trace(TraceRequest(number, TEXT, beam))


@pytest.fixture(scope="module")
def trace(studio):
    return run_trace(studio, "transformer")


@pytest.fixture(scope="module")
def greedy(studio):
    return run_trace(studio, "transformer", 1)


def fork(server, trace, **change):
    response = server.post(f"/api/v1/traces/{trace.header['id']}/fork", {"change": change})
    assert response.status == 201, response.body
    return server.studio.trace_store.get(response.table["id"])


def values(trace, name):
    return trace.recording.find(name)[0].data[0].numpy()


def answer_ids(trace):
    return [step["chosen"]["id"] for step in trace.header["steps"]]


def encode_source(model):
    return model.translator().pad_source(model.vocabularies.source.encode_batch([TEXT]))


def plain_logits(model, ids):
    with torch.no_grad():
        features = model.module(encode_source(model), Tokens.pad([[model.vocabularies.target.sos, *ids[:-1]]]))
        return model.module.readout(features)[0].numpy()


def test_an_ablated_head_has_zero_weights_in_its_fork_only(server, trace):
    after = fork(server, trace, kind="head", tensor=CROSS, head=2)
    summary = after.header["fork"]
    assert (summary["base"], summary["answer"]) == (trace.header["id"], trace.header["answer"])
    assert summary["changes"] == [{"kind": "head", "tensor": CROSS, "head": 2}]
    weights = values(after, CROSS)
    assert not weights[2].any() and weights[[0, 1, 3]].sum(-1) == pytest.approx(1, abs=1e-5)
    assert not values(after, "decoder.layers.1.cross.context")[2].any()
    np.testing.assert_array_equal(values(after, "encoder.residual"), values(trace, "encoder.residual"))
    again = fork(server, after, kind="head", tensor=CROSS, head=0)
    assert [change["head"] for change in again.header["fork"]["changes"]] == [2, 0]
    assert again.header["fork"]["base"] == trace.header["id"] and not values(again, CROSS)[[0, 2]].any()
    assert run_trace(server.studio, "transformer").header["answer"] == trace.header["answer"]


@pytest.mark.parametrize(
    ("name", "tensor", "query"),
    [
        ("transformer", CROSS, 1),
        ("transformer", "encoder.layers.0.attention.weights", 2),
        ("transformer", SELF, 2),
        ("rnnsearch", "decoder.cross.weights", 1),
    ],
)
def test_the_model_continues_with_an_edited_attention_row(server, studio, name, tensor, query):
    before = run_trace(studio, name, 1)
    keys = values(before, tensor).shape[-1]
    row = [0.0] * keys
    row[0], row[1] = 0.25, 0.75
    after = fork(server, before, kind="row", tensor=tensor, head=0, query=query, weights=row)
    old, new = values(before, tensor), values(after, tensor)
    assert new[0, query].tolist() == pytest.approx(row)
    np.testing.assert_array_equal(new[0, :query], old[0, :query])
    context, base = values(after, tensor.replace("weights", "context")), tensor.removesuffix("weights")
    if after.recording.find(f"{base}values"):
        np.testing.assert_allclose(context[0, query], new[0, query] @ values(after, f"{base}values")[0], atol=1e-5)
    assert np.abs(context[0, query] - values(before, tensor.replace("weights", "context"))[0, query]).max() > 1e-5
    assert after.header["fork"]["differences"]


def test_the_search_continues_from_a_forced_token(server, greedy, folder):
    step, model = 1, regard.load(folder / "transformer")
    other = greedy.header["steps"][step]["best"][1]
    after = fork(server, greedy, kind="token", step=step, id=other["id"])
    ids = answer_ids(after)
    assert ids[: step + 1] == [*answer_ids(greedy)[:step], other["id"]]
    assert after.header["fork"]["changes"][0]["label"] == other["label"]
    logits = plain_logits(model, ids)
    np.testing.assert_allclose(values(after, "logits"), logits, atol=1e-4)  # of the model, without the logits processor
    eos, least = model.vocabularies.target.eos, model.recipe.decode.min_length
    for t in range(step + 1, len(ids)):
        allowed = logits[t].copy()
        if t < least:
            allowed[eos] = -math.inf
        assert ids[t] == int(allowed.argmax())
    np.testing.assert_array_equal(values(after, "logits")[: step + 1], values(greedy, "logits")[: step + 1])
    # a second forced token continues from the first
    third = after.header["steps"][step + 1]["best"][2]
    again = fork(server, after, kind="token", step=step + 1, id=third["id"])
    assert answer_ids(again)[: step + 2] == [*ids[: step + 1], third["id"]]


def test_without_positions_the_encoder_input_is_the_embedding(server, trace, folder):
    after, model = fork(server, trace, kind="positions"), regard.load(folder / "transformer").module
    with torch.no_grad():
        embeddings = model.encoder.embed(encode_source(regard.load(folder / "transformer")).data)[0] * math.sqrt(16)
    np.testing.assert_allclose(values(after, "encoder.residual"), embeddings.numpy(), atol=1e-5)
    assert np.abs(values(after, "encoder.residual") - values(trace, "encoder.residual")).max() > 0.1
    assert run_trace(server.studio, "transformer").header["answer"] == trace.header["answer"]  # unchanged
    assert after.header["fork"]["differences"][0]["relative"] > 0


def test_without_the_causal_mask_each_token_of_the_answer_attends_to_all(server, trace, folder, monkeypatch):
    after, model = fork(server, trace, kind="mask"), regard.load(folder / "transformer")
    assert answer_ids(after) == answer_ids(trace) and after.header["answer"] == trace.header["answer"]
    weights, scores = values(after, SELF), values(after, SELF.replace("weights", "scores"))
    assert weights.sum(-1) == pytest.approx(1, abs=1e-5) and np.triu(weights, 1).max() > 0.01
    np.testing.assert_allclose(weights, torch.tensor(scores).softmax(-1).numpy(), atol=1e-6)
    np.testing.assert_array_equal(np.triu(values(trace, SELF), 1), 0)
    monkeypatch.setattr(KVCache, "attention_mask", lambda self, tokens: "full")
    np.testing.assert_allclose(values(after, "logits"), plain_logits(model, answer_ids(trace)), atol=1e-4)
    assert {"name", "mean", "max", "relative"} == set(after.header["fork"]["differences"][0])


def test_changes_accumulate(server, trace):
    both = fork(server, fork(server, trace, kind="positions"), kind="mask")
    assert [change["kind"] for change in both.header["fork"]["changes"]] == ["positions", "mask"]
    once = fork(server, trace, kind="positions")
    np.testing.assert_allclose(values(both, "encoder.residual"), values(once, "encoder.residual"), atol=1e-6)
    assert np.triu(values(both, SELF), 1).max() > 0.01


def test_only_tensors_after_the_change_differ(server, trace):
    summary = fork(server, trace, kind="head", tensor=CROSS, head=1).header["fork"]
    names = [row["name"] for row in summary["differences"]]
    assert names and not [name for name in names if name.startswith(("encoder", "decoder.layers.0"))]
    assert summary["compared"] == len(trace.header["tensors"]) - 2  # all but ids: the answer and lens.ids
    assert [row["relative"] for row in summary["differences"]] == sorted(
        (row["relative"] for row in summary["differences"]), reverse=True
    )


def test_the_header_lists_the_supported_changes(studio, trace):
    assert trace.header["supported_changes"] == ["positions", "mask"]
    for name in ("seq2seq", "rnnsearch"):
        assert run_trace(studio, name).header["supported_changes"] == []


REFUSED = {
    "a head too many": ({"kind": "head", "tensor": CROSS, "head": 4}, "head: expected 0 to 3, got 4"),
    "a head below 0": ({"kind": "head", "tensor": CROSS, "head": -1}, "head: expected 0 to 3, got -1"),
    "no heads": ({"kind": "head", "tensor": "logits", "head": 0}, "logits has no heads"),
    "no tensor": ({"kind": "head", "tensor": "x", "head": 0}, "this trace has no tensor 'x'"),
    "no name": ({"kind": "head", "head": 0}, "change.tensor must be given"),
    "no kind": ({}, "change.kind must be given: one of head, row, token, positions, mask"),
    "a short row": (
        {"kind": "row", "tensor": CROSS, "head": 0, "query": 0, "weights": [1]},
        "weights: expected ",
    ),
    "a row too many": (
        {"kind": "row", "tensor": CROSS, "head": 0, "query": 999, "weights": [1]},
        "query: expected 0 to ",
    ),
    "a word too many": ({"kind": "token", "step": 999, "id": 5}, "step: expected 0 to "),
    "a word that is none": (
        {"kind": "token", "step": 0, "id": 10**6},
        "id: expected one of the 50 best tokens of this step",
    ),
    "an unknown field": ({"kind": "mask", "x": 1}, 'unknown setting "change.x"'),
}


@pytest.mark.parametrize("case", REFUSED)
def test_invalid_changes_are_refused_with_a_message(server, trace, case):
    change, message = REFUSED[case]
    response = server.post(f"/api/v1/traces/{trace.header['id']}/fork", {"change": change})
    assert response.status in (404, 422) and message in response.error["message"], response.body


@pytest.mark.parametrize("weights", [[math.nan], [math.inf], [-0.5], [1.5]])
def test_weights_outside_of_0_to_1_are_refused(server, trace, weights):
    keys = values(trace, CROSS).shape[-1]
    row = weights + [0.0] * (keys - 1)
    change = {"kind": "row", "tensor": CROSS, "head": 0, "query": 0, "weights": row}
    response = server.post(f"/api/v1/traces/{trace.header['id']}/fork", {"change": change})
    assert response.status == 422 and response.error["message"] == "weights: expected numbers from 0 to 1"


def test_weight_on_a_masked_key_is_refused(server, trace):
    keys = values(trace, SELF).shape[-1]
    row = [0.0] * (keys - 1) + [1.0]
    change = {"kind": "row", "tensor": SELF, "head": 0, "query": 0, "weights": row}
    response = server.post(f"/api/v1/traces/{trace.header['id']}/fork", {"change": change})
    assert response.error["message"] == "weights: a masked key must have weight 0"


def test_the_end_of_the_sentence_can_be_forced_at_the_first_step(server, greedy, folder):
    eos = regard.load(folder / "transformer").vocabularies.target.eos
    best = [candidate["id"] for candidate in greedy.header["steps"][0]["best"]]
    assert eos in best, "<EOS> is not among the best tokens of this model"
    after = fork(server, greedy, kind="token", step=0, id=eos)  # in spite of min_length = 4
    assert answer_ids(after) == [eos] and after.header["answer"] == ""


@pytest.mark.parametrize("name", ["seq2seq", "rnnsearch"])
@pytest.mark.parametrize(("kind", "part"), [("positions", "position encodings"), ("mask", "causal mask")])
def test_a_recurrent_model_has_no_positions_or_mask_to_remove(server, studio, name, kind, part):
    response = server.post(f"/api/v1/traces/{run_trace(studio, name).header['id']}/fork", {"change": {"kind": kind}})
    assert (response.status, response.error["message"]) == (422, f"this model has no {part}")


BOOK = "".join(f"The wind blew {word}, and the sea said nothing.\n" for word in ("north", "south", "east", "west") * 60)


def test_tokens_are_forced_and_the_mask_is_removed_in_a_language_model(tmp_path):
    (tmp_path / "book.txt").write_text(BOOK, encoding="utf-8")
    settings = [
        "task.kind=generate", "task.window=32", "data.kind=text", f"data.train={tmp_path / 'book.txt'}",
        "train.steps=10", "train.validate_every=10", "train.batch_tokens=256", "task.samples=0", "task.length=60",
        "model.kind=gpt", "model.layers=1", "model.width=16", "model.heads=2", "model.max_positions=32",
    ]  # fmt: skip
    regard.Run(tmp_path / "runs" / "gpt").train(regard.Recipe.read(None, settings))
    studio = Studio(tmp_path / "runs", tmp_path / "cache")
    trace = studio.trace(TraceRequest(studio.model_store.entries()[0].id, "The wind"))
    other = trace.header["steps"][3]["best"][-1]
    after = studio.fork(trace.header["id"], parse_intervention({"kind": "token", "step": 3, "id": other["id"]}))
    assert answer_ids(after)[:4] == [*answer_ids(trace)[:3], other["id"]]
    text = "".join(word["token"] for word in after.header["sequences"]["target"])
    assert after.header["answer"].startswith(text) and len(after.header["answer"]) == 60  # continued in further windows
    assert after.header["answer"][len(text) : len(text) + 4] != text[:4]  # without the forced prefix
    unmasked = studio.fork(trace.header["id"], parse_intervention({"kind": "mask"}))
    own = values(unmasked, "decoder.layers.0.attention.weights")
    assert own.shape == values(trace, "decoder.layers.0.attention.weights").shape
    assert np.triu(own, 1).max() > 0.001 and own.sum(-1) == pytest.approx(1, abs=1e-5)


def test_a_fork_of_a_model_trained_further_is_compared_with_a_new_base_trace(folder, tmp_path):
    shutil.copytree(folder / "transformer", tmp_path / "runs" / "transformer", symlinks=True)
    studio = Studio(tmp_path / "runs", tmp_path / "cache")
    before = run_trace(studio, "transformer")
    run = regard.Run(tmp_path / "runs" / "transformer")
    recipe = run.recipe()
    run.train(replace(recipe, train=replace(recipe.train, steps=40, validate_every=40)))
    after = studio.fork(before.header["id"], parse_intervention({"kind": "head", "tensor": CROSS, "head": 1}))
    assert (before.header["model"]["step"], after.header["model"]["step"]) == (30, 40)
    base = studio.trace_store.get(after.header["fork"]["base"])
    assert base is not before and base.header["model"]["step"] == 40 and base.header["fork"] is None
    assert not [row for row in after.header["fork"]["differences"] if row["name"].startswith("encoder")]


@pytest.mark.parametrize("kinds", [("head", "mask"), ("mask", "head")])
def test_a_head_stays_ablated_when_the_causal_mask_is_removed(server, greedy, kinds):
    """Both replace the same weights, in either order: the head is 0, the others also attend to later tokens."""
    changes, found = {"head": {"kind": "head", "tensor": SELF, "head": 0}, "mask": {"kind": "mask"}}, greedy
    for kind in kinds:
        found = fork(server, found, **changes[kind])
    weights_HTL = torch.as_tensor(values(found, SELF))
    assert not weights_HTL[0].any()
    assert weights_HTL[1:].triu(1).sum() > 0
