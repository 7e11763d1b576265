"""Saliency: gradient x input attribution of an answer, one signed number per input.

For a score s of an answer (log-odds of a label, value of a forecast) and an input vector x_i, the saliency is the sum
of ds/dx_i * x_i: approximately how much s would fall without x_i. It is exact where s is linear in x, and a first-order
approximation elsewhere: one word may stand in for another that says the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from regard.look.color_scales import DivergingScale
from regard.look.highlighted_text import HighlightedText
from regard.look.matrix import Matrix
from regard.look.terminal import ColorDepth
from regard.look.tokens import WORD_START
from regard.look.view import MatrixView
from regard.sequence import Tokens


@dataclass(frozen=True, eq=False)
class Saliency(MatrixView):
    """Effect of each input (a column) on each answer (a row): above 0 for it, below 0 against it.

    One answer is drawn as highlighted text, several as a matrix.

    >>> found = Saliency("positive, 0.98", ["so", "great"], np.array([[-0.5, 2.0]]))
    >>> found.strongest()
    'great'
    >>> print(found.text(width=40, color="none").splitlines()[-1])
    -2.00 █▓▒░ ░▒▓█ +2.00   smallest -0.50, largest +2.00
    """

    title: str
    """the answer and its probability"""
    columns: list[str]
    """inputs: tokens, columns of a table, lags of a series"""
    scores: np.ndarray
    """(rows, columns)"""
    rows: Sequence[str] = ("",)
    """answers, or parts of one: labels, tags, columns of a forecast"""
    sides: tuple[str, str] = ("answer", "read")
    """titles of the rows and of the columns"""

    def __post_init__(self) -> None:
        if self.scores.shape != (len(self.rows), len(self.columns)):
            found = " x ".join(map(str, self.scores.shape))
            raise ValueError(f"{self.title}: {len(self.rows)} x {len(self.columns)} labels for {found} numbers")

    @property
    def heading(self) -> str:
        """The title and the method."""
        return f"{self.title}: gradient x input"

    def strongest(self, row: int = 0) -> str:
        """The input with the largest effect for an answer."""
        return self.columns[int(self.scores[row].argmax())]

    @property
    def scale(self) -> DivergingScale:
        """The color scale: 0 in the middle."""
        finite = self.scores[np.isfinite(self.scores)]
        return DivergingScale(float(np.abs(finite).max()) if finite.size else 0.0)

    @property
    def matrix(self) -> Matrix:
        return Matrix(
            self.scores, tuple(self.rows), tuple(self.columns), self.heading, *self.sides, color_scale=self.scale,
            summary_words=("numbers", "depends most on"),
        )  # fmt: skip

    def highlight(self) -> HighlightedText:
        """The inputs as a text on the colors of the first answer."""
        return HighlightedText(self.heading, separate_words(self.columns), self.scores[0], self.scale)

    def svg(self) -> str:
        """Highlighted text of one answer, a heat map of several."""
        return self.highlight().svg() if len(self.rows) == 1 else super().svg()

    def text(self, width: int | None = None, color: ColorDepth | None = None) -> str:
        """Highlighted text of one answer, a heat map of several, in characters."""
        return self.highlight().text(width, color) if len(self.rows) == 1 else super().text(width, color)

    def to_dict(self) -> dict[str, Any]:
        method = {"method": "gradient x input"}
        return self._fields("title") | method | self._fields("rows", "columns", "scores", "sides")

    def __repr__(self) -> str:
        return f"Saliency({self.title!r}, {len(self.rows)} x {len(self.columns)})"


def separate_words(words: Sequence[str]) -> list[str]:
    """Words as parts of a running text: if none has a word-start mark, each gets a space.

    >>> separate_words(["so", "great"]), separate_words([" so", " gre", "at"])
    (['so', ' great'], [' so', ' gre', 'at'])
    """
    if any(word.startswith(WORD_START) for word in words):
        return list(words)
    return [f" {word}" if i else word for i, word in enumerate(words)]


def token_saliency(scores: Callable[[Tokens], Tensor], embeddings: Sequence[nn.Module], source: Tokens) -> np.ndarray:
    """(R, L): gradient x input per token of one text; `scores` gives R scores, `embeddings` are what reads the ids."""
    vectors: dict[nn.Module, Tensor] = {}

    def start_graph(module: nn.Module, inputs: Any, out: Tensor) -> Tensor:
        vectors[module] = out.detach().requires_grad_()
        return vectors[module]

    hooks = [embed.register_forward_hook(start_graph) for embed in embeddings]
    try:
        with torch.enable_grad():
            found = scores(source)
            return np.sum([gradient_x_input(found, read).sum(-1) for read in vectors.values()], axis=0)
    finally:
        for hook in hooks:
            hook.remove()


def feature_saliency(scores: Callable[[Tokens], Tensor], source: Tokens) -> np.ndarray:
    """(R, L, F): gradient x input per number of one table row or series."""
    with torch.enable_grad():
        inputs = replace(source, data=source.data.detach().clone().requires_grad_())
        return gradient_x_input(scores(inputs), inputs.data)


def gradient_x_input(scores_R: Tensor, inputs: Tensor) -> np.ndarray:
    """(R, ...): per score the gradient with respect to the inputs, times the inputs; for a batch of one."""
    grads = [torch.autograd.grad(score, inputs, retain_graph=True, materialize_grads=True)[0] for score in scores_R]
    return torch.cat([grad * inputs for grad in grads]).detach().cpu().double().numpy()


def log_odds(out_NC: Tensor) -> Tensor:
    """(N, C): log-odds of each label, log p / (1 - p).

    >>> log_odds(torch.tensor([[2.0, -1.0]]))
    tensor([[ 3., -3.]])
    """
    others = out_NC[:, None].expand(-1, out_NC.shape[1], -1)
    own = torch.eye(out_NC.shape[1], dtype=torch.bool, device=out_NC.device)
    return out_NC - others.masked_fill(own, -torch.inf).logsumexp(-1)
