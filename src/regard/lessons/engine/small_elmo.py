"""An ELMo of two layers with given weights: through the package's encoder, and by the formulas of an LSTM."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn

from regard.lessons.engine.layers import recurrent_layer
from regard.models.elmo import ELMo, ELMoConfig, ResidualStack
from regard.sequence import Tokens

STACKS = {"forward": ("F1", "F2"), "backward": ("B1", "B2")}
"""weights of the layers of each direction: rows for the gates i, f, g, o; columns for x, h and the bias"""
EDGE = 0
"""row of the embedding table that is read before a sentence, in both directions: the end of another one"""


class RowLookup(nn.Module):
    """Rows of a table in the place of a character CNN."""

    def __init__(self, table_VD: Tensor) -> None:
        super().__init__()
        self.register_buffer("table", table_VD)
        self.width = table_VD.shape[1]

    def forward(self, ids: Tensor) -> Tensor:
        table_VD = self.get_buffer("table")
        return table_VD[EDGE].expand(*ids.shape[:2], -1) if ids.ndim == 3 else table_VD[ids]


def package_encoder(weights: Mapping[str, Tensor]) -> ELMo:
    """The package's ELMo with these weights, in double precision."""
    width = weights["E"].shape[1]
    config = ELMoConfig(width=width, cells=width, dropout=0.0, characters=1, filters=(1,), highways=0)
    stacks = []
    for names in STACKS.values():
        stack = ResidualStack(config)
        rows = (weights[name].split([width, width, 1], 1) for name in names)
        stack.layers = nn.ModuleList(recurrent_layer("lstm", x, h, bias[:, 0]) for x, h, bias in rows)
        stacks.append(stack)
    encoder = ELMo(RowLookup(weights["E"]), *stacks).double().eval().requires_grad_(False)
    encoder.mix.weight.copy_(weights["w"])
    encoder.mix.gamma.copy_(weights["gamma"])
    return encoder


def package_layers(encoder: ELMo, ids: Sequence[int]) -> tuple[Tensor, Tensor]:
    """(layers, positions, 2 x width) and the mix (positions, 2 x width) of one sentence."""
    with torch.no_grad():
        memory = encoder(Tokens.pad([list(ids)]))
    return torch.stack([layer[0] for layer in memory.layers]), memory.states.data[0]


def lstm_states(rows: Tensor, inputs: Sequence[Tensor]) -> list[Tensor]:
    """Hidden states of an LSTM from zero states, by its formulas."""
    width = len(rows) // 4
    h, c, found = torch.zeros(width).double(), torch.zeros(width).double(), []
    for x in inputs:
        i, f, g, o = (rows @ torch.cat([x, h, torch.ones(1).double()])).split(width)
        c = f.sigmoid() * c + i.sigmoid() * g.tanh()
        h = o.sigmoid() * c.tanh()
        found.append(h)
    return found


def direction_states(weights: Mapping[str, Tensor], ids: Sequence[int], direction: str) -> Tensor:
    """(2, positions, width): both layers of one direction, in the order of the sentence, by the formulas."""
    read = list(ids) if direction == "forward" else list(ids)[::-1]
    one, two = (weights[name] for name in STACKS[direction])
    first = lstm_states(one, [weights["E"][i] for i in (EDGE, *read)])
    second = [new + below for new, below in zip(lstm_states(two, first), first, strict=True)]
    both = torch.stack([torch.stack(first[1:]), torch.stack(second[1:])])
    return both if direction == "forward" else both.flip(1)
