"""Text of a sample as its tokens come: incremental detokenization, and stop strings."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from regard.decode import Choice
from regard.text import Tokenizer


class IncrementalDetokenizer:
    """Decodes ids to text one at a time; incomplete UTF-8 sequences are held back."""

    def __init__(self, tokenizer: Tokenizer, prompt: Sequence[int]) -> None:
        self.tokenizer = tokenizer
        self._restart(list(prompt))

    def add(self, id: int) -> str:
        """The characters that this id completes."""
        self._ids.append(id)
        text = self.tokenizer.decode(self._ids)
        if text.endswith("\ufffd"):
            return ""
        new = text[len(self._decoded) :]
        self._restart(self._ids)
        return new

    def flush(self) -> str:
        """What was held back, at the end."""
        return self.tokenizer.decode(self._ids)[len(self._decoded) :]

    def _restart(self, ids: list[int]) -> None:
        self._ids = ids[-8:]  # a few, since the text of a token may depend on its neighbors
        self._decoded = self.tokenizer.decode(self._ids)


class StopStrings:
    """Cuts a growing text before the first stop string; text that may be the beginning of one is held back.

    >>> stops = StopStrings(["END"])
    >>> stops.add("the E"), stops.add("Nd"), stops.add("EN"), stops.add("D of it"), stops.found
    ('the ', 'ENd', '', '', True)
    """

    def __init__(self, stops: Sequence[str] = ()) -> None:
        self.stops, self.found = tuple(stops), False
        self._held = ""

    def add(self, text: str) -> str:
        """The text that is certain to come before any stop string; nothing once one was found."""
        if self.found or not self.stops:
            return "" if self.found else text
        self._held += text
        at = min((i for i in map(self._held.find, self.stops) if i >= 0), default=None)
        if at is not None:
            certain, self._held, self.found = self._held[:at], "", True
            return certain
        keep = max(self._overlap(stop) for stop in self.stops)
        certain, self._held = self._held[: len(self._held) - keep], self._held[len(self._held) - keep :]
        return certain

    def flush(self) -> str:
        """What was held back, at the end of the text."""
        rest, self._held = self._held, ""
        return rest

    def _overlap(self, stop: str) -> int:
        """Length of the longest end of the text that begins `stop`."""
        most = min(len(stop) - 1, len(self._held))
        return next((n for n in range(most, 0, -1) if self._held.endswith(stop[:n])), 0)


class TextBuilder:
    """One continuation of a prompt while it is generated: its ids, its text, its log-probability."""

    def __init__(self, tokenizer: Tokenizer, number: int, before: Sequence[int], stops: Sequence[str] = ()) -> None:
        self.number, self.before = number, before
        self.ids: list[int] = []
        self.score, self.is_complete = 0.0, False
        self.text = ""
        self._detokenizer, self._stops = IncrementalDetokenizer(tokenizer, before), StopStrings(stops)

    def add(self, id: int) -> str:
        """Add a token: the text that can be printed now."""
        self.ids.append(id)
        new = self._stops.add(self._detokenizer.add(id))
        self.is_complete = self._stops.found
        self.text += new
        return new

    def flush(self) -> str:
        """The text that was held back, at the end."""
        rest = self._stops.add(self._detokenizer.flush()) + self._stops.flush()
        self.is_complete = self.is_complete or self._stops.found
        self.text += rest
        return rest

    @property
    def history(self) -> list[int]:
        """Ids of the prompt and of the continuation so far."""
        return [*self.before, *self.ids]


class BatchExtender:
    """Adds the tokens of each decoding step to the rows of a batch, and marks those that are complete."""

    def __init__(self, rows: Sequence[TextBuilder]) -> None:
        self.new: list[tuple[TextBuilder, str]] = []
        """rows of the last step, each with its text that can be printed"""
        self._rows = {row.number: (row, row.score) for row in rows}

    def __call__(self, choice: Choice) -> Tensor:
        self.new = []
        columns = (choice.sources, choice.tokens, choice.scores, choice.ended)
        for number, id, score, ended in zip(*(tensor.tolist() for tensor in columns), strict=True):
            row, before = self._rows[number]
            row.score = before + score  # a search starts at 0 in each segment
            self.new.append((row, "" if ended else row.add(id)))
            row.is_complete = row.is_complete or ended
        return torch.tensor([row.is_complete for row, _ in self.new])
