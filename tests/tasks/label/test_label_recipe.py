"""The labeling recipe, from settings to predictions."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
import torch

import regard
from helpers import refusal
from regard.errors import ConfigError, DataError, ModelError
from regard.look.insights import to_dict
from regard.look.logit_attribution import logit_attribution
from regard.manifest import list_files
from regard.nn.crf import LinearChainCRF
from regard.progress import no_progress
from regard.run import Run
from regard.sequence import Padded
from regard.tasks import EvalRequest, Recipe
from regard.tasks.label.recipe import LabelModel, LabelRecipe
from regard.tasks.replay import decoded_outputs
from regard.trace import Record
from regard.train import checkpoint
from regard.train.events import Event, Validated

NAMES = ("Ada", "Grace", "Alan", "Emmy", "Kurt", "Sofia", "Carl")
TOWNS = ("Rome", "Oslo", "Lima", "New York", "San Marino")
PATTERNS = ("{0} lives in {1} .", "in {1} we met {0} and {2} .", "{0} and {2} left {1}", "we saw nobody .")
SETTINGS = [
    "task.kind=label", "model.kind=recurrent", "model.cell=gru", "model.width=24", "model.dropout=0.1",
    "train.steps=60", "train.validate_every=30", "train.batch_tokens=256", "train.schedule.lr=0.02",
    "train.schedule.warmup=5",
]  # fmt: skip
SPANS = ["task.scheme=bio", "task.char_encoder.kind=convolution", "task.char_encoder.width=8", "task.crf=linear"]


def tags_of(thing: str, kind: str) -> list[tuple[str, str]]:
    return [(word, f"{'I' if i else 'B'}-{kind}") for i, word in enumerate(thing.split())]


def sentence(draw: random.Random) -> list[tuple[str, str]]:
    one, two, town = draw.choice(NAMES), draw.choice(NAMES), draw.choice(TOWNS)
    rows: list[tuple[str, str]] = []
    for part in draw.choice(PATTERNS).split():
        thing = {"{0}": (one, "PER"), "{1}": (town, "LOC"), "{2}": (two, "PER")}.get(part)
        rows += tags_of(*thing) if thing else [(part, "O")]
    return rows


def write_conll(folder: Path, name: str = "a.conll", seed: int = 1, count: int = 150) -> Path:
    draw = random.Random(seed)
    text = "".join("".join(f"{w} {t}\n" for w, t in sentence(draw)) + "\n" for _ in range(count))
    (folder / name).write_text(text, encoding="utf-8")
    return folder / name


def recipe(folder: Path, *settings: str) -> LabelRecipe:
    data = ["data.kind=conll", f"data.train={folder}/a.conll", "data.valid_share=0.15"]
    made = Recipe.read(None, [*data, *SETTINGS, *settings])
    assert isinstance(made, LabelRecipe)
    return made


EVENTS: list[Event] = []
"""Training events of the model of these tests."""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A trained tagger with a character encoder and a CRF."""
    folder = tmp_path_factory.mktemp("label")
    write_conll(folder)
    run = Run(folder / "run")
    run.train(recipe(folder, *SPANS), listeners=[EVENTS.append])
    return run


@pytest.fixture(scope="module")
def model(run: Run) -> LabelModel:
    found = regard.load(run.path)
    assert isinstance(found, LabelModel)
    return found


# Use


def test_names_are_found_with_their_offsets(model: LabelModel) -> None:
    found = model.label("Ada lives in  New York.")
    assert found.output == "Ada/B-PER lives/O in/O New/B-LOC York/I-LOC ./O"
    assert [(token.text, token.start, token.end) for token in found.tokens] == [
        ("Ada", 0, 3), ("lives", 4, 9), ("in", 10, 12), ("New", 14, 17), ("York", 18, 22), (".", 22, 23),
    ]  # fmt: skip
    assert [(span.kind, span.text, span.start, span.end) for span in found.spans] == [
        ("PER", "Ada", 0, 3), ("LOC", "New York", 14, 22),
    ]  # fmt: skip
    assert all(0.5 < token.probability <= 1.0001 for token in found.tokens)


def test_texts_are_labeled_independently_and_an_empty_one_has_no_tokens(model: LabelModel) -> None:
    texts = ["we saw nobody .", "", "   ", "Ada and Kurt left Rome", "é\u0301 中文 😀"]
    batched = model.label(texts)
    assert [found.output for found in batched] == [model.label(text).output for text in texts]
    assert batched[1].tokens == batched[2].tokens == () and batched[1].output == ""
    assert [token.text for token in batched[4].tokens] == ["é\u0301", "中文", "😀"]
    assert model.predict_text(texts[3]) == batched[3].output


