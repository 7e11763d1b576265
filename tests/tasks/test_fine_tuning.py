"""Fine-tuning: which weights a model takes from another, for every task; vocabularies, resuming, lineage, bad input."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch

import regard
from helpers import check_refused, refusal
from readers import LOAD, NAMES, REVIEWS
from regard import config
from regard.cli import invoke
from regard.compare.recipe import Comparison
from regard.compare.train import train_family
from regard.distributed import ProcessGroup
from regard.errors import ConfigError, InputError, ModelError
from regard.files import file_sha256
from regard.run import Run
from regard.settings_table import check_recipe
from regard.tasks import Recipe
from regard.tasks.init_weights import InitReport
from regard.text import Tokenizer
from regard.text.token_rows import tokenizer_strings
from regard.train import checkpoint
from regard.train.events import Event, Stepped

SHAPE = ["model.kind=transformer", "model.layers=1", "model.width=16", "model.heads=2", "model.ffn_width=32"]
STEPS = ["train.steps=2", "train.batch_tokens=256"]
BASE = ["data={kind='phrases', count=300}", "text.vocab_size=200", "task.bleu_sentences=0", *SHAPE, *STEPS]
LSTM = ["model.width=16", "model.layers=1", "model.dropout=0"]


def train(path: Path, *settings: str) -> Path:
    """A run by these settings."""
    Run(path).train(Recipe.read(None, settings))
    return path


def start(path: Path, *settings: str) -> tuple[Any, InitReport]:
    """The model of a recipe before its first step, and what it took from model.init."""
    recipe, run = Recipe.read(None, settings), Run(path)
    run.begin(recipe)
    run.prepare(recipe)
    model = recipe.training_parts(path, ProcessGroup())[0].model
    report = run.init_model(model, recipe)
    assert report is not None
    return model, report


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with data, and with a trained run of each task."""
    folder = tmp_path_factory.mktemp("runs")
    for name, text in {"reviews.tsv": REVIEWS, "names.conll": NAMES, "load.csv": LOAD}.items():
        (folder / name).write_text(text, encoding="utf-8")
    (folder / "book.txt").write_text("the cat sees the dog\nthe dog sees a bird\n" * 150, encoding="utf-8")
    train(folder / "base", *BASE)
    book = f"data={{kind='text', train='{folder}/book.txt', unit='line'}}"
    train(
        folder / "language", "task.kind=generate", book, "text={kind='bpe', vocab_size=40}", "model.kind=rnnlm", *LSTM,
        "train.steps=2", "train.batch_tokens=256", "task.window=16", "task.samples=0",
    )  # fmt: skip
    train(folder / "tagger", *tagger(folder), *STEPS)
    train(folder / "series", *series(folder), "train.steps=2")
    train(folder / "words", "task.kind=vectors", book, "model.width=16", "train.steps=2", "text.vocab_size=30")
    return folder


def tagger(folder: Path, crf: str = "linear") -> list[str]:
    data = f"data={{kind='conll', train='{folder}/names.conll', valid_share=0.15}}"
    return ["task.kind=label", "task.scheme=bio", f"task.crf={crf}", data, "model.kind=recurrent", *LSTM]


def series(folder: Path) -> list[str]:
    data = f"data={{kind='csv', train='{folder}/load.csv'}}"
    shape = ["model.kind=recurrent", "model.width=8", "train.batch_tokens=96"]
    return ["task.kind=forecast", "task.horizon=4", "task.window=12", data, *shape]


def critic(folder: Path) -> list[str]:
    return ["task.kind=classify", f"data={{kind='tsv', train='{folder}/reviews.tsv'}}", *STEPS]


def test_without_sections_of_its_own_a_recipe_takes_shape_tokenizer_and_every_weight(
    runs: Path, tmp_path: Path
) -> None:
    same = ["data={kind='phrases', count=250, seed=2}", "task.bleu_sentences=0", f"model.init={runs}/base", *STEPS]
    model, report = start(tmp_path, *same, "model.dropout=0.3")
    source = regard.load(runs / "base")
    assert Recipe.read(None, same).model == source.recipe.model
    assert (tmp_path / "tokenizer.json").read_bytes() == (runs / "base/tokenizer.json").read_bytes()
    own = model.state_dict()
    assert all(torch.equal(own[name], tensor) for name, tensor in source.module.state_dict().items())
    assert (report.fresh, report.unused, report.rows) == ((), (), {})
    assert report.origin.step == 2 and report.origin.digest == checkpoint.read(runs / "base/best").digest


