"""Logit lens: what each layer would predict (nostalgebraist 2020, "interpreting GPT: the logit lens").

The output of each layer goes through the model's own end, its last norm and its output projection, as if it were the
output of the last layer. The most probable tokens are computed once, from the recorded values, and become two more
records: `lens.ids` and `lens.probabilities`, so that views and files need no model.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from regard.errors import ConfigError, ModelError
from regard.look.decoding_path import IdToToken, layer_number, to_tokens
from regard.look.terminal import ColorDepth
from regard.look.token_grid import TokenGrid
from regard.look.tokens import make_visible
from regard.look.view import View
from regard.trace import Record, without_recording

IDS, PROBABILITIES = "lens.ids", "lens.probabilities"
"""names of the records"""
TOP = 20
"""candidates per layer and position"""
KINDS = ("residual", "hidden")
"""kinds of layer outputs: the first that was recorded is projected"""
CHUNK = 64
"""positions that are projected together: logits of a large vocabulary are large"""
VOCABULARY = "vocabulary"
"""fact of a record's context: the side whose vocabulary its ids are of"""


@dataclass(frozen=True)
class LensHead:
    """The end of a model, as a function of a layer's output."""

    project: Callable[[Tensor], Tensor | None]
    """(P, D) outputs of a layer -> (P, V) logits; None: this model's layers have no such end"""
    module: str = "decoder"
    """name of the module that the layers belong to"""
    side: str = "target"
    """side whose vocabulary the logits are over"""


@dataclass(frozen=True, eq=False)
class LensView(View):
    """The most probable tokens of each layer at each position.

    >>> view = LensView(["layer 0"], ["I"], [[["am", "was"]]], np.array([[[0.75, 0.25]]]), ["am"])
    >>> print(view.text(60, "none"))
    logit lens: most probable token after each layer
    token   layer 0     next
    I      ▓am 0.75       am
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
    """the token that followed each one, or that stood there in a masked language model; "" if there is none"""
    actual_title: str = "next"

    @property
    def title(self) -> str:
        return "logit lens: most probable token after each layer"

    @property
    def grid(self) -> TokenGrid:
        """A row per layer, the last on top, and a column per token."""
        order = range(len(self.layers) - 1, -1, -1)
        cells = [[best[0] for best in self.candidates[i]] for i in order]
        marked = np.array([[bool(a) and cell == a for cell, a in zip(line, self.actual)] for line in cells])
        return TokenGrid(
            self.title, [self.layers[i] for i in order], self.tokens, cells, self.probabilities[::-1, :, 0],
            ("layer", "token"), marked, [[self._tooltip(i, j) for j in range(len(self.tokens))] for i in order],
            [f"outlined: the layer's token is the one that {self._verb}"] if marked.any() else [],
        )  # fmt: skip

    @property
    def _verb(self) -> str:
        return "followed" if self.actual_title == "next" else "stood there"

    def _tooltip(self, layer: int, position: int, most: int = 5) -> str:
        pairs = zip(self.candidates[layer][position][:most], self.probabilities[layer, position, :most].tolist())
        told = ", ".join(f"{make_visible(token)} {number:.4f}" for token, number in pairs)
        return f"{self.layers[layer]}, after {make_visible(self.tokens[position])}: {told}"

    def text(self, width: int | None = None, color: ColorDepth | None = None) -> str:
        """A line per token, a column per layer, and the token that followed."""
        cells = [[line[j][0] for line in self.candidates] for j in range(len(self.tokens))]
        numbers = np.ascontiguousarray(self.probabilities[:, :, 0].T)
        columns = list(self.layers)
        if any(self.actual):
            cells = [[*line, token] for line, token in zip(cells, self.actual, strict=True)]
            numbers = np.concatenate([numbers, np.full((len(cells), 1), np.nan)], 1)
            columns.append(self.actual_title)
        return TokenGrid(self.title, self.tokens, columns, cells, numbers, ("token", "")).text(width, color)

    def svg(self) -> str:
        """A row per layer, the last on top; outlined where the layer predicts the token that followed."""
        return self.grid.svg()

    def to_dict(self) -> dict[str, Any]:
        return self._fields("layers", "tokens", "candidates", "probabilities", "actual", "actual_title")

    def __repr__(self) -> str:
        return f"LensView({len(self.layers)} layers, {len(self.tokens)} tokens)"


@torch.no_grad()
@without_recording()
def lens_records(records: Sequence[Record], head: LensHead | None) -> list[Record]:
    """The lens of condensed records, as two records; none if the model has no layers with its end."""
    layers = [] if head is None else layer_outputs(records, head.module)
    if not layers or head is None:
        return []
    ids, probabilities = [], []
    for record in layers:
        parts = []
        for x_PD in record.data[0].split(CHUNK):
            logits_PV = head.project(x_PD)
            if logits_PV is None:
                return []
            best = logits_PV.cpu().double().softmax(-1).topk(min(TOP, logits_PV.shape[1]))
            parts.append((best.indices, best.values.float()))
        ids.append(torch.cat([i for i, _ in parts]))
        probabilities.append(torch.cat([p for _, p in parts]))
    names = tuple(layer_title(record.name) for record in layers)
    context = {**layers[0].context, "layer": names, VOCABULARY: head.side}
    labels = {"layer": names} | {a: label for a, label in layers[0].labels.items() if a == "position"}
    axes = ("batch", "layer", "position", "candidate")
    found = ((IDS, torch.stack(ids)), (PROBABILITIES, torch.stack(probabilities)))
    return [Record(name, axes, data[None], labels, context) for name, data in found]


def layer_outputs(records: Sequence[Record], module: str) -> list[Record]:
    """Condensed records of the outputs of a module's layers, the lowest first, as wide as the last of them."""
    for kind in KINDS:
        found = [record for record in records if _is_layer_output(record, module, kind)]
        if found:
            return [record for record in found if record.data.shape[-1] == found[-1].data.shape[-1]]
    return []


