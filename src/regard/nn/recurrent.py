"""Recurrent layers (RNN, LSTM, GRU): the fused kernel, or the cell's own equations when tracing; correct under padding.

A layer has one direction; stacks put layers on top of one another. The state of a layer is a tuple of (N, D) tensors,
the hidden state first.
"""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, ClassVar, Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils._pytree import tree_map

from regard.sequence import Padded, select_position
from regard.trace import tap, trace_context, tracing

Cell = Literal["tanh", "relu", "lstm", "gru"]
LayerState = tuple[Tensor, ...]
"""state of one layer: (N, D) tensors, the hidden state first"""
States = tuple[LayerState, ...]
"""one per layer, the lowest first"""
SATURATED = 1e4
"""sigmoid(SATURATED) is 1 and sigmoid(-SATURATED) is 0 in every precision, whatever is added"""


class Recurrent(nn.Module, ABC):
    """One recurrent layer in one direction. Tracing needs the loop: the fused kernel does not expose its recurrence.

    forward() reads many positions and step() one, both from a given state. step(x, s) is advance(project(x), s): what
    does not depend on the state is projected for all positions at once, outside the loop.

    >>> layer, x = recurrent("gru", 4, 3), Padded(torch.randn(2, 5, 4), torch.tensor([5, 0]))
    >>> out_BLD, (hidden_BD,) = layer(x, layer.zeros(x.data))
    >>> out_BLD.shape, hidden_BD[1]
    (torch.Size([2, 5, 3]), tensor([0., 0., 0.], grad_fn=<SelectBackward0>))
    """

    gates: ClassVar[tuple[str, ...]] = ()
    """names along the gate axis of the tap named gates"""
    state_tensors: ClassVar[int] = 1
    """tensors in a state"""

    def __init__(self, rnn: nn.RNNBase) -> None:
        super().__init__()
        self.rnn, self.width = rnn, rnn.hidden_size

    def zeros(self, like: Tensor) -> LayerState:
        """Zero state, one row per row of `like`."""
        return (like.new_zeros(like.shape[0], self.width),) * self.state_tensors

    def forward(self, x: Padded, state: LayerState) -> tuple[Tensor, LayerState]:
        """(outputs (N, L, D), the state after each row's last real position)."""
        kind, own = x.data.device.type, self._weight("weight_hh_l0").dtype
        if not x.data.is_meta and torch.is_autocast_enabled(kind):
            # a state that is rounded at every step drifts, and oneDNN's LSTM has bfloat16 on few CPUs only
            with torch.autocast(kind, enabled=False):
                return self.forward(x.like(x.data.to(own)), tuple(part.to(own) for part in state))
        if not x.data.shape[1]:
            return x.data.new_zeros(x.data.shape[0], 0, self.width), state
        if tracing() or x.data.shape[1] == 1:  # for one position the kernel takes up to three times as long
            return unroll(self.step, x, state)
        start = tuple(part[None] for part in state)
        if x.ragged:  # not as a packed sequence: torch reads that in twice the time
            out_BLD, end = self._forward_padded(x, start)
            read_B1 = x.lengths[:, None] > 0
            return out_BLD, tuple(torch.where(read_B1, new, old) for old, new in zip(state, end, strict=True))
        out_BLD, end = self._kernel(x.data, start)
        return out_BLD, tuple(part[0] for part in end)

    def step(self, x_ND: Tensor, state: LayerState) -> tuple[Tensor, LayerState]:
        """One position, by the cell's own equations: (hidden (N, D), the next state)."""
        return self.advance(self.project(x_ND), state)

    def project(self, x: Tensor) -> Tensor:
        """The input's contribution to the gates, at any number of positions."""
        return F.linear(x, self._weight("weight_ih_l0"), self._weight("bias_ih_l0"))

    @abstractmethod
    def advance(self, projected_NG: Tensor, state: LayerState) -> tuple[Tensor, LayerState]:
        """The rest of a step: gates and the next state."""

    @abstractmethod
    def _kernel(self, x_BLD: Tensor, state: LayerState) -> tuple[Tensor, LayerState]:
        """torch's kernel: (outputs, the state after the last position); states have a leading axis of length 1."""

    def _forward_padded(self, x: Padded, state: LayerState) -> tuple[Tensor, LayerState]:
        """(outputs, the state (N, D) after each row's last real position); padding is always at the end."""
        out_BLD, _ = self._kernel(x.data, state)
        return out_BLD, (x.last(out_BLD),)

    def _weight(self, name: str) -> Tensor:
        return getattr(self.rnn, name)

    def _tap_gates(self, *gates: Tensor) -> tuple[Tensor, ...]:
        """Tap the gates as one record, its axis named by `self.gates`."""
        if not tracing():
            return gates
        with trace_context(gate=self.gates):
            return tap(self, "gates", torch.stack(gates, 1), "batch gate:gate width").unbind(1)