def test_rows_of_another_vocabulary_are_copied_by_token_or_the_mean_of_their_pieces(runs: Path, tmp_path: Path) -> None:
    own_text = [*BASE, "text.vocab_size=230", "data.count=320", f"model.init={runs}/base"]
    model, report = start(tmp_path, *own_text)
    old, new = (Tokenizer.load(path / "tokenizer.json") for path in (runs / "base", tmp_path))
    assert old.vocabulary != new.vocabulary
    before = regard.load(runs / "base").module.encoder.embed.weight
    after = model.encoder.embed.weight
    assert model.decoder.readout.weight is after and model.decoder.embed.weight is after  # tied, as in the recipe
    copied = pieced = 0
    for row, token in enumerate(new.vocabulary):
        if token in old.vocabulary:
            copied += 1
            assert torch.equal(after[row], before[old.vocabulary.index(token)])
        elif pieces := tokenizer_strings(old).segment(token):
            pieced += 1
            assert "".join(old.tokens(pieces)) == token
            torch.testing.assert_close(after[row], before[pieces].mean(0))
    counts = report.rows["encoder.embed.weight"]
    assert (counts.copied, counts.from_pieces) == (copied, pieced) and pieced > 10
    assert counts.copied + counts.from_pieces + counts.fresh == new.size


def test_a_classifier_starts_from_the_encoder_of_a_translator(runs: Path, tmp_path: Path) -> None:
    model, report = start(tmp_path, *critic(runs), f"model.init={runs}/base")
    source = regard.load(runs / "base").module.encoder.state_dict()
    assert all(torch.equal(source[name], tensor) for name, tensor in model.encoder.state_dict().items())
    assert report.fresh == ("readout.weight", "readout.bias")
    assert all(name.startswith("decoder.") for name in report.unused) and len(report.unused) > 10
    assert report.lines()[1:] == [" fresh    readout.*", " unused   decoder.*"]


def test_a_classifier_starts_from_a_recurrent_language_model(runs: Path, tmp_path: Path) -> None:
    shape = ["model.kind=recurrent", "model.bidirectional=false", *LSTM]
    model, report = start(tmp_path, *critic(runs), f"model.init={runs}/language", *shape)
    source = regard.load(runs / "language").module.decoder.state_dict()
    assert all(torch.equal(source[name], tensor) for name, tensor in model.encoder.state_dict().items())
    assert (report.fresh, report.unused) == (("readout.weight", "readout.bias"), ("decoder.readout.weight",))


def test_only_the_embedding_is_taken_from_a_model_of_another_kind(runs: Path, tmp_path: Path) -> None:
    model, report = start(tmp_path / "a", *critic(runs), f"model.init={runs}/words", "model.kind=recurrent", *LSTM)
    assert report.loaded == ("encoder.embed.weight",)
    assert torch.equal(model.encoder.embed.weight, regard.load(runs / "words").module.embed.weight)
    _, report = start(tmp_path / "b", *critic(runs), f"model.init={runs}/base", "model.kind=recurrent", *LSTM)
    assert report.loaded == ("encoder.embed.weight",)


def test_a_tagger_takes_words_characters_and_tags_by_their_names(runs: Path, tmp_path: Path) -> None:
    other = NAMES.replace("Rome", "Ulm").replace("B-LOC", "B-TOWN")
    (tmp_path / "names.conll").write_text(other, encoding="utf-8")
    _, report = start(tmp_path / "run", *tagger(tmp_path), *STEPS, f"model.init={runs}/tagger")
    counts = report.rows["encoder.embed.weight"]
    assert (counts.from_pieces, counts.fresh) == (0, 1)  # Ulm
    tags = report.rows["readout.weight"]
    assert (tags.copied, tags.fresh) == (2, 1) and report.rows["readout.bias"] == tags
    assert [name for name in report.fresh if not name.startswith("crf.")] == [] and len(report.fresh) == 3
    _, same = start(tmp_path / "same", *tagger(runs), *STEPS, f"model.init={runs}/tagger")
    assert (same.fresh, same.unused) == ((), ())


