"""Numbers of the lesson on ELMo, computed again in plain Python."""

from __future__ import annotations

import math

import numpy as np
import pytest


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def lstm(rows, inputs):
    """States of an LSTM, from its equations."""
    rows, width = np.array(rows), len(rows) // 4
    h, c, found = np.zeros(width), np.zeros(width), []
    for x in inputs:
        i, f, g, o = (rows @ [*x, *h, 1.0]).reshape(4, width)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(c)
        found.append(h)
    return found


def layers_at(lesson, words, word):
    """The three vectors of a word in a sentence."""
    data = {one.value.name: one.value.data for one in lesson.inputs}
    E, ids = np.array(data["E"]), [data["vocabulary"].index(one) for one in words]
    place, found = words.index(word), []
    for first, second, read, at in (("F1", "F2", ids, place), ("B1", "B2", ids[::-1], len(ids) - 1 - place)):
        below = lstm(data[first], E[[0, *read]])
        above = lstm(data[second], below)
        found.append((below[at + 1], above[at + 1] + below[at + 1]))
    word_vector = E[ids[place]]
    return [np.concatenate([word_vector] * 2), *(np.concatenate(pair) for pair in zip(*found, strict=True))]


def cosine(a, b):
    return float(a @ b / np.linalg.norm(a) / np.linalg.norm(b))


@pytest.mark.parametrize("second", ["clients trust the bank with cash", "boats trust the bank with water", "bank"])
def test_layers_cosines_and_the_mix_follow_from_the_equations(compute_lesson, second):
    lesson = compute_lesson("elmo", second=second)
    one = layers_at(lesson, ["boats", "line", "the", "bank", "of", "water"], "bank")
    two = layers_at(lesson, second.split(), "bank")
    np.testing.assert_allclose(lesson.value("h_first").data, one, atol=1e-9)
    np.testing.assert_allclose(lesson.value("h_second").data, two, atol=1e-9)
    assert lesson.value("cosines").data == pytest.approx([cosine(*pair) for pair in zip(one, two, strict=True)])
    share = np.exp([0.0, 1.0, 2.0]) / np.exp([0.0, 1.0, 2.0]).sum()
    assert lesson.value("first_mix").data == pytest.approx(list(0.5 * share @ np.array(one)))


def test_the_word_vector_is_the_same_and_the_states_are_not(compute_lesson):
    lesson = compute_lesson("elmo")
    assert lesson.value("cosine_word").data == pytest.approx(1)
    assert lesson.value("cosines_above").data == pytest.approx([0.8757, 0.6598], abs=5e-5)
    assert lesson.value("best_forward").data == ["of", "with"] and lesson.value("best_backward").data == ["the", "the"]


def test_each_direction_sees_one_side(compute_lesson):
    whole, left, right = compute_lesson("elmo").value("sides").data
    assert left == pytest.approx([whole[0], 1]) and right == pytest.approx([1, whole[1]])
    assert whole[0] < 0.9 and not math.isclose(whole[1], 1, abs_tol=1e-6)
