"""The line of systems: its table and its picture are derived from what is there, and every system has what it names."""

import json
import re
import runpy
from pathlib import Path

import pytest

from regard.lessons.catalogue import LESSONS
from regard.line.table import LineEntry, load_line

ROOT = Path(__file__).parents[2]
SCRIPT = runpy.run_path(str(ROOT / "docs" / "line.py"))
ENTRIES = {entry.id: entry for entry in load_line().entries}
NOT_ON_THE_LINE = {
    "models/forecaster.py": "a head for forecasts, on any encoder of the line",
    "models/elmo_recurrent.py": "ELMo's vectors below a recurrent encoder; a use of the system elmo",
    "models/subword_tagger.py": "a head for tags, on any encoder of the line",
}


def test_table_and_picture_of_the_line_are_up_to_date():
    table, picture = SCRIPT["render"]()
    assert SCRIPT["TABLE"].read_text(encoding="utf-8") == table, "run: python docs/line.py"
    assert SCRIPT["PICTURE"].read_text(encoding="utf-8") == picture, "run: python docs/line.py"


@pytest.mark.parametrize("entry", ENTRIES.values(), ids=ENTRIES)
def test_every_system_names_an_existing_file_recipe_and_lesson_and_builds_on_earlier_ones(entry: LineEntry):
    assert (ROOT / entry.file).read_text(encoding="utf-8").count("\n") == entry.lines
    assert entry.lesson is None or entry.lesson in LESSONS
    assert entry.recipe is None or (ROOT / entry.recipe).is_file()
    assert all(ENTRIES[before].year <= entry.year for before in entry.after)
    assert abs(int(re.findall(r"\d{4}", entry.paper)[0]) - entry.year) <= 1  # a preprint may be a year older


def test_the_line_has_every_model_whose_docstring_says_what_was_new():
    source = ROOT / "src" / "regard"
    files = {path.relative_to(source).as_posix() for path in source.glob("models/*.py")}
    new = {file for file in files if "New against" in SCRIPT["docstring"](file)}
    systems = SCRIPT["read_source"]()["system"]
    listed = {system[key] for system in systems for key in ("file", "model_file") if key in system}
    assert new - listed == set(NOT_ON_THE_LINE)


def test_the_line_has_the_winters_imagenet_and_the_undisclosed_models():
    events = {(event.name, event.year): event for event in load_line().events}
    assert [(e.year, e.until) for e in load_line().events if e.name == "AI winter"] == [(1974, 1980), (1987, 1993)]
    assert "14 million" in events["ImageNet", 2009].text
    assert "1.2 million" in events["ILSVRC", 2010].text and "15.3 %" in events["ILSVRC", 2010].text
    assert {name for (name, _), event in events.items() if event.undisclosed} == {"GPT-3.5", "GPT-4"}
    assert min(ENTRIES.values(), key=lambda entry: entry.year).id == "neuron"


def test_a_result_is_the_recipes_own_and_a_passage_of_the_log_is_word_for_word():
    assert SCRIPT["recipe_header"]("translate/multi30k-de-en-rnnsearch.toml")[1] == ENTRIES["rnnsearch"].result
    assert ENTRIES["rnnsearch"].score == "German-English BLEU 39.5 (37.8 to 40.9)"
    with pytest.raises(ValueError, match=r"LOG.md has no passage 'measured by nobody'"):
        SCRIPT["log_date"]("measured by nobody")
    invented = {"id": "x", "log": "filters equal conv2d bit for bit", "result": "99.9 % equal"}
    with pytest.raises(ValueError, match=re.escape("x: {'99.9'} of its result is not in the passage of LOG.md")):
        SCRIPT["measurement"](invented)


def test_a_system_is_cited_by_its_file():
    system = {"file": "models/vit.py", "cites": "Nobody 1999"}
    with pytest.raises(ValueError, match=r"models/vit.py: neither its docstring nor the recipe cites Nobody 1999"):
        SCRIPT["title"](system, SCRIPT["docstring"]("models/vit.py"))


def test_the_picture_shows_every_system_and_no_text_is_cut():
    picture = SCRIPT["PICTURE"].read_text(encoding="utf-8")
    texts = re.findall(r"<text[^>]*>([^<]*)</text>", picture)
    assert {entry.name for entry in ENTRIES.values()} <= set(texts)
    assert [text for text in texts if text.endswith(("…", "..."))] == []


def test_the_table_is_plain_json():
    table = json.loads(SCRIPT["TABLE"].read_text(encoding="utf-8"))
    assert len(table["entries"]) == len(ENTRIES) and set(table) == {"parts", "entries", "events"}
