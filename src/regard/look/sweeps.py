"""What decides whether gradients vanish or explode: measured on layers whose one setting is swept.

The layers are those of the models; nothing is derived. Inputs are random, the loss at t is one random direction of the
state at t, and norms are geometric means over the rows of a batch and over all pairs of a distance.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from regard.look.decay import Decay, DecayView
from regard.nn.recurrent import LSTM, RNN, Recurrent, set_forget_bias
from regard.sequence import Padded
from regard.trace import record, row_gradients

RADII = (0.5, 0.8, 0.9, 1.0, 1.1, 1.25, 1.5)
BIASES = (0.0, 1.0, 2.0, 4.0)


def spectral_sweep(
    radii: Sequence[float] = RADII, width: int = 64, length: int = 40, inputs: float = 1e-9, seed: int = 0
) -> DecayView:
    """A tanh RNN whose recurrent matrix has these spectral radii: below 1 gradients fade, above 1 they grow.

    The matrix is a random rotation times the radius, so that the radius is what it does to every direction; with any
    other matrix it rules in the long run only. `inputs` is how strong the inputs are: near 0 tanh is straight, and the
    radius alone rules; with strong inputs (1.0) units saturate, and gradients fade where they would have grown.

    >>> slow, fast = spectral_sweep((0.5, 1.5), width=16, length=12).curves
    >>> slow.rate < 1 < fast.rate
    True
    """
    drawn = torch.Generator().manual_seed(seed)
    rotation_DD, _ = torch.linalg.qr(torch.randn(width, width, generator=drawn, dtype=torch.double))
    x_BLD = inputs * torch.randn(8, length, width, generator=drawn, dtype=torch.double)
    curves = []
    for radius in radii:
        layer = RNN(width, width).double()
        with torch.no_grad():
            layer.rnn.get_parameter("weight_hh_l0").copy_(radius * rotation_DD)
            layer.rnn.get_parameter("weight_ih_l0").copy_(torch.eye(width))
            layer.rnn.get_parameter("bias_ih_l0").zero_()
        curves.append(decay_of(layer, x_BLD, f"radius {radius:g}", seed))
    return DecayView(tuple(curves), "tanh RNN: |dL_t/dh_s| against t - s, by spectral radius")


def forget_sweep(
    biases: Sequence[float] = BIASES, width: int = 64, length: int = 40, inputs: float = 1.0, seed: int = 0
) -> DecayView:
    """An LSTM at initialisation whose forget gates begin with these biases: the higher, the longer gradients last.

    >>> without, one = forget_sweep((0.0, 1.0), width=16, length=12).curves
    >>> without.rate < one.rate
    True
    """
    drawn = torch.Generator().manual_seed(seed)
    x_BLD = inputs * torch.randn(8, length, width, generator=drawn, dtype=torch.double)
    curves = []
    for bias in biases:
        with torch.random.fork_rng(devices=()):
            torch.manual_seed(seed)
            layer = LSTM(width, width).double()
        set_forget_bias(layer, bias)
        curves.append(decay_of(layer, x_BLD, f"bias {bias:g}", seed))
    return DecayView(tuple(curves), "LSTM at initialisation: |dL_t/dh_s| against t - s, by bias of the forget gate")


def decay_of(layer: Recurrent, x_BLD: Tensor, label: str, seed: int = 0) -> Decay:
    """The curve of one recurrent layer over given inputs.

    >>> torch.manual_seed(0)  # doctest: +ELLIPSIS
    <torch._C.Generator object at ...>
    >>> decay_of(RNN(4, 3), torch.randn(1, 6, 4), "tiny").distances
    (0, 1, 2, 3, 4, 5)
    """
    length = x_BLD.shape[1]
    drawn = torch.Generator().manual_seed(seed + 1)
    direction_D = torch.randn(layer.width, generator=drawn, dtype=torch.double).to(x_BLD.dtype)
    x = Padded(x_BLD, torch.full((len(x_BLD),), length), ragged=False)
    with torch.enable_grad(), record(layer, gradients=True) as trace:
        hidden_BLD, _ = layer(x, layer.zeros(x_BLD))
    losses_T = (hidden_BLD @ (direction_D / direction_D.norm())).sum(0)
    norms = row_gradients(losses_T, trace.find("hidden")).permute(1, 0, 2).detach().double().numpy()
    places = torch.arange(length)
    distances = (places[:, None] - places[None]).expand(len(x_BLD), -1, -1).numpy()
    return Decay.of(label, norms, distances)
