"""Known numbers of the lessons."""

import math

import numpy as np
import pytest

import regard
from regard.lessons import LESSONS, teach
from regard.lessons.engine.lesson import Value
from regard.lessons.engine.pictures import curve_lines
from regard.lessons.engine.terminal import lesson_text


def close(*numbers):
    return pytest.approx(list(numbers), abs=5e-5)


def test_the_rnn_cell_of_the_lecture(compute_lesson):
    lesson = compute_lesson("rnn")
    assert lesson.value("Vh").data == [0.0, 0.0, 1.0]
    assert lesson.value("Ux").data == [1.0, 0.0, -1.0]
    assert lesson.value("h_new").data == [1.0, 0.0, 0.0]
    assert lesson.value("o").data == 1.0
    assert lesson.value("parameters").data == 18


def test_the_rnn_cell_with_tanh_and_with_another_input(compute_lesson):
    assert number(compute_lesson, "rnn", "h_new", f="tanh") == close(0.7616, 0.0, 0.0)
    assert number(compute_lesson, "rnn", "o", x=[2, 0]) == 2.0


def test_the_output_of_the_rnn_cell_has_a_bias_an_activation_and_one_number_per_row_of_w(compute_lesson):
    assert number(compute_lesson, "rnn", "o", b_o=[0.5]) == 1.5
    assert number(compute_lesson, "rnn", "o", g="tanh") == pytest.approx(math.tanh(1))
    two = {"W": [[1, 0, -1], [0, 2, 0]], "b_o": [0, 1]}
    assert number(compute_lesson, "rnn", "o", **two) == [1.0, 1.0]
    assert number(compute_lesson, "rnn", "o", **two, g="softmax", x=[2, 0]) == close(
        1 / (1 + 1 / math.e), 1 / (1 + math.e)
    )


def test_scaled_dot_product_attention_of_the_lecture(compute_lesson):
    lesson = compute_lesson("attention")
    assert lesson.value("q").data == [-1.0, 1.0, 0.0, 1.0]
    assert lesson.value("qk").data == [-1.0, 1.0, -1.0]
    assert lesson.value("weights").data == close(0.21194, 0.57612, 0.21194)
    assert lesson.value("z").data == close(0.42388, 0.57612)
    assert lesson.value("scaled").data == [14.0, 12.0]
    assert lesson.value("shares").data == pytest.approx([0.88, 0.12], abs=0.005)


def test_king_minus_man_plus_woman_is_queen_exactly_on_paper_and_nearly_in_binary(compute_lesson):
    lesson = compute_lesson("embedding")
    assert lesson.value("exact").data == [1.298, 1.422, -1.122, 0.244]
    assert lesson.value("sum").data == pytest.approx([1.298, 1.422, -1.122, 0.244], abs=1e-12)
    assert lesson.value("nearest").data == "queen"


def test_the_digits_that_differ_between_paper_and_binary_are_printed(compute_lesson):
    lesson = compute_lesson("embedding")
    exact, computed, off = (lesson.value(name).data for name in ("exact", "sum", "off"))
    assert off == [found - expected for found, expected in zip(computed, exact)] and 0 < max(map(abs, off)) < 1e-15
    output = lesson_text(lesson, 100, step=6)
    assert "the last digits are off" in output and "e-16" in output


def test_digits_that_are_equal_are_called_equal(compute_lesson):
    halves = {name: [0.5, 0.25, 1.0, 2.0] for name in ("king", "man", "woman")}
    lesson = compute_lesson("embedding", **halves)
    assert lesson.value("off").data == [0.0] * 4
    assert "the same numbers to the last digit" in " ".join(lesson_text(lesson, 1000, step=6).split())


def test_slaughter_is_nine_bytes_and_am_is_one_hot(compute_lesson):
    lesson = compute_lesson("embedding")
    assert " ".join(lesson.value("bytes").data) == "73 6C 61 75 67 68 74 65 72"
    assert lesson.value("onehot").data == [0, 1, 0, 0, 0, 0]


