"""The server: what it sends is what was recorded, and whatever it is sent it says what is wrong and goes on."""

import csv
import io
import json
import shutil
import threading
import time

import numpy as np
import pytest
import torch
from safetensors.numpy import load

import regard
from regard.sequence import Tokens
from regard.studio.guard import POLICY

TEXT = "je suis étudiant"


@pytest.fixture(scope="module")
def trace(server):
    return server.trace("transformer", TEXT, beam=2)


def numbers(server, trace, name, part=""):
    said = server.get(f"/api/v1/traces/{trace['id']}/tensors/{name}" + (f"?slice={part}" if part else ""))
    assert said.status == 200, said.body
    shape = [int(size) for size in said.headers["x-shape"].split(",")] if said.headers["x-shape"] else []
    return np.frombuffer(said.body, "<f4").reshape(shape)


def test_models_are_listed_by_number_with_what_they_are(server):
    models = server.get("/api/v1/models").table["models"]
    assert {(m["name"], m["model"], m["task"], m["step"], m["usable"]) for m in models} == {
        (name, name, "translate", 30, True) for name in ("transformer", "seq2seq", "rnnsearch")
    }
    shown = server.get(f"/api/v1/models/{server.models()['seq2seq']}").table
    assert shown["recipe"]["model"]["width"] == 16
    assert server.get("/api/v1/info").table["models"] == 3


@pytest.mark.parametrize("name", ["transformer", "seq2seq", "rnnsearch"])
def test_logits_sent_are_those_of_a_plain_pass(server, folder, name):
    header = server.trace(name, TEXT)
    model = regard.load(folder / name)
    said = [step["chosen"]["id"] for step in header["steps"]]
    source = model.translator().source(model.vocabularies.source.encode_batch([TEXT]))
    with torch.no_grad():
        features = model.module(source, Tokens.of([[model.vocabularies.target.sos, *said[:-1]]]))
        plain = model.module.readout(features)[0]
    np.testing.assert_allclose(numbers(server, header, "logits"), plain.numpy(), atol=1e-4)
    assert header["answer"] == model.answer(TEXT)


def test_slices_are_parts_of_the_whole(server, trace):
    name = "decoder.layers.1.cross.weights"
    whole = numbers(server, trace, name)
    assert whole.shape == (4, len(trace["sequences"]["target"]), len(trace["sequences"]["source"]))
    np.testing.assert_allclose(whole.sum(-1), 1, atol=1e-5)
    np.testing.assert_array_equal(numbers(server, trace, name, "head:2,query:0-1"), whole[2, 0:2])
    assert float(numbers(server, trace, name, "head:3,query:1,key:2")) == whole[3, 1, 2]


def test_tokens_come_with_the_characters_they_stand_for(server):
    said = server.post("/api/v1/tokenize", {"model": server.models()["transformer"], "text": TEXT}).table
    assert "".join(TEXT[token["start"] : token["end"]] for token in said["tokens"]).replace(" ", "") == "jesuisétudiant"


def test_a_trace_can_be_had_again_by_its_number(server, trace):
    assert server.get(f"/api/v1/traces/{trace['id']}").table == trace
    assert trace["id"] in {old["id"] for old in server.get("/api/v1/traces").table["traces"]}


def test_traces_are_read_from_their_folder_when_memory_forgot_them(server, trace):
    before = numbers(server, trace, "logits")
    server.studio.shelf._memory.clear()
    assert server.get(f"/api/v1/traces/{trace['id']}").table == trace
    np.testing.assert_array_equal(numbers(server, trace, "logits"), before)


def test_exports_hold_the_same_numbers(server, trace, tmp_path):
    name = "decoder.layers.0.cross.weights"
    whole, base = numbers(server, trace, name), f"/api/v1/traces/{trace['id']}/export"
    table = server.get(f"{base}?format=json&tensor={name}").table
    np.testing.assert_array_equal(np.array(table["values"]["numbers"], dtype="f4"), whole)
    rows = list(
        csv.DictReader(io.StringIO(server.get(f"{base}?format=csv&tensor={name}&slice=head:1,query:1-2").body.decode()))
    )
    assert [np.float32(row["value"]) for row in rows] == whole[1, 1:3].ravel().tolist()
    assert [row["key token"] for row in rows[: whole.shape[2]]] == [w["token"] for w in trace["sequences"]["source"]]
    assert {row["query"] for row in rows} == {"1", "2"}
    whole_file = server.get(f"{base}?format=safetensors").body
    np.testing.assert_array_equal(load(whole_file)[name][0], whole)
    (tmp_path / "a.safetensors").write_bytes(whole_file)
    assert (
        regard.Recording.load(tmp_path / "a.safetensors").attention(name, head=1).weights.tolist() == whole[1].tolist()
    )
    svg = server.get(f"{base}?format=svg&tensor={name}&head=1").body
    assert (
        svg.startswith(b"<svg")
        and svg.decode() == regard.Recording.load(tmp_path / "a.safetensors").attention(name, head=1).svg()
    )


