"""What if: each change does what it says and nothing else, whatever the model, and what cannot be changed is told."""

import math
import shutil
from dataclasses import replace

import numpy as np
import pytest
import torch

import regard
from regard.nn.kv_cache import Past
from regard.sequence import Tokens
from regard.studio.interventions import read
from regard.studio.service import Studio, Wish

TEXT = "je suis étudiant"
CROSS = "decoder.layers.1.cross.weights"
OWN = "decoder.layers.0.attention.weights"


@pytest.fixture(scope="module")
def studio(server):
    return server.studio


def traced(studio, name, beam=2):
    number = next(entry.id for entry in studio.library.entries() if entry.name == name)
    return studio.trace(Wish(number, TEXT, beam))


@pytest.fixture(scope="module")
def trace(studio):
    return traced(studio, "transformer")


@pytest.fixture(scope="module")
def greedy(studio):
    return traced(studio, "transformer", 1)


def fork(server, kept, **change):
    said = server.post(f"/api/v1/traces/{kept.header['id']}/fork", {"change": change})
    assert said.status == 201, said.body
    return server.studio.shelf.get(said.table["id"])


def values(kept, name):
    return kept.recording.find(name)[0].data[0].numpy()


def said(kept):
    return [step["chosen"]["id"] for step in kept.header["steps"]]


def source_of(model):
    return model.translator().source(model.vocabularies.source.encode_batch([TEXT]))


def plain_logits(model, ids):
    with torch.no_grad():
        features = model.module(source_of(model), Tokens.of([[model.vocabularies.target.sos, *ids[:-1]]]))
        return model.module.readout(features)[0].numpy()


def test_a_head_that_is_switched_off_weighs_nothing_and_only_in_its_fork(server, trace):
    after = fork(server, trace, kind="head", tensor=CROSS, head=2)
    told = after.header["fork"]
    assert (told["of"], told["answer"]) == (trace.header["id"], trace.header["answer"])
    assert told["changes"] == [{"kind": "head", "tensor": CROSS, "head": 2}]
    weights = values(after, CROSS)
    assert not weights[2].any() and weights[[0, 1, 3]].sum(-1) == pytest.approx(1, abs=1e-5)
    assert not values(after, "decoder.layers.1.cross.context")[2].any()
    np.testing.assert_array_equal(values(after, "encoder.residual"), values(trace, "encoder.residual"))
    again = fork(server, after, kind="head", tensor=CROSS, head=0)
    assert [change["head"] for change in again.header["fork"]["changes"]] == [2, 0]
    assert again.header["fork"]["of"] == trace.header["id"] and not values(again, CROSS)[[0, 2]].any()
    assert traced(server.studio, "transformer").header["answer"] == trace.header["answer"]


@pytest.mark.parametrize(
    ("name", "tensor", "query"),
    [
        ("transformer", CROSS, 1),
        ("transformer", "encoder.layers.0.attention.weights", 2),
        ("transformer", OWN, 2),
        ("rnnsearch", "decoder.cross.weights", 1),
    ],
)
def test_a_row_that_is_written_by_hand_is_what_the_model_goes_on_with(server, studio, name, tensor, query):
    before = traced(studio, name, 1)
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
    assert after.header["fork"]["moved"]


def test_another_word_is_said_and_the_search_goes_on_from_there(server, greedy, folder):
    step, model = 1, regard.load(folder / "transformer")
    other = greedy.header["steps"][step]["best"][1]
    after = fork(server, greedy, kind="token", step=step, id=other["id"])
    ids = said(after)
    assert ids[: step + 1] == [*said(greedy)[:step], other["id"]]
    assert after.header["fork"]["changes"][0]["shown"] == other["shown"]
    logits = plain_logits(model, ids)
    np.testing.assert_allclose(values(after, "logits"), logits, atol=1e-4)  # the model's own, not the rule's
    eos, least = model.vocabularies.target.eos, model.recipe.decode.minimum
    for t in range(step + 1, len(ids)):
        allowed = logits[t].copy()
        if t < least:
            allowed[eos] = -math.inf
        assert ids[t] == int(allowed.argmax())
    np.testing.assert_array_equal(values(after, "logits")[: step + 1], values(greedy, "logits")[: step + 1])
    # a second one goes on from what the first led to
    third = after.header["steps"][step + 1]["best"][2]
    again = fork(server, after, kind="token", step=step + 1, id=third["id"])
    assert said(again)[: step + 2] == [*ids[: step + 1], third["id"]]


