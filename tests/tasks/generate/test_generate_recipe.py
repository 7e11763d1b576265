"""The generate task: defaults of its recipe, and its evaluation."""

import math
import random
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from regard.data.texts import Shakespeare, TextFiles
from regard.errors import ConfigError
from regard.progress import no_progress
from regard.run import Run, load
from regard.sequence import Tokens
from regard.tasks import EvalRequest, Recipe

LEAST = ["task.kind=generate", "model.kind=rnnlm"]


def test_a_recipe_without_data_learns_from_shakespeare():
    assert Recipe.read(None, LEAST).data == Shakespeare()


def test_data_of_ones_own_has_nothing_of_shakespeares_in_it():
    settings = [*LEAST, "data.kind=text", "data.train=book.txt", "data.valid_share=0.2"]
    assert Recipe.read(None, settings).data == TextFiles(train="book.txt", valid_share=0.2)


@pytest.mark.parametrize("setting", ["data.train=book.txt", "data.valid_share=0.2"])
def test_data_without_a_kind_is_refused_with_the_kinds(setting):
    kinds = "text, shakespeare, .*numbers, conditioned, sentence-kinds, number-names.*"
    with pytest.raises(ConfigError, match=rf"^data\.kind must be given: one of {kinds}$"):
        Recipe.read(None, [*LEAST, setting])


@pytest.fixture
def prepared_run(tmp_path) -> Path:
    """A small model that reads each window by itself, in four streams, and the text that it is scored on."""
    draw = random.Random(1)
    (tmp_path / "book.txt").write_text("".join(draw.choices("abcde ", k=900)), encoding="utf-8")
    (tmp_path / "test.txt").write_text("".join(draw.choices("abcde ", k=4 * 5 * 8)), encoding="utf-8")
    data = f"data={{kind = 'text', train = '{tmp_path}/book.txt'}}"
    shape = "model={kind = 'gpt', layers = 1, width = 8, heads = 2, max_positions = 8}"
    settings = ["task={kind = 'generate', window = 8, samples = 0}", "train={steps = 1, batch_tokens = 32}"]
    Run(tmp_path / "run").train(Recipe.read(None, [data, shape, *settings]))
    return tmp_path


def test_the_parts_of_an_evaluation_are_its_windows_in_the_order_of_the_text(prepared_run):
    model = load(prepared_run / "run")
    found = model.evaluate(EvalRequest([prepared_run / "test.txt"]), no_progress)
    assert model.recipe.rows == 4 and [count for _, count in found.per_unit] == [8] * 20
    nats, counts = zip(*found.per_unit, strict=True)
    assert math.exp(math.fsum(nats) / sum(counts)) == pytest.approx(found.scores[0].value, rel=1e-12)
    model.recipe = replace(model.recipe, train=replace(model.recipe.train, batch_tokens=8))  # one stream
    assert found.per_unit == [
        (pytest.approx(nats, rel=1e-5), count)
        for nats, count in model.evaluate(EvalRequest([prepared_run / "test.txt"]), no_progress).per_unit
    ]


def test_streams_that_end_before_others_leave_no_part_out(prepared_run):
    (prepared_run / "test.txt").write_text(
        "abcde " * 21 + "abcde", encoding="utf-8"
    )  # 131 after the first: 32 and 3 x 33
    found = load(prepared_run / "run").evaluate(EvalRequest([prepared_run / "test.txt"]), no_progress)
    assert [count for _, count in found.per_unit] == [*[8] * 4, *([8] * 4 + [1]) * 3]


def direct_nll(model, ids: list[int], target: int) -> float:
    """Negative log-likelihood of one token from the 8 tokens before it, in a pass of its own."""
    read = Tokens.pad([ids[max(0, target - 8) : target]])
    with torch.no_grad():
        logits = model.module.readout(model.module(Tokens.pad([[]]), read))
    return -float(logits[0, -1].log_softmax(-1)[ids[target]])


