"""How a search reads attention: the weights over the source that the last layer shows while it decodes.

Every model names its attention to the source `cross`, so `*.cross.weights` is where to look. Who can look only once the
step before is taken shows one record a place, the others one for all: here they are the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

from regard.errors import ConfigError
from regard.models.base import EncoderDecoder
from regard.sequence import Padded, Rows, Tokens
from regard.trace import Record, Trace, current, record

PATTERN = "*.cross.weights"


class Attention:
    """Reads the weights of the last layer that attends to the source; costs the fused kernel, so only when asked.

    >>> from regard.models.base import Nothing
    >>> Attention(EncoderDecoder(Nothing(), torch.nn.Identity())).weights()
    Traceback (most recent call last):
    regard.errors.ConfigError: this needs a model that attends to its source; no *.cross.weights were seen
    """

    def __init__(self, model: EncoderDecoder) -> None:
        self.model, self.seen = model, list[Tensor]()

    @contextmanager
    def watch(self) -> Iterator[None]:
        """What is shown in here is looked at; a record around it still sees everything."""
        outer = current()
        if outer is not None:
            before = len(outer.records)
            yield
            self.seen = layers(Trace(records=outer.records[before:]).find(PATTERN))
            return
        with record(self.model) as trace:
            yield
        self.seen = layers(trace.find(PATTERN))

    def weights(self, layer: int = -1) -> Tensor:
        """(N, T, S): the mean over the heads of one layer."""
        if not self.seen:
            raise ConfigError(f"this needs a model that attends to its source; no {PATTERN} were seen")
        if not -len(self.seen) <= layer < len(self.seen):
            raise ConfigError(f"layer = {layer} is not there: {len(self.seen)} layers attend to the source")
        return self.seen[layer].mean(1)

    def begin(self, source: Rows, prompt: Tokens) -> Tensor:
        """(B, S): what the prompt's last place looked at. Padding counts as seen, so that it costs nothing."""
        last_BS = prompt.last(self.weights())
        if isinstance(source, Padded):
            last_BS = last_BS.masked_fill(~source.mask[:, : last_BS.shape[1]], 1.0)
        return last_BS

    def add(self, attended_NS: Tensor | None) -> Tensor:
        """(N, S): one step more."""
        now_NS = self.weights()[:, -1]
        return now_NS if attended_NS is None else attended_NS + now_NS


def layers(records: list[Record]) -> list[Tensor]:
    """(N, H, T, S) a name, in the order in which they were seen: the places of a loop, joined.

    >>> place = Record("decoder.cross.weights", ("batch", "head", "query", "key"), torch.ones(1, 1, 1, 2), {}, {})
    >>> [layer.shape for layer in layers([place, place, place])]
    [torch.Size([1, 1, 3, 2])]
    """
    named: dict[str, list[Tensor]] = {}
    for seen in records:
        named.setdefault(seen.name, []).append(seen.data)
    return [torch.cat(places, 2) for places in named.values()]


def coverage(attended_NS: Tensor, beta: float) -> Tensor:
    """(N,): beta x sum over the source of log(min(attention, 1)) (Wu et al. 2016, eq. 14), never above 0.

    >>> coverage(torch.tensor([[2.0, 1.0], [1.0, 0.5]]), 1.0)
    tensor([ 0.0000, -0.6931])
    """
    tiny = torch.finfo(attended_NS.dtype).tiny  # a word that nobody looked at costs much, not everything
    return beta * attended_NS.clamp(tiny, 1.0).log().sum(-1)
