"""regard caption, and the views of what it captions."""

from __future__ import annotations

import json

import pytest
from PIL import Image

from regard.data.shapes import make_scene

RECIPE = """
task = {kind = "caption", bleu_images = 4}
data = {kind = "shapes", count = 60}
decode = {max_extra_tokens = 8}
[model]
encoder = {kind = "cnn", channels = [4, 6], convolutions = 1}
decoder = {kind = "rnnsearch", embedding = 6, width = 8, alignment = 6, maxout = 6}
[train]
steps = 2
batch_tokens = 16
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    from regard.cli import invoke

    home = tmp_path_factory.mktemp("caption")
    (home / "tiny.toml").write_text(RECIPE)
    assert invoke(["train", str(home / "tiny.toml"), "--out", str(home / "run")]) == 0
    return home / "run"


@pytest.fixture
def photo(tmp_path):
    Image.fromarray(make_scene(1, "test").render()).save(tmp_path / "photo.png")
    return tmp_path / "photo.png"


def test_one_line_per_image_in_the_order_of_the_input(run_cli, run, photo):
    found = run_cli("caption", run, photo, "shapes#test/1", "shapes#test/2")
    assert found.code == 0
    lines = found.out.splitlines()
    assert len(lines) == 3
    assert lines[0] == lines[1]


def test_a_list_of_images_with_empty_lines_and_bad_ones_keeps_its_order(run_cli, run, photo, tmp_path):
    (tmp_path / "text.png").write_text("only a text")
    (tmp_path / "list.txt").write_text(f"{photo}\n\n{tmp_path}/text.png\n{tmp_path}/nowhere.png\nshapes#test/1\n")
    found = run_cli("caption", run, "-i", tmp_path / "list.txt", "-o", tmp_path / "out.txt")
    assert found.code == 4
    lines = (tmp_path / "out.txt").read_text().splitlines()
    assert len(lines) == 5
    assert lines[0] == lines[4]
    assert lines[1] == lines[2] == lines[3] == ""
    assert "text.png: this is no image" in found.err
    assert "nowhere.png: there is no such image" in found.err
    assert "2 lines of the input have no answer" in found.err


def test_json_has_the_scores_of_every_caption(run_cli, run, photo):
    found = run_cli("caption", run, photo, "--n-best", 2, "--beam", 3, "--json")
    row = json.loads(found.out)
    assert row["image"] == str(photo)
    assert [set(one) for one in row["captions"]] == [{"text", "value", "score", "tokens", "complete"}] * 2


def test_n_best_lines_start_with_the_number_of_the_image_and_scores(run_cli, run):
    lines = run_cli("caption", run, "shapes#test/1", "shapes#test/2", "--n-best", 2, "--scores").out.splitlines()
    assert [line.split("\t")[0] for line in lines] == ["1", "1", "2", "2"]
    assert float(lines[0].split("\t")[1]) >= float(lines[1].split("\t")[1])


def test_a_single_image_that_is_not_there_ends_with_an_error(run_cli, run):
    found = run_cli("caption", run, "nowhere.png")
    assert found.code == 4
    assert "nowhere.png: there is no such image" in found.err
    assert not found.out


def test_the_first_frame_of_an_animation_is_read_with_a_warning(run_cli, run, tmp_path):
    frames = [Image.fromarray(make_scene(i, "test").render()) for i in (1, 2)]
    frames[0].save(tmp_path / "moving.gif", save_all=True, append_images=frames[1:])
    found = run_cli("caption", run, tmp_path / "moving.gif")
    assert found.code == 0
    assert "several frames; the first was read" in found.err


def test_another_verb_says_what_the_run_is_for(run_cli, run):
    found = run_cli("translate", run, "hello")
    assert found.code == 3
    assert "was trained to caption, so it cannot translate; use: regard caption" in found.err


def test_look_draws_where_each_word_looked(run_cli, run, photo, tmp_path):
    found = run_cli("look", run, photo)
    assert found.code == 0
    assert found.out.startswith("decoder.cross.weights")
    for ending in ("svg", "png", "json", "html", "safetensors"):
        found = run_cli("look", run, photo, "-o", tmp_path / f"view.{ending}")
        assert found.code == 0, found.err
    assert "<image " in (tmp_path / "view.svg").read_text()
    data = json.loads((tmp_path / "view.json").read_text())
    assert data["image"].startswith("data:image/png;base64,")
    assert len(data["maps"]) == len(data["labels"])


def test_eval_scores_the_unseen_combinations(run_cli, run):
    found = run_cli("eval", run, "--split", "unseen", "--json")
    assert found.code == 0
    assert {score["name"] for score in json.loads(found.out)["scores"]} == {"exact", "bleu"}


def test_a_new_recipe_for_captions_is_one_that_can_be_read(run_cli, tmp_path):
    found = run_cli("new", tmp_path / "mine", "--task", "caption")
    assert found.code == 0
    text = (tmp_path / "mine.toml").read_text()
    assert "an image's file name, a tab and a caption" in found.err + found.out + text
    assert run_cli("config", "show", tmp_path / "mine.toml").code == 0


def test_data_stats_count_images_and_captions(run_cli, run):
    found = run_cli("data", "stats", run)
    assert "60 of 60 images, 120 captions" in found.out
