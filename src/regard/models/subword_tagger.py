"""A tagger over subwords: Devlin et al. 2019, section 5.3.

New against a tagger of words: the encoder reads the pieces of all words as one sequence, and the state of the first
piece of a word predicts the label of the word. With a CRF, transitions are between the labels of words.
"""

from __future__ import annotations

from torch import Tensor, nn

from regard.models.base import Encoder, Tagger
from regard.models.crf_tagger import CRFTagger
from regard.nn.first_pieces import flatten_pieces
from regard.sequence import Tokens
from regard.spaces import Classes, Space
from regard.trace import trace_context


class SubwordTagger(Tagger):
    """One output per word, from the state of its first piece."""

    def __init__(self, encoder: Encoder, space: Space, width: int, special_ids: tuple[tuple[int, ...], ...]) -> None:
        super().__init__(encoder, space, width)
        self.special_ids = special_ids

    def forward(self, source: Tokens) -> Tensor:
        return first_piece_states(self.encoder, source, self.special_ids)


class SubwordCRFTagger(CRFTagger):
    """The same with a CRF over the labels of the words."""

    def __init__(self, encoder: Encoder, space: Classes, width: int, special_ids: tuple[tuple[int, ...], ...]) -> None:
        super().__init__(encoder, space, width)
        self.special_ids = special_ids

    def forward(self, source: Tokens) -> Tensor:
        return first_piece_states(self.encoder, source, self.special_ids)


def first_piece_states(encoder: nn.Module, source: Tokens, special_ids: tuple[tuple[int, ...], ...]) -> Tensor:
    """(B, L, D): the state of each word's first piece; `special_ids` are the special ids in front and at the end."""
    pieces, first_BL = flatten_pieces(source, *special_ids)
    with trace_context(first_pieces=first_BL):
        states: Tensor = encoder(pieces).states.data
    last = max(states.shape[1] - 1, 0)  # without an end token, padding would point behind the last piece
    return states.take_along_dim(first_BL.clamp(max=last)[..., None], 1)
