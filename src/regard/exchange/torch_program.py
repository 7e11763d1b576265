"""Export of graphs as torch programs (.pt2): torch.export.load reads them without the code of the model."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import torch
from torch import Tensor
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind, InputSpec
from torch.utils._sympy.value_ranges import ValueRanges

from regard.exchange.fused_recurrent import symbolic_lengths
from regard.exchange.graph import Graph

LOGGERS = ("torch.export", "torch.onnx", "torch._export", "onnxscript", "onnx_ir")
"""loggers of libraries that report on what they pass over"""


@contextmanager
def quiet_tracing() -> Iterator[None]:
    """Context of tracing: recurrent lengths are symbols, and notes for the libraries' developers are not shown."""
    levels = {name: logging.getLogger(name).level for name in LOGGERS}
    try:
        for name in LOGGERS:
            logging.getLogger(name).setLevel(logging.ERROR)
        with warnings.catch_warnings(), torch.no_grad(), symbolic_lengths():
            warnings.simplefilter("ignore")
            yield
    finally:
        for name, level in levels.items():
            logging.getLogger(name).setLevel(level)


def trace(graph: Graph) -> ExportedProgram:
    """The program of a graph, for any size of its named axes."""
    with quiet_tracing():
        program = torch.export.export(graph.module, graph.example, dynamic_shapes=graph.dynamic_shapes(), strict=False)
    for symbol, sizes in program.range_constraints.items():  # torch takes for granted that sizes are 2 or more
        program.range_constraints[symbol] = ValueRanges(0, sizes.upper)
    drop_unused_weights(program)
    for node in program.graph.nodes:
        node.meta.pop("stack_trace", None)  # it holds the paths of this machine
    return program


def drop_unused_weights(program: ExportedProgram) -> None:
    """Take weights out of a program that it does not read: those of the encoder out of a decoding step."""
    signature, kept = program.graph_signature, list[InputSpec]()
    for node, spec in zip(program.graph.find_nodes(op="placeholder"), signature.input_specs, strict=True):
        if spec.kind in (InputKind.PARAMETER, InputKind.BUFFER) and not node.users:
            program.graph.erase_node(node)
        else:
            kept.append(spec)
    signature.input_specs = kept
    names = {spec.target for spec in kept}
    for weights in (program.state_dict, program.constants):
        for name in [name for name in weights if name not in names]:
            del weights[name]
    program.graph_module.recompile()


class TorchFormat:
    """ExportedProgram of torch.export, in a .pt2 file."""

    name = "torch"
    suffix = ".pt2"
    tolerance = 1e-4
    title = "torch program"

    def __init__(self) -> None:
        self.programs: dict[str, torch.nn.Module] = {}

    def write(self, graph: Graph, path: Path) -> None:
        """Write a graph as a file."""
        program = trace(graph)
        with quiet_tracing():
            torch.export.save(program, path)
        self.programs[graph.name] = program.module()

    def run(self, name: str, inputs: Sequence[Tensor]) -> list[Tensor]:
        """The outputs of a graph that was written."""
        return list(self.programs[name](*inputs))
