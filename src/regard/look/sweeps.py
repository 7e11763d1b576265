"""Parameter sweeps of vanishing and exploding gradients: spectral radius of an RNN, forget bias of an LSTM.

Gradients are measured on the layers of the models. Inputs are random, the loss at t is the state at t projected on a
random direction, and norms are geometric means over the rows of a batch and over all pairs of a distance.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from regard.look.decay import DecayView, GradientDecay
from regard.nn.recurrent import LSTM, RNN, Recurrent, set_forget_bias
from regard.sequence import Padded
from regard.trace import record, row_gradient_norms

RADII = (0.5, 0.8, 0.9, 1.0, 1.1, 1.25, 1.5)
BIASES = (0.0, 1.0, 2.0, 4.0)


def spectral_sweep(
    radii: Sequence[float] = RADII, width: int = 64, length: int = 40, inputs: float = 1e-9, seed: int = 0
) -> DecayView:
    """Gradient decay of a tanh RNN by spectral radius: below 1 gradients vanish, above 1 they explode.

    The recurrent matrix is a random rotation times the radius, so that it scales every direction by the radius; with
    other matrices the radius only determines the long run. `inputs` is the scale of the inputs: near 0 tanh is linear
    and the radius decides alone; with strong inputs (1.0) units saturate, and gradients vanish that would have grown.

    >>> slow, fast = spectral_sweep((0.5, 1.5), width=16, length=12).curves
    >>> slow.rate < 1 < fast.rate
    True
    """
    generator = torch.Generator().manual_seed(seed)
    rotation_DD, _ = torch.linalg.qr(torch.randn(width, width, generator=generator, dtype=torch.double))
    x_BLD = inputs * torch.randn(8, length, width, generator=generator, dtype=torch.double)
    curves = []
    for radius in radii:
        layer = RNN(width, width).double()
        with torch.no_grad():
            layer.rnn.get_parameter("weight_hh_l0").copy_(radius * rotation_DD)
            layer.rnn.get_parameter("weight_ih_l0").copy_(torch.eye(width))
            layer.rnn.get_parameter("bias_ih_l0").zero_()
        curves.append(layer_decay(layer, x_BLD, f"radius {radius:g}", seed))
    return DecayView(tuple(curves), "tanh RNN: |dL_t/dh_s| against t - s, by spectral radius")


def forget_sweep(
    biases: Sequence[float] = BIASES, width: int = 64, length: int = 40, inputs: float = 1.0, seed: int = 0
) -> DecayView:
    """Gradient decay of an LSTM at initialization by forget-gate bias: the higher, the longer gradients last."""
    generator = torch.Generator().manual_seed(seed)
    x_BLD = inputs * torch.randn(8, length, width, generator=generator, dtype=torch.double)
    curves = []
    for bias in biases:
        with torch.random.fork_rng(devices=()):
            torch.manual_seed(seed)
            layer = LSTM(width, width).double()
        set_forget_bias(layer, bias)
        curves.append(layer_decay(layer, x_BLD, f"bias {bias:g}", seed))
    return DecayView(tuple(curves), "LSTM at initialization: |dL_t/dh_s| against t - s, by bias of the forget gate")


def layer_decay(layer: Recurrent, x_BLD: Tensor, label: str, seed: int = 0) -> GradientDecay:
    """Gradient decay of one recurrent layer over given inputs."""
    length = x_BLD.shape[1]
    generator = torch.Generator().manual_seed(seed + 1)
    direction_D = torch.randn(layer.width, generator=generator, dtype=torch.double).to(x_BLD.dtype)
    x = Padded(x_BLD, torch.full((len(x_BLD),), length), ragged=False)
    with torch.enable_grad(), record(layer, gradients=True) as trace:
        hidden_BLD, _ = layer(x, layer.zeros(x_BLD))
    losses_T = (hidden_BLD @ (direction_D / direction_D.norm())).sum(0)
    norms = row_gradient_norms(losses_T, trace.find("hidden")).permute(1, 0, 2).detach().double().numpy()
    positions = torch.arange(length)
    distances = (positions[:, None] - positions[None]).expand(len(x_BLD), -1, -1).numpy()
    return GradientDecay.from_norms(label, norms, distances)
