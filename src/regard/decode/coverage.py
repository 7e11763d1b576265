"""Cross-attention weights during decoding, and the coverage penalty computed from them.

Every model names its cross-attention `cross`, so the weights are the records `*.cross.weights`. Decoders with a loop
over positions have one record per position, the others one for all; here they are concatenated.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

from regard.device import module_device
from regard.errors import ConfigError
from regard.models.base import EncoderDecoder
from regard.sequence import Padded, Rows, Tokens
from regard.trace import Record, Trace, current_trace, record

PATTERN = "*.cross.weights"


class AttentionRecorder:
    """Records the cross-attention weights of a block; tracing rules out the fused kernel, so only when needed."""

    def __init__(self, model: EncoderDecoder) -> None:
        self.model, self.layers = model, list[Tensor]()

    @contextmanager
    def watch(self) -> Iterator[None]:
        """Record inside this block; an outer recording still sees everything."""
        outer = current_trace()
        if outer is not None:
            before = len(outer.records)
            yield
            self.layers = attention_layers(Trace(records=outer.records[before:]).find(PATTERN))
            return
        with record(self.model) as trace:
            yield
        self.layers = attention_layers(trace.find(PATTERN))

    def weights(self, layer: int = -1) -> Tensor:
        """(N, T, S): the mean over the heads of one layer."""
        if not self.layers:
            raise ConfigError(f"this needs a model that attends to its source; no {PATTERN} were recorded")
        if not -len(self.layers) <= layer < len(self.layers):
            raise ConfigError(f"layer = {layer} does not exist: {len(self.layers)} layers attend to the source")
        return self.layers[layer].mean(1).to(module_device(self.model))

    def initial(self, source: Rows, prompt: Tokens) -> Tensor:
        """(B, S): attention of the prompt's last position; 1 at padding, so that padding costs nothing."""
        last_BS = prompt.last(self.weights())
        if isinstance(source, Padded):
            last_BS = last_BS.masked_fill(~source.mask[:, : last_BS.shape[1]], 1.0)
        return last_BS

    def add(self, attended_NS: Tensor | None) -> Tensor:
        """(N, S): attention after one more step."""
        now_NS = self.weights()[:, -1]
        return now_NS if attended_NS is None else attended_NS + now_NS


def attention_layers(records: list[Record]) -> list[Tensor]:
    """(N, H, T, S) per name, in order of recording: the positions of a loop are concatenated."""
    named: dict[str, list[Tensor]] = {}
    for one in records:
        named.setdefault(one.name, []).append(one.data)
    return [torch.cat(positions, 2) for positions in named.values()]


def coverage_penalty(attended_NS: Tensor, beta: float) -> Tensor:
    """(N,): coverage penalty, beta x sum over the source of log(min(attention, 1)) (Wu et al. 2016, eq. 14), at most 0.

    >>> coverage_penalty(torch.tensor([[2.0, 1.0], [1.0, 0.5]]), 1.0)
    tensor([ 0.0000, -0.6931])
    """
    tiny = torch.finfo(attended_NS.dtype).tiny  # a token without any attention costs much, not infinity
    return beta * attended_NS.clamp(tiny, 1.0).log().sum(-1)
