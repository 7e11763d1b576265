"""Word vectors of one's own: read, put where their words are, and refused where they are none."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from regard.errors import ConfigError, DataError
from regard.models.recurrent import RecurrentConfig
from regard.models.transformer import TransformerConfig
from regard.spaces import Vectors
from regard.text.word_vectors import VectorsConfig, WordVectors, first_words, read_vectors

WORDS = {"<PAD>": 0, "the": 4, "movie": 5, "crème brûlée": 6, "unheard": 7}
GLOVE = ["the 0.5 -1.5", "movie 2 3e-1", "crème brûlée 1 1", "not wanted"[:3] + " 9 9"]


def test_each_word_gets_the_numbers_behind_it_and_the_rest_is_passed_over() -> None:
    found = read_vectors(GLOVE, "glove.txt", WORDS)
    assert dict(zip(found.ids.tolist(), found.numbers.tolist(), strict=True)) == {
        4: [0.5, -1.5],
        5: [2.0, pytest.approx(0.3)],
        6: [1.0, 1.0],
    }
    assert (found.width, len(found)) == (2, 3)


def test_the_line_with_which_word2vec_begins_is_no_word() -> None:
    assert read_vectors(["4 2", *GLOVE], "w2v.txt", WORDS).ids.tolist() == [4, 5, 6]
    assert read_vectors(["1 1", "5 6"], "w.txt", {"5": 9}).ids.tolist() == [9]


def test_the_first_of_a_word_counts() -> None:
    assert read_vectors(["the 1 2", "the 3 4"], "a.txt", WORDS).numbers.tolist() == [[1.0, 2.0]]


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["the 1 2", "movie 1"], "a.txt, line 2: expected a word and 2 numbers with spaces between, found 2 cells"),
        (["the"], "a.txt, line 1: expected a word and 1 number with spaces between, found 1 cell"),
        (["movie 1 x"], 'a.txt, line 1: expected 2 numbers after the word, found "x"'),
        (["movie 1 nan"], "a.txt, line 1: expected 2 numbers after the word, found one that is not finite"),
        (["film 1 2"], "a.txt has none of the 5 words of the vocabulary; is it of this language, and in lower case?"),
        ([], "a.txt has none of the 5 words of the vocabulary; is it of this language, and in lower case?"),
    ],
)
def test_a_file_that_holds_no_vectors_is_told_with_its_line(lines: list[str], message: str) -> None:
    with pytest.raises(DataError) as caught:
        read_vectors(lines, "a.txt", WORDS)
    assert str(caught.value) == message


def test_vectors_are_scaled_to_the_width_of_the_table_and_keep_their_directions() -> None:
    draw = np.random.default_rng(0)
    given = WordVectors(np.arange(50), draw.normal(0, 0.6, (50, 30)).astype(np.float32))
    drawn = draw.normal(0, 0.1, (500, 30)).astype(np.float32)
    table = given.into(drawn, 2.0)
    assert np.array_equal(table[50:], drawn[50:])
    assert table[:50].std() == pytest.approx(2 * drawn.std(), rel=0.05)
    ratios = table[:50] / given.numbers
    np.testing.assert_allclose(ratios, ratios[0, 0], rtol=1e-4)


def test_vectors_of_nothing_but_zeros_are_no_crash() -> None:
    assert WordVectors(np.array([0]), np.zeros((1, 2))).into(np.ones((2, 2)), 1.0).tolist() == [[0, 0], [1, 1]]


def test_vectors_are_kept_and_found_again(tmp_path) -> None:
    found = read_vectors(GLOVE, "glove.txt", WORDS)
    found.save(tmp_path)
    again = WordVectors.load(tmp_path)
    assert again.ids.tolist() == found.ids.tolist() and np.array_equal(again.numbers, found.numbers)
    (tmp_path / "vectors.safetensors").write_bytes(b"nothing")
    with pytest.raises(DataError, match=r"vectors\.safetensors cannot be read; prepare the data again"):
        WordVectors.load(tmp_path)


@pytest.mark.parametrize("width", [8, 12])
def test_a_table_of_its_own_width_reads_for_a_model_of_any_width_and_learns(width: int) -> None:
    from regard.sequence import Tokens

    for config in (RecurrentConfig(width=width), TransformerConfig(layers=1, width=width, inner=16, heads=2)):
        encoder = config.build_encoder(Vectors(20, table=8))
        encoder(Tokens.of([[4, 5], [6]])).states.data[..., 0].sum().backward()  # of a norm the sum never changes
        table = encoder.embed if width == 8 else encoder.embed[0]
        assert table.weight.shape == (20, 8) and table.weight.grad[4:7].abs().sum() > 0
    with torch.device("meta"):
        assert Vectors(20, table=8).embed(width)(torch.zeros(2, 3, dtype=torch.long)).shape == (2, 3, width)


def test_the_first_words_of_a_file_may_join_a_vocabulary() -> None:
    assert list(first_words(GLOVE, 2, "a.txt")) == ["the", "movie"]
    assert list(first_words(["4 2", *GLOVE], 2, "a.txt")) == ["the", "movie"]
    assert list(first_words(GLOVE, 0, "a.txt")) == [] and len(list(first_words(GLOVE, 99, "a.txt"))) == 4


@pytest.mark.parametrize(
    ("given", "message"), [({"words": -1}, "words = -1 must be at least 0"), ({"scale": 0.0}, "scale = 0.0 must be")]
)
def test_settings_that_mean_nothing_are_refused(given, message) -> None:
    with pytest.raises(ConfigError, match=message):
        VectorsConfig(path="a.txt", **given)


def test_a_path_may_hold_variables(monkeypatch) -> None:
    monkeypatch.setenv("REGARD_DATA", "/somewhere")
    assert str(VectorsConfig(path="$REGARD_DATA/glove.txt").file()) == "/somewhere/glove.txt"
    assert VectorsConfig().file() is None
