"""A word by its letters: a vector of the word itself beside one that is read from how it is spelled.

A word that was never seen still has letters: a capital, an ending, digits. Convolution: dos Santos and Zadrozny 2014,
Ma and Hovy 2016; an LSTM in both directions: Ling et al. 2015, Lample et al. 2016.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import torch
from torch import Tensor, nn

from regard.nn.recurrent import Bidirectional
from regard.sequence import PAD, Padded
from regard.trace import scene


class Letters(nn.Module, ABC):
    """The letters of words -> one vector a word. Padding behind a word's letters changes nothing.

    >>> short, long = torch.tensor([[3, 4]]), torch.tensor([[3, 4, 0, 0]])
    >>> for read in (LetterConvolution(9, 5, 3, 4), LetterLSTM(9, 5, 4)):
    ...     print(torch.allclose(read(short), read(long), atol=1e-6))
    True
    True
    """

    width: int

    @abstractmethod
    def forward(self, ids_NC: Tensor) -> Tensor:
        """(N, width) of the letters (N, C) of each word, padded on the right by PAD."""


class LetterConvolution(Letters):
    """The highest value of each filter over all windows of letters, and 0 at least.

    >>> LetterConvolution(9, 5, 3, 4)(torch.tensor([[3, 4, 5], [0, 0, 0]]))[1]
    tensor([0., 0., 0., 0.], grad_fn=<SelectBackward0>)
    """

    def __init__(self, size: int, embedding: int, kernel: int, width: int) -> None:
        super().__init__()
        self.width, self.embed = width, nn.Embedding(size, embedding, padding_idx=PAD)
        self.conv = nn.Conv1d(embedding, width, kernel, padding=kernel // 2)

    def forward(self, ids_NC: Tensor) -> Tensor:
        found_NDC = self.conv(self.embed(ids_NC).transpose(1, 2)).relu()
        # a filter may look past the last letter, but not begin there: a longer batch would have more windows
        return found_NDC[..., : ids_NC.shape[1]].masked_fill((ids_NC == PAD)[:, None], 0.0).amax(2)


class LetterLSTM(Letters):
    """What an LSTM remembers of a word after its last letter, and another one, reading backwards, after its first.

    >>> LetterLSTM(9, 5, 6)(torch.tensor([[3, 4, 5], [6, 0, 0]])).shape
    torch.Size([2, 6])
    """

    def __init__(self, size: int, embedding: int, width: int) -> None:
        super().__init__()
        self.width, self.embed = width, nn.Embedding(size, embedding, padding_idx=PAD)
        self.both = Bidirectional("lstm", embedding, width // 2)

    def forward(self, ids_NC: Tensor) -> Tensor:
        lengths = (ids_NC != PAD).sum(1)
        with scene(reads="letters"):  # a row is a word here, not a sentence
            _, (onward, back) = self.both(Padded(self.embed(ids_NC), lengths))
        return torch.cat([onward[0], back[0]], -1)


class Spelled(nn.Module):
    """Word id and letter ids (B, L, 1 + C) -> the word's own vector beside what its letters say (B, L, width).

    >>> ids = torch.tensor([[[5, 2, 3, 0], [1, 4, 0, 0]]])
    >>> Spelled(7, LetterConvolution(9, 5, 3, 4), 10)(ids).shape
    torch.Size([1, 2, 10])
    """

    def __init__(self, words: int, letters: Letters, width: int) -> None:
        super().__init__()
        self.words, self.letters = nn.Embedding(words, width - letters.width), letters
        if not self.words.weight.is_meta:
            nn.init.normal_(self.words.weight, std=width**-0.5)

    def forward(self, ids_BLC: Tensor) -> Tensor:
        spelled_ND = self.letters(ids_BLC[..., 1:].flatten(0, 1))
        return torch.cat([self.words(ids_BLC[..., 0]), spelled_ND.unflatten(0, ids_BLC.shape[:2])], -1)