def test_a_text_of_a_megabyte_is_labeled_in_windows(model: LabelModel) -> None:
    text = "Ada lives in Rome . " * 2_000
    text += "x" * (1_000_000 - len(text))
    found = model.label(text)
    assert len(found.tokens) == 10_001 and found.tokens[-1].end == 1_000_000
    assert sum(span.text == "Ada" for span in found.spans) == 2_000


def test_tokenized_sentences_are_labeled_as_they_are(model: LabelModel) -> None:
    (predictions,) = model.predictor().predict_tokens([["Ada", "left", "New York."]])
    assert len(predictions) == 3


def test_half_a_surrogate_pair_is_reported_with_its_line(model: LabelModel) -> None:
    assert refusal(DataError, lambda: model.label(["Ada", "\ud800"])).startswith(
        "line 2: character 1 is U+D800, half of a surrogate pair"
    )


# Looking


def test_states_and_saliency_have_the_words_as_labels(model: LabelModel) -> None:
    with model.record() as trace:
        assert model.run_for_trace("Ada left Rome") == "Ada/B-PER left/O Rome/B-LOC"
    states = trace.states()
    assert states.tokens == ["Ada", "left", "Rome"] and states.side == "source"
    assert "Ada" in states.text(width=80, color="none")
    logits = trace.find("logits")[0]
    assert logits.data.shape == (1, 3, 4)
    decoded, marginals = (trace.find(name)[0] for name in ("decoded_labels", "label_marginals"))
    assert [marginals.labels["label"][i] for i in decoded.data[0]] == ["B-PER", "O", "B-LOC"]
    torch.testing.assert_close(marginals.data.sum(-1), torch.ones(1, 3))
    found = model.saliency("Ada left Rome")
    assert found.columns == ["Ada", "left", "Rome"] and found.scores.shape == (3, 3)
    assert list(found.rows) == ["Ada B-PER", "left O", "Rome B-LOC"]
    assert np.isfinite(found.scores).all() and found.strongest(0) == "Ada"
    assert "<svg" in found.svg() and "Rome" in found.text(width=80, color="none")


def test_the_lens_of_a_crf_tagger_ends_with_its_own_marginals(model: LabelModel) -> None:
    with model.record() as trace:
        model.run_for_trace("Ada left Rome")
    lens, found = trace.lens(), model.label("Ada left Rome").tokens
    assert lens.tokens == ["Ada", "left", "Rome"] and lens.actual == [token.tag for token in found]
    assert [best[0] for best in lens.candidates[-1]] == lens.actual and lens.notes == [
        "one layer: its row is the model's own prediction"
    ]
    np.testing.assert_allclose(lens.probabilities[-1, :, 0], [token.probability for token in found], atol=1e-5)


def test_tools_explain_the_emissions_of_the_labels_that_the_crf_decoded(model: LabelModel) -> None:
    replay, text = model.replay("Ada left Rome"), "Ada left Rome"
    tags, crf = [token.tag for token in model.label(text).tokens], model.module.crf
    assert [output.token for output in replay.outputs[:3]] == tags == ["B-PER", "O", "B-LOC"]
    names = list(model.target.names)
    ids = [names.index(tag) for tag in tags]
    first, second, third = replay.chain[:3]
    assert (first.before, first.after, third.after) == ("", "O", "")
    assert first.transition == pytest.approx(float(crf.start[ids[0]]))
    assert second.transition == first.next_transition == pytest.approx(float(crf.transitions[ids[0], ids[1]]))
    assert third.next_transition == pytest.approx(float(crf.end[ids[2]]))
    view = logit_attribution(replay, 1)
    with torch.no_grad():
        emissions = model.module.readout(model.module(model.predictor().collate([text.split()])))[0]
    assert view.logit == pytest.approx(float(emissions[1, ids[1]]), abs=1e-4)
    assert view.title == "emission logit of O: what each part adds"
    assert view.notes[1] == f"the CRF adds: {second.text}" and second.text.startswith("transition from B-PER ")
    assert "the Viterbi algorithm adds transition scores" in to_dict(view, replay)["note"]


