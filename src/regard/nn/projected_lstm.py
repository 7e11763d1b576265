"""LSTM with a projected hidden state: Sak, Senior and Beaufays 2014, "Long Short-Term Memory Recurrent Neural ..."."""

from __future__ import annotations

import warnings

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.nn.recurrent import SATURATED, LayerState, Recurrent
from regard.sequence import Padded
from regard.trace import tap


class ProjectedLSTM(Recurrent):
    """An LSTM of many cells, whose hidden state W (o * tanh(c)) is narrower: it is the output and what is fed back.

    One bias, as in the paper; the forget gate's starts at 1.

    >>> layer, x = ProjectedLSTM(4, 3, cells=8), Padded(torch.randn(2, 5, 4), torch.tensor([5, 2]))
    >>> out, (hidden, cell) = layer(x, layer.zeros(x.data))
    >>> out.shape, cell.shape, torch.allclose(out[1, 1], hidden[1])
    (torch.Size([2, 5, 3]), torch.Size([2, 8]), True)
    """

    gates = ("input", "forget", "candidate", "output")
    state_tensors = 2

    def __init__(self, inputs: int, width: int, cells: int) -> None:
        super().__init__(nn.LSTM(inputs, cells, batch_first=True, proj_size=width))
        self.width, self.cells = width, cells
        del self.rnn.bias_hh_l0
        self.rnn.register_buffer("bias_hh_l0", torch.zeros(4 * cells), persistent=False)  # the kernel wants both
        nn.init.constant_(self._weight("bias_ih_l0").detach()[cells : 2 * cells], 1.0)
        hold_G1 = torch.zeros(4 * cells, 1)
        hold_G1[:cells], hold_G1[cells : 2 * cells] = -SATURATED, SATURATED
        self.register_buffer("hold", hold_G1, persistent=False)

    def zeros(self, like: Tensor) -> LayerState:
        return tuple(like.new_zeros(like.shape[0], width) for width in (self.width, self.cells))

    def advance(self, projected_NG: Tensor, state: LayerState) -> tuple[Tensor, LayerState]:
        hidden, cell = state
        i, f, g, o = (projected_NG + F.linear(hidden, self._weight("weight_hh_l0"))).chunk(4, -1)
        i, f, g, o = self._tap_gates(i.sigmoid(), f.sigmoid(), g.tanh(), o.sigmoid())
        cell = tap(self, "cell", f * cell + i * g, "batch width")
        hidden = tap(self, "hidden", F.linear(o * cell.tanh(), self._weight("weight_hr_l0")), "batch width")
        return hidden, (hidden, cell)

    def _kernel(self, x_BLD: Tensor, state: LayerState) -> tuple[Tensor, LayerState]:
        return self._read(x_BLD, state, self._weight("weight_ih_l0"))

    def _forward_padded(self, x: Padded, state: LayerState) -> tuple[Tensor, LayerState]:
        """As in `LSTM`: one extra input holds the cell at padding."""
        weight_GD = torch.cat([self._weight("weight_ih_l0"), self.get_buffer("hold")], 1)
        pad_BL1 = (~x.mask)[..., None].to(x.data.dtype)
        out_BLD, (_, cell_1BC) = self._read(torch.cat([x.data, pad_BL1], -1), state, weight_GD)
        return out_BLD, (x.last(out_BLD), cell_1BC[0])

    def _read(self, x_BLD: Tensor, state: LayerState, weight_GD: Tensor) -> tuple[Tensor, LayerState]:
        rest = (self._weight(name) for name in ("weight_hh_l0", "bias_ih_l0", "bias_hh_l0", "weight_hr_l0"))
        with warnings.catch_warnings():  # on a CPU there is no faster kernel, which a user cannot change
            warnings.filterwarnings("ignore", "LSTM with projections")
            out_BLD, *end = torch.lstm(x_BLD, state, [weight_GD, *rest], True, 1, 0.0, self.training, False, True)
        return out_BLD, tuple(end)