def test_a_picture_of_pixels_is_sent(server, trace, fonts):
    said = server.get(f"/api/v1/traces/{trace['id']}/export?format=png&tensor=decoder.layers.0.cross.weights&head=1")
    assert said.headers["content-type"] == "image/png" and said.body.startswith(b"\x89PNG")


def test_scores_that_are_not_there_are_null_in_json_and_empty_in_csv(server, trace):
    name = "decoder.layers.0.attention.scores"
    assert np.isnan(numbers(server, trace, name)[0, 0, -1])
    base = f"/api/v1/traces/{trace['id']}/export?tensor={name}&slice=head:0,query:0"
    assert server.get(f"{base}&format=json").table["values"]["numbers"][-1] is None
    assert server.get(f"{base}&format=csv").body.decode().splitlines()[-1].endswith(",")


REFUSED = {
    "an unknown model": ({"model": "../../etc/passwd", "text": "x"}, 404, "there is no such model any more"),
    "an empty text": ({"model": "M", "text": "  "}, 422, "the text is empty"),
    "too many characters": (
        {"model": "M", "text": "a" * 2001},
        413,
        "the text has 2,001 characters; at most 2,000 are read",
    ),
    "too many tokens": ({"model": "M", "text": "un " * 600}, 413, " tokens; at most 256 are shown"),
    "no text": ({"model": "M"}, 422, "text: expected str, got nothing"),
    "a text that is an image": ({"model": "M", "text": {"png": 1}}, 422, "text: expected str, got dict"),
    "a wide beam": (
        {"model": "M", "text": "x", "decode": {"beam": 17}},
        422,
        "beam: expected a whole number from 1 to 16",
    ),
    "a beam that is none": ({"model": "M", "text": "x", "decode": {"beam": True}}, 422, "beam: expected a whole"),
    "an unknown setting": (
        {"model": "M", "text": "x", "decode": {"bean": 1}},
        422,
        "decode: expected an object with beam",
    ),
    "half a character": ({"model": "M", "text": "\ud800"}, 422, "The text"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_traced_is_refused_with_a_reason_and_a_way_out(server, case):
    table, status, message = REFUSED[case]
    if table.get("model") == "M":
        table = {**table, "model": server.models()["transformer"]}
    said = server.post("/api/v1/traces", table)
    assert said.status == status, said.body
    assert message in said.error["message"]
    assert said.error["code"] and said.error["hint"]
    assert server.get("/api/v1/info").status == 200


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/api/v1/traces/nothing", 404), ("/api/v1/traces/..%2F..%2Fetc%2Fpasswd", 404), ("/api/v1/nothing", 404),
        ("/page/..%2Fapp.py", 404), ("/page/app.py", 404), ("/api/v1/traces/ID/tensors/none", 404),
        ("/api/v1/traces/ID/tensors/logits?slice=step", 422), ("/api/v1/traces/ID/tensors/logits?slice=head:0", 422),
        ("/api/v1/traces/ID/tensors/logits?slice=step:99999", 422),
        ("/api/v1/traces/ID/tensors/logits?slice=step:2-1", 422),
        ("/api/v1/traces/ID/export?format=exe", 422), ("/api/v1/traces/ID/export?format=csv", 422),
        ("/api/v1/traces/ID/export?format=svg&tensor=logits", 422), ("/api/v1/models/nothing", 404),
    ],
)  # fmt: skip
def test_what_is_not_there_is_told_as_json(server, trace, path, status):
    said = server.get(path.replace("ID", trace["id"]))
    assert said.status == status, said.body
    assert set(said.error) == {"code", "message", "hint"}
    assert said.headers["content-security-policy"] == POLICY