def test_a_label_that_the_crf_overrules_is_offered_beside_the_decoded_one() -> None:
    crf, logits = LinearChainCRF(2), torch.tensor([[[3.0, 0.0], [1.0, 0.0]]])
    crf.transitions.data = torch.tensor([[-9.0, 2.0], [0.0, 0.0]])
    record = Record(
        "logits", ("batch", "position", "label"), logits, {"position": [["a", "b"]], "label": ("X", "Y")}, {}
    )
    decoded = crf.viterbi(Padded(logits, torch.tensor([2])))[0].tolist()
    positions, outputs, chain = decoded_outputs(record, decoded, crf)
    assert decoded == [0, 1] and positions == (0, 1, 1)
    assert [(output.token, output.place) for output in outputs] == [
        ("X", "a"), ("Y", "b"), ("X", "b, largest emission"),
    ]  # fmt: skip
    assert (chain[1].transition, chain[2].transition) == (2.0, -9.0)
    assert chain[2].text == "transition from X -9.0000, end 0.0000"


def test_saliency_refuses_what_it_cannot_draw(model: LabelModel) -> None:
    assert refusal(DataError, lambda: model.saliency("  ")) == ("the text is empty; there is no prediction to explain")
    assert refusal(DataError, lambda: model.saliency("Ada " * 300)) == (
        "the text has 300 tokens, and at most 120 can be drawn; shorten it"
    )


# Training


def digest(run: Run) -> str:
    found = checkpoint.newest(run.path).checkpoint
    assert found is not None
    return found.digest


@pytest.mark.parametrize("extra", [["task.crf=linear"], ["task.char_encoder.kind=lstm", "task.char_encoder.width=8"]])
def test_an_interrupted_run_resumes_bit_for_bit(tmp_path: Path, extra: list[str]) -> None:
    write_conll(tmp_path)
    whole, parts = Run(tmp_path / "whole"), Run(tmp_path / "parts")
    short = [
        *extra,
        "train.validate_every=4",
        "train.schedule.kind=constant",
        "train.schedule={kind='constant', lr=0.01}",
    ]
    whole.train(recipe(tmp_path, *short, "train.steps=8"))
    parts.train(recipe(tmp_path, *short, "train.steps=3"))
    parts.train(recipe(tmp_path, *short, "train.steps=8"))
    assert digest(whole) == digest(parts)


def test_validation_reports_loss_accuracy_f1_and_samples(run: Run) -> None:
    validated = [event for event in EVENTS if isinstance(event, Validated)]
    assert [event.step for event in validated] == [30, 60]
    assert list(validated[-1].metrics) == ["loss", "accuracy", "f1"]
    assert validated[-1].metrics["f1"] > 90 and validated[-1].metrics["loss"] < validated[0].metrics["loss"]
    assert len(validated[-1].samples) == 4
    sample = validated[-1].samples[0]
    assert list(sample) == ["text", "output", "reference"]
    assert len({len(str(side).split()) for side in sample.values()}) == 1


def test_a_model_does_not_need_its_data(run: Run, tmp_path: Path) -> None:
    moved = tmp_path / "elsewhere"
    moved.mkdir()
    for name in ("manifest.json", "recipe.toml", "vocab.json", "targets.json", "baseline.json"):
        (moved / name).write_bytes((run.path / name).read_bytes())
    (moved / "checkpoints").symlink_to(run.path / "checkpoints")
    (moved / "best").symlink_to((run.path / "best").resolve())
    found = regard.load(moved)
    assert isinstance(found, LabelModel) and found.label("Ada left Rome").spans[0].kind == "PER"
    (moved / "targets.json").write_text("{}", encoding="utf-8")
    list_files(moved, [moved / name for name in ("vocab.json", "targets.json", "baseline.json")])
    assert refusal(ModelError, lambda: regard.load(moved)) == (
        f"{moved}/targets.json cannot be read: expected the tags of training"
    )


# Scores


def test_scores_on_another_file_include_the_baseline(model: LabelModel, tmp_path: Path) -> None:
    found = model.evaluate(EvalRequest((write_conll(tmp_path, "b.conll", seed=7, count=40),)), no_progress)
    scores = {score.name: score for score in found.scores}
    assert list(scores) == ["f1", "precision", "recall", "accuracy", "baseline"]
    assert scores["f1"].value > 95 and scores["f1"].n == 40
    assert scores["baseline"].signature.startswith("F1 of the most frequent tag|")
    assert set(found.detail["kinds"]) == {"PER", "LOC"}
    assert found.summary_lines[0].startswith("PER ") or found.summary_lines[0].startswith("LOC ")
    assert len(found.examples) == 40 and found.examples[0].source.count(" ") == found.examples[0].output.count(" ")


