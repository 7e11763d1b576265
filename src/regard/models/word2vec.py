"""word2vec: Mikolov, Sutskever, Chen, Corrado and Dean 2013, "Distributed Representations of Words and Phrases ...".

A word is known by the company it keeps. Two tables hold a vector for each word: one for words that are read, one for
words that are guessed; a guess is as sure as the dot product of the two is large. Skip-gram reads a word and guesses
those around it, CBOW (Mikolov et al. 2013, "Efficient Estimation ...") reads the mean of those around it and guesses
the word. Which of them is the task's to say: the network is the same, a mean and a product, and nothing in between.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from torch import Tensor, nn

from regard.errors import ConfigError
from regard.sequence import Tokens
from regard.spaces import Words
from regard.trace import tap


@dataclass(frozen=True)
class Word2VecConfig:
    """The shape of a word2vec.

    >>> Word2VecConfig(width=50).build(Words(1000)).embed
    Embedding(1000, 50)
    """

    kind: Literal["word2vec"] = "word2vec"
    """Mikolov et al. 2013"""
    width: int = 100
    """numbers of a word's vector"""

    def __post_init__(self) -> None:
        if self.width < 1:
            raise ConfigError(f"width = {self.width} must be at least 1")

    @property
    def shape(self) -> str:
        """The model in a few words."""
        return f"word2vec width {self.width}"

    def build(self, words: Words) -> Word2Vec:
        """A model with fresh weights over a vocabulary."""
        return Word2Vec(self, words)


class Word2Vec(nn.Module):
    """The words that are read, or the mean of those around each; and a table of those that can be guessed.

    >>> import torch
    >>> model = Word2VecConfig(width=4).build(Words(9))
    >>> words = model(Tokens.of([[5, 6, 7]]))
    >>> around = model(Tokens.of([[5, 6, 7]]), torch.tensor([[[False, True, True]] * 3]))
    >>> torch.allclose(around[0, 0], words[0, 1:].mean(0))
    True
    """

    def __init__(self, config: Word2VecConfig, words: Words) -> None:
        super().__init__()
        self.embed, self.readout = nn.Embedding(words.size, config.width), words.head(config.width)
        nn.init.uniform_(self.embed.weight, -0.5 / config.width, 0.5 / config.width)
        nn.init.zeros_(self.readout.weight)  # type: ignore[arg-type]

    def forward(self, source: Tokens, around_BLL: Tensor | None = None) -> Tensor:
        x_BLD = self.embed(source.data)
        if around_BLL is not None:
            x_BLD = around_BLL.to(x_BLD.dtype) @ x_BLD / around_BLL.sum(-1, keepdim=True).clamp(min=1)
        return tap(self, "read", x_BLD, "batch position:source width")