def test_bodies_that_are_not_small_json_objects_are_refused(server):
    kind = {"content_type": "application/json"}
    assert server.ask("POST", "/api/v1/traces", b"{", **kind).status == 400
    assert server.ask("POST", "/api/v1/traces", b"[1]", **kind).status == 400
    assert server.ask("POST", "/api/v1/traces", b"\xff", **kind).status == 400
    assert server.ask("POST", "/api/v1/traces", b"[" * 60_000, **kind).status == 400
    assert server.ask("POST", "/api/v1/traces", b" " * 70_000, **kind).status == 413
    assert server.ask("POST", "/api/v1/traces", b"{}", content_type="text/plain").status == 415
    assert server.ask("DELETE", "/api/v1/traces").status == 405


def test_only_our_own_page_on_this_machine_may_ask(server):
    for host in ("evil.example", "127.0.0.1.evil.example", "", "localhost.evil:80"):
        assert server.ask("GET", "/api/v1/info", Host=host).error["code"] == "unknown-host"
    kind = {"content_type": "application/json"}
    said = server.ask("POST", "/api/v1/tokenize", b"{}", Origin="http://evil.example", **kind)
    assert (said.status, said.error["code"]) == (403, "other-origin")
    assert server.ask("GET", "/api/v1/info", Host=f"localhost:{server.port}").status == 200


def test_every_answer_carries_the_same_policy_and_no_leave_for_others(server):
    for path in ("/", "/page/main.js", "/api/v1/info", "/api/v1/none"):
        said = server.get(path)
        assert said.headers["content-security-policy"] == POLICY
        assert "unsafe-inline" not in said.headers["content-security-policy"]
        assert said.headers["x-content-type-options"] == "nosniff"
        assert "access-control-allow-origin" not in said.headers


def test_requests_wait_for_one_another_and_too_many_are_sent_back(server):
    model, found = server.models()["transformer"], []
    with server.studio._turn:  # a pass is going on
        waiting = [
            threading.Thread(target=lambda: found.append(server.post("/api/v1/traces", {"model": model, "text": TEXT})))
            for _ in range(9)
        ]
        for thread in waiting:
            thread.start()
        while not found:
            time.sleep(0.01)
        assert (found[0].status, found[0].error["code"]) == (503, "busy")
        assert server.get("/api/v1/info").status == 200  # others are answered meanwhile
    for thread in waiting:
        thread.join()
    assert sorted(said.status for said in found) == [201] * 8 + [503]


def test_the_shelf_keeps_the_latest_only(tmp_path):
    from regard.studio.trace_store import Shelf
    from regard.trace import Record, Trace

    shelf = Shelf(tmp_path, near=1, far=2)
    recording = regard.Recording(Trace(records=[Record("a", ("batch", "key"), torch.ones(1, 2), {}, {})]))
    first, *_ = kept = [shelf.put(recording, {"text": str(i)}).header["id"] for i in range(3)]
    assert len(shelf.recent()) == 2
    assert {file.stem for file in tmp_path.glob("*.safetensors")} == {file.stem for file in tmp_path.glob("*.json")}
    assert len(shelf._memory) == 1 and first in kept


def test_a_damaged_trace_is_told_and_the_server_goes_on(server):
    number = server.trace("transformer", TEXT)["id"]
    server.studio.shelf._memory.clear()
    (server.studio.shelf.folder / f"{number}.safetensors").write_bytes(b"nonsense")
    said = server.get(f"/api/v1/traces/{number}")
    assert (said.status, said.error["code"]) == (410, "damaged-trace")
    assert server.get("/api/v1/info").status == 200


def test_a_run_without_a_checkpoint_is_listed_and_refused(server, folder):
    bare = folder / "bare"
    bare.mkdir()
    for name in ("recipe.toml", "tokenizer.json"):
        (bare / name).write_bytes((folder / "transformer" / name).read_bytes())
    try:
        assert [m["usable"] for m in server.get("/api/v1/models").table["models"] if m["name"] == "bare"] == [False]
        said = server.post("/api/v1/traces", {"model": server.models()["bare"], "text": TEXT})
        assert said.status == 422 and "has no finished checkpoint" in said.error["message"]
    finally:
        for file in bare.iterdir():
            file.unlink()
        bare.rmdir()