def test_a_stride_of_one_scores_each_token_alone_with_full_context(prepared_run):
    file = prepared_run / "test.txt"
    model = load(prepared_run / "run")
    found = model.evaluate(EvalRequest([file], stride=1), no_progress)
    ids = model.modality.tokenizer.encode(file.read_text(encoding="utf-8") + "\n").ids
    nats = [direct_nll(model, ids, target) for target in range(1, len(ids))]
    assert math.log(found.scores[0].value) == pytest.approx(math.fsum(nats) / len(nats), rel=1e-5)
    per_unit = [(math.fsum(nats[i : i + 8]), len(nats[i : i + 8])) for i in range(0, len(nats), 8)]
    model.recipe = replace(model.recipe, train=replace(model.recipe.train, batch_tokens=8))  # one stream
    one_stream = model.evaluate(EvalRequest([file], stride=1), no_progress)
    assert one_stream.per_unit == [(pytest.approx(nll, rel=1e-5), count) for nll, count in per_unit]
    assert one_stream.scores[0].value == pytest.approx(found.scores[0].value, rel=1e-6)


@pytest.mark.parametrize("batch_tokens", [8, 16, 24, 32])
def test_a_stride_as_long_as_the_window_is_the_plain_evaluation(prepared_run, batch_tokens):
    (prepared_run / "test.txt").write_text("abcde " * 21 + "abcde", encoding="utf-8")  # streams of unequal length
    model = load(prepared_run / "run")
    model.recipe = replace(model.recipe, train=replace(model.recipe.train, batch_tokens=batch_tokens))
    plain, strided = (
        model.evaluate(EvalRequest([prepared_run / "test.txt"], stride=stride), no_progress) for stride in (None, 8)
    )
    assert strided.per_unit == plain.per_unit
    assert [replace(score, signature="") for score in strided.scores] == [
        replace(score, signature="") for score in plain.scores
    ]


@pytest.mark.parametrize("stride", [1, 3, 5, 8])
def test_a_sliding_window_scores_every_token_once_and_its_signature_names_the_stride(prepared_run, stride):
    file = prepared_run / "test.txt"
    file.write_text("abcde " * 21 + "abcde", encoding="utf-8")
    stages = []
    found = load(prepared_run / "run").evaluate(
        EvalRequest([file], stride=stride), lambda what, done, total: stages.append((done, total))
    )
    assert sum(count for _, count in found.per_unit) == 131 and stages[-1] == (131, 131)
    assert [score.name for score in found.scores] == ["perplexity", "bits", "bits_per_byte"]
    assert all(score.signature.endswith(f"|window:8|stride:{stride}") for score in found.scores)


def test_bits_per_byte_count_the_bytes_of_utf_8(prepared_run):
    (prepared_run / "test.txt").write_text("aé" * 40, encoding="utf-8")
    found = load(prepared_run / "run").evaluate(EvalRequest([prepared_run / "test.txt"]), no_progress)
    perplexity, bits, per_byte = found.scores
    assert bits.value == pytest.approx(math.log2(perplexity.value))
    assert per_byte.value == pytest.approx(bits.value * 81 / 121) and per_byte.lower_is_better
    assert per_byte.low <= per_byte.value <= per_byte.high and per_byte.signature.startswith("unit:byte|")


@pytest.mark.parametrize("stride", [0, -1, 9])
def test_a_stride_outside_of_the_window_is_refused(prepared_run, stride):
    with pytest.raises(ConfigError) as caught:
        load(prepared_run / "run").evaluate(EvalRequest(stride=stride), no_progress)
    assert str(caught.value) == f"--stride: expected from 1 to task.window = 8, got {stride}"


def test_a_recurrent_model_and_other_tasks_refuse_a_stride(prepared_run):
    data = f"data={{kind = 'text', train = '{prepared_run}/book.txt'}}"
    settings = ["task={kind = 'generate', window = 8, samples = 0}", "train={steps = 1, batch_tokens = 32}"]
    shape = "model={kind = 'rnnlm', layers = 1, width = 8}"
    Run(prepared_run / "rnn").train(Recipe.read(None, [data, shape, *settings]))
    with pytest.raises(ConfigError) as caught:
        load(prepared_run / "rnn").evaluate(EvalRequest(stride=4), no_progress)
    assert str(caught.value) == (
        "--stride: a sliding window is for models that read each window alone, and rnnlm carries its hidden state from "
        "window to window, so every token has the whole text before it as context; leave --stride out"
    )
    with pytest.raises(ConfigError) as caught:
        EvalRequest(stride=4).one_file()
    assert str(caught.value) == (
        "--stride: a sliding window scores running text, and this task has none; leave --stride out"
    )
