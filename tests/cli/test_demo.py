"""The demo, shortened: made-up phrases, a few seconds of training, the same path through all layers."""

import subprocess
import sys
from xml.etree import ElementTree

import pytest


@pytest.mark.slow
def test_the_demo_trains_scores_translates_draws_and_says_what_is_next(tmp_path):
    settings = ['data={kind = "phrases", count = 1000}', "train.minutes=0.05", "text.size=600"]
    command = [sys.executable, "-m", "regard", "demo", *settings, "--out", "runs/demo"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    for told in ("BLEU", "chrF", "nrefs:1", "je suis étudiant  ->", "What to try next", "held-out sentences"):
        assert told in done.stderr, told
    assert "decoder.layers.1.cross.weights" in done.stdout
    picture = ElementTree.parse(tmp_path / "runs" / "demo" / "attention.svg")
    assert picture.getroot().tag.endswith("svg")
    again = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=600)
    assert again.returncode == 0 and "je suis étudiant  ->" in again.stderr
