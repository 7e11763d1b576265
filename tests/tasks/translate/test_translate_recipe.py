"""The translate task: validation, scores, and their references."""

from __future__ import annotations

from pathlib import Path

import pytest

from regard.errors import ConfigError
from regard.lessons.proverbs import SPANISH
from regard.run import Run, load
from regard.tasks import EvalRequest, Recipe
from regard.train.events import Validated

PAIRS = [(f"Le CHAT numéro {i} mange ½ tarte", f"Cat NUMBER {i} eats ½ a pie") for i in range(60)]
SMALL = [
    "model={kind = 'transformer', layers = 1, width = 16, heads = 2, ffn_width = 32}",
    "text.vocab_size=120",
    "train={steps = 2, batch_tokens = 256}",
    "task={bleu_sentences = 3, samples = 3}",
]


@pytest.fixture
def files(tmp_path) -> list[str]:
    for side, name in enumerate(("fr", "en")):
        (tmp_path / f"a.{name}").write_text("".join(pair[side] + "\n" for pair in PAIRS), encoding="utf-8")
    both = f'["{tmp_path}/a.fr", "{tmp_path}/a.en"]'
    return [f"data={{kind = 'files', train = {both}, valid = {both}}}".replace('"', "'")]


def no_progress(what: str, done: int, total: int) -> None:
    return


def test_validation_compares_with_the_references_as_they_came(files, tmp_path):
    events = []
    Run(tmp_path / "run").train(Recipe.read(None, [*files, *SMALL]), listeners=[events.append])
    (validated,) = (event for event in events if isinstance(event, Validated))
    expected = [PAIRS[i] for i in (0, 20, 40)]
    assert [(row["source"], row["reference"]) for row in validated.samples] == expected


@pytest.mark.parametrize("scored", [0, 2])
def test_sample_inputs_are_translated_at_each_validation(files, tmp_path, scored):
    inputs = ["Le CHAT numéro 7 mange", ""]
    events = []
    settings = [*files, *SMALL[:3], f"task={{bleu_sentences = {scored}, samples = 1, sample_inputs = {inputs}}}"]
    Run(tmp_path / "run").train(Recipe.read(None, settings), listeners=[events.append])
    (validated,) = (event for event in events if isinstance(event, Validated))
    found = [row for row in validated.samples if "sample_input" in row]
    assert [row["sample_input"] for row in found] == inputs
    model = load(tmp_path / "run")
    assert [row["output"] for row in found] == model.translate(inputs, beam=1)
    assert len(validated.samples) == len(found) + min(scored, 1)


def test_the_spanish_recipe_tries_the_four_proverbs_of_the_lecture():
    recipe = Recipe.read(Path(__file__).parents[3] / "recipes/translate/es-en.toml")
    assert list(recipe.task.sample_inputs) == SPANISH


@pytest.mark.parametrize(("lowercase", "case"), [("true", "case:lc"), ("false", "case:mixed")])
def test_scores_are_case_sensitive_unless_the_tokenizer_lowercases(files, tmp_path, lowercase, case):
    Run(tmp_path / "run").train(Recipe.read(None, [*files, *SMALL, f"text.lowercase={lowercase}"]))
    found = load(tmp_path / "run").evaluate(EvalRequest(split="valid", beam=1), no_progress)
    bleu, chrf, *_ = found.scores
    assert case in bleu.signature and case in chrf.signature
    assert [answer.reference for answer in found.examples] == [pair[1] for pair in PAIRS]
    assert found.seconds is not None and found.seconds > 0


def test_a_translator_is_scored_on_two_files(files, tmp_path):
    Run(tmp_path / "run").train(Recipe.read(None, [*files, *SMALL]))
    with pytest.raises(ConfigError) as caught:
        load(tmp_path / "run").evaluate(EvalRequest(files=[Path("a.fr")]), no_progress)
    assert str(caught.value) == "--data: expected two files, sources and references, got 1"
