"""Layer mix: how much each layer of an ELMo contributes to the vector of each word.

The mix is gamma * sum(s_j h_j): what a layer adds to a word's vector is s_j h_j, and its length is drawn. All numbers
are of the recorded pass: the weights s of the mix, and the layers h.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from regard.errors import ModelError
from regard.look.matrix import Matrix
from regard.look.view import MatrixView
from regard.trace import Record

WEIGHTS = "*mix.weights"
"""name of the record with the weights of the layers"""


@dataclass(frozen=True, eq=False)
class LayerMixView(MatrixView):
    """Contribution of each layer (a row) to each word (a column): its weight times the length of its vector.

    >>> view = LayerMixView("encoder.mix.weights", np.array([0.25, 0.75]), ["the", "bank"], np.ones((2, 2)))
    >>> print(view.text(80, "none").splitlines()[0])
    layer mix: weight of each layer times the length of its vector
    """

    name: str
    weights: np.ndarray
    """(layers,), which sum to 1"""
    tokens: list[str]
    lengths: np.ndarray
    """(layers, tokens): Euclidean length of each layer's vector"""

    @property
    def contributions(self) -> np.ndarray:
        """(layers, tokens): weight times length."""
        return self.weights[:, None] * self.lengths

    @property
    def layers(self) -> list[str]:
        """Names of the layers with their weights."""
        names = ["word", *(f"layer {i}" for i in range(1, len(self.weights)))]
        return [f"{name} {weight:.3f}" for name, weight in zip(names, self.weights.tolist(), strict=True)]

    @property
    def matrix(self) -> Matrix:
        title = "layer mix: weight of each layer times the length of its vector"
        return Matrix(
            self.contributions, tuple(self.layers), tuple(self.tokens), title, "layer, weight", "word",
            summary_words=("numbers", "contributes most to"),
        )  # fmt: skip

    def to_dict(self) -> dict[str, Any]:
        return self._fields("name", "layers", "weights", "tokens", "lengths", "contributions")


def layer_mix_view(records: Sequence[Record], row: int = 0) -> LayerMixView:
    """The view behind Recording.layer_mix()."""
    found = next((record for record in records if fnmatch.fnmatchcase(record.name, WEIGHTS)), None)
    if found is None:
        raise ModelError("no mix of layers was recorded; it is for a tagger or classifier that reads by an elmo")
    home = found.name.removesuffix("mix.weights")
    by_name = {record.name: record for record in records}
    layers = [by_name[f"{home}layer{i}"] for i in range(found.data.shape[-1])]
    lengths = np.stack([layer.data[row].double().norm(dim=-1).cpu().numpy() for layer in layers])
    label = layers[0].labels.get("position")
    tokens = [str(i + 1) for i in range(lengths.shape[1])] if label is None else list(label[row])
    weights = found.data.reshape(-1).double().cpu().numpy()
    return LayerMixView(found.name, weights, tokens, lengths[:, : len(tokens)])
