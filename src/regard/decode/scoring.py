"""How likely a given output is, and which words of the source its words looked at."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from regard.decode.coverage import Attention
from regard.errors import DataError
from regard.models.base import EncoderDecoder
from regard.sequence import Rows, Tokens

Pairs = list[tuple[int, int]]


@dataclass(frozen=True)
class Scores(Rows):
    """Log-probabilities of given outputs.

    >>> Scores(torch.tensor([[-1.0, -2.0]]).double(), torch.tensor([2])).totals
    tensor([-3.], dtype=torch.float64)
    """

    tokens: Tensor
    """(B, T - 1) of each token after the first, in double precision; 0 at padding"""
    lengths: Tensor
    """(B,) how many were scored"""

    @property
    def totals(self) -> Tensor:
        """(B,): of each output as a whole."""
        return self.tokens.sum(1)


@torch.no_grad()
def score(model: EncoderDecoder, source: Rows, target: Tokens, chunk: int = 1024) -> Scores:
    """Log-probabilities of `target` (<SOS> first, <EOS> last where it ends), read at once; logits a chunk at a time.

    >>> from regard.models.gpt import GPTConfig
    >>> from regard.spaces import Words
    >>> model = GPTConfig(layers=1, width=8, heads=2, longest=16).build(Words(7), Words(7)).eval()
    >>> score(model, Tokens.of([[]]), Tokens.of([[2, 5, 3]])).tokens.shape
    torch.Size([1, 2])
    """
    read, wanted_BT, real_BT = _read(target)
    features_ND, wanted_N = model(source, read)[real_BT], wanted_BT[real_BT]
    parts = [
        model.readout(f_ND).log_softmax(-1).gather(1, w_N[:, None]).squeeze(1).double()
        for f_ND, w_N in zip(features_ND.split(chunk), wanted_N.split(chunk), strict=True)
    ]
    log_BT = torch.zeros(wanted_BT.shape, dtype=torch.double, device=wanted_BT.device)
    log_BT[real_BT] = torch.cat(parts)
    return Scores(log_BT, read.lengths)


@torch.no_grad()
def align(
    model: EncoderDecoder, source: Tokens, target: Tokens, threshold: float | None = None, layer: int = -1
) -> list[Pairs]:
    """(source place, target place) of words that belong together, by attention over the source in a forced reading.

    Place t of the target is its t-th token after <SOS>; what predicts it looked there. Each target word gets the
    source word it looked at most, or with a threshold all that got at least that share. Heads are averaged.

    >>> from regard.models.gpt import GPTConfig
    >>> from regard.spaces import Words
    >>> model = GPTConfig(layers=1, width=8, heads=2, longest=16).build(Words(7), Words(7)).eval()
    >>> align(model, Tokens.of([[]]), Tokens.of([[2, 5, 3]]))
    Traceback (most recent call last):
    regard.errors.ConfigError: this needs a model that attends to its source; no *.cross.weights were seen
    """
    read, _, real_BT = _read(target)
    attention = Attention(model)
    with attention.watch():
        model(source, read)
    weights_BTS = attention.weights(layer) * source.mask[:, None]
    if threshold is None:
        best_BT1 = weights_BTS.argmax(-1, keepdim=True)
        belong_BTS = torch.zeros_like(weights_BTS, dtype=torch.bool).scatter_(2, best_BT1, True)
    else:
        belong_BTS = weights_BTS >= threshold
    belong_BTS = belong_BTS & source.mask[:, None] & real_BT[..., None]
    return [[(s, t) for t, s in row_TS.nonzero().tolist()] for row_TS in belong_BTS]


def _read(target: Tokens) -> tuple[Tokens, Tensor, Tensor]:
    if len(target) and int(target.lengths.min()) < 2:
        row = int(target.lengths.argmin())
        raise DataError(
            f"output {row} has {int(target.lengths[row])} tokens; it must begin with <SOS> and hold one more to score"
        )
    return target.shifted()
