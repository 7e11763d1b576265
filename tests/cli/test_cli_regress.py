"""regard regress, and the other verbs on a run of its task."""

from __future__ import annotations

import json

import pytest
from PIL import Image

from regard.data.moving_shapes import make_clip

RECIPE = """
task = {kind = "regress"}
data = {kind = "moving-shapes", count = 80}
model = {kind = "cnn-lstm", channels = [4, 6], width = 8}
train = {steps = 3, batch_tokens = 16}
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    from regard.cli import invoke

    home = tmp_path_factory.mktemp("regress")
    (home / "tiny.toml").write_text(RECIPE)
    assert invoke(["train", str(home / "tiny.toml"), "--out", str(home / "run")]) == 0
    return home / "run"


def test_names_and_numbers_are_printed_and_files_that_cannot_be_read_are_reported(run, tmp_path, run_cli):
    frames = [Image.fromarray(frame) for frame in make_clip(3, "test").render()]
    frames[0].save(tmp_path / "moving.webp", save_all=True, append_images=frames[1:], lossless=True)
    frames[0].save(tmp_path / "still.png")
    found = run_cli("regress", run, tmp_path / "moving.webp", "clips#test/3", tmp_path / "still.png")
    first, second, third = found.out.split("\n")[:3]
    assert found.code == 4 and first == second and third == ""
    assert first.split("\t")[::2] == ["x", "y"]
    assert "still.png: 1 frame; a clip needs at least two" in found.err
    table = json.loads(run_cli("regress", run, "clips#test/3", "--json").out)
    assert [f"{number:.6g}" for number in table["numbers"].values()] == first.split("\t")[1::2]
    refused = run_cli("classify", run, "clips#test/3")
    assert refused.code != 0 and "regress" in refused.err


def test_scores_card_pack_and_views_of_a_regression_run(run, tmp_path, run_cli):
    scores = run_cli("eval", run)
    assert scores.code == 0 and scores.out.splitlines()[1].startswith("MAE ") and "20 clips" in scores.out
    assert f"regard regress {run} clip.gif" in (run / "MODEL_CARD.md").read_text("utf-8")
    assert run_cli("pack", run, "-o", tmp_path / "model.regard").code == 0
    line = run_cli("regress", run, "clips#test/3").out
    assert run_cli("regress", tmp_path / "model.regard", "clips#test/3").out == line
    for view in ("maps", "states", "saliency", "filters"):
        assert run_cli("look", run, "clips#test/3", "--view", view, "-o", tmp_path / f"{view}.svg").code == 0
