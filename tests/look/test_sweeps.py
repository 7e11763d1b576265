"""Sweeps of vanishing and exploding gradients, measured on the layers of the models."""

import numpy as np
import pytest
import torch

from regard.look import forget_sweep, spectral_sweep
from regard.look.sweeps import layer_decay
from regard.nn.recurrent import GRU, LSTM, RNN


@pytest.fixture(scope="module")
def sweep():
    return spectral_sweep((0.5, 0.9, 1.1, 1.5))


def test_gradients_vanish_below_radius_one_and_explode_above(sweep):
    rates = [curve.rate for curve in sweep.curves]
    assert rates == sorted(rates) and rates[1] < 1 < rates[2]


def test_near_zero_the_rate_is_the_radius(sweep):
    for curve, radius in zip(sweep.curves[:3], (0.5, 0.9, 1.1), strict=True):
        assert curve.rate == pytest.approx(radius, rel=0.01)


def test_decay_is_exponential(sweep):
    """A straight line in the logarithm: it explains nearly all of the variance of the norms."""
    for curve in sweep.curves[:3]:
        x, y = np.array(curve.distances[5:]), np.array(curve.logs[5:])
        assert abs(np.corrcoef(x, y)[0, 1]) > 0.999


def test_strong_inputs_make_gradients_vanish_by_saturation():
    (weak,), (strong,) = spectral_sweep((1.1,)).curves, spectral_sweep((1.1,), inputs=2.0).curves
    assert strong.rate < 1 < weak.rate


def test_a_larger_forget_bias_keeps_gradients_longer():
    curves = forget_sweep((0.0, 1.0, 2.0, 4.0)).curves
    rates = [curve.rate for curve in curves]
    assert rates == sorted(rates) and rates[0] < 0.65 and rates[1] > rates[0] + 0.1 and rates[3] > 0.9
    assert curves[1].norms[-1] > 100 * curves[0].norms[-1]


def test_a_sweep_is_the_same_each_time():
    assert forget_sweep((1.0,), width=8, length=8).to_dict() == forget_sweep((1.0,), width=8, length=8).to_dict()


@pytest.mark.parametrize("layer", [RNN, LSTM, GRU])
def test_every_layer_can_be_measured(layer):
    torch.manual_seed(0)
    decay = layer_decay(layer(4, 6), torch.randn(2, 10, 4), "layer")
    assert decay.distances == tuple(range(10)) and decay.counts[0] == 20 and decay.counts[-1] == 2
