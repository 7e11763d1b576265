"""Word tables: neighbors, analogies and maps agree with their definitions, for files of any program."""

import gzip

import numpy as np
import pytest

from regard.data.lines import read_lines
from regard.errors import ConfigError, DataError
from regard.tasks.vectors.word_table import WordTable, parse_expression, read_word_table

KING = {
    "king": [0.603, 0.198, -0.585, -0.074],
    "man": [0.252, -0.836, -0.294, 0.455],
    "woman": [0.947, 0.388, -0.831, 0.773],
    "queen": [1.298, 1.422, -1.122, 0.244],
}


def some(seed=1, size=50, width=6):
    numbers = np.random.default_rng(seed).normal(size=(size, width)).astype(np.float32)
    return WordTable(tuple(f"w{i}" for i in range(size)), numbers)


def cosine(a, b):
    return float(a @ b / (np.linalg.norm(a) * np.linalg.norm(b)))


def test_neighbors_are_all_other_words_by_descending_cosine():
    table = some()
    expected = sorted(
        ((cosine(table.vectors[i], table.vectors[7]), f"w{i}") for i in range(50) if i != 7), reverse=True
    )
    found = table.neighbors("w7", 1000)
    assert [near.word for near in found] == [word for _, word in expected]
    np.testing.assert_allclose([near.cosine for near in found], [number for number, _ in expected], atol=1e-6)


def test_the_lectures_king_is_a_queen_to_twelve_digits():
    four = {word: np.array(numbers) for word, numbers in KING.items()}
    np.testing.assert_allclose(four["king"] - four["man"] + four["woman"], four["queen"], atol=1e-12, rtol=0)
    table = WordTable((*KING, "child"), np.array([*KING.values(), [-1, 0.1, 0.2, 0]], np.float32))
    assert table.analogy("king - man + woman")[0].word == "queen"


def test_an_analogy_adds_unit_vectors_and_excludes_its_own_words():
    table = some()
    a, b, c = (table.vectors[i] / np.linalg.norm(table.vectors[i]) for i in (3, 4, 5))
    others = [i for i in range(50) if i not in (3, 4, 5)]
    best = max(others, key=lambda i: cosine(table.vectors[i], a - b + c))
    found = table.analogy("w3 - w4 + w5", 100)
    assert found[0].word == f"w{best}" and len(found) == 47
    assert not {"w3", "w4", "w5"} & {near.word for near in found}


def test_many_analogies_have_the_answers_of_one_at_a_time(monkeypatch):
    monkeypatch.setattr("regard.tasks.vectors.word_table.CHUNK", 150)  # three questions at once
    table, draw = some(), np.random.default_rng(2)
    questions = [draw.choice(50, 4, replace=False).tolist() for _ in range(20)]
    single = [table.analogy(f"w{b} - w{a} + w{c}", 1)[0].word for a, b, c, _ in questions]
    assert [f"w{i}" for i in table.solve_analogies(questions)] == single


def test_a_map_shows_where_the_words_differ_most():
    """As much of the variance as the two largest eigenvalues of the covariance have, along orthogonal directions."""
    table = some(size=30)
    found = table.pca_map(list(table.words))
    values = np.sort(np.linalg.eigvalsh(np.cov(table.vectors.T.astype(np.float64))))[::-1]
    np.testing.assert_allclose(found.points.var(0, ddof=1), values[:2], rtol=1e-5)
    np.testing.assert_allclose(found.explained_variance, values[:2] / values.sum(), rtol=1e-5)
    assert abs(found.points[:, 0] @ found.points[:, 1]) < 1e-6


def test_a_map_does_not_depend_on_the_sign_of_a_component():
    table = some(size=12)
    turned = WordTable(table.words, -table.vectors)
    there, back = table.pca_map(list(table.words)), turned.pca_map(list(table.words))
    np.testing.assert_allclose(np.abs(there.points), np.abs(back.points), atol=1e-6)
    assert (there.points[np.abs(there.points).argmax(0), [0, 1]] > 0).all()