class RNN(Recurrent):
    """h' = f(U x + V h + b), f tanh or ReLU (Elman 1990). One bias: torch.nn.RNN keeps two, which add up.

    >>> sum(p.numel() for p in RNN(2, 3).parameters()) == 3 + 3**2 + 3 * 2
    True
    """

    def __init__(self, inputs: int, width: int, function: Literal["tanh", "relu"] = "tanh") -> None:
        super().__init__(nn.RNN(inputs, width, nonlinearity=function, batch_first=True))
        self.function = {"tanh": torch.tanh, "relu": torch.relu}[function]
        del self.rnn.bias_hh_l0
        self.rnn.register_buffer("bias_hh_l0", torch.zeros(width), persistent=False)  # the kernel wants both

    def advance(self, projected_NG: Tensor, state: LayerState) -> tuple[Tensor, LayerState]:
        of_state = F.linear(state[0], self._weight("weight_hh_l0"))
        hidden = tap(self, "hidden", self.function(projected_NG + of_state), "batch width")
        return hidden, (hidden,)

    def _kernel(self, x_BLD: Tensor, state: LayerState) -> tuple[Tensor, LayerState]:
        out_BLD, end = self.rnn(x_BLD, state[0])
        return out_BLD, (end,)


class LSTM(Recurrent):
    """Hochreiter and Schmidhuber 1997, with the forget gate of Gers et al. 2000; torch's i, f, g, o, two biases.

    >>> layer, x = LSTM(4, 3), Padded(torch.randn(2, 5, 4), torch.tensor([5, 2]))
    >>> out, (hidden, cell) = layer(x, layer.zeros(x.data))
    >>> out.shape, torch.allclose(out[1, 1], hidden[1])
    (torch.Size([2, 5, 3]), True)
    """

    gates = ("input", "forget", "candidate", "output")
    state_tensors = 2

    def __init__(self, inputs: int, width: int) -> None:
        super().__init__(nn.LSTM(inputs, width, batch_first=True))
        hold_G1 = torch.zeros(4 * width, 1)
        hold_G1[:width], hold_G1[width : 2 * width] = -SATURATED, SATURATED
        self.register_buffer("hold", hold_G1, persistent=False)

    def advance(self, projected_NG: Tensor, state: LayerState) -> tuple[Tensor, LayerState]:
        hidden, cell = state
        of_state = F.linear(hidden, self._weight("weight_hh_l0"), self._weight("bias_hh_l0"))
        i, f, g, o = (projected_NG + of_state).chunk(4, -1)
        i, f, g, o = self._tap_gates(i.sigmoid(), f.sigmoid(), g.tanh(), o.sigmoid())
        cell = tap(self, "cell", f * cell + i * g, "batch width")
        hidden = tap(self, "hidden", o * cell.tanh(), "batch width")
        return hidden, (hidden, cell)

    def _kernel(self, x_BLD: Tensor, state: LayerState) -> tuple[Tensor, LayerState]:
        return self.rnn(x_BLD, state)

    def _forward_padded(self, x: Padded, state: LayerState) -> tuple[Tensor, LayerState]:
        """The kernel returns the last cell only: so one extra input holds the cell at padding, by closing the input
        gate and opening the forget gate exactly."""
        pad_BL1 = (~x.mask)[..., None].to(x.data.dtype)
        weight_GD = torch.cat([self._weight("weight_ih_l0"), self.get_buffer("hold")], 1)
        weights = [weight_GD, *(self._weight(name) for name in ("weight_hh_l0", "bias_ih_l0", "bias_hh_l0"))]
        out_BLD, _, cell_1BD = torch.lstm(
            torch.cat([x.data, pad_BL1], -1), state, weights, True, 1, 0.0, self.training, False, True
        )
        return out_BLD, (x.last(out_BLD), cell_1BD[0])


