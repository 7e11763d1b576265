"""Export of runs as graphs: files of a format, their interface as JSON, tokenizer and README; checked when written."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

from torch import Tensor

import regard
from regard.errors import ModelError
from regard.exchange.export import model_card
from regard.exchange.exported_model import render_json
from regard.exchange.graph import Graph, GraphPlan, difference
from regard.exchange.graph_plans import plan_graphs
from regard.exchange.pack import write_beside
from regard.files import write_bytes_atomically
from regard.progress import Progress, no_progress

INTERFACE = "graphs.json"
MAX_DIFFERENCE = 1e-4
"""between the outputs of the graphs and those of the model, in units of the largest output if that is above 1"""


class GraphFormat(Protocol):
    """A format that holds graphs."""

    name: str
    suffix: str
    title: str
    tolerance: float
    """largest difference between a written graph and the same graph here"""

    def write(self, graph: Graph, path: Path) -> None:
        """Write a graph as a file, and make it ready to run."""

    def run(self, name: str, inputs: Sequence[Tensor]) -> list[Tensor]:
        """The outputs of a graph that was written."""


def export_graphs(path: Path, out: Path, form: GraphFormat, progress: Progress = no_progress) -> float:
    """Write the model of a run as a new folder of graphs, which appears when it is complete and was checked.

    Returns the largest difference between the outputs of the graphs and those of the model.
    """
    model = regard.load(path, "cpu")
    plan, total = plan_graphs(model, path), 0
    with write_beside(out) as folder:
        folder.mkdir()
        total = len(plan.graphs) + 1
        for done, graph in enumerate(plan.graphs):
            progress("exporting", done, total)
            write_graph(form, graph, folder, path)
        progress("exporting", total - 1, total)
        worst = check_graphs(plan, form, path)
        facts = {"regard": regard.__version__, "format": form.name, "task": model.recipe.kind()}
        interface = {
            **facts, "model": model.recipe.model.kind, **plan.facts,
            "graphs": {f"{graph.name}{form.suffix}": graph.describe() for graph in plan.graphs},
            "largest_difference": worst,
        }  # fmt: skip
        card = model_card(path, model).decode() + "\n" + "\n".join(readme_lines(plan, form)) + "\n"
        files = {**plan.files, INTERFACE: render_json(interface), "README.md": card.encode()}
        for name, data in files.items():
            write_bytes_atomically(folder / name, data)
        progress("exporting", total, total)
    return worst


def write_graph(form: GraphFormat, graph: Graph, folder: Path, path: Path) -> None:
    """Write a graph; an operation that the format does not have is an error of the model."""
    try:
        form.write(graph, folder / f"{graph.name}{form.suffix}")
    except OSError:
        raise
    except Exception as error:  # the libraries raise whatever comes up
        reason = str(error).strip().splitlines() or [type(error).__name__]
        raise ModelError(
            f"{path}: the {graph.name} of this model cannot be written as {form.title} ({reason[0][:200]}); use "
            "another model.kind, or another version of torch"
        ) from error


def check_graphs(plan: GraphPlan, form: GraphFormat, path: Path) -> float:
    """Compare written graphs with the model on random inputs; returns the largest difference."""
    apart, worst = measure_graphs(plan, form)
    for what, value, most in (("graphs", apart, form.tolerance), ("outputs", worst, MAX_DIFFERENCE)):
        if not value <= most:
            raise ModelError(
                f"{path}: the {what} of the {form.title} files differ from the model's by {value:.1e}, and at most "
                f"{most:.0e} is expected, so they are not written; please report this model"
            )
    return max(worst, apart)


def measure_graphs(plan: GraphPlan, form: GraphFormat, seed: int = 0) -> tuple[float, float]:
    """The largest differences of written graphs: from the same graphs here, and from the model, row by row."""
    graphs, apart = {graph.name: graph for graph in plan.graphs}, [0.0]

    def run(name: str, inputs: Sequence[Tensor]) -> list[Tensor]:
        found = form.run(name, inputs)
        apart.extend(map(difference, found, graphs[name].module(*inputs)))
        return found

    worst = plan.check(run, seed)
    return max(apart), worst


def readme_lines(plan: GraphPlan, form: GraphFormat) -> Iterator[str]:
    """The part of the README about the graphs."""
    yield f"## Graphs ({form.title})"
    yield ""
    yield f"{plan.usage()} A named axis may have any size. {INTERFACE} holds the same for programs."
    for graph in plan.graphs:
        yield ""
        yield f"### {graph.name}{form.suffix}"
        yield ""
        yield "| | name | type | axes | |"
        yield "|---|---|---|---|---|"
        yield from port_rows(graph)
    yield ""
    yield "```python"
    yield from EXAMPLES[form.name].format(graph=plan.graphs[0].name).splitlines()
    yield "```"
    if form.name == "torch":
        yield ""
        yield "torch.export.load may run code that a file holds: load files that you trust only."


EXAMPLES = {
    "onnx": (
        "import onnxruntime\n\nsession = onnxruntime.InferenceSession(\"{graph}.onnx\")\n"
        "outputs = session.run(None, inputs)  # a NumPy array for each input, by its name"
    ),
    "torch": (
        "import torch\n\nprogram = torch.export.load(\"{graph}.pt2\").module()\n"
        "outputs = program(*inputs)  # tensors in the order of the table"
    ),
}  # fmt: skip


def port_rows(graph: Graph) -> Iterator[str]:
    """Rows of a table of a graph's inputs and outputs in Markdown."""
    for kind, ports in (("in", graph.inputs), ("out", graph.outputs)):
        for port in ports:
            found: dict[str, Any] = port.describe()
            axes = ", ".join(map(str, port.axes))
            yield f"| {kind} | `{port.name}` | {found['dtype']} | {axes} | {port.meaning} |"
