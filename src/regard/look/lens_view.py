"""View of the logit lens: the most probable tokens or labels of each layer, as a grid."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from regard.errors import ConfigError
from regard.look.decoding_path import IdToToken, to_tokens
from regard.look.lens import (
    ACTUAL,
    ACTUAL_TITLE,
    ANSWER,
    IDS,
    LABEL,
    NEXT,
    NOTES,
    PROBABILITIES,
    VOCABULARY,
    WHOLE,
    no_lens,
)
from regard.look.terminal import ColorDepth
from regard.look.token_grid import TokenGrid
from regard.look.tokens import make_visible
from regard.look.view import View
from regard.trace import Record

SHOWN = 5
"""labels per layer of a classifier, in a drawing"""
TEXT = "text"
"""the position of an output of a text as a whole"""


@dataclass(frozen=True, eq=False)
class LensView(View):
    """The most probable tokens or labels of each layer, at each position or for the text as a whole.

    >>> view = LensView(["layer 0"], ["I"], [[["am", "was"]]], np.array([[[0.75, 0.25]]]), ["am"])
    >>> print(view.text(60, "none"))
    logit lens: most probable token after each layer
    token   layer 0     next
    I      ▓am 0.75       am
    >>> best, numbers = [[["bad", "good"]]], np.array([[[0.75, 0.25]]])
    >>> whole = LensView(["layer 0"], ["text"], best, numbers, ["bad"], "answer", whole=True)
    >>> print(whole.text(60, "none"))
    logit lens: most probable labels after each layer
    layer            1          2
    layer 0  ▓bad 0.75 ░good 0.25
    outlined: the layer's label is the one that the model chose
    """

    layers: list[str]
    """"embedding", "layer 0", ..."""
    tokens: list[str]
    """tokens that were read"""
    candidates: list[list[list[str]]]
    """(layers, tokens, candidates), the most probable first"""
    probabilities: np.ndarray
    """of the candidates"""
    actual: list[str]
    """the token that followed each one, or that stood there, or the label that the model chose; "" if there is none"""
    actual_title: str = NEXT
    """"next", "token" or "answer\""""
    whole: bool = False
    """whether the text as a whole has one output"""
    notes: Sequence[str] = ()

    @property
    def title(self) -> str:
        what = "labels" if self.whole else self._what
        return f"logit lens: most probable {what} after each layer"

    @property
    def _what(self) -> str:
        return "label" if self.actual_title == ANSWER else "token"

    @property
    def grid(self) -> TokenGrid:
        """A row per layer, the last on top, and a column per token, or per rank of the labels of a whole text."""
        order = list(range(len(self.layers) - 1, -1, -1))
        shown = min(SHOWN, self.probabilities.shape[2]) if self.whole else 1
        cells = [[token for best in self.candidates[i] for token in best[:shown]] for i in order]
        actual = [token for token in self.actual for _ in range(shown)]
        marked = np.array([[bool(a) and cell == a for cell, a in zip(line, actual)] for line in cells])
        tooltips = [[self._tooltip(i, j) for j in range(len(self.tokens)) for _ in range(shown)] for i in order]
        verb = {NEXT: "followed", ANSWER: "the model chose"}.get(self.actual_title, "stood there")
        outlined = [f"outlined: the layer's {self._what} is the one that {verb}"] if marked.any() else []
        columns = [str(k + 1) for k in range(shown)] if self.whole else self.tokens
        return TokenGrid(
            self.title, [self.layers[i] for i in order], columns, cells,
            self.probabilities[::-1, :, :shown].reshape(len(order), -1), ("layer", "" if self.whole else "token"),
            marked, tooltips, [*outlined, *self.notes],
        )  # fmt: skip

    def _tooltip(self, layer: int, position: int, most: int = 5) -> str:
        pairs = zip(self.candidates[layer][position][:most], self.probabilities[layer, position, :most].tolist())
        told = ", ".join(f"{make_visible(token)} {number:.4f}" for token, number in pairs)
        where = "" if self.whole else f", {'at' if self.actual_title == ANSWER else 'after'} {self.tokens[position]}"
        return f"{self.layers[layer]}{make_visible(where)}: {told}"

    def text(self, width: int | None = None, color: ColorDepth | None = None) -> str:
        """A line per token, a column per layer, and what was chosen; a line per layer where a text has one output."""
        if self.whole:
            return self.grid.text(width, color)
        cells = [[line[j][0] for line in self.candidates] for j in range(len(self.tokens))]
        numbers = np.ascontiguousarray(self.probabilities[:, :, 0].T)
        columns = list(self.layers)
        if any(self.actual):
            cells = [[*line, token] for line, token in zip(cells, self.actual, strict=True)]
            numbers = np.concatenate([numbers, np.full((len(cells), 1), np.nan)], 1)
            columns.append(self.actual_title)
        titles = ("token", "")
        return TokenGrid(self.title, self.tokens, columns, cells, numbers, titles, notes=self.notes).text(width, color)

    def svg(self) -> str:
        """A row per layer, the last on top; outlined where the layer predicts what followed or was chosen."""
        return self.grid.svg()

    def to_dict(self) -> dict[str, Any]:
        fields = ("layers", "tokens", "candidates", "probabilities", "actual", "actual_title", "whole", "notes")
        return self._fields(*fields)

    def __repr__(self) -> str:
        return f"LensView({len(self.layers)} layers, {'one output' if self.whole else f'{len(self.tokens)} tokens'})"


def lens_view(records: Sequence[Record], id_to_token: IdToToken, layer: int | None = None) -> LensView:
    """The view behind Recording.lens(), of condensed records that have a lens."""
    found = {record.name: record for record in records if record.name in (IDS, PROBABILITIES)}
    if len(found) < 2:
        raise no_lens("this recording has none; it is computed where a model is recorded: with model.record()")
    record = found[IDS]
    ids, probabilities, context = record.data[0], found[PROBABILITIES].data[0].numpy(), record.context
    names = list(record.labels["layer"])
    chosen = _choose_layers(names, layer)
    label = record.labels.get("position")
    tokens = [str(i + 1) for i in range(ids.shape[1])] if label is None else list(label[0])
    candidates = [[lens_tokens(best, record, id_to_token) for best in ids[i].tolist()] for i in chosen]
    whole = bool(context.get(WHOLE))
    return LensView(
        [names[i] for i in chosen], [TEXT] if whole else tokens, candidates, probabilities[chosen],
        list(context.get(ACTUAL, ())) or [""] * ids.shape[1], context.get(ACTUAL_TITLE, NEXT), whole,
        list(context.get(NOTES, ())),
    )  # fmt: skip


def lens_tokens(ids: Sequence[int], record: Record, id_to_token: IdToToken) -> list[str]:
    """Tokens or labels of the ids of a lens."""
    side, names = record.context.get(VOCABULARY), record.context.get(LABEL)
    return [names[i] for i in ids] if side == LABEL and names else to_tokens(ids, side, id_to_token)


def _choose_layers(names: Sequence[str], layer: int | None) -> list[int]:
    if layer is None:
        return list(range(len(names)))
    wanted = names[-1] if layer == -1 else f"layer {layer}"
    if wanted not in names:
        raise ConfigError(f"layer: the lens has {', '.join(names)}, got {layer}")
    return [names.index(wanted)]