def test_words_on_one_line_have_a_map_without_height():
    table = WordTable(("a", "b", "c"), np.array([[0.0], [1.0], [3.0]], np.float32))
    assert table.pca_map(["a", "b", "c"]).points[:, 1].tolist() == [0, 0, 0]
    flat = WordTable(("a", "b", "c"), np.zeros((3, 4), np.float32)).pca_map(["a", "b", "c"])
    assert flat.explained_variance == (0.0, 0.0) and np.isfinite(flat.points).all()


def test_a_vector_of_zeros_is_near_to_nothing():
    table = WordTable(("nil", "a", "b"), np.array([[0, 0], [1, 0], [0, 1]], np.float32))
    assert [near.cosine for near in table.neighbors("nil")] == [0, 0]
    assert table.neighbors("a")[0].cosine == 0


@pytest.mark.parametrize("word", ["Étudiant", "étudiant"])
def test_a_word_is_found_as_it_is_written_or_in_lower_case(word):
    table = WordTable(("étudiant", "学生", "طالب"), np.eye(3, dtype=np.float32))
    assert table.index(word) == 0 and table.index("学生") == 1 and table.index("طالب") == 2


def test_an_unknown_word_is_an_error_that_suggests_similar_ones():
    table = WordTable(("student", "teacher"), np.eye(2, dtype=np.float32))
    with pytest.raises(DataError, match=r'^"studant" is none of the 2 words; did you mean student\?$'):
        table.neighbors("studant")
    with pytest.raises(DataError, match=r'^"学" is none of the 2 words$'):
        table.analogy("student - 学")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("king - man + woman", [(1, "king"), (-1, "man"), (1, "woman")]),
        (" - man + x-ray", [(-1, "man"), (1, "x-ray")]),
        ("king − man", [(1, "king"), (-1, "man")]),
    ],
)
def test_an_expression_has_signs_between_spaces(text, expected):
    assert parse_expression(text) == expected


@pytest.mark.parametrize("text", ["", "king", "king man", "king - ", "king -man", "+ + +"])
def test_an_invalid_expression_is_refused_with_an_example(text):
    with pytest.raises(ConfigError, match=r'such as "king - man \+ woman"$'):
        parse_expression(text)


def test_glove_and_word2vec_are_read_alike(tmp_path):
    glove = "the 0.5 -1.25\nNew York 1 2\nétudiant 3e-2 4\n"
    (tmp_path / "glove.txt").write_text(glove, encoding="utf-8")
    (tmp_path / "word2vec.txt").write_text("3 2\n" + glove.replace("\n", " \n"), encoding="utf-8")
    with gzip.open(tmp_path / "glove.txt.gz", "wt", encoding="utf-8") as file:
        file.write(glove)
    for name in ("glove.txt", "word2vec.txt", "glove.txt.gz"):
        table = read_word_table(read_lines(tmp_path / name), name)
        assert table.words == ("the", "New York", "étudiant")
        np.testing.assert_array_equal(table.vectors, np.array([[0.5, -1.25], [1, 2], [0.03, 4]], np.float32))
    assert read_word_table(read_lines(tmp_path / "glove.txt"), "glove.txt", limit=1).words == ("the",)


def test_subwords_are_found_by_the_word_that_they_are():
    table = WordTable(("cat", " cat", " dog", "og"), np.eye(4, dtype=np.float32))
    assert [table.find(word) for word in ("cat", "␣cat", "##cat", "Dog", "og", "ca")] == [1, 1, 0, 2, 3, None]
    for mark in ("\u2423", "\u2581"):
        other = WordTable(("cat", f"{mark}cat"), np.eye(2, dtype=np.float32))
        assert [other.find(word) for word in ("cat", "##cat")] == [1, 0]


