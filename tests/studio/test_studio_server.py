"""The server: it sends the recorded values, and answers invalid requests with an error."""

import csv
import io
import json
import shutil
import threading

import numpy as np
import pytest
import torch
from safetensors.numpy import load

import regard
from helpers import join_all, wait_until
from regard.sequence import Tokens
from regard.studio.app import LARGE_BODIES
from regard.studio.guard import POLICY

TEXT = "je suis étudiant"


@pytest.fixture(scope="module")
def trace(server):
    return server.trace("transformer", TEXT, beam=2)


def numbers(server, trace, name, part=""):
    response = server.get(f"/api/v1/traces/{trace['id']}/tensors/{name}" + (f"?slice={part}" if part else ""))
    assert response.status == 200, response.body
    shape = [int(size) for size in response.headers["x-shape"].split(",")] if response.headers["x-shape"] else []
    return np.frombuffer(response.body, "<f4").reshape(shape)


def test_models_are_listed_with_kind_task_and_step(server):
    models = server.get("/api/v1/models").table["models"]
    assert {(m["name"], m["model"], m["task"], m["step"], m["usable"]) for m in models} == {
        (name, name, "translate", 30, True) for name in ("transformer", "seq2seq", "rnnsearch")
    }
    model = server.get(f"/api/v1/models/{server.models()['seq2seq']}").table
    assert model["recipe"]["model"]["width"] == 16
    assert server.get("/api/v1/info").table["models"] == 3


@pytest.mark.parametrize("name", ["transformer", "seq2seq", "rnnsearch"])
def test_logits_equal_those_of_a_teacher_forced_pass(server, folder, name):
    header = server.trace(name, TEXT)
    model = regard.load(folder / name)
    ids = [step["chosen"]["id"] for step in header["steps"]]
    source = model.translator().pad_source(model.vocabularies.source.encode_batch([TEXT]))
    with torch.no_grad():
        features = model.module(source, Tokens.pad([[model.vocabularies.target.sos, *ids[:-1]]]))
        plain = model.module.readout(features)[0]
    np.testing.assert_allclose(numbers(server, header, "logits"), plain.numpy(), atol=1e-4)
    assert header["answer"] == model.predict_text(TEXT)


def test_slices_are_parts_of_the_whole_tensor(server, trace):
    name = "decoder.layers.1.cross.weights"
    whole = numbers(server, trace, name)
    assert whole.shape == (4, len(trace["sequences"]["target"]), len(trace["sequences"]["source"]))
    np.testing.assert_allclose(whole.sum(-1), 1, atol=1e-5)
    np.testing.assert_array_equal(numbers(server, trace, name, "head:2,query:0-1"), whole[2, 0:2])
    assert float(numbers(server, trace, name, "head:3,query:1,key:2")) == whole[3, 1, 2]


def test_tokens_have_their_character_offsets(server):
    response = server.post("/api/v1/tokenize", {"model": server.models()["transformer"], "text": TEXT}).table
    assert (
        "".join(TEXT[token["start"] : token["end"]] for token in response["tokens"]).replace(" ", "")
        == "jesuisétudiant"
    )


def test_a_trace_is_found_by_its_id(server, trace):
    assert server.get(f"/api/v1/traces/{trace['id']}").table == trace
    assert trace["id"] in {old["id"] for old in server.get("/api/v1/traces").table["traces"]}


def test_traces_are_loaded_from_disk_when_they_are_not_in_memory(server, trace):
    before = numbers(server, trace, "logits")
    server.studio.trace_store._memory.clear()
    assert server.get(f"/api/v1/traces/{trace['id']}").table == trace
    np.testing.assert_array_equal(numbers(server, trace, "logits"), before)


def test_exports_have_the_same_numbers(server, trace, tmp_path):
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


def test_attention_is_exported_as_png(server, trace, fonts):
    response = server.get(
        f"/api/v1/traces/{trace['id']}/export?format=png&tensor=decoder.layers.0.cross.weights&head=1"
    )
    assert response.headers["content-type"] == "image/png" and response.body.startswith(b"\x89PNG")


def test_missing_scores_are_null_in_json_and_empty_in_csv(server, trace):
    name = "decoder.layers.0.attention.scores"
    assert np.isnan(numbers(server, trace, name)[0, 0, -1])
    base = f"/api/v1/traces/{trace['id']}/export?tensor={name}&slice=head:0,query:0"
    assert server.get(f"{base}&format=json").table["values"]["numbers"][-1] is None
    assert server.get(f"{base}&format=csv").body.decode().splitlines()[-1].endswith(",")