def test_the_loss_falls_from_the_untrained_to_the_trained_distribution(compute_lesson):
    lesson = compute_lesson("embedding")
    assert lesson.value("loss_untrained").data == pytest.approx(1.791759, abs=1e-6)  # log 6
    assert lesson.value("loss_trained").data == pytest.approx(0.116319, abs=1e-6)


def test_the_four_proverbs_are_one_padded_batch(compute_lesson):
    lesson = compute_lesson("padding")
    assert lesson.value("padded").data[3] == ["Que", "sera,", "sera", "<PAD>", "<PAD>"]
    assert lesson.value("lengths").data == [5, 5, 5, 3]
    assert lesson.value("mask").data[3] == [1, 1, 1, 0, 0]
    assert lesson.value("batch").data[3] == [18, 19, 20, 0, 0]
    assert lesson.value("target_rows").data[0] == ["<SOS>", *["Like", "a", "lamb", "to", "the", "slaughter"], "<EOS>"]


def test_padding_changes_nothing_unless_it_is_read_as_words(compute_lesson):
    lesson = compute_lesson("padding")
    assert max(lesson.value("differences").data) < 1e-12
    assert min(lesson.value("careless").data) > 1e-3


def test_the_lstm_cell_by_its_gates(compute_lesson):
    lesson = compute_lesson("lstm")
    assert lesson.value("i").data == close(0.952574, 0.047426)  # sigmoid of 6 - 3 and of -3
    assert lesson.value("f").data == close(0.982014, 0.982014)  # sigmoid of 4
    assert lesson.value("g").data == close(0.761594, 0.0)  # tanh of 1 and of 0
    assert lesson.value("c_new").data == close(1.216482, -0.491007)
    assert lesson.value("h_new").data == close(0.419336, -0.227509)


def test_the_two_grus_differ_by_where_the_reset_gate_is_applied(compute_lesson):
    lesson = compute_lesson("gru")
    assert lesson.value("r").data == close(0.731059, 0.268941)
    assert lesson.value("z").data == close(0.119203, 0.5)
    after, before = lesson.value("n").data, lesson.value("n_paper").data
    assert after == close(0.985568, -0.262640)  # tanh(1 + r1 2) and tanh(-r2)
    assert before == close(0.911764, -0.623713)  # tanh(1 + 2 r2) and tanh(-r1)


def test_the_written_out_gradients_equal_autograd(compute_lesson):
    checks = compute_lesson("bptt").checks
    assert len(checks) == 4
    assert all(check.found < 1e-12 for check in checks)


def test_bahdanaus_weights(compute_lesson):
    assert number(compute_lesson, "bahdanau", "query") == [2.0, 0.0, 1.0]
    assert number(compute_lesson, "bahdanau", "scores") == close(0.999329, 0.964028, -0.031027, 0.0)
    assert number(compute_lesson, "bahdanau", "weights") == close(0.371703, 0.358810, 0.132653, 0.136834)
    assert sum(number(compute_lesson, "bahdanau", "weights")) == pytest.approx(1.0)


def test_luongs_scores(compute_lesson):
    assert number(compute_lesson, "luong", "scores_dot") == [1.0, 0.5, -0.5, -1.0]
    assert number(compute_lesson, "luong", "scores_general") == [1.0, 1.5, 0.5, -3.0]
    assert number(compute_lesson, "luong", "scores_concat") == close(1.426145, 1.666742, 0.905148, -0.143554)
    assert number(compute_lesson, "luong", "scores_cosine") == close(0.894427, 0.447214, -0.316228, -0.447214)


def test_a_gradient_fades_like_a_power_of_the_spectral_radius(compute_lesson):
    lesson = compute_lesson("gradients")
    assert lesson.value("fading").data[10] == pytest.approx(0.9**10)
    assert lesson.value("fates").data == ["fades", "fades", "grows", "grows"]
    rates = lesson.value("by_bias_rates").data
    assert rates[0] < rates[1] < rates[2] < 1


