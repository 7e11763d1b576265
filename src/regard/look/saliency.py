"""What an answer hung on: gradient times input, one number for each thing that was read, signed.

For a score s of an answer (a label's log-odds, a forecast's value) and a vector x_i that was read, the number is the
sum of ds/dx_i * x_i: about how much s would fall if x_i were gone. It is exact where s is linear in x, and a first
guess elsewhere: one word may stand in for another that says the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from regard.look import svg, terminal
from regard.look.color_scales import Signed
from regard.look.highlighted_text import ColouredText
from regard.look.matrix import Matrix
from regard.look.terminal import Colour
from regard.look.tokens import WORD_START
from regard.sequence import Tokens


@dataclass(frozen=True, eq=False)
class Saliency:
    """Of each answer (a row), what each thing that was read (a column) did for it: above 0 for, below 0 against.

    One answer is drawn as its text on colours, several, or numbers in a table, as a matrix.

    >>> found = Saliency("positive, 0.98", ["so", "great"], np.array([[-0.5, 2.0]]))
    >>> found.strongest(), found.scores.shape
    ('great', (1, 2))
    >>> print(found.text(width=40, colour="none").splitlines()[-1])
    -2.00 █▓▒░ ░▒▓█ +2.00   smallest -0.50, largest +2.00
    """

    title: str
    """what was asked, and with how much doubt"""
    columns: list[str]
    """what was read: words, columns of a table, lags of a series"""
    scores: np.ndarray
    """(rows, columns)"""
    rows: Sequence[str] = ("",)
    """the answers, or the parts of one: labels, tags, columns of a forecast"""
    sides: tuple[str, str] = ("answer", "read")
    """what rows and columns are, in a word each"""

    def __post_init__(self) -> None:
        if self.scores.shape != (len(self.rows), len(self.columns)):
            found = " x ".join(map(str, self.scores.shape))
            raise ValueError(f"{self.title}: {len(self.rows)} x {len(self.columns)} labels for {found} numbers")

    @property
    def heading(self) -> str:
        """The title, and what the numbers are."""
        return f"{self.title}: gradient x input"

    def strongest(self, row: int = 0) -> str:
        """What did most for an answer."""
        return self.columns[int(self.scores[row].argmax())]

    @property
    def scale(self) -> Signed:
        """How numbers become colours: 0 in the middle."""
        finite = self.scores[np.isfinite(self.scores)]
        return Signed(float(np.abs(finite).max()) if finite.size else 0.0)

    @property
    def picture(self) -> ColouredText | Matrix:
        """What is drawn."""
        if len(self.rows) == 1:
            return ColouredText(self.heading, apart(self.columns), self.scores[0], self.scale)
        return Matrix(
            self.scores, tuple(self.rows), tuple(self.columns), self.heading, *self.sides, given=self.scale,
            spoken=("numbers", "hangs most on"),
        )  # fmt: skip

    def svg(self) -> str:
        """The picture as one SVG text; it needs no other file."""
        return self.picture.svg() if isinstance(self.picture, ColouredText) else svg.picture(self.picture)

    def text(self, width: int | None = None, colour: Colour | None = None) -> str:
        """The picture in characters; as wide and as colourful as the terminal unless told."""
        if isinstance(self.picture, ColouredText):
            return self.picture.text(width, colour)
        return terminal.heat_map(self.picture, width, colour)

    def to_dict(self) -> dict[str, Any]:
        """Plain data that JSON can hold."""
        return {
            "title": self.title,
            "method": "gradient x input",
            "rows": list(self.rows),
            "columns": list(self.columns),
            "scores": self.scores.tolist(),
            "sides": list(self.sides),
        }

    def _repr_html_(self) -> str:
        return self.svg()

    def __repr__(self) -> str:
        return f"Saliency({self.title!r}, {len(self.rows)} x {len(self.columns)})"


def apart(words: Sequence[str]) -> list[str]:
    """Words as parts of a running text: where none says that a word begins with it, each is one.

    >>> apart(["so", "great"]), apart([" so", " gre", "at"])
    (['so', ' great'], [' so', ' gre', 'at'])
    """
    if any(word.startswith(WORD_START) for word in words):
        return list(words)
    return [f" {word}" if i else word for i, word in enumerate(words)]


def by_words(read: Callable[[Tokens], Tensor], embed: nn.Module, source: Tokens) -> np.ndarray:
    """(R, L): gradient times input for each word of one text; `read` gives R scores, `embed` makes words vectors.

    >>> embed = nn.Embedding.from_pretrained(torch.tensor([[0.0], [2.0], [-3.0]]))
    >>> by_words(lambda source: embed(source.data).sum((1, 2)) * 0.5, embed, Tokens.of([[1, 2, 1]]))
    array([[ 1. , -1.5,  1. ]])
    """
    vectors: list[Tensor] = []

    def begin(module: nn.Module, given: Any, out: Tensor) -> Tensor:
        vectors.append(out.detach().requires_grad_())
        return vectors[-1]

    hook = embed.register_forward_hook(begin)
    try:
        with torch.enable_grad():
            return times_input(read(source), vectors[-1]).sum(-1)
    finally:
        hook.remove()


def by_numbers(read: Callable[[Tokens], Tensor], source: Tokens) -> np.ndarray:
    """(R, L, F): gradient times input for each number of one row or series.

    >>> weights = torch.tensor([1.0, -2.0])
    >>> by_numbers(lambda source: (source.data * weights).sum((1, 2)), Tokens.full(torch.tensor([[[3.0, 0.5]]])))
    array([[[ 3., -1.]]])
    """
    with torch.enable_grad():
        given = replace(source, data=source.data.detach().clone().requires_grad_())
        return times_input(read(given), given.data)


def times_input(scores_R: Tensor, given: Tensor) -> np.ndarray:
    """(R, ...): for each score its gradient with respect to what was given, times that; of a batch of one.

    >>> x = torch.tensor([[1.0, 3.0]], requires_grad=True)
    >>> times_input((x * x).sum(1), x)
    array([[ 2., 18.]])
    """
    found = [
        torch.autograd.grad(score, given, retain_graph=True, materialize_grads=True)[0] * given for score in scores_R
    ]
    return torch.cat(found).detach().double().numpy()


def log_odds(out_NC: Tensor) -> Tensor:
    """(N, C): of each label log p / (1 - p), what separates it from all others together.

    >>> log_odds(torch.tensor([[2.0, -1.0]]))
    tensor([[ 3., -3.]])
    """
    others = out_NC[:, None].expand(-1, out_NC.shape[1], -1)
    own = torch.eye(out_NC.shape[1], dtype=torch.bool, device=out_NC.device)
    return out_NC - others.masked_fill(own, -torch.inf).logsumexp(-1)
