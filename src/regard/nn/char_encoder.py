"""Character encoders: a word embedding concatenated with a vector computed from the word's characters.

An unknown word still has characters: a capital, an ending, digits. CNN: dos Santos and Zadrozny 2014, Ma and Hovy
2016; bidirectional LSTM: Ling et al. 2015, Lample et al. 2016.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import torch
from torch import Tensor, nn

from regard.nn.recurrent import Bidirectional
from regard.sequence import PAD, Padded
from regard.trace import trace_context


class CharEncoder(nn.Module, ABC):
    """Characters of words -> one vector per word, independent of the padding."""

    width: int

    @abstractmethod
    def forward(self, ids_NC: Tensor) -> Tensor:
        """(N, width) from the character ids (N, C) of each word, padded on the right by PAD."""


class CharCNN(CharEncoder):
    """Convolution over the characters, ReLU and max pooling.

    >>> CharCNN(9, 5, 3, 4)(torch.tensor([[3, 4, 5], [0, 0, 0]]))[1]
    tensor([0., 0., 0., 0.], grad_fn=<SelectBackward0>)
    """

    def __init__(self, size: int, embedding: int, kernel: int, width: int) -> None:
        super().__init__()
        self.width, self.embed = width, nn.Embedding(size, embedding, padding_idx=PAD)
        self.conv = nn.Conv1d(embedding, width, kernel, padding=kernel // 2)

    def forward(self, ids_NC: Tensor) -> Tensor:
        x_NDC = self.conv(self.embed(ids_NC).transpose(1, 2)).relu()
        # a window may extend past the last character, but not begin there: a longer batch would have more windows
        return x_NDC[..., : ids_NC.shape[1]].masked_fill((ids_NC == PAD)[:, None], 0.0).amax(2)


class CharLSTM(CharEncoder):
    """Final states of a bidirectional LSTM over the characters."""

    def __init__(self, size: int, embedding: int, width: int) -> None:
        super().__init__()
        self.width, self.embed = width, nn.Embedding(size, embedding, padding_idx=PAD)
        self.lstm = Bidirectional("lstm", embedding, width // 2)

    def forward(self, ids_NC: Tensor) -> Tensor:
        lengths = (ids_NC != PAD).sum(1)
        with trace_context(reads="characters"):  # a row is a word here, not a sentence
            _, (forward, backward) = self.lstm(Padded(self.embed(ids_NC), lengths))
        return torch.cat([forward[0], backward[0]], -1)


class WordCharEmbedding(nn.Module):
    """Word id and character ids (B, L, 1 + C) -> word embedding and character vector, concatenated (B, L, width)."""

    def __init__(self, words: int, chars: CharEncoder, width: int) -> None:
        super().__init__()
        self.words, self.chars = nn.Embedding(words, width - chars.width), chars
        if not self.words.weight.is_meta:
            nn.init.normal_(self.words.weight, std=width**-0.5)

    def forward(self, ids_BLC: Tensor) -> Tensor:
        chars_ND = self.chars(ids_BLC[..., 1:].flatten(0, 1))
        return torch.cat([self.words(ids_BLC[..., 0]), chars_ND.unflatten(0, ids_BLC.shape[:2])], -1)
