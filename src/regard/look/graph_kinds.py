"""Kinds of the parts of a model, by the names and axes of their records."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from regard.look.decoding_path import is_cross_attention
from regard.look.states import is_initial
from regard.trace import Record

GATED = {"forget": "LSTM", "reset": "GRU"}
"""recurrent cells by one of their gates"""
SCALED = "scaled_embedding"
"""record of an embedding times the square root of its width, which is what positions are added to"""
NAMED = {
    "embedding": ("embedding", "Embedding"),
    SCALED: ("embedding", "Embedding × √width"),
    "segment": ("segment", "Segment embedding"),
    "normalized": ("norm", "Norm"),
    "residual_sum": ("sum", "Residual sum"),
    "attention_residual": ("sum", "Residual sum"),
    "ffn_residual": ("sum", "Residual sum"),
    "attended": ("attended", "Attentional vector"),
    "image": ("image", "Image"),
    "patches": ("patches", "Patches"),
    "feature_map": ("feature-map", "Feature maps"),
    "pooled": ("pooling", "Pooling"),
    "frame_vector": ("projection", "Frame vectors"),
    "forecast": ("projection", "Forecast, scaled"),
    "numbers": ("projection", "Numbers, standardized"),
    "prediction": ("projection", "Predicted numbers"),
    "hidden": ("dense", "Hidden layer"),
}
"""kind and title by the last part of a name"""
OUTPUTS = (SCALED, "output", "hidden", "context", "normalized", "norm", "convolution")
"""the record of a part that is its output, the first that it has"""


@dataclass(frozen=True)
class PartKind:
    """What a part is."""

    kind: str
    title: str
    tensor: str
    """record of its output"""


def describe_part(records: Sequence[Record]) -> PartKind:
    """Kind, title and output of the part that these records belong to.

    >>> import torch
    >>> describe_part([Record("layers.0.ffn.activations", ("batch", "position", "width"), torch.ones(1, 2, 3), {}, {})])
    PartKind(kind='ffn', title='Feed-forward network', tensor='layers.0.ffn.activations')
    """
    by_last = {record.name.rpartition(".")[2]: record for record in records}
    output = next((by_last[last] for last in OUTPUTS if last in by_last), records[-1])
    kind, title = _kind(by_last, output)
    return PartKind(kind, title, output.name)


def _kind(by_last: dict[str, Record], output: Record) -> tuple[str, str]:
    weights, gates = by_last.get("weights"), by_last.get("gates")
    if weights is not None and "key" in weights.axes:
        if is_cross_attention(weights):
            return "cross-attention", "Cross-attention"
        return "self-attention", "Self-attention"
    if "activations" in by_last:
        return "ffn", "Feed-forward network"
    if gates is not None:
        names = gates.labels.get("gate") or ()
        return "recurrent", next((cell for gate, cell in GATED.items() if gate in names), "Recurrent layer")
    if "convolution" in by_last:
        return "convolution", "Convolution"
    last = output.name.rpartition(".")[2]
    if last == "hidden" and output.context.get("unrolled"):
        return "recurrent", "RNN"
    return NAMED.get(last) or _by_axes(last, output)


def _by_axes(last: str, record: Record) -> tuple[str, str]:
    """Kind of a single record."""
    if layer := re.fullmatch(r"layer(\d+)", last):
        return "layer", f"Layer {layer[1]}, both directions" if int(layer[1]) else "Word vectors, twice"
    if is_initial(record):
        return "bridge", "Initial state" if last.startswith("start") else "Source in one vector"
    if last == "position":
        return "position", "Position"
    if last == "residual":
        return ("sum", "Residual sum") if "channel" in record.axes else ("states", "States")
    if last == "features":
        return ("features", "Features") if "position" in record.axes else ("pooling", "Features")
    return ("mix", "Layer mix") if record.axes == ("batch", "layer") else ("states", last.replace("_", " "))
