"""Translation as a job: what it is scored against, and how."""

from __future__ import annotations

from pathlib import Path

import pytest

from regard.errors import ConfigError
from regard.lessons.proverbs import SPANISH
from regard.run import Run, load
from regard.tasks import Asked, Recipe
from regard.train.events import Validated

PAIRS = [(f"Le CHAT numéro {i} mange ½ tarte", f"Cat NUMBER {i} eats ½ a pie") for i in range(60)]
SMALL = [
    "model={kind = 'transformer', layers = 1, width = 16, heads = 2, inner = 32}",
    "text.size=120",
    "train={steps = 2, tokens = 256}",
    "task={scored = 3, samples = 3}",
]


@pytest.fixture
def files(tmp_path) -> list[str]:
    for side, name in enumerate(("fr", "en")):
        (tmp_path / f"a.{name}").write_text("".join(pair[side] + "\n" for pair in PAIRS), encoding="utf-8")
    both = f'["{tmp_path}/a.fr", "{tmp_path}/a.en"]'
    return [f"data={{kind = 'files', train = {both}, valid = {both}}}".replace('"', "'")]


def silent(what: str, done: int, total: int) -> None:
    return


def test_validation_compares_with_the_references_as_they_came(files, tmp_path):
    events = []
    Run(tmp_path / "run").train(Recipe.read(None, [*files, *SMALL]), listeners=[events.append])
    (validated,) = (event for event in events if isinstance(event, Validated))
    wanted = [PAIRS[i] for i in (0, 20, 40)]
    assert [(row["source"], row["reference"]) for row in validated.samples] == wanted


@pytest.mark.parametrize("scored", [0, 2])
def test_sentences_of_ones_own_are_translated_at_each_validation(files, tmp_path, scored):
    tried = ["Le CHAT numéro 7 mange", ""]
    events = []
    settings = [*files, *SMALL[:3], f"task={{scored = {scored}, samples = 1, tried = {tried}}}"]
    Run(tmp_path / "run").train(Recipe.read(None, settings), listeners=[events.append])
    (validated,) = (event for event in events if isinstance(event, Validated))
    found = [row for row in validated.samples if "tried" in row]
    assert [row["tried"] for row in found] == tried
    model = load(tmp_path / "run")
    assert [row["output"] for row in found] == model.translate(tried, beam=1)
    assert len(validated.samples) == len(found) + min(scored, 1)


def test_the_spanish_recipe_tries_the_four_proverbs_of_the_lecture():
    recipe = Recipe.read(Path(__file__).parents[3] / "recipes/translate/es-en.toml")
    assert list(recipe.task.tried) == SPANISH


@pytest.mark.parametrize(("lowercase", "case"), [("true", "case:lc"), ("false", "case:mixed")])
def test_capitals_count_unless_the_tokenizer_forgets_them(files, tmp_path, lowercase, case):
    Run(tmp_path / "run").train(Recipe.read(None, [*files, *SMALL, f"text.lowercase={lowercase}"]))
    found = load(tmp_path / "run").evaluate(Asked(split="valid", beam=1), silent)
    bleu, chrf, *_ = found.scores
    assert case in bleu.signature and case in chrf.signature
    assert [answer.reference for answer in found.answers] == [pair[1] for pair in PAIRS]
    assert found.seconds is not None and found.seconds > 0


def test_a_translator_is_scored_on_two_files(files, tmp_path):
    Run(tmp_path / "run").train(Recipe.read(None, [*files, *SMALL]))
    with pytest.raises(ConfigError) as caught:
        load(tmp_path / "run").evaluate(Asked(files=[Path("a.fr")]), silent)
    assert str(caught.value) == "--data: expected two files, one to read and one to compare with, got 1"
