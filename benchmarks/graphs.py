"""Exported graphs of every model of the tests: how far their outputs are from the model's, over random inputs.

python benchmarks/graphs.py onnx
python benchmarks/graphs.py torch transformer rnnsearch
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
import zoo
from regard.exchange.decoder_graphs import DecoderPlan, decoder_graphs
from regard.exchange.graph import GraphPlan, Port
from regard.exchange.graph_export import measure_graphs
from regard.exchange.graph_inputs import GraphInput, PixelInput, TokenInput
from regard.exchange.onnx import OnnxFormat
from regard.exchange.reader_graphs import ReaderPlan, pooled_logits, position_logits, reader_graph
from regard.exchange.torch_program import TorchFormat
from regard.models.base import Classifier
from regard.models.pooling import make_pooling
from regard.models.resnet import ResNetConfig
from regard.models.vit import ViTConfig
from regard.spaces import Classes, Pixels

ROUNDS = 20
"""times three batches are drawn, of 1 to 4 rows"""
TEXTS = [name for name in zoo.READING if "elmo" not in name]


def plan_decoder(name: str) -> GraphPlan:
    """An encoder and a step, or the step of a language model."""
    entry = (zoo.ZOO | zoo.CAPTIONERS)[name]
    model = zoo.build(name).requires_grad_(False)
    zoo.sharpen(model)
    inputs: GraphInput | None = TokenInput(zoo.V, "source") if entry.source is zoo.text else None
    inputs = PixelInput(3, 8, 8) if name in zoo.CAPTIONERS else inputs
    return DecoderPlan(decoder_graphs(model, inputs, zoo.V), {}, {}, inputs, zoo.V)


def plan_texts(name: str) -> GraphPlan:
    """A classifier or a tagger of texts."""
    model = zoo.reader(name).requires_grad_(False)
    zoo.sharpen(model)
    is_tagger = name.endswith("each")
    output = Port("logits", ("batch", "length", zoo.C) if is_tagger else ("batch", zoo.C))
    answer = position_logits if is_tagger else pooled_logits
    return ReaderPlan((reader_graph(model, TokenInput(zoo.V), answer, (output,)),), {})


def plan_images(name: str) -> GraphPlan:
    """A classifier of images."""
    torch.manual_seed(0)
    resnet = ResNetConfig(width=4, depths=(1, 2), block="bottleneck")
    config = resnet if name == "resnet" else ViTConfig(layers=2, width=16, heads=4, patch=8)
    encoder = config.build_encoder(Pixels(3, 32, 32))
    pool = make_pooling("mean" if name == "resnet" else "first", encoder)
    model = Classifier(encoder, pool, Classes(zoo.C), encoder.width).eval().requires_grad_(False)
    output = Port("logits", ("batch", zoo.C))
    return ReaderPlan((reader_graph(model, PixelInput(3, 32, 32), pooled_logits, (output,)),), {})


REFUSED = ("elmo", "elmo-projected", "rnnlm-every")
PLANS: dict[str, Callable[[str], GraphPlan]] = {
    **{name: plan_decoder for name in zoo.ZOO | zoo.CAPTIONERS if name not in REFUSED},
    **{f"{name} {pool}": plan_texts for name in TEXTS for pool in ("mean", "each")},
    **dict.fromkeys(("resnet", "vit"), plan_images),
}


def main() -> None:
    """One line per model: the largest differences, relative to the largest output if that is above 1.

    From the same graph here, on the same batch; and from the model, which reads each row alone and without padding.
    """
    torch.set_num_threads(1)
    kind, *names = sys.argv[1:] or ["torch"]
    measured = list[tuple[float, float]]()
    print(f"{'':24}  same graph here  the model")
    for name in names or PLANS:
        began, form = time.perf_counter(), OnnxFormat() if kind == "onnx" else TorchFormat()
        plan = PLANS[name](name)
        with tempfile.TemporaryDirectory() as folder:
            for graph in plan.graphs:
                form.write(graph, Path(folder, f"{graph.name}{form.suffix}"))
            found = [measure_graphs(plan, form, seed) for seed in range(ROUNDS)]
        measured += found
        same, model = map(max, zip(*found, strict=True))
        print(f"{name:24}  {same:15.1e}  {model:9.1e}  {time.perf_counter() - began:5.1f} s", flush=True)
    same, model = map(max, zip(*measured, strict=True))
    print(f"{'all':24}  {same:15.1e}  {model:9.1e}")


if __name__ == "__main__":
    main()
