"""Words as pieces: the pieces of all words in one sequence, and where the first piece of each word is in it."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from regard.sequence import Tokens


def flatten_pieces(words: Tokens, prefix: Sequence[int] = (), suffix: Sequence[int] = ()) -> tuple[Tokens, Tensor]:
    """Piece ids of whole sentences, and (B, L) the position of each word's first piece.

    `words` are (B, L, P): the pieces of each word, counted from 1; 0 is no piece. `prefix` and `suffix` are special ids
    around every sentence.

    >>> words = Tokens.pad([[[8, 9], [5, 0]], [[7, 0]]])
    >>> pieces, first = flatten_pieces(words, prefix=[2], suffix=[3])
    >>> pieces.data.tolist(), pieces.lengths.tolist(), first.tolist()
    ([[2, 7, 8, 4, 3], [2, 6, 3, 0, 0]], [5, 3], [[1, 3], [1, 2]])
    """
    data_BLP = words.data if words.data.ndim == 3 else words.data[..., None]
    real_BLP = data_BLP > 0
    counts_BL = real_BLP.sum(-1)
    first_BL = counts_BL.cumsum(1) - counts_BL + len(prefix)
    lengths_B = counts_BL.sum(1) + len(prefix) + len(suffix)
    size = int(lengths_B.max()) if len(words) else 0
    at_BLP = first_BL[..., None] + torch.arange(data_BLP.shape[2], device=data_BLP.device)
    at_BLP = torch.where(real_BLP, at_BLP, size)  # what is no piece goes to a column that is cut off
    ids_BS = data_BLP.new_zeros(len(words), size + 1)
    ids_BS = ids_BS.scatter(1, at_BLP.flatten(1), (data_BLP - 1).clamp(min=0).flatten(1))[:, :size]
    for i, number in enumerate(prefix):
        ids_BS[:, i] = number
    for i, number in enumerate(suffix):
        ids_BS = ids_BS.scatter(1, (lengths_B - len(suffix) + i)[:, None], number)
    return Tokens(ids_BS, lengths_B), first_BL
