"""A tagger whose labels depend on one another: Huang, Xu and Yu 2015, Lample et al. 2016.

New against a tagger that chooses at each place alone: a linear chain (a conditional random field, Lafferty et al.
2001) over its outputs: the whole sequence of labels is scored, learnt and chosen at once. Any encoder can read for it.
"""

from __future__ import annotations

from torch import Tensor, nn

from regard.models.base import Encoder
from regard.nn.crf import LinearChain
from regard.sequence import Tokens
from regard.spaces import Classes


class ChainTagger(nn.Module):
    """An encoder, a score for each label at each place, and a score for each step from label to label.

    >>> from regard.models.mlp import MLPConfig
    >>> from regard.spaces import Words
    >>> model = ChainTagger(MLPConfig(width=8).build_encoder(Words(9)), Classes(3), 8)
    >>> source = Tokens.of([[4, 5, 6], [7]])
    >>> model.chain.best(source.like(model.readout(model(source)))).shape
    torch.Size([2, 3])
    """

    def __init__(self, encoder: Encoder, space: Classes, width: int) -> None:
        super().__init__()
        self.encoder, self.readout, self.chain = encoder, space.head(width), LinearChain(space.size)

    def forward(self, source: Tokens) -> Tensor:
        return self.encoder(source).states.data