def test_a_word_is_found_however_its_accents_are_composed():
    table = WordTable(("\u00e9tude", "e\u0301cole"), np.eye(2, dtype=np.float32))
    assert [table.find(word) for word in ("e\u0301tude", "\u00e9cole")] == [0, 1]


def test_subwords_are_read_back_and_found():
    table = WordTable((" ", "cat", " cat"), np.arange(6, dtype=np.float32).reshape(3, 2))
    again = read_word_table(table.word2vec_lines(), "again")
    assert again.words == ("␣", "cat", "␣cat") and np.array_equal(again.vectors, table.vectors)
    assert again.find("␣cat") == again.find("cat") == 2


def test_large_vectors_have_the_unit_vectors_of_small_ones():
    small = some()
    large = WordTable(small.words, small.vectors * np.float32(1e30))
    np.testing.assert_allclose(large.unit_vectors, small.unit_vectors, atol=1e-6)


def test_an_expression_that_is_zero_is_refused():
    with pytest.raises(ConfigError, match="is zero, and points nowhere"):
        some().analogy("w1 - w1")


def test_a_map_shows_the_first_words_of_letters_by_default():
    words = ("!", "12", "the", "x", "sea", "sky")
    assert WordTable(words, np.eye(6)).pca_map().words == ("the", "sea", "sky")
    pieces = (" the", "!", " and", "ing", " x", " sea")
    assert WordTable(pieces, np.eye(6)).pca_map().words == (" the", " and", " sea")


@pytest.mark.parametrize("kind", ["word", "bpe", "unigram", "char"])
def test_every_word_of_a_vocabulary_is_found_as_displayed(kind):
    from regard.text import Tokenizer, TokenizerConfig

    lines = ["the cat sat on the mat", "un chat, était-il là ?", "## 学生 です", "  a   b"] * 3
    words = tuple(Tokenizer.train(lines, TokenizerConfig(kind=kind, vocab_size=120)).vocabulary)
    table = WordTable(words, np.ones((len(words), 2), np.float32))
    assert [words[table.find(table.display_word(at))] for at in range(len(words))] == list(words)


def test_a_written_table_is_read_back_bit_for_bit():
    table = some(width=30)
    again = read_word_table(table.word2vec_lines(), "again")
    assert again.words == table.words
    np.testing.assert_array_equal(again.vectors, table.vectors)


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([], "tiny.txt is empty; expected a word and its numbers on each line"),
        (["a 1 2", "b 1"], "tiny.txt, line 2: expected a word and 2 numbers separated by spaces, found 2 cells"),
        (["a 1 2", "b 1 x"], 'tiny.txt, line 2: expected 2 numbers after the word, found "x"'),
        (["a 1 nan"], "tiny.txt, line 1: expected 2 numbers after the word, found one that is not finite"),
        (["a 1 1e39"], "tiny.txt, line 1: expected 2 numbers after the word, found one that is not finite"),
        (
            ["a 1 2", "b 1 2 3"],
            "tiny.txt, line 2: expected a word and 2 numbers separated by spaces, found more numbers",
        ),
        (["3 2", "a 1 2"], "tiny.txt: its first line says 3 words, and there are 1; is it cut off?"),
        (["2 3", "a 1 2"], "tiny.txt, line 2: expected a word and 3 numbers separated by spaces, found 3 cells"),
        (["a\t1\t2"], "tiny.txt, line 1: expected a word and 1 number separated by spaces, found 1 cell, and tabs"),
        (["alone"], "tiny.txt, line 1: expected a word and 1 number separated by spaces, found 1 cell"),
    ],
)
def test_a_line_without_a_vector_is_reported_with_its_number(lines, message):
    with pytest.raises(DataError) as error:
        read_word_table(lines, "tiny.txt")
    assert str(error.value) == message


def test_a_map_of_two_words_is_refused():
    with pytest.raises(ConfigError, match="at least 3 words, got 2"):
        some().pca_map(["w1", "w2", "w1"])