def _is_layer_output(record: Record, module: str, kind: str) -> bool:
    """Whether a record is of the module itself or of one of its layers, not of a part of a layer."""
    first, *inner, last = record.name.split(".") if "." in record.name else ("", record.name)
    numbers = [i for i, part in enumerate(inner) if part.isdigit()]
    of_layer = not numbers or numbers == [len(inner) - 1]
    along = record.axes == ("batch", "position", "width") and not record.context.get("backwards")
    return first == module and last == kind and of_layer and along


def layer_title(name: str) -> str:
    """Name of a layer's output: "embedding" below the first layer.

    >>> layer_title("decoder.layers.3.residual"), layer_title("decoder.residual")
    ('layer 3', 'embedding')
    """
    number = layer_number(name)
    return "embedding" if number is None else f"layer {number}"


def lens_view(records: Sequence[Record], id_to_token: IdToToken, layer: int | None = None) -> LensView:
    """The view behind Recording.lens(), of condensed records that have a lens."""
    found = {record.name: record for record in records if record.name in (IDS, PROBABILITIES)}
    if len(found) < 2:
        raise ModelError(
            "no logit lens: it needs a model whose layers share one width and whose end (last norm and output "
            "projection) can read each of them, such as gpt, llama, transformer, bert or rnnlm, over a vocabulary"
        )
    ids, probabilities = found[IDS].data[0], found[PROBABILITIES].data[0].numpy()
    names, context = list(found[IDS].labels["layer"]), found[IDS].context
    chosen = _choose_layers(names, layer)
    side = context.get(VOCABULARY)
    tokens = _read_tokens(found[IDS], ids.shape[1])
    actual, title = _actual_tokens(found[IDS], tokens)
    candidates = [[to_tokens(best, side, id_to_token) for best in ids[i].tolist()] for i in chosen]
    return LensView([names[i] for i in chosen], tokens, candidates, probabilities[chosen], actual, title)


def _choose_layers(names: Sequence[str], layer: int | None) -> list[int]:
    if layer is None:
        return list(range(len(names)))
    wanted = names[-1] if layer == -1 else f"layer {layer}"
    if wanted not in names:
        raise ConfigError(f"layer: the lens has {', '.join(names)}, got {layer}")
    return [names.index(wanted)]


def _read_tokens(record: Record, size: int) -> list[str]:
    label = record.labels.get("position")
    return [str(i + 1) for i in range(size)] if label is None else list(label[0])


def _actual_tokens(record: Record, tokens: Sequence[str]) -> tuple[list[str], str]:
    """The token that followed each one in the text or in the answer; the token itself where the source was read."""
    label, context = record.labels.get("position"), record.context
    if label is not None and label is context.get("source"):
        return list(tokens), "token"
    last = context["target"][0][-1:] if "target" in context and len(context["target"][0]) else [""]
    return [*tokens[1:], *last], "next"
