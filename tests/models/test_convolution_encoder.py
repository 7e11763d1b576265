"""The convolutional encoder: receptive field, order, and padding."""

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
def test_a_position_depends_exactly_on_its_receptive_field(units):
    ids = torch.tensor([[4, 5, 6, 7, 4, 5, 6, 7, 4]])
    changed = ids.clone()
    changed[0, 4] = 8
    reading = encoder(units=units)
    a, b = reading(Tokens.full(ids)).states.data, reading(Tokens.full(changed)).states.data
    differs = (a - b).abs().amax((0, 2)) > 0
    assert differs.tolist() == [False, False, True, True, True, True, True, False, False]


@torch.no_grad()
def test_positions_distinguish_equal_windows():
    states = encoder()(Tokens.pad([[5] * 9])).states.data[0]
    assert not torch.allclose(states[3], states[5], atol=1e-3)


@pytest.mark.parametrize("units", ["gated", "relu"])
@torch.no_grad()
def test_padding_acts_like_the_end_of_a_row(units):
    reading, rows = encoder(units=units), [[4, 5, 6, 7, 8], [7, 4], []]
    batched = reading(Tokens.pad(rows)).states.data
    for i, row in enumerate(rows):
        single = reading(Tokens.pad([row])).states.data[0]
        torch.testing.assert_close(batched[i, : len(row)], single, atol=1e-6, rtol=1e-5)


def test_it_works_with_a_classifier_head_and_a_tagger_head():
    source = Tokens.pad([[4, 5, 6], [7]])
    whole, each = Classifier(encoder(), mean, Classes(3), 8), Tagger(encoder(), Classes(4), 8)
    assert whole.readout(whole(source)).shape == (2, 3)
    assert each.readout(each(source)).shape == (2, 3, 4)


@torch.no_grad()
def test_every_layer_taps_its_output():
    reading = encoder()
    with record(reading) as trace:
        reading(Tokens.pad([[4, 5, 6]]))
    names = ["embedding", "scaled_embedding", "position", "residual", "layers.0.residual", "layers.1.residual"]
    assert [r.name for r in trace.records] == names


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"kernel": 4}, "kernel = 4 must be odd, so that a window is centered; try 3 or 5"),
        ({"layers": 0}, "layers = 0, width = 256 and kernel = 3 must be at least 1"),
        ({"dropout": 1.0}, "dropout = 1.0 must be at least 0 and below 1"),
    ],
)
def test_invalid_settings_are_refused(settings, message):
    with pytest.raises(ConfigError) as error:
        ConvolutionConfig(**settings)
    assert str(error.value) == message


def test_packed_documents_are_refused():
    with pytest.raises(ValueError, match=r"packing .* needs attention"):
        encoder()(Tokens.pack([[4, 5], [6]]))
