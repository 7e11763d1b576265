"""Spellings: a word as the bytes of its UTF-8 text between a start and an end mark, for models that read characters.

No vocabulary of characters is needed, and no word is unknown (Jozefowicz et al. 2016). Special tokens have an id of
their own in place of bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

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
    """Ids of an entry of a vocabulary; <PAD> has none.

    >>> spell("Ab"), spell("<EOS>"), spell("<PAD>")
    ([257, 66, 99, 258], [257, 260, 258], [])
    """
    if word in ("<PAD>", "[PAD]"):
        return []
    return [WORD_START, SPECIAL[word], WORD_END] if word in SPECIAL else spell_text(word)


def spell_text(word: str) -> list[int]:
    """Ids of a word of a text, which is never a special token."""
    return [WORD_START, *(byte + 1 for byte in word.encode()[: LENGTH - 2]), WORD_END]


def spell_all(words: Sequence[str], spell_one: Callable[[str], list[int]] = spell) -> np.ndarray:
    """Ids of words, (N, LENGTH), padded on the right; by default of entries of a vocabulary."""
    table = np.full((len(words), LENGTH), PAD, np.int16)
    for row, word in zip(table, words, strict=True):
        ids = spell_one(word)
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