class GRU(Recurrent):
    """Cho et al. 2014 as in torch and cuDNN: r resets V h + b, after the product; the paper resets h, before it."""

    gates = ("reset", "update")

    def __init__(self, inputs: int, width: int) -> None:
        super().__init__(nn.GRU(inputs, width, batch_first=True))

    def advance(self, projected_NG: Tensor, state: LayerState) -> tuple[Tensor, LayerState]:
        of_state = F.linear(state[0], self._weight("weight_hh_l0"), self._weight("bias_hh_l0"))
        r, z, n = projected_NG.chunk(3, -1)
        r_of_state, z_of_state, n_of_state = of_state.chunk(3, -1)
        r, z = self._tap_gates((r + r_of_state).sigmoid(), (z + z_of_state).sigmoid())
        # a record of its own: the candidate depends on the reset gate, which may have been replaced
        n = tap(self, "candidate", torch.tanh(n + r * n_of_state), "batch width")
        hidden = tap(self, "hidden", n + z * (state[0] - n), "batch width")
        return hidden, (hidden,)

    def _kernel(self, x_BLD: Tensor, state: LayerState) -> tuple[Tensor, LayerState]:
        out_BLD, end = self.rnn(x_BLD, state[0])
        return out_BLD, (end,)


LAYERS: dict[Cell, Callable[[int, int], Recurrent]] = {
    "tanh": RNN,
    "relu": partial(RNN, function="relu"),
    "lstm": LSTM,
    "gru": GRU,
}


def recurrent(cell: Cell, inputs: int, width: int) -> Recurrent:
    """A recurrent layer with this cell."""
    return LAYERS[cell](inputs, width)


def set_forget_bias(module: nn.Module, bias: float | None) -> None:
    """Set the forget-gate bias of every LSTM inside (Jozefowicz et al. 2015: 1); None keeps torch's small random bias.

    Of torch's two biases, which add up, the first is set and the second is zeroed.

    >>> set_forget_bias(layer := LSTM(4, 3), 1.0)
    >>> (layer.rnn.bias_ih_l0 + layer.rnn.bias_hh_l0)[3:6]
    tensor([1., 1., 1.], grad_fn=<SliceBackward0>)
    """
    for layer in module.modules():
        if isinstance(layer, LSTM) and bias is not None:
            for name, value in (("bias_ih_l0", bias), ("bias_hh_l0", 0.0)):
                nn.init.constant_(layer.rnn.get_parameter(name).data.chunk(4)[1], value)


def init_embeddings_unit_std(module: nn.Module) -> None:
    """Initialize every embedding inside with standard deviation 1; smaller vectors hardly move the gates at first.

    Measured: RNNsearch on Spanish-English after 700 updates, 23.0 BLEU instead of 11.1 (LOG.md).

    >>> init_embeddings_unit_std(table := nn.Embedding(1000, 64))
    >>> round(float(table.weight.detach().std()), 1)
    1.0
    """
    for table in module.modules():
        if isinstance(table, nn.Embedding):
            nn.init.normal_(table.weight)


class Stack(nn.Module):
    """Stacked recurrent layers with dropout between them (Zaremba et al. 2014).

    >>> stack = Stack("lstm", [4, 3, 3])
    >>> outs, ends = stack(Padded(torch.randn(2, 5, 4), torch.tensor([5, 2])))
    >>> len(outs), len(ends), stack.state_widths
    (2, 2, ((3, 3), (3, 3)))
    """

    def __init__(self, cell: Cell, widths: Sequence[int], dropout: float = 0.0) -> None:
        super().__init__()
        self.layers = nn.ModuleList(recurrent(cell, i, o) for i, o in itertools.pairwise(widths))
        self.dropout = nn.Dropout(dropout)

    @property
    def state_widths(self) -> tuple[tuple[int, ...], ...]:
        """Widths of the state tensors of each layer."""
        return tuple((layer.width,) * layer.state_tensors for layer in self.layer_list())

    def layer_list(self) -> list[Recurrent]:
        """The layers, the lowest first."""
        return list(self.layers)  # type: ignore[arg-type]

    def zeros(self, like: Tensor) -> States:
        """Zero states of all layers."""
        return tuple(layer.zeros(like) for layer in self.layer_list())

    def forward(self, x: Padded, states: States = ()) -> tuple[tuple[Tensor, ...], States]:
        """(outputs of each layer, state of each layer); starts from zeros unless states are given."""
        outs, ends = [], []
        for i, (layer, state) in enumerate(zip(self.layers, states or self.zeros(x.data), strict=True)):
            out_BLD, end = layer(x.like(self.dropout(x.data)) if i else x, state)
            x = x.like(out_BLD)
            outs.append(out_BLD)
            ends.append(end)
        return tuple(outs), tuple(ends)

    def step(self, x_ND: Tensor, states: States) -> tuple[Tensor, States]:
        """One position through all layers: (output of the top layer, state of each layer)."""
        ends = []
        for i, (layer, state) in enumerate(zip(self.layer_list(), states, strict=True)):
            x_ND, end = layer.step(self.dropout(x_ND) if i else x_ND, state)
            ends.append(end)
        return x_ND, tuple(ends)