def test_a_forecaster_takes_weights_and_keeps_the_scale_of_its_own_data(runs: Path, tmp_path: Path) -> None:
    lines = LOAD.splitlines()
    rows = [line.split(",") for line in lines[1:]]
    scaled = "\n".join([lines[0], *(f"{day},{10 * float(load)},{price}" for day, load, price in rows)])
    (tmp_path / "load.csv").write_text(scaled + "\n", encoding="utf-8")
    model, _ = start(tmp_path / "run", *series(tmp_path), f"model.init={runs}/series", "train.steps=2")
    source = regard.load(runs / "series").module.state_dict()
    assert all(torch.equal(source[name], tensor) for name, tensor in model.state_dict().items())
    scale = [
        json.loads((run / "series.json").read_text())["target_scaler"]["scale"][0]
        for run in (runs / "series", tmp_path / "run")
    ]
    assert scale[1] == pytest.approx(10 * scale[0])
    _, longer = start(tmp_path / "longer", *series(tmp_path), "task.horizon=5", f"model.init={runs}/series")
    assert longer.fresh == ("error_quantiles", "readout.weight", "readout.bias")


def test_word_vectors_start_from_word_vectors_and_from_a_language_model(runs: Path, tmp_path: Path) -> None:
    book = f"data={{kind='text', train='{runs}/book.txt', unit='line'}}"
    _, report = start(tmp_path / "a", "task.kind=vectors", book, f"model.init={runs}/words", "train.steps=2")
    assert (report.fresh, report.unused) == ((), ())
    _, report = start(
        tmp_path / "b",
        "task.kind=vectors",
        book,
        f"model.init={runs}/language",
        "model.kind=word2vec",
        "model.width=16",
    )
    assert (report.loaded, report.fresh) == (("embed.weight",), ("readout.weight",))


def test_a_run_resumes_bit_for_bit_after_its_source_is_gone(runs: Path, tmp_path: Path) -> None:
    source, recipe = tmp_path / "source", tmp_path / "mine.toml"
    shutil.copytree(runs / "base", source, symlinks=True)
    recipe.write_text(
        f'data = {{kind = "phrases", count = 250, seed = 2}}\nmodel = {{init = "{source}"}}\n'
        'task = {bleu_sentences = 0}\ntrain = {steps = 4, save_every = 2, batch_tokens = 256, freeze = ["encoder.*"]}',
        encoding="utf-8",
    )
    Run(tmp_path / "whole").train(recipe)

    def stop(event: Event) -> None:
        if isinstance(event, Stepped) and event.step == 3:
            raise KeyboardInterrupt

    for name in ("by recipe", "by run"):
        with pytest.raises(KeyboardInterrupt):
            Run(tmp_path / name).train(recipe, listeners=[stop])
    shutil.rmtree(source)
    shutil.rmtree(tmp_path / "by run/data")  # is prepared again, with the tokenizer of the run
    assert invoke(["train", str(recipe), "--out", str(tmp_path / "by recipe"), "-q"]) == 0
    assert invoke(["train", str(tmp_path / "by recipe"), "--dry-run", "-q"]) == 0
    assert invoke(["train", str(tmp_path / "by run"), "-q"]) == 0
    for name in ("by recipe", "by run"):
        assert checkpoint.read(tmp_path / name / "last").digest == checkpoint.read(tmp_path / "whole/last").digest
    assert refusal(ModelError, lambda: Recipe.read(recipe)) == (
        f"model.init: {source} is not a run: there is no such directory"
    )


