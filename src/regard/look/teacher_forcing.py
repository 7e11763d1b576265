"""A text as a model reads it in training: what goes in, what is wanted after each token, and the words of both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from regard.look.gradients import GradientsView, gradients_through_time
from regard.sequence import Padded, Tokens
from regard.spaces import Space
from regard.trace import scene


@dataclass(frozen=True)
class Reading:
    """One sentence or text, read as it is given (teacher forcing); a language model's source is empty.

    >>> from regard.models.gpt import GPTConfig
    >>> from regard.spaces import Words
    >>> model = GPTConfig(layers=1, width=8, heads=2, longest=8).build(Words(9), Words(9)).eval()
    >>> words = {"target": [["<SOS>", "a", "b", "<EOS>"]]}
    >>> reading = Reading(Tokens.of([[]]), Tokens.of([[2, 5, 6, 3]]), Words(9), words)
    >>> reading.gradients(model).columns
    ['<SOS>', 'a', 'b']
    """

    source: Padded
    target: Tokens
    """from <SOS> to <EOS>, or from the first token of a text to the last"""
    space: Space
    """of the target: it says what a loss is"""
    words: Mapping[str, Sequence[Sequence[str]]] = field(default_factory=dict)
    """of "source" and "target": the tokens of each row"""

    @torch.no_grad()
    def read(self, model: Any) -> None:
        """Go through the whole text once, for whoever records."""
        with scene(**{side: [list(row) for row in rows] for side, rows in self.words.items()}):
            model(self.source, self.target)

    def gradients(self, model: Any, name: str | None = None, layer: int | None = None) -> GradientsView:
        """|dL_t/dh_s| in this text; see gradients_through_time."""
        return gradients_through_time(model, self.source, self.target, self.space, name, layer, self.words)
