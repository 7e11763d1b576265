"""Attention rollout over a text (Abnar and Zuidema 2020): how much of each token there is in each position at the end.

The product over the layers of a stack of (mean of the heads + identity) / 2, as over an image (rollout.py). It follows
weights alone: what values, norms and feed-forward networks do is not in it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from torch import Tensor

from regard.errors import ConfigError, ModelError
from regard.look.lens_layers import text_length
from regard.look.matrix import Matrix
from regard.look.rollout import attention_rollout
from regard.look.view import MatrixView
from regard.trace import Record

SELF_ATTENTION = re.compile(r"(\w+)\.layers\.(\d+)\.attention\.weights")
ROLLOUT = "rollout"
"""last part of the names of the records"""


@dataclass(frozen=True, eq=False)
class TextRollout(MatrixView):
    """Rollout of the self-attention of one stack: a row per position, a column per token."""

    stack: str
    """"encoder" or "decoder\""""
    layer: int
    """the last layer that counts"""
    tokens: list[str]
    rollout: np.ndarray
    """(positions, tokens); rows sum to 1"""

    @property
    def matrix(self) -> Matrix:
        title = f"attention rollout, {self.stack}, layers 0 to {self.layer}"
        return Matrix(self.rollout, tuple(self.tokens), tuple(self.tokens), title, "position", "token")

    def to_dict(self) -> dict[str, Any]:
        return self._fields("stack", "layer", "tokens", "rollout")


def text_rollout(records: Sequence[Record], layer: int | None = None, name: str | None = None) -> TextRollout:
    """The view behind Recording.text_rollout(), of condensed records; by default of the first stack."""
    stacks = _stacks(records)
    if not stacks:
        raise ModelError("attention rollout needs layers of self-attention, and this model has none; use --view states")
    stack = next(iter(stacks)) if name is None else name.removesuffix(".*")
    if stack not in stacks:
        raise ConfigError(f"name: the stacks with self-attention are {', '.join(stacks)}, got {name!r}")
    layers = stacks[stack]
    last = max(layers) if layer is None or layer == -1 else layer
    if last not in layers:
        raise ConfigError(f"layer: the layers are {', '.join(map(str, layers))}, got {layer}")
    rollout_SS = _rollout(records, stack, [record for number, record in layers.items() if number <= last])
    label = layers[last].labels.get("key")
    tokens = [str(i + 1) for i in range(len(rollout_SS))] if label is None else list(label[0])
    return TextRollout(stack, last, tokens, rollout_SS.numpy())


def rollout_records(records: Sequence[Record]) -> list[Record]:
    """A record of the rollout of each stack over a text, through all layers; of an image see image_records.py."""
    made = []
    for stack, layers in _stacks(records).items():
        patches = any(record.name == f"{stack}.patches" for record in records)
        last = layers[max(layers)]
        if patches or any(record.data.shape[-2] != record.data.shape[-1] for record in layers.values()):
            continue  # an image, or queries of a part of the text
        data = _rollout(records, stack, layers.values()).float()
        made.append(Record(f"{stack}.{ROLLOUT}", ("batch", "query", "key"), data[None], last.labels, last.context))
    return made


def _rollout(records: Sequence[Record], stack: str, layers: Iterable[Record]) -> Tensor:
    """Rollout of the first text, without the padding that an encoder reads after it in a batch."""
    length = text_length(records) if stack == "encoder" else None
    return attention_rollout([record.data[0, :, :length, :length] for record in layers])


def _stacks(records: Sequence[Record]) -> dict[str, dict[int, Record]]:
    """Self-attention weights by stack and layer, the lowest layer first."""
    stacks: dict[str, dict[int, Record]] = {}
    for record in records:
        if found := SELF_ATTENTION.fullmatch(record.name):
            stacks.setdefault(found[1], {})[int(found[2])] = record
    return {stack: dict(sorted(layers.items())) for stack, layers in stacks.items()}
