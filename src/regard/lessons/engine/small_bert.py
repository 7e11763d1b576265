"""A BERT of one layer with given weights: through the package's model, and by its formulas; drawing of masks."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from regard.data.splitmix import splitmix64_uniform
from regard.models.bert import BertConfig, BertPretraining, MaskedLMHead
from regard.sequence import Tokens
from regard.spaces import Words
from regard.trace import record

EPS = 1e-12
"""added to the variance in layer normalization, as in the paper's code"""
SHARES = (0.8, 0.1)
"""of the predicted tokens: become [MASK], become a random word; the others stay"""
NAMES = ("E", "P", "S", "WQ", "WK", "WV", "WO", "W1", "W2", "WM")


@dataclass(frozen=True)
class EncoderPass:
    """Inner values of a pass over one text, without the axes of batch and head."""

    x: Tensor
    """normalized sum of the embeddings"""
    queries: Tensor
    keys: Tensor
    values: Tensor
    weights: Tensor
    middle: Tensor
    """after attention, residual sum and norm"""
    out: Tensor
    """after the feed-forward network, residual sum and norm"""
    logits: Tensor


def package_encoder(weights: Mapping[str, Tensor]) -> BertPretraining:
    """The package's BERT with one layer, one head and its masked-LM head, in double precision; biases 0, gains 1."""
    (words, width), (positions, _), (inner, _) = (weights[name].shape for name in ("E", "P", "W1"))
    config = BertConfig(
        layers=1, width=width, ffn_width=inner, heads=1, dropout=0.0, max_positions=positions,
        segments=len(weights["S"]), layer_norm_eps=EPS,
    )  # fmt: skip
    encoder: Any = config.build_encoder(Words(words))
    model = BertPretraining(encoder, None, MaskedLMHead(width, Words(words), encoder.embed, EPS))
    model = model.double().eval().requires_grad_(False)
    layer, head = encoder.layers[0], model.readout
    assert head is not None
    tables = {encoder.embed: weights["E"], encoder.positions.table: weights["P"], encoder.segments: weights["S"]}
    qkv = torch.cat([weights[name] for name in ("WQ", "WK", "WV")])
    linear = {layer.attention.qkv: qkv, layer.attention.out: weights["WO"], head.dense: weights["WM"]}
    for part, weight in (tables | linear | {layer.ffn.up: weights["W1"], layer.ffn.down: weights["W2"]}).items():
        part.weight.copy_(weight)
    return model


def read_masked(model: BertPretraining, ids: list[int], segments: list[int]) -> tuple[Tensor, Tensor]:
    """Attention weights and logits of a text through the package's BERT."""
    assert model.readout is not None
    source = replace(Tokens.pad([ids]), segments=torch.tensor([segments]))
    with record(model) as trace, torch.no_grad():
        logits = model.readout(model.encoder(source).states.data[0])
    return trace.find("encoder.layers.0.attention.weights")[0].data[0, 0], logits


def encode(weights: Mapping[str, Tensor], ids: list[int], segments: list[int], causal: bool = False) -> EncoderPass:
    """A text by the formulas of BERT's layer; `causal`: with the mask that a GPT has."""
    E, P, S, WQ, WK, WV, WO, W1, W2, WM = (weights[name] for name in NAMES)
    width = E.shape[1]
    x = F.layer_norm(E[ids] + P[: len(ids)] + S[segments], (width,), eps=EPS)
    queries, keys, values = x @ WQ.T, x @ WK.T, x @ WV.T
    scores = queries @ keys.T / math.sqrt(width)
    if causal:
        scores = scores.masked_fill(torch.ones(len(ids), len(ids), dtype=torch.bool).triu(1), -math.inf)
    attention = scores.softmax(1)
    middle = F.layer_norm(x + attention @ values @ WO.T, (width,), eps=EPS)
    out = F.layer_norm(middle + F.gelu(middle @ W1.T) @ W2.T, (width,), eps=EPS)
    logits = F.layer_norm(F.gelu(out @ WM.T), (len(WM),), eps=EPS) @ E.T
    return EncoderPass(x, queries, keys, values, attention, middle, out, logits)


@dataclass(frozen=True)
class DrawnMasks:
    """Random numbers of each token, and what they decide."""

    order: np.ndarray
    """the tokens with the smallest numbers are predicted"""
    fate: np.ndarray
    """of a predicted token: below 0.8 [MASK] is read, below 0.9 a random word, else the token itself"""
    predicted: np.ndarray
    """boolean"""
    other: np.ndarray
    """index of the random word"""

    @property
    def outcomes(self) -> list[int]:
        """Number of predicted tokens that become [MASK], that become a random word, and that stay."""
        fate = self.fate[self.predicted]
        masked, changed = int((fate < SHARES[0]).sum()), int((fate < sum(SHARES)).sum())
        return [masked, changed - masked, len(fate) - changed]

    def read(self, tokens: list[str], words: list[str]) -> list[str]:
        """What is read in place of the tokens."""
        found = list(tokens)
        for i in np.flatnonzero(self.predicted).tolist():
            if self.fate[i] < SHARES[0]:
                found[i] = "[MASK]"
            elif self.fate[i] < sum(SHARES):
                found[i] = words[self.other[i]]
        return found


def draw_masks(count: int, seed: int, share: float, words: int) -> DrawnMasks:
    """Draw which of `count` tokens are predicted, and what is read in their place.

    >>> drawn = draw_masks(1000, 1, 0.15, 10)
    >>> int(drawn.predicted.sum()), sum(drawn.outcomes)
    (150, 150)
    """
    order, fate, other = splitmix64_uniform(seed, 3 * count).reshape(3, -1)
    predicted = np.zeros(count, bool)
    predicted[np.argsort(order, kind="stable")[: max(1, round(share * count))]] = True
    return DrawnMasks(order, fate, predicted, (other * words).astype(int))