def test_the_held_out_split_is_scored_by_default(model: LabelModel) -> None:
    found = model.evaluate(EvalRequest(), no_progress)
    assert found.data == "valid" and found.scores[0].value > 90


def test_an_unseen_tag_counts_as_an_error_and_is_reported(model: LabelModel, tmp_path: Path) -> None:
    file = tmp_path / "b.conll"
    file.write_text("Ada B-PER\nlives O\nin O\nRome B-GPE\n\nwe O\nsaw I-PER\n", encoding="utf-8")
    found = model.evaluate(EvalRequest((file,)), no_progress)
    assert list(found.summary_lines[-2:]) == [
        "note       1 tags were repaired",
        "note       1 tokens have tags that are not in training: B-GPE",
    ]
    assert (found.detail["repaired"], found.detail["unseen"]) == (1, {"B-GPE": 1})
    assert next(score for score in found.scores if score.name == "recall").value < 67


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("Ada B-PER\nlives\n", "line 2: expected 2 columns or more, found 1"),
        ("Ada NOUN\n", 'line 1: "NOUN" is not a tag of task.scheme = "bio", which has B-X and I-X and O; if tags are '
         'not spans, use task.scheme = "none"'),
    ],
)  # fmt: skip
def test_an_invalid_file_to_score_is_reported_with_its_line(
    model: LabelModel, tmp_path: Path, text: str, message: str
) -> None:
    file = tmp_path / "b.conll"
    file.write_text(text, encoding="utf-8")
    assert refusal(DataError, lambda: model.evaluate(EvalRequest((file,)), no_progress)) == f"{file}, {message}"


def test_a_strict_model_refuses_a_tag_it_never_saw(tmp_path: Path) -> None:
    file, run = write_conll(tmp_path), Run(tmp_path / "run")
    run.train(recipe(tmp_path, "task.strict=true", "task.scheme=bio", "train.steps=1"))
    file = tmp_path / "b.conll"
    file.write_text("Ada B-PER\nleft O\nRome B-GPE\n", encoding="utf-8")
    assert refusal(DataError, lambda: regard.load(run.path).evaluate(EvalRequest((file,)), no_progress)) == (
        f'{file}, line 3: the tag "B-GPE" was never seen in training; fix the data, or let it count as an error with '
        "task.strict = false"
    )


def test_a_request_that_does_not_fit_a_tagger_is_refused(model: LabelModel) -> None:
    assert refusal(ConfigError, lambda: model.evaluate(EvalRequest(beam=4), no_progress)) == (
        "--beam: this task does not use beam search; leave --beam out"
    )
    two = EvalRequest((Path("a"), Path("b")))
    assert refusal(ConfigError, lambda: model.evaluate(two, no_progress)) == "--data: expected one file, got 2"


# Settings


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (["train.best_metric=f1"],
         "train.best_metric: validation measures accuracy, loss here, got 'f1'; task.scheme says how tags encode "
         "spans"),
        (["train.best_metric=bleu"], "train.best_metric: expected one of loss, accuracy, f1, words, mae, got 'bleu'"),
        (["task.char_encoder.kind=convolution"],
         "task.char_encoder.width = 50 leaves nothing of model.width = 24 for the word embedding"),
        (["task.char_encoder.kind=convolution", "task.char_encoder.kernel=2"],
         "task.char_encoder: kernel = 2 must be odd, so that a window is centered on a character; try 1 or 3"),
        (["data.label_type=angles", "task.crf=linear"],
         'task.crf = "linear" needs tags, and the labels here are angles; use task.crf = "none"'),
        (["data.label_type=numbers", "task.scheme=bio"],
         'task.scheme = "bio" reads spans from tags, and the labels here are numbers; use task.scheme = "none"'),
        (["data.unit=character", "task.char_encoder.kind=lstm", "task.char_encoder.width=8"],
         'task.char_encoder.kind = "lstm": the tokens here are single characters; use "none"'),
        (["task.crf=linear", "train.label_smoothing=0.1"],
         "train.label_smoothing = 0.1: a CRF scores whole tag sequences, which have no label smoothing; set it to 0"),
        (["task.max_length=0"], "task: max_length = 0 must be at least 1"),
        (["data.word=0"], "data: word = 0: columns are counted from 1"),
        (["data.valid_share=0"],
         "data: valid_share = 0.0 must be above 0, test_share = 0.0 at least 0, and their sum below 1"),
        (['model={kind = "transformer", positions = "learned", max_positions = 64}'],
         "task.max_length = 512 allows longer sentences than model.max_positions = 64 has learned positions for; make "
         "them equal"),
        (['model={kind = "gpt"}'],
         "model.kind: expected one of recurrent, convolution, transformer, bert, elmo, elmo-recurrent, mlp, got 'gpt'"),
    ],
)  # fmt: skip
def test_a_setting_that_cannot_work_is_refused_before_any_work(
    settings: list[str], message: str, tmp_path: Path
) -> None:
    assert refusal(ConfigError, lambda: recipe(tmp_path, *settings)) == message


