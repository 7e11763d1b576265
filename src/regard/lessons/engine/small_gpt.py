"""A GPT of one block with given weights: through the package's model, and by its formulas; multiplications counted."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from regard.models.base import EncoderDecoder
from regard.models.gpt import GPTConfig
from regard.sequence import Tokens
from regard.spaces import Words
from regard.trace import record

EMPTY = torch.empty(0)


@dataclass(frozen=True)
class Pass:
    """Inner values of a pass over one text, without the axes of batch and head."""

    keys: Tensor
    values: Tensor
    weights: Tensor
    out: Tensor
    """residual stream after the block"""
    logits: Tensor
    x: Tensor = EMPTY
    normed: Tensor = EMPTY
    queries: Tensor = EMPTY
    middle: Tensor = EMPTY
    """residual stream after attention"""
    inner: Tensor = EMPTY
    """feed-forward network after the activation function"""


def package_model(weights: Mapping[str, Tensor]) -> EncoderDecoder:
    """The package's GPT with one block and one head, in double precision; biases 0, gains 1."""
    E, P = weights["E"], weights["P"]
    config = GPTConfig(layers=1, width=E.shape[1], heads=1, dropout=0.0, max_positions=len(P))
    model = config.build(Words(len(E)), Words(len(E))).double().eval().requires_grad_(False)
    decoder: Any = model.decoder
    block = decoder.layers[0]
    qkv = torch.cat([weights[name] for name in ("WQ", "WK", "WV")])
    inputs = {decoder.embed: E, decoder.positions.table: P}
    attention = {block.attention.qkv: qkv, block.attention.out: weights["WO"]}
    for layer, weight in (inputs | attention | {block.ffn.up: weights["W1"], block.ffn.down: weights["W2"]}).items():
        layer.weight.copy_(weight)
    return model


def read_tokens(model: EncoderDecoder, ids: list[int], one_by_one: bool = False) -> Pass:
    """A text through the package's GPT, at once, or token by token with its KV cache."""
    empty, parts = Tokens.pad([[]]), []
    with record(model) as trace, torch.no_grad():
        state = model.start(empty, len(ids) if one_by_one else 0)
        for part in [[i] for i in ids] if one_by_one else [ids]:
            features, state = model.decoder(Tokens.pad([part]), state)
            parts.append(model.readout(features)[0])
    attention = {
        name: trace.find(f"decoder.layers.0.attention.{name}")[-1].data[0, 0] for name in ("keys", "values", "weights")
    }
    return Pass(**attention, out=trace.find("decoder.layers.0.residual")[-1].data[0], logits=torch.cat(parts))


def recompute(weights: Mapping[str, Tensor], ids: list[int]) -> Pass:
    """The same by the formulas of a pre-norm block."""
    E, width = weights["E"], weights["E"].shape[1]
    x = E[ids] + weights["P"][: len(ids)]
    normed = F.layer_norm(x, (width,))
    queries, keys, values = (normed @ weights[name].T for name in ("WQ", "WK", "WV"))
    hidden = torch.ones(len(ids), len(ids), dtype=torch.bool).triu(1)
    attention = (queries @ keys.T / math.sqrt(width)).masked_fill(hidden, -math.inf).softmax(1)
    middle = x + attention @ values @ weights["WO"].T
    inner = F.gelu(F.layer_norm(middle, (width,)) @ weights["W1"].T, approximate="tanh")
    out = middle + inner @ weights["W2"].T
    logits = F.layer_norm(out, (width,)) @ E.T
    return Pass(keys, values, attention, out, logits, x, normed, queries, middle, inner)


def multiplications(length: int, width: int, words: int, cached: bool, layers: int = 1) -> int:
    """Multiplications in the matrix products of one step that predicts the token after `length` tokens.

    >>> multiplications(1, 4, 8, True), multiplications(1, 4, 8, False)
    (232, 232)
    """
    positions = [length] if cached else range(1, length + 1)
    return layers * sum(12 * width**2 + 2 * width * seen for seen in positions) + width * words
