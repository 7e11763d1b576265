"""A family is trained member by member on the same data; a failure of one does not stop the others."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from regard.compare import Comparison, compare_runs, train_family
from regard.compare.match_parameters import count_parameters
from regard.compare.train import read_outcome
from regard.distributed import ProcessGroup
from regard.errors import ConfigError, Diverged, Interrupted
from regard.models.base import parameters
from regard.run import Run, load
from regard.tasks import Recipe
from regard.train.divergence import has_diverged, mark_diverged

SHARED = [
    "data={kind = 'phrases', count = 200}",
    "text.vocab_size=120",
    "train.steps=4",
    "train.validate_every=4",
    "train.batch_tokens=256",
    "task.bleu_sentences=2",
]
GRU = "family.gru={kind = 'seq2seq', cell = 'gru', layers = 1, width = 8}"
TRANSFORMER = "family.transformer={kind = 'transformer', layers = 1, width = 16, heads = 2, ffn_width = 32}"
BAD = "family.bad={kind = 'seq2seq', layers = 1, width = 8, train = {schedule = {kind = 'constant', lr = 1e38}}}"


def read(*settings: str) -> Comparison:
    return Comparison.read(None, [*SHARED, *settings])


def no_progress(what: str, done: int, total: int) -> None:
    return


def train_one(recipe, path):
    Run(path).train(recipe)


def refusal(*settings: str) -> str:
    with pytest.raises(ConfigError) as caught:
        read(*settings)
    return str(caught.value)


def test_members_share_everything_but_the_model_and_what_they_override():
    members = {m.name: m.recipe for m in read(GRU, TRANSFORMER, "family.gru.train={schedule = {lr = 0.5}}").members}
    assert members["gru"].train.schedule.lr == 0.5
    assert members["transformer"].train.schedule.lr != 0.5
    assert members["gru"].train.schedule.kind == members["transformer"].train.schedule.kind
    assert members["gru"].data == members["transformer"].data
    assert (members["gru"].model.kind, members["transformer"].model.kind) == ("seq2seq", "transformer")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ([], "a comparison needs at least two models, one [family.NAME] each; there is none"),
        ([GRU], "a comparison needs at least two models, one [family.NAME] each; there is 1: gru"),
        ([GRU, TRANSFORMER, "model.kind=gpt"], "a compare recipe has no [model]: each model is a [family.NAME]"),
        ([GRU, "family.x={kind = 'gpt'}"],
         'family.x: model.kind = "gpt" reads no source, so it cannot translate; use transformer or seq2seq'),
        ([GRU, "family.x={kind = 'seq2seq', layer = 3}"],
         'family.x: unknown setting "layer"; did you mean layers (number of stacked layers, in the encoder and in the '
         "decoder, now 4)?"),
        ([GRU, TRANSFORMER, "family.gru.train={steps = 9}"],
         "family.gru.train.steps: the budget is the same for all; give it in [train]"),
        ([GRU, TRANSFORMER, "budget.parameters=0"], "budget: parameters = 0 must be at least 1"),
        ([GRU, "family.\"a/b\"={kind = 'gpt'}"],
         'family: ""a/b"" cannot be the name of a folder; use letters, digits, - and _'),
        ([GRU, "family.prepared={kind = 'gpt'}"],
         'family: "prepared" cannot be the name of a folder; use letters, digits, - and _'),
    ],
)  # fmt: skip
def test_a_family_that_cannot_be_compared_is_refused_before_any_work(settings, message):
    assert refusal(*settings) == message


def test_an_unknown_kind_is_refused_with_the_known_ones():
    message = refusal(GRU, "family.x={kind = 'grru'}")
    assert message.startswith("family.x: model.kind: expected one of transformer, ")
    assert "got 'grru'" in message


def test_data_is_prepared_once_and_members_are_ordinary_runs(tmp_path):
    train_family(read(GRU, TRANSFORMER), tmp_path, train_one, no_progress)
    shared = tmp_path / "prepared/data/train/manifest.json"
    for name in ("gru", "transformer"):
        assert shared.samefile(tmp_path / name / "data/train/manifest.json")
        assert read_outcome(tmp_path / name, Run(tmp_path / name).recipe()) == ""
        assert (tmp_path / name / "tokenizer.json").exists()


def test_a_member_that_is_finished_is_not_trained_again(tmp_path):
    trained = []

    def note(recipe, path):
        trained.append(path.name)
        train_one(recipe, path)

    def stop(recipe, path):
        if path.name == "transformer":
            raise Interrupted("interrupted at step 2; the checkpoint is written, run the same command again to resume")
        note(recipe, path)

    with pytest.raises(Interrupted):
        train_family(read(GRU, TRANSFORMER), tmp_path, stop, no_progress)
    assert train_family(read(GRU, TRANSFORMER), tmp_path, note, no_progress) == {}
    assert trained == ["gru", "transformer"]


def test_a_member_that_diverges_is_recorded_and_the_others_are_trained(tmp_path):
    failures = train_family(read(BAD, TRANSFORMER), tmp_path, train_one, no_progress)
    assert list(failures) == ["bad"]
    assert failures["bad"].startswith("training diverged at step ")
    assert read_outcome(tmp_path / "transformer", Run(tmp_path / "transformer").recipe()) == ""
    again = []
    assert (
        train_family(read(BAD, TRANSFORMER), tmp_path, lambda recipe, path: again.append(path), no_progress) == failures
    )
    assert again == []


def test_a_larger_budget_and_a_corrected_member_resume(tmp_path):
    train_family(read(BAD, TRANSFORMER), tmp_path, train_one, no_progress)
    corrected = [BAD.replace("1e38", "1e-3"), TRANSFORMER, "train.steps=6"]
    assert train_family(read(*corrected), tmp_path, train_one, no_progress) == {}
    assert [load(tmp_path / name).step for name in ("bad", "transformer")] == [6, 6]


def test_the_rate_of_a_member_that_diverged_may_be_changed_and_no_other(tmp_path):
    def diverge(recipe, path):
        train_one(recipe, path)
        if path.name == "gru":
            mark_diverged(path, 4, "a test", "another")
            raise Diverged("training diverged at step 4: a test")

    train_family(read(GRU, TRANSFORMER), tmp_path, diverge, no_progress)
    assert list(train_family(read(GRU, TRANSFORMER), tmp_path, train_one, no_progress)) == ["gru"]
    assert has_diverged(tmp_path / "gru")  # it was skipped
    lower = ["train.steps=6", "family.gru.train={schedule = {lr = 1e-4}}"]
    with pytest.raises(ConfigError, match=r"transformer: started with another recipe: train.schedule.lr was 0.0005"):
        train_family(read(GRU, TRANSFORMER, "train.schedule.lr=1e-4"), tmp_path, train_one, no_progress)
    assert train_family(read(GRU, TRANSFORMER, *lower), tmp_path, train_one, no_progress) == {}
    assert load(tmp_path / "gru").step == 6 and not has_diverged(tmp_path / "gru")


def test_resuming_with_another_recipe_is_refused_for_finished_members_too(tmp_path):
    train_family(read(GRU, TRANSFORMER), tmp_path, train_one, no_progress)
    wider = read(GRU.replace("width = 8", "width = 16"), TRANSFORMER)
    seeded = read(GRU, TRANSFORMER, "seed=7")
    for changed, settings, removed in (
        (f"{tmp_path}/gru", "model.width was 8, is 16", f"{tmp_path}/gru"),
        (f"{tmp_path}/gru, {tmp_path}/transformer", "seed was 1, is 7", str(tmp_path)),
    ):
        with pytest.raises(ConfigError) as caught:
            train_family(wider if "width" in settings else seeded, tmp_path, train_one, no_progress)
        assert str(caught.value).startswith(
            f"{changed}: started with another recipe: {settings}. Use --out for a new family, or remove {removed} to "
            "train again (a resumed run may change train.best_metric, train.device, "
        )
        assert "--fresh" not in str(caught.value)


def test_a_member_that_cannot_be_built_is_named_before_anything_is_trained(tmp_path):
    encoder = "{kind = 'transformer', layers = 1, width = 24, heads = 3, ffn_width = 24}"  # a multiple of 24 ...
    decoder = "{kind = 'luong', layers = 1, width = 24, score = 'cosine'}"  # ... is never a smaller multiple of 8
    late = f"family.late={{kind = 'encoder-decoder', encoder = {encoder}, decoder = {decoder}}}"
    trained = []
    with pytest.raises(ConfigError, match=r"^family\.late: ") as caught:
        train_family(
            read(GRU, late, "budget={parameters = 9000, tolerance = 0.5}"),
            tmp_path,
            lambda recipe, path: trained.append(path),
            no_progress,
        )
    assert "cosine" in str(caught.value)
    assert trained == []


def test_members_with_a_budget_of_minutes_are_measured_and_trained_once(tmp_path):
    shared = [setting for setting in SHARED if not setting.startswith("train.steps")]
    family = Comparison.read(None, [*shared, "train.minutes=0.001", GRU, TRANSFORMER])
    again = []
    assert train_family(family, tmp_path) == {}
    steps = {name: load(tmp_path / name).step for name in ("gru", "transformer")}
    assert min(steps.values()) >= 1
    assert train_family(family, tmp_path, lambda recipe, path: again.append(path)) == {}
    assert again == []
    table = compare_runs({name: tmp_path / name for name in steps})
    assert {row.name: row.step for row in table.rows} == steps


def test_a_budget_of_parameters_makes_all_members_about_equally_large(tmp_path):
    comparison = read(GRU, TRANSFORMER, "budget.parameters=60000", "budget.tolerance=0.1")
    Run(tmp_path).prepare(comparison.members[0].recipe)
    sized = comparison.sized_members(tmp_path)
    counts = {member.name: count_parameters(member.recipe, tmp_path) for member in sized}
    assert all(54_000 <= count <= 66_000 for count in counts.values()), counts
    models = {member.name: member.recipe.model for member in sized}
    assert models["transformer"].width % models["transformer"].heads == 0
    assert models["transformer"].ffn_width == pytest.approx(2 * models["transformer"].width, rel=0.1)  # as before


def test_a_budget_of_parameters_that_no_width_reaches_is_refused(tmp_path):
    comparison = read(GRU, TRANSFORMER, "budget.parameters=1000", "budget.tolerance=0.01")
    Run(tmp_path).prepare(comparison.members[0].recipe)
    with pytest.raises(ConfigError) as caught:
        comparison.sized_members(tmp_path)
    assert str(caught.value).startswith("family.gru: no width gives 1,000 parameters within 1 %; the nearest is ")
    assert str(caught.value).endswith("; change budget.parameters, or the model's layers")


def test_parameters_of_a_forecaster_initialized_from_data_are_counted(tmp_path):
    rows = [f"{20 + math.sin(i / 3):.4f}" for i in range(200)]
    (tmp_path / "load.csv").write_text("\n".join(["load", *rows]) + "\n", encoding="utf-8")
    data = [f"data={{kind = 'csv', train = '{tmp_path}/load.csv'}}", "task={kind = 'forecast', window = 12}"]
    recipe = Recipe.read(None, [*data, "task.horizon=4", "model={kind = 'mlp', width = 8}", "train.batch_tokens=96"])
    Run(tmp_path / "run").prepare(recipe)
    assert count_parameters(recipe, tmp_path / "run") == parameters(
        recipe.training_parts(tmp_path / "run", ProcessGroup())[0]
    )


def test_the_shipped_recipes_can_be_read(monkeypatch):
    monkeypatch.setenv("REGARD_DATA", "somewhere")
    recipes = sorted((Path(__file__).parents[2] / "recipes/compare").glob("*.toml"))
    assert recipes
    for recipe in recipes:
        assert len(Comparison.read(recipe).members) >= 4


def test_home_folders_and_variables_are_expanded_in_the_whole_family(tmp_path, monkeypatch):
    monkeypatch.setenv("BASE", str(tmp_path))
    family = read(GRU, TRANSFORMER, "family.gru.init=$BASE/a", "text.tokenizer=$BASE/b")
    first = family.members[0].recipe
    assert (first.init, first.text.tokenizer) == (tmp_path / "a", tmp_path / "b")
