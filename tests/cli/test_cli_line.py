"""regard line: the overview, one system, JSON, and the picture."""

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from regard.cli import invoke
from regard.models import rnnsearch


@pytest.fixture
def narrow(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")


def test_the_line_lists_systems_and_events_by_year(narrow, capsys):
    assert invoke(["line"]) == 0
    out = capsys.readouterr().out
    places = [out.index(text) for text in ("1943  neuron", "1974 to 1980: AI winter", "2012  alexnet", "2020  vit")]
    assert places == sorted(places)
    assert "2023: GPT-4, undisclosed." in out
    assert max(map(len, out.splitlines())) <= 80


def test_a_system_is_shown_with_paper_novelty_file_recipe_result_and_lesson(narrow, capsys):
    assert invoke(["line", "RNNsearch"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    lines = Path(rnnsearch.__file__).read_text(encoding="utf-8").count("\n")
    for text in (
        "RNNsearch, 2014",
        'Bahdanau, Cho and Bengio 2015, "Neural Machine Translation by Jointly Learning to Align and Translate"',
        "new against seq2seq",
        f"src/regard/models/rnnsearch.py, {lines} lines",
        "regard train recipes/translate/multi30k-de-en-rnnsearch.toml",
        "BLEU 39.5 (37.8 to 40.9)",
        "regard lesson bahdanau",
        "builds on Sequence to sequence (2014, seq2seq)",
    ):
        assert text in out


def test_the_line_as_json_is_the_table_or_one_entry_of_it(capsys):
    assert invoke(["line", "--json"]) == 0
    table = json.loads(capsys.readouterr().out)
    assert invoke(["line", "resnet", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == next(row for row in table["entries"] if row["id"] == "resnet")


def test_the_timeline_is_written_as_svg(tmp_path, capsys):
    assert invoke(["line", "-o", str(tmp_path / "line.svg")]) == 0
    root = ElementTree.parse(tmp_path / "line.svg").getroot()
    texts = {element.text for element in root.iter("{http://www.w3.org/2000/svg}text")}
    assert {"Perceptron", "Vision Transformer", "GPT-4"} <= texts


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["perceptorn"], 'the line has no system "perceptorn"; did you mean "perceptron"?'),
        (["-o", "line.png"], "-o line.png: expected a name that ends in .svg"),
        (["gpt", "-o", "line.svg"], "-o draws the whole line; it takes neither a NAME nor --json"),
    ],
)
def test_mistakes_are_named(arguments, message, capsys):
    assert invoke(["line", *arguments]) == 2
    assert message in capsys.readouterr().err
