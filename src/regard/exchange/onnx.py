"""Export of graphs as ONNX files, which onnxruntime runs; recurrent layers are its fused operators."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from regard.errors import ConfigError
from regard.exchange.graph import Graph, Port
from regard.exchange.torch_program import quiet_tracing, trace

OPSET = 20
"""version of ONNX's operators"""
MAX_INLINE = 1 << 30
"""bytes of weights that are put into the .onnx file itself, which holds less than 2 GiB; more go to a file beside it"""
PACKAGES = ("onnx", "onnxscript", "onnxruntime")


class OnnxFormat:
    """ONNX graphs, checked with onnxruntime."""

    name = "onnx"
    suffix = ".onnx"
    tolerance = 1e-4
    title = "ONNX"

    def __init__(self) -> None:
        require_packages()
        self.sessions: dict[str, Any] = {}

    def write(self, graph: Graph, path: Path) -> None:
        """Write a graph as a file, and load that file for the check."""
        weights = sum(tensor.nbytes for tensor in graph.module.state_dict().values())
        traced = trace(graph)
        traced._example_inputs = None  # with it, checks of input shapes are traced once more, which fails in torch 2.13
        with quiet_tracing():
            found: Any = torch.onnx.export(
                traced,
                dynamo=True,
                verbose=False,
                opset_version=OPSET,
                input_names=[port.name for port in graph.inputs],
                output_names=[port.name for port in graph.outputs],
                custom_translation_table=recurrent_translations(),
            )
            for part in (found.model.graph, *found.model.graph.all_nodes()):
                part.metadata_props.clear()  # it holds the paths of this machine
            name_axes(found.model.graph.inputs, graph.inputs)
            name_axes(found.model.graph.outputs, graph.outputs)
            found.save(path, external_data=weights > MAX_INLINE)
        self.sessions[graph.name] = open_session(path)

    def run(self, name: str, inputs: Sequence[Tensor]) -> list[Tensor]:
        """The outputs of a graph that was written, by onnxruntime."""
        session = self.sessions[name]
        names = [port.name for port in session.get_inputs()]
        found = session.run(None, {one: tensor.numpy() for one, tensor in zip(names, inputs, strict=True)})
        return [torch.from_numpy(array) for array in found]


def require_packages() -> None:
    """Refuse an export without the packages that write and check ONNX."""
    import importlib

    for name in PACKAGES:
        try:
            importlib.import_module(name)
        except ImportError:
            raise ConfigError(
                f"ONNX files are written and checked with the packages {', '.join(PACKAGES)}, and {name} is not "
                f'installed; install them with: pip install "regard[onnx]", or pip install {" ".join(PACKAGES)}'
            ) from None


def open_session(path: Path) -> Any:
    """A session of onnxruntime on the CPU; warnings about shapes and optimizations are not shown."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def name_axes(values: Sequence[Any], ports: Sequence[Port]) -> None:
    """Put the names of axes into the shapes of a graph's inputs or outputs."""
    import onnx_ir

    for value, port in zip(values, ports, strict=True):
        value.shape = onnx_ir.Shape(port.axes)


def recurrent_translations() -> dict[Callable[..., Any], Callable[..., Any]]:
    """What torch's exporter has no translation for: the layers of Elman 1990, with tanh and with ReLU."""
    from onnxscript import opset20

    op: Any = opset20

    def translate(function: str) -> Callable[..., Any]:
        def layer(
            input: Any, hx: Any, params: Sequence[Any], has_biases: bool, num_layers: int, dropout: float, train: bool,
            bidirectional: bool, batch_first: bool,
        ) -> Any:  # fmt: skip
            x_LNI, (of_input, of_state, *biases) = op.Transpose(input, perm=[1, 0, 2]), params
            bias = op.Unsqueeze(op.Concat(*biases, axis=0), [0])
            out_L1ND, end = op.RNN(
                x_LNI, op.Unsqueeze(of_input, [0]), op.Unsqueeze(of_state, [0]), bias, None, hx,
                hidden_size=hx.shape[2], activations=[function], direction="forward",
            )  # fmt: skip
            return op.Transpose(op.Squeeze(out_L1ND, [1]), perm=[1, 0, 2]), end

        return layer

    return {torch.ops.aten.rnn_tanh.input: translate("Tanh"), torch.ops.aten.rnn_relu.input: translate("Relu")}
