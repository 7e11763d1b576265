"""Forced scoring of given outputs, and word alignments from attention."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from regard.decode.coverage import AttentionRecorder
from regard.device import module_device
from regard.errors import DataError
from regard.models.base import EncoderDecoder
from regard.sequence import Rows, Tokens

Pairs = list[tuple[int, int]]


@dataclass(frozen=True)
class TokenScores(Rows):
    """Log-probabilities of given outputs."""

    tokens: Tensor
    """(B, T - 1) of each token after the first, in double precision; 0 at padding"""
    lengths: Tensor
    """(B,) number of scored tokens"""

    @property
    def totals(self) -> Tensor:
        """(B,): log-probability of each output."""
        return self.tokens.sum(1)


@torch.no_grad()
def score(model: EncoderDecoder, source: Rows, target: Tokens, chunk: int = 1024) -> TokenScores:
    """Log-probabilities of `target` (<SOS> first, <EOS> last if complete) by teacher forcing; logits in chunks.

    Inputs are moved to the model's device; the result is on the CPU.
    """
    device = module_device(model)
    read, target_BT, real_BT = _shift(target.to(device))
    features_ND, target_N = model(source.to(device), read)[real_BT], target_BT[real_BT]
    parts = [
        model.readout(f_ND).log_softmax(-1).gather(1, t_N[:, None]).squeeze(1).cpu().double()
        for f_ND, t_N in zip(features_ND.split(chunk), target_N.split(chunk), strict=True)
    ]
    log_BT = torch.zeros(target_BT.shape, dtype=torch.double, device="cpu")
    log_BT[real_BT.cpu()] = torch.cat(parts)
    return TokenScores(log_BT, read.lengths.cpu())


@torch.no_grad()
def align(
    model: EncoderDecoder, source: Tokens, target: Tokens, threshold: float | None = None, layer: int = -1
) -> list[Pairs]:
    """Word alignments (source position, target position) from cross-attention under teacher forcing.

    Target position t is the t-th token after <SOS>. Each target token is aligned with the source token of the highest
    weight, or with a threshold to all of at least that weight. Heads are averaged. Used from Python only.
    """
    source, target = source.to(module_device(model)), target.to(module_device(model))
    read, _, real_BT = _shift(target)
    attention = AttentionRecorder(model)
    with attention.watch():
        model(source, read)
    weights_BTS = attention.weights(layer) * source.mask[:, None]
    if threshold is None:
        best_BT1 = weights_BTS.argmax(-1, keepdim=True)
        aligned_BTS = torch.zeros_like(weights_BTS, dtype=torch.bool).scatter_(2, best_BT1, True)
    else:
        aligned_BTS = weights_BTS >= threshold
    aligned_BTS = aligned_BTS & source.mask[:, None] & real_BT[..., None]
    return [[(s, t) for t, s in row_TS.nonzero().tolist()] for row_TS in aligned_BTS]


def _shift(target: Tokens) -> tuple[Tokens, Tensor, Tensor]:
    if len(target) and int(target.lengths.min()) < 2:
        row = int(target.lengths.argmin())
        raise DataError(
            f"output {row} has {int(target.lengths[row])} tokens; it must start with <SOS> and hold at least one more"
        )
    return target.shift()
