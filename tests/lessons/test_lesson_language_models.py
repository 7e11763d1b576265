"""Numbers of the lessons on language models, against computations of their own."""

import cmath
import math
import re

import numpy as np
import pytest
import torch

from regard.errors import ConfigError


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


BERT_TEXT = "[CLS] let's make [MASK] chicken! [SEP] it [MASK] great with {} {} [SEP]"


def erf(x):
    return np.vectorize(math.erf)(x)


def normalize_exactly(x):
    return (x - x.mean()) / np.sqrt(x.var() + 1e-12)


def gelu(x):
    return 0.5 * x * (1 + erf(x / math.sqrt(2)))


def numpy_bert(lesson, words, causal=False):
    """The layer in NumPy, position by position: attention weights and logits."""
    names = ("E", "P", "S", "WQ", "WK", "WV", "WO", "W1", "W2", "WM")
    E, P, S, WQ, WK, WV, WO, W1, W2, WM = (array(lesson, name) for name in names)
    vocabulary, middle = lesson.value("vocabulary").data, words.index("[SEP]")
    x = [
        normalize_exactly(E[vocabulary.index(word)] + P[t] + S[1 if t > middle else 0]) for t, word in enumerate(words)
    ]
    weights, logits = [], []
    for t in range(len(words)):
        scores = np.array([(WK @ x[s]) @ (WQ @ x[t]) / 2 for s in range(t + 1 if causal else len(words))])
        share = np.exp(scores - scores.max()) / np.exp(scores - scores.max()).sum()
        weights.append(np.concatenate([share, np.zeros(len(words) - len(share))]))
        y = normalize_exactly(x[t] + WO @ sum(a * (WV @ x[s]) for s, a in enumerate(share)))
        y = normalize_exactly(y + W2 @ gelu(W1 @ y))
        logits.append(E @ normalize_exactly(gelu(WM @ y)))
    return np.array(weights), np.array(logits)


@pytest.mark.parametrize(
    ("fruit", "thing", "verb"),
    [
        ("orange", "sauce", "tastes"),
        ("lemon", "sauce", "tastes"),
        ("orange", "plates", "looks"),
        ("lemon", "plates", "looks"),
    ],
)
def test_one_bert_layer_by_hand_fills_two_masks(compute_lesson, fruit, thing, verb):
    text = f"Let's make [MASK] chicken! [SEP] It [MASK] great with {fruit} {thing}"
    lesson = compute_lesson("bert", text=text, answers=[fruit, verb])
    words = BERT_TEXT.format(fruit, thing).split()
    weights, logits = numpy_bert(lesson, words)
    np.testing.assert_allclose(array(lesson, "A"), weights, atol=1e-9)
    p = np.exp(logits[[3, 7]]) / np.exp(logits[[3, 7]]).sum(1, keepdims=True)
    np.testing.assert_allclose(array(lesson, "p"), p, atol=1e-9)
    assert lesson.value("best").data == [fruit, verb]
    vocabulary = lesson.value("vocabulary").data
    each = [-math.log(p[0, vocabulary.index(fruit)]), -math.log(p[1, vocabulary.index(verb)])]
    assert lesson.value("loss").data == pytest.approx(sum(each) / 2, rel=1e-9)
    causal, _ = numpy_bert(lesson, words, causal=True)
    np.testing.assert_allclose(array(lesson, "A_causal"), causal, atol=1e-9)


def test_with_a_causal_mask_the_first_mask_does_not_depend_on_the_second_segment(compute_lesson):
    texts = [f"Let's make [MASK] chicken! [SEP] It [MASK] great with {fruit} sauce" for fruit in ("orange", "lemon")]
    lessons = [compute_lesson("bert", text=text) for text in texts]
    assert lessons[0].value("best_causal").data[0] == lessons[1].value("best_causal").data[0] == "lemon"
    assert lessons[0].value("p_causal").data[0] == pytest.approx(lessons[1].value("p_causal").data[0], rel=1e-12)
    assert lessons[0].value("best").data[0] != lessons[1].value("best").data[0]
    assert min(lessons[0].value("later").data) > 0.9 and lessons[0].value("later_causal").data == [0, 0]


def test_masks_are_drawn_as_in_the_paper(compute_lesson):
    lesson = compute_lesson("bert", n=100_000)
    masked, random_words, unchanged = lesson.value("outcomes").data
    assert masked + random_words + unchanged == 15_000
    assert [masked, random_words, unchanged] == pytest.approx([12_000, 1_500, 1_500], abs=4 * math.sqrt(15_000 * 0.16))
    assert lesson.value("count").data == 2
    read = " ".join(lesson.value("drawn").data)
    assert read == "let's make [MASK] chicken! it [MASK] great with orange sauce"
    order = array(lesson, "order")
    assert sorted(np.argsort(order)[:2].tolist()) == [2, 5] == np.flatnonzero(lesson.value("predicted").data).tolist()
    fates = [compute_lesson("bert", seed=seed) for seed in range(30)]
    for one in fates:
        known = set(one.value("vocabulary").data)
        for word, original, fate, predicted in zip(
            one.value("drawn").data,
            one.value("order").labels["token"],
            one.value("fate").data,
            one.value("predicted").data,
        ):
            if not predicted or fate >= 0.9:
                assert word == original
            else:
                assert word == "[MASK]" if fate < 0.8 else word in known


