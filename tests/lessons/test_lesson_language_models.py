"""Numbers of the lessons on language models, against computations of their own."""

import math

import numpy as np
import pytest


def array(lesson, name):
    return np.array(lesson.value(name).data)


def normalize(x):
    return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)


def numpy_block(lesson, words):
    """The block in NumPy, position by position: keys, values, attention weights and logits."""
    names = ("E", "P", "WQ", "WK", "WV", "WO", "W1", "W2")
    E, P, WQ, WK, WV, WO, W1, W2 = (array(lesson, name) for name in names)
    vocabulary, keys, values, weights, logits = lesson.value("vocabulary").data, [], [], [], []
    for t, word in enumerate(words):
        x = E[vocabulary.index(word)] + P[t]
        n = normalize(x)
        keys.append(WK @ n)
        values.append(WV @ n)
        scores = np.array([key @ (WQ @ n) / 2 for key in keys])  # the square root of the width 4
        share = np.exp(scores) / np.exp(scores).sum()
        weights.append(np.concatenate([share, np.zeros(len(words) - t - 1)]))
        x = x + WO @ (share @ np.array(values))
        u = W1 @ normalize(x)
        x = x + W2 @ (0.5 * u * (1 + np.tanh(math.sqrt(2 / math.pi) * (u + 0.044715 * u**3))))
        logits.append(E @ normalize(x))
    return [np.array(part) for part in (keys, values, weights, logits)]


@pytest.mark.parametrize(("text", "following"), [("the cat sat on the", "mat"), ("the dog sat on the", "rug")])
def test_one_gpt_block_by_hand(compute_lesson, text, following):
    lesson, words = compute_lesson("gpt", text=text), text.split()
    keys, values, weights, logits = numpy_block(lesson, words)
    for name, expected in (("K", keys), ("V", values), ("A", weights), ("logits", logits)):
        np.testing.assert_allclose(array(lesson, name), expected, atol=1e-9)
    assert lesson.value("next").data == following
    keys, values, _, logits = numpy_block(lesson, [*words, following])
    for name, expected in (("K_longer", keys), ("V_longer", values), ("cached", logits[-1])):
        np.testing.assert_allclose(array(lesson, name), expected, atol=1e-9)
    assert lesson.value("after_next").data == "."


def test_every_position_of_the_gpt_block_gives_probabilities_and_the_last_word_attends_to_the_animal(compute_lesson):
    lesson = compute_lesson("gpt")
    np.testing.assert_allclose(array(lesson, "p").sum(1), 1)
    assert array(lesson, "p")[0, 1:3] == pytest.approx([0.52, 0.44], abs=0.005)  # cat or dog
    assert (array(lesson, "A")[np.triu_indices(5, 1)] == 0).all()
    assert array(lesson, "A")[4].argmax() == 1 and lesson.value("on_cat").data == array(lesson, "A")[4, 1]


def test_an_appended_word_changes_no_key_and_no_value_before_it(compute_lesson):
    lesson = compute_lesson("gpt")
    assert lesson.value("K_moved").data == lesson.value("V_moved").data == 0
    np.testing.assert_array_equal(array(lesson, "K_longer")[:-1], array(lesson, "K"))
    np.testing.assert_allclose(array(lesson, "recomputed"), array(lesson, "cached"), atol=1e-12)


def count_products(layers, width, words, length, cached):
    """Multiplications of one step, matrix by matrix: (rows, inner, columns)."""
    products = []
    for end in [length] if cached else range(1, length + 1):
        square, wide = (1, width, width), [(1, width, 4 * width), (1, 4 * width, width)]
        products += layers * [square, square, square, square, *wide, (1, width, end), (1, end, width)]
    return sum(math.prod(shape) for shape in [*products, (1, width, words)])


def test_multiplications_with_and_without_a_cache(compute_lesson):
    lesson = compute_lesson("gpt", n=20)
    for name, cached in (("without_cache", False), ("with_cache", True)):
        assert lesson.value(name).data == sum(count_products(1, 4, 8, t, cached) for t in range(1, 21))
    for name, cached in (("gpt2_without", False), ("gpt2_with", True)):
        assert lesson.value(name).data == sum(count_products(12, 768, 50_257, t, cached) for t in range(1, 21))
    assert lesson.value("gpt2_held").data == 2 * 12 * 768
    assert lesson.value("gpt2_bytes").data == 20 * 4 * 18_432
    assert lesson.value("factor").data > 5