@pytest.mark.slow
def test_the_example_is_made_once_and_shown(empty):
    assert empty.get("/api/v1/models").table == {
        "models": [],
        "example": {"state": "absent", "seconds": None, "message": None},
    }
    assert empty.post("/api/v1/example", {}).status == 202
    until = time.monotonic() + 120
    while (
        empty.get("/api/v1/info").table["example"]["state"] == "making"
        or not empty.get("/api/v1/traces").table["traces"]
    ):
        assert time.monotonic() < until and empty.get("/api/v1/info").table["example"]["state"] != "failed"
        time.sleep(0.1)
    assert empty.get("/api/v1/traces/example").table["text"] == "je suis étudiant"
    assert [model["name"] for model in empty.get("/api/v1/models").table["models"]] == ["built-in example"]
    assert not list(empty.studio.example.path.parent.glob("making-*"))


def test_the_recipe_of_the_example_is_one_that_can_be_trained(tmp_path):
    from regard.studio.example import RECIPE, TEXT

    (tmp_path / "example.toml").write_text(RECIPE, encoding="utf-8")
    recipe = regard.Recipe.read(tmp_path / "example.toml")
    assert TEXT in {source for source, _ in recipe.data.pairs("train")}


def test_json_never_holds_what_is_no_json(server, trace):
    def refuse(name):
        raise AssertionError(name)

    json.loads(server.get(f"/api/v1/traces/{trace['id']}").body, parse_constant=refuse)


def test_a_training_is_told_as_it_goes_on_and_anew_when_it_was_rewritten(server, folder):
    path = f"/api/v1/runs/{server.models()['seq2seq']}/metrics"
    told, file = server.get(path).table, folder / "seq2seq" / "metrics.jsonl"
    lines = file.read_text(encoding="utf-8").splitlines()
    assert told["rows"] == [json.loads(line) for line in lines] and told["rows"][-1]["event"] == "ended"
    rest = server.get(f"{path}?since={told['next']}&version={told['version']}").table
    assert (rest["rows"], rest["anew"], rest["next"]) == ([], False, told["next"])
    before = file.read_bytes()
    try:
        with file.open("ab") as more:
            more.write(b'{"event": "stepped", "step": 31, "loss": NaN}\n{"event": "st')
        rest = server.get(f"{path}?since={told['next']}&version={told['version']}").table
        assert rest["rows"] == [{"event": "stepped", "step": 31, "loss": None}]  # half a line waits
        other = file.with_suffix(".new")
        other.write_bytes(b'{"event": "began", "step": 0}\n')
        other.replace(file)
        rest = server.get(f"{path}?since={told['next']}&version={told['version']}").table
        assert rest["anew"] and rest["rows"] == [{"event": "began", "step": 0}]
    finally:
        file.write_bytes(before)
    assert server.get(f"{path}?since=-1").status == 422


@pytest.mark.parametrize("name", ["transformer", "seq2seq"])
def test_gradients_are_those_of_the_model_over_its_own_answer(server, folder, name):
    header, model = server.trace(name, TEXT), regard.load(folder / name)
    expected = model.reading(TEXT).gradients(model.module)
    found = server.get(f"/api/v1/traces/{header['id']}/gradients").table
    assert found["rows"] == expected.rows and found["name"] == expected.name
    np.testing.assert_allclose(found["norms"], expected.norms, rtol=1e-5)
    other = f"/api/v1/traces/{header['id']}/gradients?name=nothing"
    assert server.get(other).error["code"] == "no-gradients"


def test_what_would_take_all_memory_is_refused_before_it_begins(server, monkeypatch):
    monkeypatch.setattr("regard.studio.service.MEMORY", 1e-6)
    said = server.post("/api/v1/traces", {"model": server.models()["transformer"], "text": TEXT})
    assert said.status == 413
    assert said.error["message"].startswith("recording ")
    assert said.error["message"].endswith(" tokens in this model would take about 0.0 GB; at most 1e-06 are used")
    assert server.trace("seq2seq", TEXT)["answer"] is not None  # no heads, no keys at every step


def test_a_run_that_was_removed_is_told_and_its_traces_stay(server, folder):
    shutil.copytree(folder / "seq2seq", folder / "gone", symlinks=True)
    number, trace = server.models()["gone"], server.trace("gone", TEXT)
    shutil.rmtree(folder / "gone")
    said = server.post("/api/v1/traces", {"model": number, "text": TEXT})
    assert (said.status, said.error["message"]) == (404, "there is no such model any more")
    assert server.get(f"/api/v1/traces/{trace['id']}").table == trace
    assert "gone" not in server.models()