def test_at_a_radius_of_1_a_gradient_stays_and_is_drawn_as_a_level_curve(compute_lesson):
    lesson = compute_lesson("gradients", radius=1, radii=[1, 1.005, 0.9, 1.1])
    assert lesson.value("fading").data == pytest.approx([1.0] * 24)
    assert lesson.value("fates").data == ["stays", "stays", "fades", "grows"]
    (curve,) = [
        line for line in lesson_text(lesson, 100, step=2).splitlines() if "1.0e+00 " in line and "axis" not in line
    ]
    bars = curve.split()[1]
    assert len(bars) == 24 and set(bars) == {"█"}


@pytest.mark.parametrize(("numbers", "level"), [([1.0, 1.0 + 1e-15], True), ([3.0, 4.0], False), ([1.0, 9.0], False)])
def test_a_logarithmic_axis_spans_a_factor_of_two_at_least(numbers, level):
    bars, axis = (line.plain for line in curve_lines(Value("g", [*numbers, numbers[0]], ("step",), look="log"), 80))
    low, high = (float(number) for number in axis.rpartition("from ")[2].split(" to "))
    assert high / low >= 1.95 and low <= numbers[0] * 1.05 and high >= numbers[1] * 0.95
    assert (len(set(bars.split()[1])) == 1) == level


def test_the_left_to_right_state_of_a_word_is_the_same_and_the_right_to_left_state_differs(compute_lesson):
    lesson = compute_lesson("bidirectional")
    assert lesson.value("from_left").data == 0.0
    assert lesson.value("from_right").data > 1e-3


def test_each_word_of_seq2seq_is_shown_with_the_decoder_state_that_predicted_it(compute_lesson):
    lesson = compute_lesson("seq2seq")
    states = [lesson.value(f"s_{t}").data for t in range(1, 8)]
    assert all(len(state) == 12 for state in states) and len({tuple(state) for state in states}) == 7
    assert [check.holds for check in lesson.checks if check.about.startswith("softmax(W s)")] == [True]


def test_what_truncation_loses_is_not_called_a_loss(compute_lesson):
    lost = compute_lesson("bptt").value("lost")
    assert lost.data == pytest.approx(0.2155, abs=5e-5) and "loss" not in lost.sign


def test_seq2seq_generates_the_proverb_until_eos_and_ignores_the_source_without_its_context(compute_lesson):
    assert number(compute_lesson, "seq2seq", "output") == ["Like", "a", "lamb", "to", "the", "slaughter", "<EOS>"]
    assert number(compute_lesson, "seq2seq", "output", sentence="Que sera, sera") == [
        "Whatever",
        "will",
        "be,",
        "will",
        "be",
        "<EOS>",
    ]
    assert number(compute_lesson, "seq2seq", "output", limit=2) == ["Like", "a"]
    outputs = {
        tuple(number(compute_lesson, "seq2seq", "output", sentence=s, scale=0))
        for s in ("Que sera, sera", "Donde hay humo, hay fuego")
    }
    assert len(outputs) == 1  # only the context depends on the source


def number(compute_lesson, name, value, **changes):
    return compute_lesson(name, **changes).value(value).data


@pytest.mark.parametrize("name", LESSONS)
def test_every_check_holds_with_the_numbers_of_the_lecture(name, compute_lesson):
    lesson = compute_lesson(name)
    assert lesson.checks
    assert [check for check in lesson.checks if not check.holds] == []


def test_eight_heads_and_the_output_projection(compute_lesson):
    lesson = compute_lesson("eight-heads")
    assert lesson.value("shares").data == pytest.approx([0.88, 0.12], abs=0.005)
    X, WQ, WK, WV, WO = (np.array(lesson.value(name).data) for name in ("X", "WQ", "WK", "WV", "WO"))
    found = []
    for head in range(8):
        rows = slice(2 * head, 2 * head + 2)
        scores = (X @ WQ[rows].T) @ (X @ WK[rows].T).T / np.sqrt(2)
        weights = np.exp(scores) / np.exp(scores).sum(1, keepdims=True)
        np.testing.assert_allclose(lesson.value("A").data[2 * head : 2 * head + 2], weights, atol=1e-12)
        found.append(weights @ (X @ WV[rows].T))
    np.testing.assert_allclose(lesson.value("Z").data, np.concatenate(found, 1) @ WO.T, atol=1e-12)


