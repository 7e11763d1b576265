"""The demo, shortened: generated phrases, a few seconds of training, the same path through all layers."""

from pathlib import Path
from xml.etree import ElementTree

import pytest


@pytest.mark.parametrize("setting", ['train.device="cpu"', "train.device=cpu", 'train={device = "cpu"}'])
def test_the_device_of_the_demo_is_that_of_its_recipe(tmp_path, monkeypatch, run_cli, setting):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("os.cpu_count", lambda: 3)
    started: list[int] = []
    monkeypatch.setattr("regard.demo.launch", lambda count, command: started.append(count) or 2)
    result = run_cli("demo", 'data={kind = "phrases", count = 100}', setting)
    assert result.err == "error: training stopped with exit code 2; run the same command again to resume\n"
    assert started == [3]  # one process per core


@pytest.mark.slow
def test_the_demo_trains_evaluates_translates_draws_and_prints_what_is_next(tmp_path, monkeypatch, run_cli):
    monkeypatch.chdir(tmp_path)
    settings = ['data={kind = "phrases", count = 1000}', "train.minutes=0.05", "text.vocab_size=600"]
    done = run_cli("demo", *settings, "--out", "runs/demo")
    assert done.code == 0, done.err
    for result in ("BLEU", "chrF", "nrefs:1", "je suis étudiant  ->", "What to try next", "held-out sentences"):
        assert result in done.err, result
    assert "decoder.layers.1.cross.weights" in done.out
    picture = ElementTree.parse(Path("runs/demo/attention.svg"))
    assert picture.getroot().tag.endswith("svg")
    again = run_cli("demo", *settings, "--out", "runs/demo")
    assert again.code == 0 and "je suis étudiant  ->" in again.err