class Bidirectional(nn.Module):
    """Bidirectional layer (Schuster and Paliwal 1997); its output is twice as wide.

    Padding stays at the end of a row in both directions. Records of the backward layer have the context fact
    `backwards`: their position t is position length - 1 - t of the row.

    >>> out, (forward, backward) = Bidirectional("gru", 4, 3)(Padded(torch.randn(2, 5, 4), torch.tensor([5, 2])))
    >>> out.shape, torch.equal(out[1, 1, :3], forward[0][1]), torch.equal(out[1, 0, 3:], backward[0][1])
    (torch.Size([2, 5, 6]), True, True)
    """

    def __init__(self, cell: Cell, inputs: int, width: int) -> None:
        super().__init__()
        self.forward_layer, self.backward_layer = recurrent(cell, inputs, width), recurrent(cell, inputs, width)
        self.width = 2 * width

    def forward(self, x: Padded) -> tuple[Tensor, tuple[LayerState, LayerState]]:
        """(outputs (N, L, 2 D), (forward state after the last position, backward state after the first))."""
        forward_BLD, end = self.forward_layer(x, self.forward_layer.zeros(x.data))
        with trace_context(backwards=True):
            backward_BLD, start = self.backward_layer(x.reverse(), self.backward_layer.zeros(x.data))
        return torch.cat([forward_BLD, x.like(backward_BLD).reverse().data], -1), (end, start)


class BidirectionalStack(nn.Module):
    """Stacked bidirectional layers; the state of a layer is the concatenation of both directions.

    >>> stack = BidirectionalStack("lstm", [4, 3, 3])
    >>> outs, ends = stack(Padded(torch.randn(2, 5, 4), torch.tensor([5, 2])))
    >>> outs[-1].shape, ends[0][1].shape, stack.state_widths
    (torch.Size([2, 5, 6]), torch.Size([2, 6]), ((6, 6), (6, 6)))
    """

    def __init__(self, cell: Cell, widths: Sequence[int], dropout: float = 0.0) -> None:
        super().__init__()
        read = [widths[0], *(2 * width for width in widths[1:])]
        self.layers = nn.ModuleList(Bidirectional(cell, i, o) for i, o in zip(read, widths[1:], strict=False))
        self.dropout = nn.Dropout(dropout)

    @property
    def state_widths(self) -> tuple[tuple[int, ...], ...]:
        """Widths of the state tensors of each layer."""
        return tuple((layer.width,) * layer.forward_layer.state_tensors for layer in self.layer_list())

    def layer_list(self) -> list[Bidirectional]:
        """The layers, the lowest first."""
        return list(self.layers)  # type: ignore[arg-type]

    def forward(self, x: Padded) -> tuple[tuple[Tensor, ...], States]:
        """(outputs of each layer, state of each layer)."""
        outs, ends = [], []
        for i, layer in enumerate(self.layers):
            out_BLD, both = layer(x.like(self.dropout(x.data)) if i else x)
            x = x.like(out_BLD)
            outs.append(out_BLD)
            ends.append(tuple(torch.cat(pair, -1) for pair in zip(*both, strict=True)))
        return tuple(outs), tuple(ends)


def unroll(step: Callable[..., tuple[Tensor, Any]], x: Padded, state: Any) -> tuple[Tensor, Any]:
    """Apply step(x_ND, state) -> (feature_ND, state) position by position. At padding the state stays unchanged.

    Records made inside have the context fact `position`.

    >>> unroll(lambda x, s: (x + s, x + s), Padded(torch.ones(1, 3, 1), torch.tensor([2])), torch.zeros(1, 1))
    (tensor([[[1.],
             [2.],
             [3.]]]), tensor([[2.]]))
    """
    features, states = [], [state]
    for t, x_ND in enumerate(x.data.unbind(1)):
        with trace_context(position=t):
            feature_ND, state = step(x_ND, states[-1])
        features.append(feature_ND)
        states.append(state)
    if not features:
        raise ValueError("unroll() needs at least one position; there is nothing to step over")
    if x.ragged:  # padding is at the end, so one selection after the loop is enough
        state = tree_map(lambda *at: _state_after(torch.stack(at, 1), x.lengths), *states)
    return torch.stack(features, 1), state


def _state_after(states: Tensor, steps_N: Tensor) -> Tensor:
    """Of states (N, 1 + T, ...), that of each row after its number of steps."""
    return select_position(states, steps_N)