def test_another_number_of_heads_splits_the_same_rows(compute_lesson):
    assert number(compute_lesson, "eight-heads", "size", heads=4) == [2, 4]
    assert len(number(compute_lesson, "eight-heads", "A", heads=4)) == 8
    assert number(compute_lesson, "eight-heads", "Z", heads=4) != number(compute_lesson, "eight-heads", "Z")


def test_masked_attention_has_no_weight_on_later_words_and_cross_attention_has_weight_on_all(compute_lesson):
    lesson = compute_lesson("kinds-of-attention")
    masked, cross = (np.array(lesson.value(name).data) for name in ("A_masked", "A_cross"))
    assert (masked[np.triu_indices(4, 1)] == 0).all() and (masked[np.tril_indices(4)] > 0).all()
    assert cross.shape == (4, 3) and (cross > 0).all()
    np.testing.assert_allclose(cross.sum(1), 1)
    assert max(lesson.value("moved_masked").data[:-1]) == 0 < min(lesson.value("moved_self").data)


def test_positions_are_those_of_the_paper_and_make_attention_depend_on_order(compute_lesson):
    lesson = compute_lesson("positions")
    expected = [
        [(math.sin, math.cos)[i % 2](place / 10_000 ** (2 * (i // 2) / 32)) for i in range(32)] for place in range(60)
    ]
    np.testing.assert_allclose(lesson.value("picture").data, expected, atol=1e-5)
    assert lesson.value("bits").data[10] == ["1", "0", "1", "0"]
    assert lesson.value("apart_without").data < 1e-12
    assert min(lesson.value("apart_added").data, lesson.value("apart_beside").data) > 0.1


@pytest.mark.parametrize("digits", [1, 3, 4])
def test_the_binary_counter_counts_as_far_as_its_digits_and_no_two_rows_are_equal(compute_lesson, digits):
    lesson = compute_lesson("positions", digits=digits)
    rows = lesson.value("bits").data
    assert [int("".join(row), 2) for row in rows] == list(range(2**digits))
    assert len(lesson.value("waves").data) == len(rows)
    assert f"{digits} of them count from 0 to {2**digits - 1}." in " ".join(lesson_text(lesson, 1000).split())


def test_noams_peaks_and_one_step_on_the_way_up(compute_lesson):
    lesson = compute_lesson("noam")
    assert lesson.value("peak").data == pytest.approx(6.99e-4, abs=5e-7)
    assert lesson.value("base_and_big").data == pytest.approx([6.99e-4, 4.94e-4], abs=5e-7)
    assert lesson.value("rate").data == pytest.approx(lesson.value("peak").data / 4)  # a quarter of the way
    assert max(lesson.value("curve").data) <= lesson.value("peak").data


def test_a_smoothed_target_gives_probability_to_each_word_but_padding(compute_lesson):
    lesson = compute_lesson("label-smoothing")
    assert lesson.value("soft").data == close(0, 1 / 60, 0.9 + 1 / 60, 1 / 60, 1 / 60, 1 / 60, 1 / 60)
    scores, target = np.array([0, 0, 4, 1, -1, 0, 0.5]), np.array(lesson.value("soft").data)
    nll = np.log(np.exp(scores).sum()) - scores
    assert lesson.value("loss_hard").data == pytest.approx(nll[2])
    assert lesson.value("loss_soft").data == pytest.approx((target * nll).sum())
    assert sum(lesson.value("slope_soft").data) == pytest.approx(0, abs=1e-12)
    hard, soft = lesson.value("losses").data
    assert hard == sorted(hard, reverse=True)
    assert min(soft) < soft[-1] and min(soft) == pytest.approx(lesson.value("least").data, abs=1e-3)


def test_training_reduces_the_loss_until_the_sentence_is_learned(compute_lesson):
    lesson = compute_lesson("training")
    assert lesson.value("targets").data[1] == [0, 1, 0, 0, 0, 0]
    assert lesson.value("loss_before").data > 1.5
    assert lesson.value("loss_after").data < 0.05
    assert lesson.value("predicted").data == ["i", "am", "a", "student", "<eos>"]
    for name in ("before", "after"):
        assert np.array(lesson.value(name).data).sum(1) == pytest.approx(1)


def test_chance_is_that_of_all_outputs_and_the_column_of_others_is_explained(compute_lesson):
    lesson = compute_lesson("training", rate=0.0, steps=1)
    text = " ".join(lesson_text(lesson, 1000).split())
    assert "a uniform prediction over 9 outputs has log 9 = 2.20." in text
    assert 'the 6 words and <PAD>, <UNK>, <SOS>, whose sum is the column "others"' in text
    fewer = compute_lesson("training", vocabulary=["a", "am", "i", "student", "<eos>"], steps=1)
    assert "over 8 outputs has log 8 = 2.08." in " ".join(lesson_text(fewer, 1000).split())


def test_the_largest_learning_rate_gives_finite_losses(compute_lesson):
    losses = number(compute_lesson, "training", "losses", rate=1.0, steps=40)
    assert np.isfinite(losses).all()


def test_a_beam_of_one_is_greedy_and_a_wider_one_is_never_less_likely(compute_lesson):
    one, four = compute_lesson("beam-search", beam=1, limit=4), compute_lesson("beam-search", limit=4)
    assert one.value("answer").data == one.value("greedy").data
    steps = [name for name in range(1, 5) if f"kept_{name}" in {v.name for s in four.steps for v in s.results}]
    assert all(len(four.value(f"kept_{t}").data) <= 8 for t in steps)
    rows = four.value("beam_tree").data
    assert all(parent == "" or int(parent) < i for i, (parent, *_) in enumerate(rows))


def test_the_row_of_the_word_is_shown_and_isolating_it_changes_the_log_probability(compute_lesson):
    lesson = compute_lesson("pronoun")
    assert (
        lesson.value("row_first").data
        == lesson.value("A_first").data[lesson.value("A_first").labels["query"].index("it")]
    )
    assert lesson.value("log_p_first").data != lesson.value("masked_log_p_first").data
    assert lesson.value("sentences").data == 140


@pytest.mark.slow
def test_the_cached_models_attend_to_the_right_words(train_cached):
    train_cached("rnnsearch", "transformer")
    lesson = teach("evolution-of-attention")
    assert [lesson.value(f"output_{n}").data.lower() for n in (1, 2)] == ["i am a student"] * 2
    for n in (1, 2):
        weights = lesson.value(f"weights_{n}")
        student = weights.data[[word.strip() for word in weights.labels["target"]].index("student")]
        assert max(student) == student[2]  # étudiant


@pytest.mark.slow
def test_lessons_give_the_translations_of_the_model(train_cached):
    model = regard.load(train_cached("transformer")["transformer"])
    for sentence in ("je suis étudiant", "elle mange une pomme"):
        assert teach("transformer", {"sentence": sentence}).value("output").data == model.translate(sentence, beam=1)
        found = teach("beam-search", {"sentence": sentence})
        assert found.value("answer").data == model.translate(sentence, beam=4)
        assert found.value("answer_score").data == pytest.approx(
            model.translate(sentence, beam=4, n_best=1)[0][0].score,
            rel=1e-5,  # the lesson records, and recording takes other kernels, which round differently
        )


@pytest.mark.slow
def test_one_word_decides_between_il_and_elle_on_held_out_sentences(train_cached):
    train_cached("pronoun")
    lesson = teach("pronoun")
    assert " il est trop fatigué" in lesson.value("output_first").data
    assert " elle est trop large" in lesson.value("output_second").data
    assert lesson.value("right").data > 0.9
