"""The convolutional encoder sees as far as its windows reach, in order, and never its padding."""

import pytest
import torch

from regard.errors import ConfigError
from regard.models.base import Classifier, Tagger
from regard.models.convolution import ConvolutionConfig
from regard.sequence import Tokens, mean
from regard.spaces import Classes, Words
from regard.trace import record


def encoder(**changes):
    torch.manual_seed(3)
    return ConvolutionConfig(**{"layers": 2, "width": 8, **changes}).build_encoder(Words(9)).eval()


@pytest.mark.parametrize("units", ["gated", "relu"])
@torch.no_grad()
def test_a_place_sees_exactly_the_words_that_all_windows_reach(units):
    ids = torch.tensor([[4, 5, 6, 7, 4, 5, 6, 7, 4]])
    changed = ids.clone()
    changed[0, 4] = 8
    reading = encoder(units=units)
    a, b = reading(Tokens.full(ids)).states.data, reading(Tokens.full(changed)).states.data
    moved = (a - b).abs().amax((0, 2)) > 0
    assert moved.tolist() == [False, False, True, True, True, True, True, False, False]


@torch.no_grad()
def test_positions_tell_equal_windows_apart():
    states = encoder()(Tokens.of([[5] * 9])).states.data[0]
    assert not torch.allclose(states[3], states[5], atol=1e-3)


@pytest.mark.parametrize("units", ["gated", "relu"])
@torch.no_grad()
def test_padding_is_as_far_away_as_the_end_of_a_row(units):
    reading, rows = encoder(units=units), [[4, 5, 6, 7, 8], [7, 4], []]
    together = reading(Tokens.of(rows)).states.data
    for i, row in enumerate(rows):
        alone = reading(Tokens.of([row])).states.data[0]
        torch.testing.assert_close(together[i, : len(row)], alone, atol=1e-6, rtol=1e-5)


def test_it_pairs_with_a_head_for_the_whole_and_with_one_for_each_place():
    source = Tokens.of([[4, 5, 6], [7]])
    whole, each = Classifier(encoder(), mean, Classes(3), 8), Tagger(encoder(), Classes(4), 8)
    assert whole.readout(whole(source)).shape == (2, 3)
    assert each.readout(each(source)).shape == (2, 3, 4)


@torch.no_grad()
def test_every_layer_shows_what_it_made():
    reading = encoder()
    with record(reading) as trace:
        reading(Tokens.of([[4, 5, 6]]))
    assert [r.name for r in trace.records] == ["residual", "layers.0.residual", "layers.1.residual"]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"kernel": 4}, "kernel = 4 must be odd, so that a window has its place in the middle; try 3 or 5"),
        ({"layers": 0}, "layers = 0, width = 256 and kernel = 3 must be at least 1"),
        ({"dropout": 1.0}, "dropout = 1.0 must be at least 0 and below 1"),
    ],
)
def test_a_shape_that_cannot_be_is_refused(settings, message):
    with pytest.raises(ConfigError) as error:
        ConvolutionConfig(**settings)
    assert str(error.value) == message


def test_packed_documents_are_refused():
    with pytest.raises(ValueError, match=r"packing .* needs attention"):
        encoder()(Tokens.packed([[4, 5], [6]]))
