"""word2vec: Mikolov, Sutskever, Chen, Corrado and Dean 2013, "Distributed Representations of Words and Phrases ...".

New against one-hot words: words that occur in similar contexts get similar vectors. Two tables hold a vector for each
word, an input and an output vector; the score of a pair is their dot product. Skip-gram predicts the context words from
a word, CBOW (Mikolov et al. 2013, "Efficient Estimation ...") predicts a word from the mean of its context. The task
chooses between them: the network is the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from torch import Tensor, nn

from regard.config import check_at_least
from regard.models.base import ModelConfigBase
from regard.sequence import Tokens
from regard.spaces import Words
from regard.trace import tap


@dataclass(frozen=True)
class Word2VecConfig(ModelConfigBase):
    """Config of a word2vec.

    >>> Word2VecConfig(width=50).build(Words(1000)).embed
    Embedding(1000, 50)
    """

    kind: Literal["word2vec"] = "word2vec"
    """Mikolov et al. 2013"""
    width: int = 100
    """width of the word vectors"""

    def __post_init__(self) -> None:
        check_at_least(self, 1, "width")

    @property
    def summary(self) -> str:
        """One-line description of the model."""
        return f"word2vec width {self.width}"

    def build(self, words: Words) -> Word2Vec:
        """The model, with fresh weights."""
        return Word2Vec(self, words)


class Word2Vec(nn.Module):
    """Input vectors of words, or the mean over the context of each; the readout holds the output vectors.

    >>> import torch
    >>> model = Word2VecConfig(width=4).build(Words(9))
    >>> words = model(Tokens.pad([[5, 6, 7]]))
    >>> context = model(Tokens.pad([[5, 6, 7]]), torch.tensor([[[False, True, True]] * 3]))
    >>> torch.allclose(context[0, 0], words[0, 1:].mean(0))
    True
    """

    def __init__(self, config: Word2VecConfig, words: Words) -> None:
        super().__init__()
        self.embed, self.readout = nn.Embedding(words.size, config.width), words.head(config.width)
        nn.init.uniform_(self.embed.weight, -0.5 / config.width, 0.5 / config.width)
        nn.init.zeros_(self.readout.weight)  # type: ignore[arg-type]

    def forward(self, source: Tokens, context_BLL: Tensor | None = None) -> Tensor:
        x_BLD = self.embed(source.data)
        if context_BLL is not None:
            x_BLD = context_BLL.to(x_BLD.dtype) @ x_BLD / context_BLL.sum(-1, keepdim=True).clamp(min=1)
        return tap(self, "read", x_BLD, "batch position:source width")