INVALID = {
    "an unknown model": ({"model": "../../etc/passwd", "text": "x"}, 404, "no such model"),
    "an empty text": ({"model": "M", "text": "  "}, 422, "the text is empty"),
    "too many characters": (
        {"model": "M", "text": "a" * 2001},
        413,
        "the text has 2,001 characters; the limit is 2,000",
    ),
    "too many tokens": ({"model": "M", "text": "un " * 600}, 413, " tokens; the limit is 256"),
    "no text": ({"model": "M"}, 422, "text: expected str, got nothing"),
    "a text that is an object": ({"model": "M", "text": {"png": 1}}, 422, "text: expected str, got dict"),
    "a wide beam": (
        {"model": "M", "text": "x", "decode": {"beam": 17}},
        422,
        "beam: expected a whole number from 1 to 16",
    ),
    "a boolean beam": ({"model": "M", "text": "x", "decode": {"beam": True}}, 422, "beam: expected a whole"),
    "an unknown setting": (
        {"model": "M", "text": "x", "decode": {"bean": 1}},
        422,
        "decode: expected an object with beam",
    ),
    "half a surrogate pair": ({"model": "M", "text": "\ud800"}, 422, "The text"),
}


@pytest.mark.parametrize("case", INVALID)
def test_invalid_trace_requests_are_refused_with_a_message_and_a_hint(server, case):
    table, status, message = INVALID[case]
    if table.get("model") == "M":
        table = {**table, "model": server.models()["transformer"]}
    response = server.post("/api/v1/traces", table)
    assert response.status == status, response.body
    assert message in response.error["message"]
    assert response.error["code"] and response.error["hint"]
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
def test_unknown_addresses_get_a_json_error(server, trace, path, status):
    response = server.get(path.replace("ID", trace["id"]))
    assert response.status == status, response.body
    assert set(response.error) == {"code", "message", "hint"}
    assert response.headers["content-security-policy"] == POLICY


def test_bodies_that_are_not_small_json_objects_are_refused(server):
    kind = {"content_type": "application/json"}
    assert server.request("POST", "/api/v1/traces", b"{", **kind).status == 400
    assert server.request("POST", "/api/v1/traces", b"[1]", **kind).status == 400
    assert server.request("POST", "/api/v1/traces", b"\xff", **kind).status == 400
    assert server.request("POST", "/api/v1/traces", b"[" * 60_000, **kind).status == 400
    assert server.request("POST", "/api/v1/tokenize", b" " * 70_000, **kind).status == 413
    assert server.request("POST", "/api/v1/traces", b" " * 70_000, **kind).status == 400  # may hold an image
    assert server.request("POST", "/api/v1/traces", b" " * (LARGE_BODIES["/api/v1/traces"] + 1), **kind).status == 413
    assert server.request("POST", "/api/v1/traces", b"{}", content_type="text/plain").status == 415
    assert server.request("DELETE", "/api/v1/traces").status == 405


def test_requests_of_other_hosts_and_origins_are_refused(server):
    for host in ("evil.example", "127.0.0.1.evil.example", "", "localhost.evil:80"):
        assert server.request("GET", "/api/v1/info", Host=host).error["code"] == "unknown-host"
    kind = {"content_type": "application/json"}
    response = server.request("POST", "/api/v1/tokenize", b"{}", Origin="http://evil.example", **kind)
    assert (response.status, response.error["code"]) == (403, "other-origin")
    assert server.request("GET", "/api/v1/info", Host=f"localhost:{server.port}").status == 200


def test_every_response_has_the_security_headers_and_no_cors(server):
    for path in ("/", "/page/main.js", "/api/v1/info", "/api/v1/none"):
        response = server.get(path)
        assert response.headers["content-security-policy"] == POLICY
        assert "unsafe-inline" not in response.headers["content-security-policy"]
        assert response.headers["x-content-type-options"] == "nosniff"
        assert "access-control-allow-origin" not in response.headers


def test_requests_are_queued_and_refused_when_there_are_too_many(server):
    model, found = server.models()["transformer"], []
    with server.studio._model_lock:  # a pass is running
        waiting = [
            threading.Thread(target=lambda: found.append(server.post("/api/v1/traces", {"model": model, "text": TEXT})))
            for _ in range(9)
        ]
        for thread in waiting:
            thread.start()
        wait_until(lambda: found, "a request is answered")
        assert (found[0].status, found[0].error["code"]) == (503, "busy")
        assert server.get("/api/v1/info").status == 200  # other requests are answered meanwhile
    join_all(*waiting)
    assert sorted(response.status for response in found) == [201] * 8 + [503]


def test_the_trace_store_keeps_the_latest_traces(tmp_path):
    from regard.studio.trace_store import TraceStore
    from regard.trace import Record, Trace

    trace_store = TraceStore(tmp_path, in_memory=1, on_disk=2)
    recording = regard.Recording(Trace(records=[Record("a", ("batch", "key"), torch.ones(1, 2), {}, {})]))
    first, *_ = stored = [trace_store.put(recording, {"text": str(i)}).header["id"] for i in range(3)]
    assert len(trace_store.recent()) == 2
    assert {file.stem for file in tmp_path.glob("*.safetensors")} == {file.stem for file in tmp_path.glob("*.json")}
    assert len(trace_store._memory) == 1 and first in stored


