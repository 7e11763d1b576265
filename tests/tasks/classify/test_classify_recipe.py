"""The classification recipe: refused settings, training, resuming, evaluation."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import numpy as np
import pytest

import regard
from regard.distributed import ProcessGroup
from regard.errors import ConfigError, DataError
from regard.progress import no_progress
from regard.run import Run
from regard.tasks import ClassifyRecipe, EvalRequest, Recipe
from regard.tasks.classify.predict import Prediction
from regard.train import checkpoint
from regard.train.events import Validated

GOOD, BAD = ["great", "lovely", "fine"], ["bad", "awful", "dull"]
PLAIN = ["this", "movie", "film", "story", "is", "was", "so", "very", "the", "and", "it"]


def reviews(count: int, seed: int = 1, bad: float = 0.5) -> list[tuple[str, str]]:
    """Sentences of plain words with one that decides."""
    draw, made = random.Random(seed), []
    for _ in range(count):
        label = "negative" if draw.random() < bad else "positive"
        words = draw.choices(PLAIN, k=draw.randint(2, 9))
        words.insert(draw.randint(0, len(words)), draw.choice(BAD if label == "negative" else GOOD))
        made.append((" ".join(words), label))
    return made


def write_tsv(path: Path, examples: list[tuple[str, str]]) -> Path:
    path.write_text("text\tlabel\n" + "".join(f"{text}\t{label}\n" for text, label in examples), encoding="utf-8")
    return path


TASK = ["task.kind=classify", "data.kind=tsv"]
SMALL = [
    "model={kind = 'recurrent', width = 16, dropout = 0.1}",
    "train={steps = 60, batch_tokens = 256, validate_every = 30}",
]
FAST = ["train.schedule={kind = 'constant', lr = 0.02}"]


def settings(folder: Path, *more: str) -> list[str]:
    data = f"data={{kind = 'tsv', train = '{folder}/train.tsv', test = '{folder}/test.tsv'}}"
    return ["task.kind=classify", data, *SMALL, *FAST, *more]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_tsv(tmp_path / "train.tsv", reviews(300))
    write_tsv(tmp_path / "test.tsv", reviews(60, seed=2))
    return tmp_path


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("classify")
    write_tsv(folder / "train.tsv", reviews(300))
    write_tsv(folder / "test.tsv", reviews(60, seed=2))
    Run(folder / "run").train(Recipe.read(None, settings(folder)))
    return folder / "run"


REFUSED = [
    (["model={kind='recurrent', bidirectional=false}", "task.pool=first"],
     'task.pool = "first": the first state of a unidirectional model has seen only the first token; use last or '
     "mean, or model.bidirectional=true"),
    (["model={kind='mlp'}", "task.pool=last"],
     'task.pool = "last": model.kind = "mlp" reads each word alone, and one word says little about a text; use mean or '
     "max"),
    (["model={kind='transformer', positions='learned', max_positions=64}", "task.max_length=65"],
     "task.max_length = 65 takes 65 positions, and model.max_positions = 64 has learned positions for fewer; use a "
     "smaller task.max_length or a larger model.max_positions"),
    (["vectors.path=a.txt", "text.kind=bpe"],
     'vectors.path: the file holds whole words, and text.kind = "bpe" splits them; use text.kind = "word"'),
    (["vectors.path=a.txt", "data={kind='table', train='a.csv'}"],
     'vectors.path: the file holds whole words, and table has none; use text.kind = "word"'),
    (["text.kind=bpe", "text.dropout=0.1"],
     "text.dropout = 0.1: texts are tokenized once, in preparation; set it to 0"),
    (["task.max_length=0"], "task: max_length = 0 must be at least 1"),
    (["task.dropout=1.0"], "task: dropout = 1.0 must be at least 0 and below 1"),
    (["task.word_dropout=-0.1"], "task: word_dropout = -0.1 must be at least 0 and below 1"),
    (["data.valid_share=1.0"], "data: valid_share = 1.0 must be above 0 and below 1"),
    (["train.best_metric=bleu"], "train.best_metric: expected one of loss, accuracy, macro_f1, got 'bleu'"),
    (["task.pool=middle"], "task.pool: expected one of last, mean, max, first, first-relu, got 'middle'"),
    (["decode.beam=3"], 'unknown setting "decode", given on the command line; there are data, model, task, text, '
     "vectors, train, seed"),
    (["model={kind='gpt'}"], "model.kind: expected one of recurrent, convolution, transformer, bert, elmo, "
     "elmo-recurrent, mlp, cnn, alexnet, resnet, vit, cnn-lstm, got 'gpt'"),
]  # fmt: skip


@pytest.mark.parametrize(("more", "message"), REFUSED)
def test_a_recipe_that_cannot_work_is_refused_before_any_work(more, message):
    given = [*TASK, "data.train=a.tsv", "model.kind=recurrent"]
    with pytest.raises(ConfigError) as caught:
        Recipe.read(None, [*given, *more])
    assert str(caught.value) == message


@pytest.mark.parametrize("pool", ["last", "mean", "max", "first"])
@pytest.mark.parametrize("model", ["recurrent", "convolution", "transformer"])
def test_every_encoder_goes_with_every_pooling(pool, model):
    recipe = Recipe.read(None, [*TASK, "data.train=a.tsv", f"model.kind={model}", f"task.pool={pool}"])
    assert isinstance(recipe, ClassifyRecipe)


def test_it_learns_explains_and_keeps_its_artifacts(trained):
    model = regard.load(trained)
    assert model.classify("this movie is so great") == "positive"
    assert model.classify(["this movie is so bad", "", "the film was lovely"]) == ["negative", "", "positive"]
    (likeliest, other), nothing = model.classify(["so awful", " "], top=2)
    assert isinstance(likeliest, Prediction) and likeliest.label == "negative" and nothing == []
    assert likeliest.probability + other.probability == pytest.approx(1)
    found = model.saliency("this movie is so great and so on")
    assert found.strongest() == "great" and found.title.startswith("positive 0.9")
    files = ["environment.json", "labels.json", "manifest.json", "tokenizer.json"]
    assert sorted(path.name for path in trained.glob("*.json")) == files
    assert repr(model).endswith("step 30; classify)") or repr(model).endswith("step 60; classify)")
    with pytest.raises(ConfigError, match="top = 0 must be at least 1"):
        model.classify("so", top=0)
    with pytest.raises(DataError, match="the text is empty; there is no prediction to explain"):
        model.saliency(" ")


def test_a_run_is_not_prepared_twice_and_resumes_bit_for_bit(folder):
    recipe = Recipe.read(None, settings(folder))
    whole, parts = Run(folder / "whole"), Run(folder / "parts")
    whole.train(recipe)
    assert whole.is_prepared(recipe)
    for steps in (7, 30, 60):
        parts.train(Recipe.read(None, settings(folder, f"train.steps={steps}")))
    one, other = (checkpoint.newest(run.path).checkpoint for run in (whole, parts))
    for group in ("model", "optimizer"):
        for name, tensor in one.tensors(group).items():
            assert tensor.equal(other.tensors(group)[name]), f"{group} {name}"


def test_a_model_does_not_need_its_data(folder):
    Run(folder / "run").train(Recipe.read(None, settings(folder, "train.steps=20")))
    answer = regard.load(folder / "run").classify("so great", top=2)
    (folder / "train.tsv").unlink()
    shutil.rmtree(folder / "run/data")
    assert regard.load(folder / "run").classify("so great", top=2) == answer


def test_validation_reports_accuracy_and_sample_texts(folder):
    events = []
    write_tsv(folder / "valid.tsv", [("Très GREAT, so “great”", "positive"), ("so dull", "negative")])
    valid = [f"data.valid={folder}/valid.tsv", "train.steps=60"]
    Run(folder / "run").train(Recipe.read(None, settings(folder, *valid)), listeners=[events.append])
    last = [event for event in events if isinstance(event, Validated)][-1]
    assert set(last.metrics) == {"loss", "accuracy", "macro_f1"} and last.metrics["accuracy"] == 100.0
    assert [dict(row) for row in last.samples] == [
        {"text": "Très GREAT, so “great”", "output": "positive", "reference": "positive"},
        {"text": "so dull", "output": "negative", "reference": "negative"},
    ]


def test_what_validation_measured_is_what_eval_finds(trained):
    model = regard.load(trained)
    found = {score.name: score for score in model.evaluate(EvalRequest(split="valid"), no_progress).scores}
    best = checkpoint.best(trained).state["best"]
    assert found["accuracy"].value == pytest.approx(best["accuracy"])
    assert found["macro_f1"].value == pytest.approx(best["macro_f1"])
    assert found["loss"].value == pytest.approx(best["loss"], rel=1e-4)


def test_eval_scores_a_split_or_a_file_with_the_confusion_matrix(trained, tmp_path):
    model = regard.load(trained)
    found = model.evaluate(EvalRequest(), no_progress)
    assert found.data == "test" and found.scores[0].name == "accuracy" and found.scores[0].value > 90
    assert np.array(found.detail["confusion"]["counts"]).sum() == 60 == len(found.examples)
    assert found.summary_lines[0].split() == ["target", "predicted", "negative", "positive"]
    path = write_tsv(tmp_path / "own.tsv", [("so great", "negative"), ("  ", "positive"), ("so bad", "negative")])
    own = model.evaluate(EvalRequest(files=(path,)), no_progress)
    assert own.data == f"{path} (1 empty left out)"
    assert own.scores[0].value == 50.0 and own.scores[0].n == 2


EVAL = [
    ([("so great", "neutral")], 'FILE, line 2: the label "neutral" was never seen in training (labels: negative, '
     "positive)"),
    ([("", "positive"), (" ", "negative")], "FILE: every text is empty; there is nothing to score"),
    ([], "FILE has no example; expected a text and its label on each line"),
]  # fmt: skip


@pytest.mark.parametrize(("examples", "message"), EVAL)
def test_a_file_that_cannot_be_scored_is_refused(examples, message, trained, tmp_path):
    path = write_tsv(tmp_path / "own.tsv", examples)
    with pytest.raises(DataError) as caught:
        regard.load(trained).evaluate(EvalRequest(files=(path,)), no_progress)
    assert str(caught.value) == message.replace("FILE", str(path))


@pytest.mark.parametrize(
    ("eval_request", "message"),
    [
        (EvalRequest(beam=4), "--beam: this task does not use beam search; leave --beam out"),
        (EvalRequest(files=(Path("a"), Path("b"))), "--data: expected one file, got 2"),
        (EvalRequest(split="valid", files=()), None),
    ],
)
def test_a_request_that_does_not_fit_a_classifier_is_refused(eval_request, message, trained):
    model = regard.load(trained)
    if message is None:
        assert model.evaluate(eval_request, no_progress).data == "valid"
        return
    with pytest.raises(ConfigError) as caught:
        model.evaluate(eval_request, no_progress)
    assert str(caught.value) == message


@pytest.mark.slow
def test_a_rare_label_is_found_more_often_when_labels_are_balanced(tmp_path):
    """The words that decide are noisy: without weights the common label is the safer guess."""
    draw = random.Random(3)
    noisy = []
    for text, label in reviews(600, seed=4, bad=0.08):
        swapped = "positive" if label == "negative" else label
        noisy.append((text, swapped if draw.random() < 0.55 else label))
    write_tsv(tmp_path / "train.tsv", noisy)
    write_tsv(tmp_path / "test.tsv", noisy)
    recalls = {}
    for kind in ("none", "balanced"):
        Run(tmp_path / kind).train(Recipe.read(None, settings(tmp_path, f"task.weights.kind={kind}")))
        counts = regard.load(tmp_path / kind).evaluate(EvalRequest(), no_progress).detail["confusion"]["counts"]
        recalls[kind] = counts[0][0] / sum(counts[0])
    assert recalls["balanced"] > recalls["none"] + 0.3, recalls


def test_embeddings_start_from_pretrained_vectors_and_are_trained(folder):
    vectors = "".join(f"{word} {' '.join(str(0.1 * ((i * 7 + d) % 11 - 5)) for d in range(6))}\n" for i, word in
                      enumerate([*GOOD, *BAD, *PLAIN]))  # fmt: skip
    (folder / "glove.txt").write_text(vectors)
    recipe = Recipe.read(None, settings(folder, f"vectors.path={folder}/glove.txt", "train.steps=3"))
    run = Run(folder / "run")
    run.begin(recipe)
    run.prepare(recipe)
    objective, _, _ = recipe.training_parts(run.path, ProcessGroup())
    table = objective.model.encoder.embed[0].weight.detach().clone()
    tokenizer = recipe.preparation().load_encoder(run.path).tokenizer
    great, awful = (table[tokenizer.vocabulary.index(word)] for word in ("great", "awful"))
    given = {line.split()[0]: np.array(line.split()[1:], float) for line in vectors.splitlines()}
    for found, word in ((great, "great"), (awful, "awful")):
        np.testing.assert_allclose(found / found.norm(), given[word] / np.linalg.norm(given[word]), atol=1e-5)
    lines = recipe.format_statistics(recipe.statistics(run.path))
    assert lines[1] == f"vectors     of width 6, for 17 words ({100 * 17 / tokenizer.size:.1f} %)"
    run.train(recipe)
    model = regard.load(run.path)
    assert not np.allclose(model.module.encoder.embed[0].weight, table)
    assert model.module.encoder.embed[0].weight.shape == (tokenizer.size, 6)
    shutil.rmtree(run.path / "data")
    assert regard.load(run.path).classify("so great", top=1) == model.classify("so great", top=1)


def test_recording_changes_nothing(trained):
    model = regard.load(trained)
    plain = model.classify("this movie is so great", top=2)
    with regard.record(model) as trace:
        watched = model.classify("this movie is so great", top=2)
    for one, other in zip(plain[0], watched[0], strict=True):
        assert one.label == other.label and one.probability == pytest.approx(other.probability, abs=1e-6)
    logits = trace.find("logits")[-1]
    assert logits.axes == ("batch", "label") and logits.labels["label"] == ("negative", "positive")
    assert logits.data.softmax(-1).max().item() == pytest.approx(plain[0][0].probability, abs=1e-6)
    assert trace.states("forget").tokens == ["this", "movie", "is", "so", "great"]


def test_attention_of_a_transformer_with_a_start_token(folder):
    small = "model={kind = 'transformer', layers = 1, width = 16, ffn_width = 16, heads = 2}"
    Run(folder / "run").train(Recipe.read(None, settings(folder, small, "task.pool=first", "train.steps=2")))
    model = regard.load(folder / "run")
    with model.record() as trace:
        model.predict_text("so great")
    view = trace.attention()
    assert view.rows == view.columns == ["<SOS>", "so", "great"]
    np.testing.assert_allclose(view.weights.sum(1), 1, rtol=1e-5)
    assert model.saliency("so great").columns == ["<SOS>", "so", "great"]


# Rows of numbers


def flowers(count: int, seed: int) -> str:
    draw = random.Random(seed)
    rows = []
    for _ in range(count):
        kind = draw.choice(["rose", "lily", "iris"])
        center = {"rose": (1, 50), "lily": (3, 20), "iris": (5, 80)}[kind]
        rows.append(f"{draw.gauss(center[0], 0.5):.3f},{draw.gauss(center[1], 6):.2f},{draw.gauss(0, 1):.2f},{kind}\n")
    return "width,height,noise,kind\n" + "".join(rows)


def test_an_mlp_learns_a_table(tmp_path):
    for name, count, seed in (("train", 300, 1), ("test", 90, 2)):
        (tmp_path / f"{name}.csv").write_text(flowers(count, seed))
    data = f"data={{kind='table', train='{tmp_path}/train.csv', test='{tmp_path}/test.csv', label='kind'}}"
    given = [
        "task.kind=classify",
        data,
        "model={kind='mlp', width=16}",
        "train={steps=150, batch_tokens=64, validate_every=50}",
        *FAST,
    ]
    recipe, run = Recipe.read(None, given), Run(tmp_path / "run")
    run.train(recipe)
    assert run.is_prepared(recipe) and (run.path / "scale.json").exists()
    model = regard.load(run.path)
    assert model.evaluate(EvalRequest(), no_progress).scores[0].value > 90
    assert model.classify(["1.1,52,0.3", "3.2,19,0.1", "", "5.0,85,-1"]) == ["rose", "lily", "", "iris"]
    found = model.saliency("1.1,52,0.3")
    assert found.columns == ["width", "height", "noise"] and found.title.startswith("rose ")
    assert abs(found.scores[0, 2]) < np.abs(found.scores[0, :2]).max()
    lines = recipe.format_statistics(recipe.statistics(run.path))
    assert lines[0].startswith("column      width: mean ") and lines[-1].startswith("labels      3; of ")
    assert recipe.summary(run.path).endswith("3 labels       columns  width, height, noise")
    with model.record() as trace:
        model.predict_text("1.1,52,0.3")
    assert trace.find("encoder.hidden")[0].data.shape == (1, 1, 16)
    with pytest.raises(DataError, match="line 1: expected 3 columns, found 2; this model reads width, height, noise"):
        model.classify("1,2")
