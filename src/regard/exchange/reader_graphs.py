"""Graphs of models that read an input at once: classifiers, taggers and masked language models."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from regard.exchange.graph import Graph, GraphPlan, Port, Run, difference
from regard.exchange.graph_inputs import GraphInput, TokenInput
from regard.sequence import Rows

Answer = Callable[[nn.Module, Rows], tuple[Tensor, ...]]
"""The outputs of a model for a batch"""
LENGTHS = ((3, 5, 2), (1,), (4, 1, 7, 6))
"""lengths of the rows of the example, and of the inputs that are compared"""


class Reader(nn.Module):
    """A model as a function of plain tensors."""

    def __init__(self, model: nn.Module, inputs: GraphInput, answer: Answer) -> None:
        super().__init__()
        self.model, self.inputs, self.answer = model, inputs, answer

    def forward(self, *tensors: Tensor) -> tuple[Tensor, ...]:
        return self.answer(self.model, self.inputs.read(*tensors))


@dataclass(frozen=True)
class ReaderPlan(GraphPlan):
    """One graph: inputs to logits."""

    @torch.no_grad()
    def check(self, run: Run, seed: int = 0) -> float:
        (graph,) = self.graphs
        reader: Reader = graph.module  # type: ignore[assignment]
        worst = 0.0
        for lengths in LENGTHS:
            inputs = reader.inputs.draw(lengths, seed)
            found = run(graph.name, inputs)
            for row, length in enumerate(lengths):
                expected = reader.answer(reader.model, reader.inputs.read_row(inputs, row))
                for port, one, own in zip(graph.outputs, found, expected, strict=True):
                    has_positions = isinstance(reader.inputs, TokenInput) and reader.inputs.axis in port.axes
                    shown = one[row : row + 1, :length] if has_positions else one[row : row + 1]
                    worst = max(worst, difference(shown, own))
        return worst

    def usage(self) -> str:
        (graph,) = self.graphs
        names = ", ".join(f"`{port.name}`" for port in graph.inputs)
        return f"`{graph.name}` takes {names} and gives {', '.join(f'`{port.name}`' for port in graph.outputs)}."


def reader_graph(model: nn.Module, inputs: GraphInput, answer: Answer, outputs: tuple[Port, ...]) -> Graph:
    """The graph of a model that reads an input at once."""
    return Graph("model", Reader(model, inputs, answer).eval(), inputs.ports, outputs, inputs.draw(LENGTHS[0]))


def pooled_logits(model: nn.Module, source: Rows) -> tuple[Tensor, ...]:
    """One row of logits for each input: a classifier."""
    found: Tensor = model.readout(model(source))  # type: ignore[operator]
    return (found,)


def position_logits(model: nn.Module, source: Rows) -> tuple[Tensor, ...]:
    """One row of logits for each position: a tagger, or a masked language model."""
    found: Tensor = model.readout(model.encoder(source).states.data)  # type: ignore[operator]
    return (found,)


def encoder_states(model: nn.Module, source: Rows) -> tuple[Tensor, ...]:
    """The states of the encoder: a BERT without a head."""
    found: Tensor = model.encoder(source).states.data  # type: ignore[operator]
    return (found,)


def pretraining_logits(model: nn.Module, source: Rows) -> tuple[Tensor, ...]:
    """Logits of each position, and whether the second segment follows the first: BERT's pre-training."""
    memory = model.encoder(source)  # type: ignore[operator]
    logits: Tensor = model.readout(memory.states.data)  # type: ignore[operator]
    follows: Tensor = model.next_sentence(model.pooler(memory))  # type: ignore[operator]
    return logits, follows