def test_a_damaged_trace_is_reported_and_the_server_continues(server):
    trace_id = server.trace("transformer", TEXT)["id"]
    server.studio.trace_store._memory.clear()
    (server.studio.trace_store.folder / f"{trace_id}.safetensors").write_bytes(b"nonsense")
    response = server.get(f"/api/v1/traces/{trace_id}")
    assert (response.status, response.error["code"]) == (410, "damaged-trace")
    assert server.get("/api/v1/info").status == 200


def test_a_run_without_a_checkpoint_is_listed_and_refused(server, folder):
    bare = folder / "bare"
    bare.mkdir()
    for name in ("recipe.toml", "tokenizer.json"):
        (bare / name).write_bytes((folder / "transformer" / name).read_bytes())
    try:
        assert [m["usable"] for m in server.get("/api/v1/models").table["models"] if m["name"] == "bare"] == [False]
        response = server.post("/api/v1/traces", {"model": server.models()["bare"], "text": TEXT})
        assert response.status == 422 and "has no finished checkpoint" in response.error["message"]
    finally:
        for file in bare.iterdir():
            file.unlink()
        bare.rmdir()


def test_headers_are_strict_json(server, trace):
    def refuse(name):
        raise AssertionError(name)

    json.loads(server.get(f"/api/v1/traces/{trace['id']}").body, parse_constant=refuse)


def test_metrics_are_sent_incrementally_and_again_after_a_rewrite(server, folder):
    path = f"/api/v1/runs/{server.models()['seq2seq']}/metrics"
    first, file = server.get(path).table, folder / "seq2seq" / "metrics.jsonl"
    lines = file.read_text(encoding="utf-8").splitlines()
    assert first["rows"] == [json.loads(line) for line in lines] and first["rows"][-1]["event"] == "ended"
    rest = server.get(f"{path}?since={first['next']}&version={first['version']}").table
    assert (rest["rows"], rest["reset"], rest["next"]) == ([], False, first["next"])
    before = file.read_bytes()
    try:
        with file.open("ab") as more:
            more.write(b'{"event": "stepped", "step": 31, "loss": NaN}\n{"event": "st')
        rest = server.get(f"{path}?since={first['next']}&version={first['version']}").table
        assert rest["rows"] == [{"event": "stepped", "step": 31, "loss": None}]  # a partly written line is not sent
        other = file.with_suffix(".new")
        other.write_bytes(b'{"event": "began", "step": 0}\n')
        other.replace(file)
        rest = server.get(f"{path}?since={first['next']}&version={first['version']}").table
        assert rest["reset"] and rest["rows"] == [{"event": "began", "step": 0}]
    finally:
        file.write_bytes(before)
    assert server.get(f"{path}?since=-1").status == 422


@pytest.mark.parametrize("name", ["transformer", "seq2seq"])
def test_gradients_equal_those_of_the_model_for_its_answer(server, folder, name):
    header, model = server.trace(name, TEXT), regard.load(folder / name)
    expected = model.teacher_forced(TEXT).gradients(model.module)
    found = server.get(f"/api/v1/traces/{header['id']}/gradients").table
    assert found["rows"] == expected.rows and found["name"] == expected.name
    np.testing.assert_allclose(found["norms"], expected.norms, rtol=1e-5)
    other = f"/api/v1/traces/{header['id']}/gradients?name=nothing"
    assert server.get(other).error["code"] == "no-gradients"


def test_recordings_that_need_too_much_memory_are_refused(server, monkeypatch):
    monkeypatch.setattr("regard.studio.service.MAX_GIGABYTES", 1e-6)
    response = server.post("/api/v1/traces", {"model": server.models()["transformer"], "text": TEXT})
    assert response.status == 413
    assert response.error["message"].startswith("recording ")
    assert response.error["message"].endswith(" tokens in this model would take about 0.0 GB; the limit is 1e-06 GB")
    assert server.trace("seq2seq", TEXT)["answer"] is not None  # without heads a recording is small


def test_a_removed_run_is_reported_and_its_traces_stay(server, folder):
    shutil.copytree(folder / "seq2seq", folder / "gone", symlinks=True)
    trace_id, trace = server.models()["gone"], server.trace("gone", TEXT)
    shutil.rmtree(folder / "gone")
    response = server.post("/api/v1/traces", {"model": trace_id, "text": TEXT})
    assert (response.status, response.error["message"]) == (404, "no such model")
    assert server.get(f"/api/v1/traces/{trace['id']}").table == trace
    assert "gone" not in server.models()