def test_the_short_form_and_the_log_the_json_and_the_card_name_what_was_taken(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine.toml").write_text(config.dump(Recipe.read(None, [*BASE, "train.steps=1"])), encoding="utf-8")
    assert invoke(["train", "mine.toml", "--from", f"{runs}/base/last", "--out", "one"]) == 0
    printed = capsys.readouterr().err
    assert f" init     {runs}/base/last, step 2: " in printed
    critic_table = f'data = {{kind = "tsv", train = "{runs}/reviews.tsv"}}\ntask.kind = "classify"\ntrain.steps = 1\n'
    Path("critic.toml").write_text(critic_table, encoding="utf-8")
    assert invoke(["train", "critic.toml", "--from", "one", "--dry-run", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["init"]["fresh"] == ["readout.weight", "readout.bias"]
    assert not Path("runs").exists()
    assert invoke(["train", "critic.toml", "--from", "one", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["init"]
    digests = [checkpoint.read(path).digest for path in (Path("one/best"), runs / "base/last")]
    assert [found["origin"]["digest"], found["ancestors"][0]["digest"]] == digests
    card = Path("runs/critic/MODEL_CARD.md").read_text(encoding="utf-8")
    assert (
        f"- fine-tuned from one (transformer, trained to translate), step 1, digest {digests[0]}; which itself was "
        f"fine-tuned from {runs}/base/last (transformer, trained to translate), step 2, digest {digests[1]}\n"
        "- not in that model, started from initial weights: readout.*\n- of that model not used: decoder.*\n"
    ) in card
    assert invoke(["average", "runs/critic", "--out", "mean"]) == 0
    assert InitReport.load(Path("mean")) == InitReport.load(Path("runs/critic"))
    capsys.readouterr()
    assert invoke(["runs", "show", "runs/critic"]) == 0
    assert " init     one, step 1: " in capsys.readouterr().out
    assert invoke(["config", "show", "runs/critic", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert (shown["model"]["init"], shown["text"]["tokenizer"]) == ("one", "one")


def test_a_run_that_was_started_with_from_is_resumed_without_it(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("critic.toml").write_text(
        f'data = {{kind = "tsv", train = "{runs}/reviews.tsv"}}\ntask.kind = "classify"\n', encoding="utf-8"
    )
    base = ["--from", f"{runs}/base"]
    message = f"error: --from {runs}/base and model.init are the same setting; give one of them\n"
    for setting in ("model.init=other", 'model = {init = "other"}'):
        assert invoke(["train", "critic.toml", *base, setting]) == 2
        assert capsys.readouterr().err == message
    assert invoke(["train", "critic.toml", *base, "train.steps=1", "-q"]) == 0
    check_recipe(Path("critic.toml"), ["train.steps=2"], Path("runs/critic"))
    assert invoke(["train", "critic.toml", "train.steps=2", "-q"]) == 0
    assert checkpoint.read(Path("runs/critic/last")).step == 2
    capsys.readouterr()
    assert invoke(["train", "critic.toml", "--out", "other"]) == 2
    assert "model.kind must be given" in capsys.readouterr().err


def test_a_start_from_a_model_that_made_no_checkpoint_is_no_lineage(runs: Path, tmp_path: Path) -> None:
    path = tmp_path / "run"
    start(path, *BASE, f"model.init={runs}/base")[1].save(path)
    train(path, *BASE)
    assert InitReport.load(path) is None
    assert "fine-tuned" not in (path / "MODEL_CARD.md").read_text(encoding="utf-8")


def test_a_recipe_with_init_survives_writing_and_reading(runs: Path) -> None:
    recipe = Recipe.read(None, [*BASE, f"model.init={runs}/base"])
    table = config.plain(recipe)
    assert table["model"]["init"] == f"{runs}/base" and "init" not in table
    assert Recipe.parse(table) == recipe
    other = Recipe.read(None, BASE)
    assert config.differences(other, recipe) == [f"model.init was not set, is '{runs}/base'"]


def test_data_is_prepared_with_the_tokenizer_of_the_source(runs: Path, tmp_path: Path) -> None:
    recipe = tmp_path / "mine.toml"
    recipe.write_text(
        f'data = {{kind = "phrases", count = 250, seed = 2}}\nmodel.init = "{runs}/base"\n', encoding="utf-8"
    )
    assert invoke(["data", "prepare", str(recipe), "--out", str(tmp_path / "run"), "-q"]) == 0
    assert (tmp_path / "run/tokenizer.json").read_bytes() == (runs / "base/tokenizer.json").read_bytes()
    identity = json.loads((tmp_path / "run/data/identity.json").read_text(encoding="utf-8"))
    assert identity["tokenizer"] == {"tokenizer.json": file_sha256(runs / "base/tokenizer.json")}
    assert "tokenizer" not in identity["text"]  # where it lies does not matter


@pytest.mark.parametrize(
    ("source", "target"),
    [
        (
            "{kind='encoder-decoder', encoder={kind='convolution', layers=1, width=16}, "
            "decoder={kind='seq2seq', layers=1, width=16}}",
            "kind='convolution', layers=1",
        ),
        ("{kind='seq2seq', layers=1, width=16, bidirectional=true}", "kind='recurrent', layers=1"),
    ],
)
def test_a_classifier_starts_from_the_encoder_of_every_translator(
    source: str, target: str, runs: Path, tmp_path: Path
) -> None:
    base = train(tmp_path / "base", *BASE[:3], f"model={source}", *STEPS)
    model, report = start(tmp_path / "run", *critic(runs), f"model={{{target}, width=16, init='{base}'}}")
    tensors = regard.load(base).module.encoder.state_dict()
    assert all(torch.equal(tensors[name], tensor) for name, tensor in model.encoder.state_dict().items())
    assert report.fresh == ("readout.weight", "readout.bias")


def test_settings_of_an_earlier_start_are_not_taken_over(runs: Path, tmp_path: Path) -> None:
    recipe, run = tmp_path / "mine.toml", tmp_path / "run"
    recipe.write_text(f'data = {{kind = "phrases", count = 250}}\nmodel.init = "{runs}/base"\n', encoding="utf-8")
    assert invoke(["data", "prepare", str(recipe), "model.dropout=0.3", "--out", str(run), "-q"]) == 0
    assert Run(run).recipe().model.dropout == 0.3
    assert Recipe.read(recipe, started=run).model.dropout == regard.load(runs / "base").recipe.model.dropout


def test_a_changed_source_tokenizer_means_that_data_is_prepared_again(runs: Path, tmp_path: Path) -> None:
    shutil.copytree(runs / "base", tmp_path / "source", symlinks=True)
    recipe = Recipe.read(None, [*BASE[:1], "task.bleu_sentences=0", f"model.init={tmp_path}/source"])
    run = Run(tmp_path / "run")
    run.prepare(recipe)
    assert run.is_prepared(recipe)
    shutil.copy(runs / "language/tokenizer.json", tmp_path / "source/tokenizer.json")
    assert not run.is_prepared(recipe)


def test_members_of_a_comparison_start_from_models_with_one_tokenizer_for_all(runs: Path, tmp_path: Path) -> None:
    shape = "kind='transformer', layers=1, heads=2, ffn_width=32"
    settings = [
        BASE[0], "task.bleu_sentences=0", *STEPS, f"family.a={{{shape}, width=16, init='{runs}/base'}}",
        f"family.b={{{shape}, width=16}}",
    ]  # fmt: skip
    comparison = Comparison.read(None, settings)
    assert train_family(comparison, tmp_path / "family") == {}
    texts = [(tmp_path / "family" / name / "tokenizer.json").read_bytes() for name in "ab"]
    assert texts[0] == texts[1]
    assert InitReport.load(tmp_path / "family/a") and not InitReport.load(tmp_path / "family/b")
    wider = Comparison.read(None, [*settings, "family.a.width=32"])
    assert "model.width is 32 here and 16 in" in refusal(ConfigError, lambda: train_family(wider, tmp_path / "wider"))
    assert not (tmp_path / "wider/prepared").exists() and not (tmp_path / "wider/b").exists()


def test_a_loaded_model_is_frozen_unless_it_is_to_be_trained(runs: Path) -> None:
    frozen, trainable = regard.load(runs / "base"), regard.load(runs / "base", trainable=True)
    assert not frozen.module.training and not any(p.requires_grad for p in frozen.module.parameters())
    assert trainable.module.training and all(p.requires_grad for p in trainable.module.parameters())
    with torch.no_grad():
        trainable.module.decoder.readout.weight.zero_()
    trainable.module.eval()
    assert trainable.translate("le chat dort") != frozen.translate("le chat dort")  # by the weights as they are now


def test_another_width_or_depth_is_refused_with_both_values_before_anything_is_written(
    runs: Path, tmp_path: Path
) -> None:
    recipe = Recipe.read(None, [*BASE, f"model.init={runs}/base", "model.width=32", "model.layers=2"])
    check_refused(
        ConfigError,
        f"model.layers is 2 here and 1 in {runs}/base and model.width is 32 here and 16 in {runs}/base; the model must "
        "have the shape of the one it starts from (without model.kind it is taken over)",
        lambda: Run(tmp_path / "run").train(recipe),
    )
    assert not (tmp_path / "run").exists()


def test_a_kind_of_model_that_the_task_does_not_have_is_refused_with_what_to_set(runs: Path) -> None:
    found = refusal(ModelError, lambda: Recipe.read(None, ["task.kind=caption", f"model.init={runs}/base"]))
    assert found.startswith(f'model.init: {runs}/base has model.kind = "transformer", which this task does not have; ')
    assert found.endswith("; set model.kind to one of encoder-decoder, and what fits of the weights is taken")


def test_a_source_that_is_no_run_is_refused(tmp_path: Path) -> None:
    (tmp_path / "letters").mkdir()
    for name, why in (("letters", "it has no recipe.toml"), ("nowhere", "there is no such directory")):
        message = f"model.init: {tmp_path}/{name} is not a run: {why}"
        check_refused(
            ModelError, message, lambda name=name: Recipe.read(None, [BASE[0], f"model.init={tmp_path}/{name}"])
        )
        recipe = Recipe.read(None, [*BASE, f"model.init={tmp_path}/{name}"])
        check_refused(ModelError, message, lambda recipe=recipe: Run(tmp_path / "run").train(recipe))
    assert not (tmp_path / "run").exists()


def test_a_damaged_source_is_refused_and_its_older_checkpoint_is_used_with_a_warning(
    runs: Path, tmp_path: Path
) -> None:
    source = train(tmp_path / "source", *BASE, "train.steps=4", "train.save_every=2", "train.validate_every=4")
    newest = (source / "best").resolve()
    newest.joinpath("model.safetensors").write_bytes(b"nonsense")
    _, report = start(tmp_path / "run", *BASE, f"model.init={source}")
    assert report.origin.step == 2
    assert f"{newest / 'model.safetensors'}: expected" in report.lines()[0] and "warning" in report.lines()[0]
    for path in (source / "checkpoints").iterdir():
        path.joinpath("model.safetensors").write_bytes(b"nonsense")
    recipe = Recipe.read(None, [*BASE, f"model.init={source}"])
    message = refusal(ModelError, lambda: Run(tmp_path / "new").train(recipe))
    assert message.startswith(f"model.init: {source} has no finished checkpoint: ")
    assert "this checkpoint is damaged, use another" in message


def test_a_source_of_another_format_is_refused(runs: Path, tmp_path: Path) -> None:
    shutil.copytree(runs / "base", tmp_path / "source", symlinks=True)
    for path in (tmp_path / "source/checkpoints").iterdir():
        text = (path / "manifest.json").read_text(encoding="utf-8")
        (path / "manifest.json").write_text(text.replace('"format": 2', '"format": 1'), encoding="utf-8")
    recipe = Recipe.read(None, [*BASE, f"model.init={tmp_path}/source"])
    check_refused(
        ModelError,
        f"{tmp_path}/source was saved by an earlier version of regard (checkpoint format 1; this one reads 2); train "
        "it again",
        lambda: Run(tmp_path / "run").train(recipe),
    )


def test_a_source_whose_recipe_has_an_old_name_is_refused(runs: Path, tmp_path: Path) -> None:
    shutil.copytree(runs / "base", tmp_path / "source", symlinks=True)
    text = (tmp_path / "source/recipe.toml").read_text(encoding="utf-8")
    (tmp_path / "source/recipe.toml").write_text(text.replace("ffn_width", "inner"), encoding="utf-8")
    (tmp_path / "source/manifest.json").unlink()  # an earlier version wrote none
    check_refused(
        ModelError,
        f"{tmp_path}/source was saved by an earlier version of regard (model.inner is now model.ffn_width); train it "
        "again",
        lambda: Recipe.read(None, [BASE[0], f"model.init={tmp_path}/source"]),
    )


def test_a_source_of_which_nothing_fits_says_what_can_be_used(runs: Path, tmp_path: Path) -> None:
    recipe = Recipe.read(None, [*BASE, f"model.init={runs}/series"])
    check_refused(
        ModelError,
        f"model.init: {runs}/series was trained to forecast (lstm 1 layer, width 8, both directions), and none of its "
        "weights fits the model here (transformer 1+1 layers, 2 heads, width 16); what can be used is an encoder of "
        "the same kind and shape, or an embedding of the same width",
        lambda: Run(tmp_path / "run").train(recipe),
    )


def test_a_run_cannot_start_from_itself(runs: Path, tmp_path: Path) -> None:
    path = tmp_path / "source"
    shutil.copytree(runs / "base", path, symlinks=True)
    recipe = Recipe.read(None, [*BASE, f"model.init={path}"])
    message = f"model.init = {path} is the run that is to be trained; use --out for a new run"
    check_refused(ConfigError, message, lambda: Run(path).train(recipe, fresh=True))
    assert checkpoint.read(path / "best").step == 2  # nothing was removed


def test_one_vocabulary_for_both_languages_cannot_be_taken_from_a_run_with_two(runs: Path, tmp_path: Path) -> None:
    two = train(tmp_path / "two", *BASE, "task.share_vocab=false", "model.tie=target")
    recipe = Recipe.read(None, [BASE[0], f"model.init={two}"])
    assert refusal(ConfigError, lambda: Run(tmp_path / "run").train(recipe)).startswith(
        f"task.share_vocab = true needs one vocabulary, and {two} has two; "
    )


def test_a_tokenizer_that_is_not_there_and_two_starts_of_one_embedding_are_refused(runs: Path, tmp_path: Path) -> None:
    recipe = Recipe.read(None, [*BASE, f"text.tokenizer={runs}/series"])
    message = (
        f"text.tokenizer = {runs}/series: there is no tokenizer; name a run with a tokenizer*.json, or such a file"
    )
    check_refused(InputError, message, lambda: Run(tmp_path / "run").train(recipe))
    both = [
        *critic(runs),
        "model.kind=recurrent",
        f"model.init={runs}/base",
        "text.kind=word",
        "vectors.path=glove.txt",
    ]
    message = "vectors.path and model.init both give the embedding its first weights; leave one out"
    check_refused(ConfigError, message, lambda: Recipe.read(None, both))
    fixed = [setting.replace("model.init=", "text.tokenizer=") for setting in both]
    message = (
        "vectors.path adds the words of its file to the vocabulary, and text.tokenizer has a fixed one; leave one out"
    )
    check_refused(ConfigError, message, lambda: Recipe.read(None, fixed))


def test_init_is_a_setting_of_every_task_that_is_explained_and_in_the_schema_and_in_new_recipes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert invoke(["config", "explain", "model.init"]) == 0
    assert capsys.readouterr().out.startswith("model.init: fine-tuning: a run or a checkpoint whose weights training")
    for recipe_class in Recipe.classes():
        task = recipe_class.kind()
        capsys.readouterr()
        assert invoke(["config", "schema", "--task", task]) == 0
        model = json.loads(capsys.readouterr().out)["properties"]["model"]
        assert all(option["properties"]["init"]["type"] == "string" for option in model.get("anyOf", [model]))
        assert invoke(["new", task, "--task", task]) == 0
        text = Path(f"{task}.toml").read_text(encoding="utf-8")
        section = text.partition("[model]")[2].partition("\n[")[0]
        assert "# init =" in section and "# freeze = []" in text and "# rates = {}" in text


@pytest.mark.parametrize(
    ("settings", "code", "message"),
    [
        (["--from", "nowhere"], 3, "model.init: nowhere is not a run: there is no such directory"),
        (["model.init=5"], 2, "model.init: expected a path, got 5"),
        (["--from", "{runs}/base", "model.layers=2"], 2, "model.layers is 2 here and 1 in {runs}/base; "),
        (["--from", "{runs}/series"], 3, "model.init: {runs}/series was trained to forecast "),
        (["train.freeze=['nothing.*']"], 2, 'train.freeze: "nothing.*" matches no parameter of the model, which has '),
        (["train.rates={'nothing.*'=2}"], 2, 'train.rates: "nothing.*" matches no parameter of the model, which has '),
        (["train.rates={'encoder.*'='fast'}"], 2, "train.rates.\"encoder.*\": expected a number, got 'fast'"),
        (["train.freeze=['*']"], 2, 'train.freeze = ["*"] matches every parameter, so nothing is trained'),
    ],
)
def test_bad_input_has_a_message_and_an_exit_code(
    settings: list[str],
    code: int,
    message: str,
    runs: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine.toml").write_text(config.dump(Recipe.read(None, BASE)), encoding="utf-8")
    given = [setting.replace("{runs}", str(runs)) for setting in settings]
    assert invoke(["train", "mine.toml", *given, "-q"]) == code
    assert message.replace("{runs}", str(runs)) in capsys.readouterr().err
    assert not Path("runs/mine/checkpoints").exists()
