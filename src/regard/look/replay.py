"""Replay: the pass that led to an answer, repeated with teacher forcing, so that parts of it can be changed.

A search runs a model token by token and hypothesis by hypothesis. A replay reads the same input and the same answer in
one forward pass, whose logits are those of the search up to rounding; a changed pass costs no more than one pass.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from regard.device import module_device
from regard.errors import ConfigError
from regard.sequence import Rows, Tokens
from regard.trace import Record, Trace, record

Replacement = Callable[[Tensor], Tensor]
"""value of a tap -> the value that the pass continues with"""


@dataclass(frozen=True)
class Output:
    """One output of a pass: the token, or the label, that was chosen at a position."""

    id: int
    """index among the logits"""
    token: str
    """the token, or the name of the label"""
    place: str
    """where it was chosen: the token that was read last, the word that got the label; "" if there is one output"""


@dataclass(frozen=True, eq=False)
class Replay:
    """A fixed input of a model with its outputs, to be run again with changed values."""

    module: Any
    source: Rows
    """what the encoder reads; empty for a language model"""
    read: tuple[int, ...] | None
    """ids that the decoder reads; None: the model has no decoder"""
    positions: tuple[int, ...]
    """position of each output among the features"""
    outputs: tuple[Output, ...]
    tokens: Mapping[str, Sequence[str]]
    """per side ("source", "target"): the tokens that are read"""
    prompt: int = 0
    """number of ids that the decoder reads first; the others are the answer"""

    def logits(self, rows: int = 1) -> Tensor:
        """(rows, outputs, V): logits of one forward pass over so many copies of the input."""
        device = module_device(self.module)
        source = self.source.select(torch.zeros(rows, dtype=torch.long, device=self.source.device)).to(device)
        inputs: list[Any] = [source]
        if self.read is not None:
            inputs.append(Tokens.full(torch.tensor([self.read], device=device).expand(rows, -1)))
        features = self.module(*inputs)
        features = features[:, None] if features.ndim == 2 else features
        at = torch.tensor(self.positions, device=device)
        logits: Tensor = self.module.readout(features.index_select(1, at))
        return logits

    @torch.no_grad()
    def log_probs(self, replace: Mapping[str, Replacement] | None = None, rows: int = 1) -> Tensor:
        """(rows, outputs): log-probability of each output, in a traced pass with replaced values."""
        with record(self.module, replace) as trace:
            trace.records = _Nothing()
            return self.output_values(self.logits(rows).double().log_softmax(-1))

    @torch.no_grad()
    def record(self, replace: Mapping[str, Replacement] | None = None) -> tuple[Trace, Tensor]:
        """The records of a traced pass, and its logits (outputs, V)."""
        with record(self.module, replace) as trace:
            logits = self.logits()[0]
        return trace, logits

    def output_values(self, values_NPV: Tensor) -> Tensor:
        """(N, P): of (N, P, V) the values of the outputs."""
        ids = torch.tensor([output.id for output in self.outputs], device=values_NPV.device)
        return values_NPV.gather(2, ids[None, :, None].expand(values_NPV.shape[0], -1, 1)).squeeze(2)

    def check(self, at: int) -> Output:
        """The output with a number."""
        if not 0 <= at < len(self.outputs):
            known = ", ".join(f"{i} {output.token}" for i, output in enumerate(self.outputs[:8]))
            more = "" if len(self.outputs) <= 8 else ", ..."
            raise ConfigError(f"output: expected 0 to {len(self.outputs) - 1} ({known}{more}), got {at}")
        return self.outputs[at]


class _Nothing(list[Record]):
    """A list of records that stays empty: changed passes are run for their outputs only."""

    def append(self, record: Record) -> None:
        """Forget the record."""
