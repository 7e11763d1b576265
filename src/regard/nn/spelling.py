"""Spellings: a word as the bytes of its UTF-8 text between a start and an end mark, for models that read characters.

No vocabulary of characters is needed, and no word is unknown (Jozefowicz et al. 2016). Special tokens have an id of
their own in place of bytes.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

PAD, BYTES, WORD_START, WORD_END = 0, 256, 257, 258
"""ids: padding, then byte b as b + 1, then the marks"""
SPECIAL = {name: id for id, names in enumerate((("<SOS>", "[CLS]"), ("<EOS>", "[SEP]"), ("<UNK>", "[UNK]")), 259)
           for name in names}  # fmt: skip
"""ids of special tokens, by their names"""
CHARACTERS = 262
"""number of ids, padding included"""
LENGTH = 50
"""ids of a spelling, marks included: the bytes of a longer word are cut"""


def spell(word: str) -> list[int]:
    """Ids of a word; <PAD> has none.

    >>> spell("Ab"), spell("<EOS>"), spell("<PAD>")
    ([257, 66, 99, 258], [257, 260, 258], [])
    """
    if word in ("<PAD>", "[PAD]"):
        return []
    inner = [SPECIAL[word]] if word in SPECIAL else [byte + 1 for byte in word.encode()[: LENGTH - 2]]
    return [WORD_START, *inner, WORD_END]


def spell_all(words: Sequence[str]) -> np.ndarray:
    """Ids of words, (N, LENGTH), padded on the right."""
    table = np.full((len(words), LENGTH), PAD, np.int16)
    for row, word in zip(table, words, strict=True):
        ids = spell(word)
        row[: len(ids)] = ids
    return table


def spelling_table(vocabulary: Sequence[str], size: int) -> Tensor:
    """Spellings of a vocabulary, (size, LENGTH); without strings, a word is spelled as its number.

    >>> spelling_table((), 8)[7, :4]
    tensor([257,  56, 258,   0], dtype=torch.int16)
    """
    device = torch.get_default_device()  # a constructor calls this
    if device.type == "meta":
        return torch.empty(size, LENGTH, dtype=torch.int16, device=device)
    return torch.as_tensor(spell_all(list(vocabulary) or list(map(str, range(size)))), device=device)
