"""Recurrent layers: fused when nobody looks, the cell's own equations when somebody does; right under padding."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils._pytree import tree_map

from regard.sequence import Padded
from regard.trace import scene, tap, tracing

LSTMState = tuple[Tensor, Tensor]


class LSTM(nn.Module):
    """One layer, one direction (Hochreiter and Schmidhuber 1997, with the forget gate of Gers et al. 2000).

    The fused kernel's outputs are no part of its recurrence: gates, what-ifs and d loss_t / d h_s need the loop.

    >>> layer, x = LSTM(4, 3), Padded(torch.randn(2, 5, 4), torch.tensor([5, 2]))
    >>> out, (hidden, cell) = layer(x, layer.zeros(x.data))
    >>> out.shape, torch.allclose(out[1, 1], hidden[1])
    (torch.Size([2, 5, 3]), True)
    """

    def __init__(self, inputs: int, width: int) -> None:
        super().__init__()
        self.rnn = nn.LSTM(inputs, width, batch_first=True)

    def zeros(self, like: Tensor) -> LSTMState:
        """The state before anything was read."""
        return (like.new_zeros(like.shape[0], self.rnn.hidden_size),) * 2

    def forward(self, x: Padded, state: LSTMState) -> tuple[Tensor, LSTMState]:
        if not x.data.shape[1]:
            return x.data.new_zeros(len(x), 0, self.rnn.hidden_size), state
        if tracing():
            return unroll(self._step, x.data, x.mask, state)
        start = (state[0][None], state[1][None])
        if not x.ragged:
            out_BLD, end = self.rnn(x.data, start)
            return out_BLD, (end[0][0], end[1][0])
        packed = nn.utils.rnn.pack_padded_sequence(  # it refuses length 0: read one place, then keep the old state
            x.data, x.lengths.clamp(min=1).cpu(), batch_first=True, enforce_sorted=False
        )
        out, end = self.rnn(packed, start)
        out_BLD, _ = nn.utils.rnn.pad_packed_sequence(out, batch_first=True, total_length=x.data.shape[1])
        empty_B1 = x.lengths[:, None] == 0
        return out_BLD, (torch.where(empty_B1, state[0], end[0][0]), torch.where(empty_B1, state[1], end[1][0]))

    def _step(self, x_BD: Tensor, state: LSTMState) -> tuple[Tensor, LSTMState]:
        rnn, (hidden, cell) = self.rnn, state
        of_input = F.linear(x_BD, rnn.get_parameter("weight_ih_l0"), rnn.get_parameter("bias_ih_l0"))
        of_state = F.linear(hidden, rnn.get_parameter("weight_hh_l0"), rnn.get_parameter("bias_hh_l0"))
        i, f, g, o = (of_input + of_state).chunk(4, -1)
        gates = torch.stack([i.sigmoid(), f.sigmoid(), g.tanh(), o.sigmoid()], 1)
        i, f, g, o = tap(self, "gates", gates, "batch gate width").unbind(1)
        cell = tap(self, "cell", f * cell + i * g, "batch width")
        hidden = tap(self, "hidden", o * cell.tanh(), "batch width")
        return hidden, (hidden, cell)


class StackedLSTM(nn.Module):
    """Layers on top of one another, dropout between them (Zaremba et al. 2014).

    >>> outs, ends = StackedLSTM([4, 3, 3])(Padded(torch.randn(2, 5, 4), torch.tensor([5, 2])))
    >>> len(outs), len(ends)
    (2, 2)
    """

    def __init__(self, widths: list[int], dropout: float = 0.0) -> None:
        super().__init__()
        self.layers = nn.ModuleList(LSTM(i, o) for i, o in itertools.pairwise(widths))
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Padded, states: tuple[LSTMState, ...] = ()) -> tuple[tuple[Tensor, ...], tuple[Any, ...]]:
        """(outputs of each layer, state of each layer); no states: zeros."""
        outs, ends = [], []
        before = states or tuple(layer.zeros(x.data) for layer in self.layers)  # type: ignore[operator]
        for i, (layer, state) in enumerate(zip(self.layers, before, strict=True)):
            out_BLD, end = layer(x.like(self.dropout(x.data)) if i else x, state)
            x = x.like(out_BLD)
            outs.append(out_BLD)
            ends.append(end)
        return tuple(outs), tuple(ends)


def unroll(step: Callable[..., Any], x_NTD: Tensor, real_NT: Tensor, state: Any) -> tuple[Tensor, Any]:
    """One place after the other: step(x_ND, state) -> (feature_ND, state). At padding the state stays as it was.

    >>> unroll(lambda x, s: (x + s, x + s), torch.ones(1, 3, 1), torch.ones(1, 3, dtype=torch.bool), torch.zeros(1, 1))
    (tensor([[[1.],
             [2.],
             [3.]]]), tensor([[3.]]))
    """
    seen = []
    for t in range(x_NTD.shape[1]):
        with scene(position=t):
            feature_ND, new = step(x_NTD[:, t], state)
        state = tree_map(lambda n, o, t=t: torch.where(real_NT[:, t, None], n, o), new, state)
        seen.append(feature_ND)
    return torch.stack(seen, 1), state