def test_without_positions_a_word_is_its_embedding_alone(server, trace, folder):
    after, model = fork(server, trace, kind="positions"), regard.load(folder / "transformer").module
    with torch.no_grad():
        alone = model.encoder.embed(source_of(regard.load(folder / "transformer")).data)[0] * math.sqrt(16)
    np.testing.assert_allclose(values(after, "encoder.residual"), alone.numpy(), atol=1e-5)
    assert np.abs(values(after, "encoder.residual") - values(trace, "encoder.residual")).max() > 0.1
    assert traced(server.studio, "transformer").header["answer"] == trace.header["answer"]  # they are back
    assert after.header["fork"]["moved"][0]["share"] > 0


def test_without_the_mask_the_answer_is_read_again_and_each_word_sees_all(server, trace, folder, monkeypatch):
    after, model = fork(server, trace, kind="mask"), regard.load(folder / "transformer")
    assert said(after) == said(trace) and after.header["answer"] == trace.header["answer"]
    weights, scores = values(after, OWN), values(after, OWN.replace("weights", "scores"))
    assert weights.sum(-1) == pytest.approx(1, abs=1e-5) and np.triu(weights, 1).max() > 0.01
    np.testing.assert_allclose(weights, torch.tensor(scores).softmax(-1).numpy(), atol=1e-6)
    np.testing.assert_array_equal(np.triu(values(trace, OWN), 1), 0)
    monkeypatch.setattr(Past, "sight", lambda self, tokens: "all")
    np.testing.assert_allclose(values(after, "logits"), plain_logits(model, said(trace)), atol=1e-4)
    assert {"name", "mean", "most", "share"} == set(after.header["fork"]["moved"][0])


def test_changes_add_up(server, trace):
    both = fork(server, fork(server, trace, kind="positions"), kind="mask")
    assert [change["kind"] for change in both.header["fork"]["changes"]] == ["positions", "mask"]
    once = fork(server, trace, kind="positions")
    np.testing.assert_allclose(values(both, "encoder.residual"), values(once, "encoder.residual"), atol=1e-6)
    assert np.triu(values(both, OWN), 1).max() > 0.01


def test_what_moved_comes_after_what_was_changed(server, trace):
    told = fork(server, trace, kind="head", tensor=CROSS, head=1).header["fork"]
    names = [row["name"] for row in told["moved"]]
    assert names and not [name for name in names if name.startswith(("encoder", "decoder.layers.0"))]
    assert told["compared"] == len(trace.header["tensors"]) - 1  # all but the answer, which has ids
    assert [row["share"] for row in told["moved"]] == sorted((row["share"] for row in told["moved"]), reverse=True)


def test_which_changes_make_sense_is_told_with_the_trace(studio, trace):
    assert trace.header["can"] == ["positions", "mask"]
    assert traced(studio, "seq2seq").header["can"] == [] == traced(studio, "rnnsearch").header["can"]


