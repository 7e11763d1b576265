"""Pretrained word vectors: read, inserted at the rows of their words, and refused where a file is invalid."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from regard.errors import ConfigError, DataError
from regard.models.recurrent import RecurrentConfig
from regard.models.transformer import TransformerConfig
from regard.spaces import FactorizedWords
from regard.text.word_vectors import PretrainedVectorsConfig, WordVectors, first_words, read_vectors

WORDS = {"<PAD>": 0, "the": 4, "movie": 5, "crème brûlée": 6, "unheard": 7}
GLOVE = ["the 0.5 -1.5", "movie 2 3e-1", "crème brûlée 1 1", "not wanted"[:3] + " 9 9"]


def test_each_word_gets_its_vector_and_other_words_are_skipped() -> None:
    found = read_vectors(GLOVE, "glove.txt", WORDS)
    assert dict(zip(found.ids.tolist(), found.vectors.tolist(), strict=True)) == {
        4: [0.5, -1.5],
        5: [2.0, pytest.approx(0.3)],
        6: [1.0, 1.0],
    }
    assert (found.width, len(found)) == (2, 3)


def test_the_header_of_word2vec_is_not_a_word() -> None:
    assert read_vectors(["4 2", *GLOVE], "w2v.txt", WORDS).ids.tolist() == [4, 5, 6]
    assert read_vectors(["1 1", "5 6"], "w.txt", {"5": 9}).ids.tolist() == [9]


def test_the_first_of_a_word_counts() -> None:
    assert read_vectors(["the 1 2", "the 3 4"], "a.txt", WORDS).vectors.tolist() == [[1.0, 2.0]]


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["the 1 2", "movie 1"], "a.txt, line 2: expected a word and 2 numbers separated by spaces, found 2 cells"),
        (["the"], "a.txt, line 1: expected a word and 1 number separated by spaces, found 1 cell"),
        (["movie 1 x"], 'a.txt, line 1: expected 2 numbers after the word, found "x"'),
        (["movie 1 nan"], "a.txt, line 1: expected 2 numbers after the word, found one that is not finite"),
        (["film 1 2"], "a.txt has none of the 5 words of the vocabulary; is it of this language, and in lower case?"),
        ([], "a.txt has none of the 5 words of the vocabulary; is it of this language, and in lower case?"),
    ],
)
def test_a_line_that_is_not_a_vector_is_reported_with_its_number(lines: list[str], message: str) -> None:
    with pytest.raises(DataError) as caught:
        read_vectors(lines, "a.txt", WORDS)
    assert str(caught.value) == message


def test_vectors_are_scaled_to_the_width_of_the_table_and_keep_their_directions() -> None:
    draw = np.random.default_rng(0)
    pretrained = WordVectors(np.arange(50), draw.normal(0, 0.6, (50, 30)).astype(np.float32))
    initial = draw.normal(0, 0.1, (500, 30)).astype(np.float32)
    table = pretrained.insert_into(initial, 2.0)
    assert np.array_equal(table[50:], initial[50:])
    assert table[:50].std() == pytest.approx(2 * initial.std(), rel=0.05)
    ratios = table[:50] / pretrained.vectors
    np.testing.assert_allclose(ratios, ratios[0, 0], rtol=1e-4)


def test_zero_vectors_are_inserted_unscaled() -> None:
    assert WordVectors(np.array([0]), np.zeros((1, 2))).insert_into(np.ones((2, 2)), 1.0).tolist() == [[0, 0], [1, 1]]


def test_vectors_are_saved_and_loaded(tmp_path) -> None:
    found = read_vectors(GLOVE, "glove.txt", WORDS)
    found.save(tmp_path)
    again = WordVectors.load(tmp_path)
    assert again.ids.tolist() == found.ids.tolist() and np.array_equal(again.vectors, found.vectors)
    (tmp_path / "vectors.safetensors").write_bytes(b"nothing")
    with pytest.raises(DataError, match=r"vectors\.safetensors cannot be read; prepare the data again"):
        WordVectors.load(tmp_path)


@pytest.mark.parametrize("width", [8, 12])
def test_a_table_of_its_own_width_reads_for_a_model_of_any_width_and_learns(width: int) -> None:
    from regard.sequence import Tokens

    for config in (RecurrentConfig(width=width), TransformerConfig(layers=1, width=width, ffn_width=16, heads=2)):
        encoder = config.build_encoder(FactorizedWords(20, table=8))
        encoder(Tokens.pad([[4, 5], [6]])).states.data[..., 0].sum().backward()  # of a norm the sum never changes
        table = encoder.embed if width == 8 else encoder.embed[0]
        assert table.weight.shape == (20, 8) and table.weight.grad[4:7].abs().sum() > 0
    with torch.device("meta"):
        assert FactorizedWords(20, table=8).embed(width)(torch.zeros(2, 3, dtype=torch.long)).shape == (2, 3, width)


def test_the_first_words_of_a_file_may_join_a_vocabulary() -> None:
    assert list(first_words(GLOVE, 2, "a.txt")) == ["the", "movie"]
    assert list(first_words(["4 2", *GLOVE], 2, "a.txt")) == ["the", "movie"]
    assert list(first_words(GLOVE, 0, "a.txt")) == [] and len(list(first_words(GLOVE, 99, "a.txt"))) == 4


@pytest.mark.parametrize(
    ("settings", "message"),
    [({"words": -1}, "words = -1 must be at least 0"), ({"scale": 0.0}, "scale = 0.0 must be")],
)
def test_settings_that_mean_nothing_are_refused(settings, message) -> None:
    with pytest.raises(ConfigError, match=message):
        PretrainedVectorsConfig(path="a.txt", **settings)


def test_a_path_may_hold_variables(monkeypatch) -> None:
    monkeypatch.setenv("REGARD_DATA", "/somewhere")
    assert str(PretrainedVectorsConfig(path="$REGARD_DATA/glove.txt").file()) == "/somewhere/glove.txt"
    assert PretrainedVectorsConfig().file() is None