def test_the_loss_of_bert_has_a_gradient_at_the_masks_only(compute_lesson):
    gradient = array(compute_lesson("bert"), "gradient")
    assert np.flatnonzero(gradient).tolist() == [3, 7] and len(gradient) == 13


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"text": "Let's make tea [SEP] it"}, 'got "tea"'),
        ({"text": "it [MASK] great [MASK]"}, "expected one [SEP] between two segments, got 0"),
        ({"text": "it tastes great [SEP] it"}, "expected one word for each [MASK] of the text, 0; got 2"),
        ({"text": "it [SEP] " + "great " * 11}, "expected at most 11 words"),
        ({"answers": ["tea", "it"]}, 'got "tea"'),
        ({"S": [[0, 0, 0, 0]]}, "S: expected 2 rows"),
    ],
)
def test_inputs_of_the_bert_lesson_that_do_not_fit_are_refused(compute_lesson, changes, message):
    with pytest.raises(ConfigError, match=re.escape(message)):
        compute_lesson("bert", **changes)


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


def rotary_product(q, k, m, n, base):
    """Product of a rotated query and key, pair by pair as complex numbers."""
    half, total = len(q) // 2, 0.0
    for i in range(half):
        angle = base ** (-2 * i / len(q))
        query = complex(q[i], q[i + half]) * cmath.exp(1j * m * angle)
        key = complex(k[i], k[i + half]) * cmath.exp(1j * n * angle)
        total += (query * key.conjugate()).real
    return total


def sinusoid(place, width):
    return np.array([(math.sin, math.cos)[i % 2](place / 10_000 ** (2 * (i // 2) / width)) for i in range(width)])


def test_a_pair_is_rotated_by_its_position(compute_lesson):
    for t, (angle, x, y, length) in enumerate(compute_lesson("rotary").value("turned").data):
        assert (angle, x, y, length) == pytest.approx((0.5 * t, math.cos(0.5 * t), math.sin(0.5 * t), 1))


def test_rotary_products_depend_only_on_the_difference_and_those_of_added_sinusoids_do_not(compute_lesson):
    lesson = compute_lesson("rotary")
    q, k = array(lesson, "q"), array(lesson, "k")
    assert lesson.value("product").data == pytest.approx(rotary_product(q, k, 5, 2, 100))
    assert lesson.value("product").data == pytest.approx(rotary_product(q, k, 3, 0, 100))
    assert lesson.value("product").data != pytest.approx(rotary_product(q, k, 2, 5, 100))
    for m, n, difference, rotary, added in lesson.value("table").data:
        assert difference == m - n == 3
        assert rotary == pytest.approx(rotary_product(q, k, m, n, 100))
        assert added == pytest.approx((q + sinusoid(m, 4)) @ (k + sinusoid(n, 4)), abs=1e-5)
    assert lesson.value("spread").data < 1e-12 < 0.1 < lesson.value("spread_added").data


def test_the_pictures_and_the_curve_of_rotary_products(compute_lesson):
    lesson = compute_lesson("rotary")
    q, k = array(lesson, "q"), array(lesson, "k")
    expected = [[rotary_product(q, k, t, s, 100) for s in range(8)] for t in range(8)]
    np.testing.assert_allclose(array(lesson, "rotary"), expected, atol=1e-6)
    waves = np.array([sinusoid(t, 4) for t in range(8)])
    np.testing.assert_allclose(array(lesson, "added"), (q + waves) @ (k + waves).T, atol=1e-5)
    curve = [rotary_product(q, k, difference, 0, 100) for difference in range(-16, 17)]
    np.testing.assert_allclose(array(lesson, "curve"), curve, atol=1e-6)


def test_frequencies_of_a_wide_head(compute_lesson):
    lesson = compute_lesson("rotary")
    lengths = [2 * math.pi * 10_000 ** (2 * i / 128) for i in range(64)]
    np.testing.assert_allclose(array(lesson, "lengths"), lengths, rtol=1e-5)
    assert (lesson.value("shortest").data, lesson.value("longest").data) == (pytest.approx(2 * math.pi), 54_410)
    shares = [np.mean([math.cos(d * 10_000 ** (-2 * i / 128)) for i in range(64)]) for d in (0, 64, 512)]
    assert [lesson.value("decay").data[d] for d in (0, 64, 512)] == pytest.approx(shares, abs=1e-5)


def test_the_lesson_rotates_as_the_llama_model_does(compute_lesson):
    from regard.lessons.rotary import rotate_at
    from regard.nn.rotary import Rotary, rotate, rotation

    x, positions = torch.tensor([1.0, 2.0, 3.0, 4.0, 5.0, 6.0]).double(), torch.tensor([0, 3, 8])
    by = rotation(Rotary(6)(positions[None].double()), torch.float64)
    expected = rotate(x.expand(1, 3, 1, 6), by)[0, :, 0]
    assert torch.equal(rotate_at(x, positions, 10_000.0), expected)
    by_hand = [[rotary_product(x.tolist(), row, p, 0, 10_000) for row in np.eye(6)] for p in (0, 3, 8)]
    np.testing.assert_allclose(expected, by_hand, atol=1e-5)