REFUSED = {
    "a head too many": ({"kind": "head", "tensor": CROSS, "head": 4}, "head: there are 0 to 3, got 4"),
    "a head below 0": ({"kind": "head", "tensor": CROSS, "head": -1}, "head: there are 0 to 3, got -1"),
    "no heads": ({"kind": "head", "tensor": "logits", "head": 0}, "logits has no heads"),
    "no tensor": ({"kind": "head", "tensor": "x", "head": 0}, "this trace has no tensor called 'x'"),
    "no name": ({"kind": "head", "head": 0}, "change.tensor must be given"),
    "no kind": ({}, "change.kind must be given: one of head, row, token, positions, mask"),
    "a short row": (
        {"kind": "row", "tensor": CROSS, "head": 0, "query": 0, "weights": [1]},
        "weights: expected ",
    ),
    "a row too many": (
        {"kind": "row", "tensor": CROSS, "head": 0, "query": 999, "weights": [1]},
        "query: there are 0 to ",
    ),
    "a word too many": ({"kind": "token", "step": 999, "id": 5}, "step: there are 0 to "),
    "a word that is none": ({"kind": "token", "step": 0, "id": 10**6}, "id: expected one of the 50 best of this step"),
    "an unknown field": ({"kind": "mask", "x": 1}, 'unknown setting "change.x"'),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_changed_is_told(server, trace, case):
    change, message = REFUSED[case]
    said = server.post(f"/api/v1/traces/{trace.header['id']}/fork", {"change": change})
    assert said.status in (404, 422) and message in said.error["message"], said.body


@pytest.mark.parametrize("weights", [[math.nan], [math.inf], [-0.5], [1.5]])
def test_a_row_of_numbers_that_are_no_weights_is_refused(server, trace, weights):
    keys = values(trace, CROSS).shape[-1]
    row = weights + [0.0] * (keys - 1)
    change = {"kind": "row", "tensor": CROSS, "head": 0, "query": 0, "weights": row}
    said = server.post(f"/api/v1/traces/{trace.header['id']}/fork", {"change": change})
    assert said.status == 422 and said.error["message"] == "weights: expected numbers from 0 to 1"


def test_nobody_looks_at_a_word_that_was_not_said_yet(server, trace):
    keys = values(trace, OWN).shape[-1]
    row = [0.0] * (keys - 1) + [1.0]
    change = {"kind": "row", "tensor": OWN, "head": 0, "query": 0, "weights": row}
    said = server.post(f"/api/v1/traces/{trace.header['id']}/fork", {"change": change})
    assert said.error["message"] == "weights: a key was not there yet, and cannot be looked at"


def test_a_word_that_the_search_forbids_is_told(server, greedy, folder):
    eos = regard.load(folder / "transformer").vocabularies.target.eos
    best = [candidate["id"] for candidate in greedy.header["steps"][0]["best"]]
    assert eos in best, "the model of this test never thinks of ending"
    after = fork(server, greedy, kind="token", step=0, id=eos)  # the shortest answer has 4 words: here it ends at once
    assert said(after) == [eos] and after.header["answer"] == ""


@pytest.mark.parametrize("name", ["seq2seq", "rnnsearch"])
@pytest.mark.parametrize("kind", ["positions", "mask"])
def test_what_a_recurrent_model_has_not_cannot_be_taken_from_it(server, studio, name, kind):
    said = server.post(f"/api/v1/traces/{traced(studio, name).header['id']}/fork", {"change": {"kind": kind}})
    assert (said.status, said.error["message"]) == (422, f"this model has no {kind}")


BOOK = "".join(f"The wind blew {word}, and the sea said nothing.\n" for word in ("north", "south", "east", "west") * 60)


def test_a_language_model_says_another_letter_and_reads_itself_without_a_mask(tmp_path):
    (tmp_path / "book.txt").write_text(BOOK, encoding="utf-8")
    settings = [
        "task.kind=generate", "task.window=32", "data.kind=text", f"data.train={tmp_path / 'book.txt'}",
        "train.steps=10", "train.every=10", "train.tokens=256", "task.samples=0", "task.length=60",
        "model.kind=gpt", "model.layers=1", "model.width=16", "model.heads=2", "model.longest=32",
    ]  # fmt: skip
    regard.Run(tmp_path / "runs" / "gpt").train(regard.Recipe.read(None, settings))
    studio = Studio(tmp_path / "runs", tmp_path / "cache")
    kept = studio.trace(Wish(studio.library.entries()[0].id, "The wind"))
    other = kept.header["steps"][3]["best"][-1]
    after = studio.fork(kept.header["id"], read({"kind": "token", "step": 3, "id": other["id"]}))
    assert said(after)[:4] == [*said(kept)[:3], other["id"]]
    text = "".join(word["token"] for word in after.header["sequences"]["target"])
    assert after.header["answer"].startswith(text) and len(after.header["answer"]) == 60  # it went on in windows
    assert after.header["answer"][len(text) : len(text) + 4] != text[:4]  # and did not begin again
    unmasked = studio.fork(kept.header["id"], read({"kind": "mask"}))
    own = values(unmasked, "decoder.layers.0.attention.weights")
    assert own.shape == values(kept, "decoder.layers.0.attention.weights").shape
    assert np.triu(own, 1).max() > 0.001 and own.sum(-1) == pytest.approx(1, abs=1e-5)


def test_a_model_that_was_trained_on_meanwhile_is_compared_with_itself_as_it_is_now(folder, tmp_path):
    shutil.copytree(folder / "transformer", tmp_path / "runs" / "transformer", symlinks=True)
    studio = Studio(tmp_path / "runs", tmp_path / "cache")
    before = traced(studio, "transformer")
    run = regard.Run(tmp_path / "runs" / "transformer")
    recipe = run.recipe()
    run.train(replace(recipe, train=replace(recipe.train, steps=40, every=40)))
    after = studio.fork(before.header["id"], read({"kind": "head", "tensor": CROSS, "head": 1}))
    assert (before.header["model"]["step"], after.header["model"]["step"]) == (30, 40)
    base = studio.shelf.get(after.header["fork"]["of"])
    assert base is not before and base.header["model"]["step"] == 40 and base.header["fork"] is None
    assert not [row for row in after.header["fork"]["moved"] if row["name"].startswith("encoder")]
