"""Lessons on the parts of a Transformer and on the limits of others, against torch and the papers' figures."""

import json
from pathlib import Path

import pytest
import torch
from torch.nn import functional as F

from regard.lessons.translation_scores import QUOTED


def data(compute_lesson, name, value, **changes):
    return compute_lesson(name, **changes).value(value).data


def test_add_and_norm_is_torchs_layer_norm_of_the_sum(compute_lesson):
    lesson = compute_lesson("add-and-norm")
    sums = torch.tensor(lesson.value("R").data, dtype=torch.float64)
    assert torch.allclose(torch.tensor(lesson.value("z").data, dtype=torch.float64), F.layer_norm(sums, (4,)))
    plain, post, pre = lesson.value("lengths").data
    assert plain[-1] > pre[-1] > post[-1] == pytest.approx(2.0, abs=1e-3)  # the root of the width


def test_two_thirds_of_a_layer_are_in_its_feed_forward_network(compute_lesson):
    lesson = compute_lesson("feed-forward")
    assert lesson.value("ffn_parameters").data == 2_099_712
    assert lesson.value("part").data == pytest.approx(2 / 3, abs=1e-3)
    assert lesson.value("moved").data == 0


def test_the_output_layer_chooses_am_and_its_gradient_is_that_of_autograd(compute_lesson):
    lesson = compute_lesson("output-layer")
    assert lesson.value("word").data == "am"
    logits = torch.tensor(lesson.value("logits").data, requires_grad=True)
    F.cross_entropy(logits[None], torch.tensor([1])).backward()
    assert torch.allclose(logits.grad, torch.tensor(lesson.value("gradient").data), atol=1e-6)


def test_post_norm_ends_every_layer_with_a_deviation_of_1_and_pre_norm_grows(compute_lesson):
    post, pre = (data(compute_lesson, "stack", "spread", norm=norm, layers=4) for norm in ("post", "pre"))
    assert post[1:] == pytest.approx([1.0] * 4, abs=1e-3)
    assert pre == sorted(pre)
    assert data(compute_lesson, "stack", "count", layers=6) == data(compute_lesson, "stack", "paper") == 63_082_496


def test_only_the_recurrent_network_tells_equal_inputs_apart(compute_lesson):
    lesson = compute_lesson("recurrence")
    assert lesson.value("apart_plain").data == lesson.value("order_plain").data == 0
    assert lesson.value("apart_recurrent").data > 0.1 and lesson.value("order_recurrent").data > 0.1


def test_the_linear_example_divides_every_gradient_by_the_number_of_steps(compute_lesson):
    lesson = compute_lesson("linear-bptt")
    outputs, targets = (torch.tensor(lesson.value(name).data) for name in ("o", "y"))
    assert torch.allclose(torch.tensor(lesson.value("grad_o").data), (outputs - targets) / 4)
    assert all(check.holds for check in lesson.checks)


def test_a_soft_look_up_is_a_mean_or_a_dictionary_by_its_sharpness(compute_lesson):
    assert data(compute_lesson, "soft-lookup", "z", sharpness=0.0) == [25.0]
    assert data(compute_lesson, "soft-lookup", "z", sharpness=100.0) == pytest.approx(
        data(compute_lesson, "soft-lookup", "hard")
    )
    assert data(compute_lesson, "soft-lookup", "hard", q=[0.5, 0.5]) == ["not found"]


def test_a_word_that_comes_twice_has_one_vector_and_pad_is_zero(compute_lesson):
    lesson = compute_lesson("batch-vectors")
    assert lesson.value("shape").data == [4, 5, 4]
    second, last = lesson.value("X_2").data, lesson.value("X_4").data
    assert second[1] == second[3] and lesson.value("repeated").data == ["hay"]
    assert last[3] == last[4] == [0.0] * 4
    assert lesson.value("pad_gradient").data == [0.0] * 4


def test_soy_orador_madpy_is_read_and_translated_word_by_word(compute_lesson):
    lesson = compute_lesson("word-by-word")
    assert lesson.value("output").data == ["I", "am", "a", "MadPy", "speaker"]
    assert lesson.value("other_output").data == ["I", "am", "a", "MadPy", "student"]
    first, second, third = lesson.value("apart").data
    assert first == 0 and second > 0.1 and third > 0.1  # the same word again, in another state


def test_the_listings_show_the_code_that_runs(compute_lesson):
    lesson = compute_lesson("encoder-decoder-code")
    source = (Path(__file__).parents[2] / "src/regard/lessons/encoder_decoder_code.py").read_text(encoding="utf-8")
    for name in ("encoder_code", "decoder_code"):
        assert all(f"        {code}\n" in source and meaning for code, meaning in lesson.value(name).data)
    assert lesson.value("words").data == ["Whatever", "will", "be,", "will", "be", "<EOS>"]


def test_a_convolution_sees_its_receptive_field_only_and_attention_everything(compute_lesson):
    lesson = compute_lesson("limits-of-convolution")
    rows = lesson.value("influence").data
    assert [[number > 0 for number in row] for row in rows] == [[abs(i - j) <= 2 for j in range(13)] for i in range(13)]
    assert lesson.value("field").data == lesson.value("reach").data == 5
    assert lesson.value("field_attention").data == 13
    assert data(compute_lesson, "limits-of-convolution", "depth", distance=13) == ["13", "3", "1"]


def test_the_limits_of_recurrent_networks_are_the_measured_ones(compute_lesson):
    lesson = compute_lesson("limits-of-rnns")
    folder = Path(__file__).parents[2] / "src/regard/lessons/measured"
    measured = json.loads((folder / "rnn_limits.json").read_text(encoding="utf-8"))
    assert lesson.value("accuracy").data == list(measured["recall"]["accuracy"].values())
    assert lesson.value("ms").data == list(measured["time"]["ms"].values())
    rnn, *_, transformer = lesson.value("recall_here").data
    assert transformer > 0.9 > rnn
    assert lesson.value("final").data[0] == 0.0 and lesson.value("highest").data[0] == 20.0
    assert lesson.value("highest").data[1] < 1


def test_the_scores_are_those_of_the_papers_table_and_of_the_recipes(compute_lesson):
    lesson = compute_lesson("translation-scores")
    assert QUOTED["Transformer, big"][:2] == (28.4, 41.8) and QUOTED["GNMT + RL"][:2] == (24.6, 39.92)
    recipes = Path(__file__).parents[2]
    for (bleu, *_), (recipe,) in zip(lesson.value("ours").data, lesson.value("recipes").data):
        text = (recipes / recipe).read_text(encoding="utf-8")
        assert bleu in next(line for line in text.splitlines() if line.startswith("# Result:"))
    assert data(compute_lesson, "translation-scores", "best", direction="en-fr") == "Transformer, big"


def test_it_attends_to_its_antecedent_on_held_out_pairs_and_needs_to(compute_lesson):
    lesson = compute_lesson("it")
    assert [lesson.value(f"answer_{name}").data for name in ("first", "second")] == ["animal", "street"]
    assert max(lesson.value("attends").data) >= 0.9
    assert lesson.value("correct").data >= 0.9 and lesson.value("correct_isolated").data <= 0.5
    assert max(data(compute_lesson, "it", "attends", layers=1)) < 0.9
