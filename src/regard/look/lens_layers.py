"""Outputs of a module's layers, found among condensed records by their names: what the logit lens projects."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from regard.trace import Record

DIRECTIONS = ("forward_layer", "backward_layer")
"""parts of a bidirectional recurrent layer"""
RECURRENT = ("residual_sum", "hidden")
"""records that are the output of a recurrent layer, the first that it has"""
AXES = ("batch", "position", "width")


@dataclass(frozen=True)
class LayerOutput:
    """The output of one layer at all positions of a text."""

    title: str
    """"embedding", "layer 0", ..."""
    states: Tensor
    """(P, D)"""
    final: Tensor
    """(D,): after the last position; of a bidirectional layer, after the last of each direction"""


def layer_outputs(records: Sequence[Record], module: str) -> list[LayerOutput]:
    """Outputs of a module's layers, the lowest first: its residual stream, or the states of its recurrent layers.

    >>> one = Record("decoder.layers.0.residual", AXES, torch.ones(1, 2, 3), {}, {})
    >>> [layer.title for layer in layer_outputs([one], "decoder")]
    ['layer 0']
    """
    found = [(record.name.split("."), record) for record in records if record.axes == AXES]
    found = [(parts, record) for parts, record in found if parts[0] == module]
    length = text_length(records) if module == "encoder" else None
    residual = {_number(parts): record for parts, record in found if parts[-1] == "residual" and _is_layer(parts)}
    if any(number is not None for number in residual):
        titles = {number: "embedding" if number is None else f"layer {number}" for number in residual}
        outputs = [(titles[number], record.data[0, :length]) for number, record in residual.items()]
        return [LayerOutput(title, states_PD, states_PD[-1:].flatten()) for title, states_PD in outputs]
    return _recurrent_outputs(found, length)


def _recurrent_outputs(found: Sequence[tuple[list[str], Record]], length: int | None) -> list[LayerOutput]:
    """States of recurrent layers, and of hidden layers that read each position alone."""
    layers: dict[tuple[str, ...], dict[str, dict[str, Record]]] = {}
    for parts, record in found:
        direction = parts[-2] if parts[-2] in DIRECTIONS else DIRECTIONS[int(bool(record.context.get("backwards")))]
        layer = tuple(part for part in parts[:-1] if part not in DIRECTIONS)
        if parts[-1] in RECURRENT and _is_layer([*layer, ""]):
            layers.setdefault(layer, {}).setdefault(direction, {})[parts[-1]] = record
    containers = [layer[:-1] for layer in layers if layer[-1].isdigit()]
    outputs: list[LayerOutput] = []
    for layer, directions in layers.items():
        if layer[-1].isdigit() and layer[:-1] != containers[-1]:
            continue  # a stack below, such as the language models that an encoder reads by
        both = [_join_direction(directions[name], name, length) for name in DIRECTIONS if name in directions]
        states_PD, final_D = (torch.cat(parts, -1) for parts in zip(*both, strict=True))
        outputs.append(LayerOutput(f"layer {len(outputs)}", states_PD, final_D))
    return outputs


def _join_direction(kinds: dict[str, Record], direction: str, length: int | None) -> tuple[Tensor, Tensor]:
    """States and final state of one direction; the backward one ends at the first position."""
    states_PD = next(kinds[kind] for kind in RECURRENT if kind in kinds).data[0]
    if direction == DIRECTIONS[0]:
        states_PD = states_PD[:length]
        return states_PD, states_PD[-1:].flatten()
    padding = 0 if length is None else max(0, len(states_PD) - length)
    states_PD = states_PD[padding:]  # it was aligned with the tokens from the end
    return states_PD, states_PD[:1].flatten()


def _is_layer(parts: Sequence[str]) -> bool:
    """Whether a record is of the module itself or of one of its layers, not of a part of a layer."""
    inner = list(parts[1:-1])
    numbers = [i for i, part in enumerate(inner) if part.isdigit()]
    return numbers == [len(inner) - 1] or (not numbers and len(inner) <= 1)


def _number(parts: Sequence[str]) -> int | None:
    """Number of the layer of a record."""
    return int(parts[-2]) if parts[-2].isdigit() else None


def text_length(records: Sequence[Record]) -> int | None:
    """Positions of the text that an encoder read; those after it are padding. None: they are not known."""
    rows = next((record.context["source"] for record in records if record.context.get("source")), None)
    return None if rows is None or not len(rows[0]) else len(rows[0])
