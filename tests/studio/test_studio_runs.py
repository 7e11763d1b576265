"""The page of a training: commands to a trainer in another process, and the probe at each step."""

import json
import os
import shutil
import subprocess
import sys

import numpy as np
import pytest

import regard
from browsing import TEXT, go, shows, until
from helpers import PATIENCE, says, wait_until
from regard.cli import invoke
from regard.train import checkpoint, control

RECIPE = """
[data]
kind = "phrases"
count = 300
[text]
vocab_size = 200
[model]
kind = "transformer"
layers = 1
width = 16
heads = 2
ffn_width = 32
[task]
bleu_sentences = 0
[train]
steps = {steps}
validate_every = {every}
batch_tokens = 512
best_metric = "loss"
probe = "{text}"
[decode]
min_length = 3
max_extra_tokens = 4
"""


@pytest.fixture(scope="module")
def recipe(tmp_path_factory):
    def write(steps, every):
        path = tmp_path_factory.mktemp("recipe") / "probed.toml"
        path.write_text(RECIPE.format(steps=steps, every=every, text=TEXT), encoding="utf-8")
        return path

    return write


@pytest.fixture(scope="module")
def probed(server, folder, recipe):
    """A finished run with a probe at three steps, only during the tests of this file."""
    assert invoke(["train", str(recipe(6, 2)), "--out", str(folder / "probed"), "--quiet"]) == 0
    yield server.models()["probed"]
    shutil.rmtree(folder / "probed")


@pytest.fixture
def unfinished(folder, probed):
    """The same run, as if it were still training."""
    file = folder / "probed" / "metrics.jsonl"
    before = file.read_bytes()
    file.write_bytes(b"".join(line for line in before.splitlines(keepends=True) if b'"ended"' not in line))
    yield folder / "probed"
    file.write_bytes(before)
    (folder / "probed" / control.FILE).unlink(missing_ok=True)


def test_a_command_is_pending_in_the_run_folder_until_the_trainer_reads_it(server, probed, unfinished):
    path = f"/api/v1/runs/{probed}"
    assert server.get(f"{path}/metrics").table["command"] is None
    response = server.post(f"{path}/control", {"command": "save"})
    assert (response.status, response.table) == (202, {"command": "save"})
    assert control.pending_command(unfinished) == "save" and server.get(f"{path}/metrics").table["command"] == "save"
    assert control.Control(unfinished, is_main=True).poll() == 0  # a training that starts now drops it
    assert server.get(f"{path}/metrics").table["command"] is None


def test_commands_to_an_ended_training_are_refused(server, probed, folder):
    response = server.post(f"/api/v1/runs/{probed}/control", {"command": "stop"})
    assert (response.status, response.error["message"]) == (409, "this training has ended")
    assert control.pending_command(folder / "probed") is None


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("halt", "command: expected save or stop, got 'halt'"),
        (1, "command: expected str, got int"),
        (None, "got nothing"),
    ],
)
def test_invalid_commands_are_refused(server, probed, unfinished, command, message):
    response = server.post(f"/api/v1/runs/{probed}/control", {"command": command})
    assert response.status == 422 and message in response.error["message"]
    assert server.post("/api/v1/runs/nothing/control", {"command": "stop"}).status == 404


def test_probes_are_listed_and_their_numbers_are_those_of_the_files(server, probed, folder):
    info = server.get(f"/api/v1/runs/{probed}/metrics").table["probe"]
    assert info == {"text": TEXT, "steps": [2, 4, 6]}
    base = f"/api/v1/runs/{probed}/probe/4"
    header, recording = (
        server.get(base).table,
        regard.Recording.load(folder / "probed" / "probe" / "00000004.safetensors"),
    )
    assert [tensor["name"] for tensor in header["tensors"]] == [record.name for record in recording.records]
    assert [word["token"] for word in header["sequences"]["source"]] == recording.attention().columns
    name = header["tensors"][-1]["name"]
    sent = np.frombuffer(server.get(f"{base}/tensors/{name}?slice=head:1").body, "<f4")
    np.testing.assert_array_equal(sent, recording.find(name)[0].data[0, 1].numpy().ravel())
    for step in ("3", "x", "..%2F..", "99999999999999999999"):
        assert server.get(f"/api/v1/runs/{probed}/probe/{step}").status == 404
    assert server.get(f"/api/v1/runs/{server.models()['seq2seq']}/metrics").table["probe"] is None


def test_a_damaged_probe_is_reported_and_the_server_continues(server, probed, folder):
    file = folder / "probed" / "probe" / "00000002.safetensors"
    before = file.read_bytes()
    file.write_bytes(b"nonsense")
    os.utime(file, (1, 1))
    assert server.get(f"/api/v1/runs/{probed}/probe/2").error["code"] == "damaged-probe"
    file.write_bytes(before)
    assert server.get(f"/api/v1/runs/{probed}/probe/2").status == 200


@pytest.mark.slow
def test_the_slider_shows_the_attention_at_each_step(page, server, probed, folder):
    go(page, server, f"#/runs/{probed}")
    slider = page.get_by_label("Training step")
    for index, step in enumerate((2, 4, 6)):
        slider.fill(str(index))
        page.wait_for_selector(f".probe-step:text-is('step {step} ({index + 1} of 3)')")
        page.locator("summary", has_text="As a table").click()
        recording = regard.Recording.load(folder / "probed" / "probe" / f"{step:08}.safetensors")
        weights = recording.attention("decoder.layers.0.cross.weights").weights
        page.wait_for_selector("figure table")
        rows = page.locator("figure tbody tr").all()
        cells = [[cell.inner_text() for cell in row.locator("td").all()] for row in rows]
        assert np.shape(cells) == weights.shape
        assert all(shows(a, float(b)) for row, values in zip(cells, weights) for a, b in zip(row, values))
    page.get_by_label("Head", exact=True).select_option("1")
    page.locator("main").focus()
    page.keyboard.press(",")
    page.wait_for_selector(".probe-step:text-is('step 4 (2 of 3)')")


@pytest.mark.slow
def test_buttons_save_and_stop_a_training_in_another_process(page, server, folder, recipe):
    run = folder / "elsewhere"
    command = [sys.executable, "-m", "regard", "train", str(recipe(100_000, 1000)), "--out", str(run), "--quiet"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, encoding="utf-8")
    try:
        wait_until(says(run / "metrics.jsonl", "stepped"), "the first step", process)
        go(page, server, f"#/runs/{server.models()['elsewhere']}")
        page.get_by_role("button", name="Save a checkpoint").click()
        until(page, "document.querySelector('.control output').textContent.startsWith('Checkpoint saved at')")
        status = page.locator(".control output").inner_text()
        steps = [int(path.name) for path in (run / "checkpoints").iterdir() if path.name.isdecimal()]
        assert int(status.removeprefix("Checkpoint saved at step ").rstrip(".").replace(",", "")) in steps
        assert process.poll() is None
        page.get_by_role("button", name="Stop training").click()
        until(page, "document.querySelector('[role=status]').textContent.startsWith('Ended at step')")
        assert process.wait(PATIENCE) == 130
        last = checkpoint.newest(run).checkpoint
        assert page.locator("[role=status]").inner_text() == f"Ended at step {last.step:,}: stopped."
        assert "the checkpoint is saved" in page.locator(".control output").inner_text()
        rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
        assert (rows[-1]["reason"], rows[-1]["step"]) == ("stopped", last.step)
    finally:
        process.kill()
        process.communicate()
        shutil.rmtree(run, ignore_errors=True)