# Restoring and chains


RESTORED = ["Où est le café ?", "C'est à côté, là-bas.", "L'été, il fait chaud !", "Où es-tu ?", "Ça va, Léa ?"]


@pytest.mark.slow
def test_text_is_restored_and_what_was_never_seen_stays(tmp_path: Path) -> None:
    lines = RESTORED + [f"Léa a {n} œufs." for n in range(30)]
    (tmp_path / "a.txt").write_text("\n".join(lines), encoding="utf-8")
    data = ["data.kind=restore", f"data.train={tmp_path}/a.txt", "data.valid_share=0.1"]
    run = Run(tmp_path / "run")
    run.train(Recipe.read(None, [*data, *SETTINGS, "model.width=48", "train.steps=100", "train.best_metric=words"]))
    model = regard.load(run.path)
    assert isinstance(model, LabelModel)
    assert model.label("lea a 7 oeufs").output == "Léa a 7 œufs."
    assert model.label("LEA A 7 OEUFS???").output == "Léa a 7 œufs."
    assert "中" in model.label("lea a 中 oeufs").output
    assert [found.output for found in model.label(["", "?!"])] == ["", "?!"]
    tokens = model.label("Lea A").tokens
    assert [(token.text, token.start, token.end) for token in tokens] == [
        ("l", 0, 1), ("e", 1, 2), ("a", 2, 3), (" ", 3, 4), ("a", 4, 5),
    ]  # fmt: skip
    (tmp_path / "b.txt").write_text("Léa a 3 œufs.\nOù ?\n", encoding="utf-8")
    found = model.evaluate(EvalRequest((tmp_path / "b.txt",)), no_progress)
    assert [score.name for score in found.scores] == ["accuracy", "words", "baseline"]
    assert found.scores[1].signature.startswith("unit:word|") and found.scores[0].n == 2


@pytest.mark.slow
def test_angles_are_learned_with_a_circular_loss_and_scored_in_degrees(tmp_path: Path) -> None:
    settings = [
        "data.kind=chains",
        "data.count=200",
        "train.steps=80",
        "train.best_metric=mae",
        "train.batch_tokens=1024",
    ]
    run = Run(tmp_path / "run")
    run.train(Recipe.read(None, [*SETTINGS, *settings]))
    model = regard.load(run.path)
    assert isinstance(model, LabelModel)
    found = model.evaluate(EvalRequest(), no_progress)
    error, usual = found.scores
    assert (error.name, usual.name) == ("mae", "baseline") and error.signature.startswith("unit:degree|")
    assert error.value < 0.8 * usual.value
    labeled = model.label("AGA PE")
    assert [token.text for token in labeled.tokens] == list("AGAPE")
    assert all(-180 <= float(token.tag) <= 180 and token.probability is None for token in labeled.tokens)
    assert model.saliency("AGAP").scores.shape == (4, 4)


def test_numbers_in_a_column_are_learned_with_squared_errors(tmp_path: Path) -> None:
    draw = random.Random(1)
    words = {"low": 10, "mid": 20, "high": 30}
    rows = [[draw.choice(list(words)) for _ in range(6)] for _ in range(80)]
    text = "".join("".join(f"{word} {words[word]}\n" for word in row) + "\n" for row in rows)
    (tmp_path / "a.conll").write_text(text, encoding="utf-8")
    run = Run(tmp_path / "run")
    run.train(recipe(tmp_path, "data.label_type=numbers", "train.steps=80", "model={kind = 'mlp', width = 16}"))
    model = regard.load(run.path)
    assert isinstance(model, LabelModel)
    assert [round(float(token.tag)) for token in model.label("low high mid").tokens] == [10, 30, 20]
