"""The demo, shortened: generated phrases, a few seconds of training, the same path through all layers."""

from pathlib import Path
from xml.etree import ElementTree

import pytest


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
