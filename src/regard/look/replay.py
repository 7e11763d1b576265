"""Replay: the pass that led to an answer, repeated with teacher forcing, so that parts of it can be changed.

A search runs a model token by token and hypothesis by hypothesis. A replay reads the same input and the same answer in
one forward pass, whose logits are those of the search up to rounding; a changed pass costs no more than one pass.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from regard.device import module_device
from regard.errors import ConfigError
from regard.sequence import Rows, Tokens
from regard.trace import Record, Trace, record

EMISSIONS = (
    "A CRF chose these labels: the Viterbi algorithm adds transition scores between neighbors to the emission logits. "
    "The tools explain the emission logit of one label, and its log-probability among the emissions of its word."
)
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


@dataclass(frozen=True)
class ChainScores:
    """Scores that a CRF adds to the emission logit of one label of the decoded sequence."""

    before: str
    """label of the word before; "" at the first word"""
    transition: float
    """from that label; at the first word the score of starting with this one"""
    after: str
    """label of the next word; "" at the last one"""
    next_transition: float
    """to that label; at the last word the score of ending with this one"""

    @property
    def text(self) -> str:
        """Both scores in part of a sentence."""
        start = f"transition from {self.before}" if self.before else "start"
        end = f"transition to {self.after}" if self.after else "end"
        return f"{start} {self.transition:.4f}, {end} {self.next_transition:.4f}"


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
    chain: tuple[ChainScores, ...] = ()
    """of each output, where a CRF decodes labels: its logits are emissions, without the scores of transitions"""
    changes: Callable[[], Mapping[str, Replacement]] | None = None
    """what a changed pass replaces, by name of a tap; made anew for each pass, since it may count calls"""

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
        with self.run_changed(replace):
            return self.output_values(self.logits(rows).double().log_softmax(-1))

    @torch.no_grad()
    def record(self, replace: Mapping[str, Replacement] | None = None) -> tuple[Trace, Tensor]:
        """The records of a traced pass, and its logits (outputs, V)."""
        with record(self.module, self.replacements(replace)) as trace:
            logits = self.logits()[0]
        return trace, logits

    @contextmanager
    def run_changed(self, replace: Mapping[str, Replacement] | None = None) -> Iterator[None]:
        """Passes inside the block are traced, with replaced values; nothing is recorded."""
        with record(self.module, self.replacements(replace)) as trace:
            trace.records = _Nothing()
            yield

    def replacements(self, replace: Mapping[str, Replacement] | None = None) -> dict[str, Replacement]:
        """The changes of this pass, and then `replace`."""
        return chain_replacements({} if self.changes is None else self.changes(), replace or {})

    def output_values(self, values_NPV: Tensor) -> Tensor:
        """(N, P): of (N, P, V) the values of the outputs."""
        ids = torch.tensor([output.id for output in self.outputs], device=values_NPV.device)
        return values_NPV.gather(2, ids[None, :, None].expand(values_NPV.shape[0], -1, 1)).squeeze(2)

    @property
    def note(self) -> str:
        """What the logits are that these tools explain, where it is not what the output was chosen by."""
        return EMISSIONS if self.chain else ""

    def check(self, at: int) -> Output:
        """The output with a number."""
        if not 0 <= at < len(self.outputs):
            known = ", ".join(f"{i} {output.token}" for i, output in enumerate(self.outputs[:8]))
            more = "" if len(self.outputs) <= 8 else ", ..."
            raise ConfigError(f"output: expected 0 to {len(self.outputs) - 1} ({known}{more}), got {at}")
        return self.outputs[at]


def chain_replacements(first: Mapping[str, Replacement], second: Mapping[str, Replacement]) -> dict[str, Replacement]:
    """Replacement functions by tap name: where both have one, that of `second` changes what that of `first` returns.

    >>> chain_replacements({"a": lambda x: x + 1}, {"a": lambda x: 2 * x})["a"](3)
    8
    """
    found = dict(first)
    for name, function in second.items():
        found[name] = _chain(found[name], function) if name in found else function
    return found


def _chain(first: Replacement, second: Replacement) -> Replacement:
    return lambda value: second(first(value))


class _Nothing(list[Record]):
    """A list of records that stays empty: changed passes are run for their outputs only."""

    def append(self, record: Record) -> None:
        """Forget the record."""
