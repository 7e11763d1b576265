"""A tagger with a CRF output layer: Huang, Xu and Yu 2015, Lample et al. 2016.

New against a tagger that predicts each token independently: a linear-chain conditional random field (Lafferty et al.
2001) over its outputs, so that the tag sequence is scored, trained and decoded as a whole. Works with any encoder.
"""

from __future__ import annotations

from torch import Tensor, nn

from regard.models.base import Encoder
from regard.nn.crf import LinearChainCRF
from regard.sequence import Tokens
from regard.spaces import Classes


class CRFTagger(nn.Module):
    """An encoder, emission scores per token and tag, and a linear-chain CRF."""

    def __init__(self, encoder: Encoder, space: Classes, width: int) -> None:
        super().__init__()
        self.encoder, self.readout, self.crf = encoder, space.head(width), LinearChainCRF(space.size)

    def forward(self, source: Tokens) -> Tensor:
        return self.encoder(source).states.data
