"""Graph of a recorded model: its parts as nodes, the flow of values as edges; derived from the names of the records.

Records come in the order of computation, and their names are those of the modules that tapped them, so one walk over
them gives the graph of every family. No model class is known here: a part of an unknown kind is a node of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from regard.look.decoding_path import ANSWER, DECODED_LABELS, input_side
from regard.look.graph_kinds import SCALED, PartKind, describe_part
from regard.look.states import is_initial
from regard.trace import Record

LAYER = re.compile(r"^(.*?(?:layers|stages)\.\d+(?:\.\d+)*)(?:\.|$)")
DIRECTION = re.compile(r"^(.*)\.(forward|backward)_layer$")
SUMS = ("residual_sum", "attention_residual", "ffn_residual")
INPUTS = ("position", "segment")
"""values that are added to the embedding"""
NO_PART = (
    ANSWER, "ids", "pixels", "rollout", "position_similarity", "filters", "logits", "start_attended", DECODED_LABELS,
    "label_marginals",
)  # fmt: skip
"""records that are no part of the flow"""


@dataclass
class GraphNode:
    """One part of a model: what it is, the records that belong to it, and where it stands."""

    id: str
    kind: str
    title: str
    tensor: str | None
    """record of its output; None for tokens"""
    tensors: list[str]
    """all its records, in the order of computation"""
    side: str
    """sequence that it is about: "source" or "target\""""
    stack: str = ""
    layer: str | None = None
    """name of the layer that it is part of"""
    number: int | None = None
    direction: str | None = None


@dataclass
class Stream:
    """State of the walk in one stack: which nodes the next one reads."""

    heads: list[str] = field(default_factory=list)
    """nodes whose outputs are read next"""
    residual: list[str] = field(default_factory=list)
    """nodes of the residual stream"""
    added: list[str] = field(default_factory=list)
    """embedding, positions and segments that the next node adds"""
    entry: list[str] = field(default_factory=list)
    """inputs of the latest recurrent layer that reads forwards: its backward layer reads the same"""
    pre_norm: set[str] = field(default_factory=set)
    """layers that begin with a norm: it does not change their residual stream"""


def model_graph(records: Sequence[Record]) -> dict[str, Any] | None:
    """Nodes and edges of condensed `records` as plain data; None if there are no records.

    A node has id, kind, title, the name of the record of its output, all its records, side, stack, layer with its
    number, and direction. An edge has from, to and kind: "flow", "residual" (past a sublayer), "memory" (from the
    encoder), "start" (an initial state) or "previous" (from the time step before).
    """
    walk = GraphWalk({record.name: record for record in records})
    for base, names in _parts(records):
        walk.add(base, names)
    walk.add_output()
    if not any(node.tensor for node in walk.nodes.values()):
        return None
    nodes = [{name: value for name, value in vars(node).items() if value is not None} for node in walk.nodes.values()]
    edges = [{"from": start, "to": end, "kind": kind} for (start, end), kind in walk.edges.items()]
    return {"nodes": nodes, "edges": edges}


def _parts(records: Sequence[Record]) -> Iterator[tuple[str, list[str]]]:
    """(id, names of its records) of each part, in the order in which their computation starts."""
    names = [record.name for record in records if not _is_aside(record)]
    known, bases = set(names), dict[str, list[str]]()
    for name in names:
        module, _, last = name.rpartition(".")
        whole = any(f"{module}.{own}" in known for own in ("weights", "activations", "hidden", "convolution"))
        single = last in (*SUMS, *INPUTS, "embedding", "residual", "features", "feature_map", "image", "patches")
        if last == SCALED and f"{module}.embedding" in known:
            bases[f"{module}.embedding"].append(name)
            continue
        bases.setdefault(module if module and whole and not single else name, []).append(name)
    initial = {record.name for record in records if is_initial(record)}
    order = {name: i for i, name in enumerate(names)}

    def start(part: tuple[str, list[str]]) -> int:
        """An initial state is recorded before its layer computes anything."""
        return min(order[name] for name in part[1] if name not in initial or initial >= set(part[1]))

    yield from sorted(bases.items(), key=start)


def _is_aside(record: Record) -> bool:
    """Whether a record is no part of the flow: filters, statistics, the answer, what is computed afterwards."""
    last = record.name.rpartition(".")[2]
    return last in NO_PART or record.name.startswith("lens.") or record.axes == ("batch", "channel")


class GraphWalk:
    """Walk over the parts in the order of computation; each becomes a node with its edges."""

    def __init__(self, records: dict[str, Record]) -> None:
        self.records = records
        self.nodes: dict[str, GraphNode] = {}
        self.edges: dict[tuple[str, str], str] = {}
        self.streams: dict[str, Stream] = {}

    def add(self, base: str, names: list[str]) -> None:
        part = describe_part([self.records[name] for name in names])
        record = self.records[part.tensor]
        stack = part.tensor.split(".")[0] if "." in part.tensor else ""
        stream = self.streams.setdefault(stack, Stream())
        if part.kind in ("states", "pooling", "features") and self._is_copy(record, stream, names):
            return
        part = self._refine(part, record, stack, stream)
        found = LAYER.match(f"{base}.")
        side = "source" if input_side(record) == "source" else "target"
        direction = DIRECTION.match(base)
        layer = found[1] if found else direction[1] if direction else None
        numbers = re.findall(r"\d+", layer or "")
        node = GraphNode(
            base, part.kind, part.title, part.tensor, names, side, stack, layer,
            int(numbers[-1]) if numbers else None, "backward" if record.context.get("backwards") else None,
        )  # fmt: skip
        self.nodes[node.id] = node
        self._connect(node, stream)

    def _refine(self, part: PartKind, record: Record, stack: str, stream: Stream) -> PartKind:
        """The kind of a part that depends on what comes before it."""
        last = record.name.rpartition(".")[2]
        if part.kind == "position":
            tables = [r for n, r in self.records.items() if n.startswith(stack) and n.endswith(".embedding")]
            added = any(table.data.shape[-1] == record.data.shape[-1] for table in tables)
            return part if added else PartKind("rotary", "Rotary angles", part.tensor)
        if part.kind == "features" and any(kind == "previous" for kind in self.edges.values()):
            return PartKind("readout", "Readout", part.tensor)
        if part.kind != "states" or last != "residual":
            return part
        if len(stream.added) > 1:
            return PartKind("sum", "Embedding + position", part.tensor)
        if any(self.nodes[head].kind == "ffn" for head in stream.heads):
            return PartKind("sum", "Residual sum", part.tensor)
        return PartKind("convolution", "Convolution", part.tensor) if LAYER.match(record.name) else part

    def _is_copy(self, record: Record, stream: Stream, names: list[str]) -> bool:
        """Whether a record repeats the output of the node before it: it is then one more record of that node."""
        for head in stream.heads[-1:]:
            before = self.records[self.nodes[head].tensor or ""]
            same = before.data.shape == record.data.shape and torch.equal(before.data, record.data)
            if len(stream.heads) == 1 and same:
                self.nodes[head].tensors.extend(names)
                if stream.added[:1] == [head]:
                    stream.added = []  # positions that are not added, such as rotary ones
                return True
        return False

    def _connect(self, node: GraphNode, stream: Stream) -> None:
        """Edges into a node, by its kind."""
        connect = {
            "embedding": self._embedding, "position": self._input, "segment": self._input, "rotary": self._rotary,
            "norm": self._norm, "sum": self._sum, "self-attention": self._sublayer, "ffn": self._sublayer,
            "cross-attention": self._cross, "recurrent": self._recurrent, "bridge": self._bridge, "image": self._image,
            "convolution": self._convolution, "layer": self._layer_vector, "mix": self._mix,
        }.get(node.kind, self._plain)  # fmt: skip
        connect(node, stream)

    def _link(self, starts: Iterable[str], node: GraphNode, kind: str = "flow") -> None:
        for start in starts:
            if start != node.id:
                self.edges.setdefault((start, node.id), kind)

    def _tokens(self, node: GraphNode) -> str:
        """The node of the tokens of a side."""
        name = f"{node.side}.tokens"
        if name not in self.nodes:
            title = "Source tokens" if node.side == "source" else "Input tokens"
            self.nodes = {name: GraphNode(name, "tokens", title, None, [], node.side, node.stack), **self.nodes}
        return name

    def _move(self, node: GraphNode, stream: Stream) -> None:
        stream.heads, stream.added = [node.id], []

    def _embedding(self, node: GraphNode, stream: Stream) -> None:
        self._link(stream.heads or [self._tokens(node)], node)
        stream.heads, stream.residual, stream.added = [node.id], [node.id], [node.id, *stream.added]

    def _input(self, node: GraphNode, stream: Stream) -> None:
        stream.added.append(node.id)

    def _rotary(self, node: GraphNode, stream: Stream) -> None:
        """Angles of positions: attention reads them, they are not added."""

    def _image(self, node: GraphNode, stream: Stream) -> None:
        self._move(node, stream)

    def _convolution(self, node: GraphNode, stream: Stream) -> None:
        if f"{node.layer}.residual" not in self.records or node.tensor == f"{node.layer}.residual":
            self._plain(node, stream)
        elif ".shortcut." in node.id:  # beside the other convolutions of its block
            self._link(stream.residual, node)
            stream.residual = [node.id]
        else:
            self._link(stream.heads, node)
            self._move(node, stream)

    def _inputs(self, node: GraphNode, stream: Stream) -> list[str]:
        """What a node reads: what is added, else the last outputs, else the output of the encoder or the tokens."""
        others = [head for name, other in self.streams.items() if name != node.stack for head in other.heads]
        own = list(dict.fromkeys([*stream.added, *stream.heads]))
        return own or (others if not node.stack else [self._tokens(node)])

    def _in_stack(self, node: GraphNode, *kinds: str) -> list[str]:
        """Earlier nodes of these kinds in the stack of a node."""
        return [n.id for n in self.nodes.values() if n.stack == node.stack and n.kind in kinds and n is not node]

    def _plain(self, node: GraphNode, stream: Stream) -> None:
        self._link(self._inputs(node, stream), node)
        if node.kind == "readout":  # RNNsearch reads its word, its context and its state
            self._link(self._in_stack(node, "embedding", "cross-attention", "recurrent"), node)
        if node.kind == "attended":  # Luong's model reads its context and its state
            self._link(self._in_stack(node, "recurrent")[-1:], node)
        self._move(node, stream)
        stream.residual = [node.id]

    def _layer_vector(self, node: GraphNode, stream: Stream) -> None:
        """A layer of ELMo: both directions side by side."""
        module, _, last = node.id.rpartition(".layer")
        both = [f"{module}.{stack}.layers.{int(last) - 1}" for stack in ("stack", "backward_stack")]
        both = [f"{name}.residual_sum" if self._is_summed(name) else name for name in both]
        self._link([name for name in both if name in self.nodes] or self._in_stack(node, "embedding"), node)
        self._move(node, stream)

    def _mix(self, node: GraphNode, stream: Stream) -> None:
        self._link(self._in_stack(node, "layer"), node)
        self._move(node, stream)

    def _norm(self, node: GraphNode, stream: Stream) -> None:
        first = node.layer is not None and not any(n.layer == node.layer for n in self.nodes.values() if n is not node)
        if first:
            stream.pre_norm.add(node.layer or "")
        self._link(self._inputs(node, stream), node)
        self._move(node, stream)
        if node.layer not in stream.pre_norm:
            stream.residual = [node.id]

    def _sublayer(self, node: GraphNode, stream: Stream) -> None:
        self._link(self._inputs(node, stream), node)
        if node.kind == "self-attention":
            self._link(self._in_stack(node, "rotary"), node)
        self._move(node, stream)

    def _cross(self, node: GraphNode, stream: Stream) -> None:
        later = [n for n in self.records if n.startswith(f"{node.stack}.") and n.endswith(".hidden")]
        if self._in_stack(node, "recurrent", "self-attention") or not later:
            self._link(self._inputs(node, stream), node)
        else:  # its query is the state of the step before
            self.edges[(later[-1].rpartition(".")[0], node.id)] = "previous"
        self._link(self._memory(node), node, "memory")
        self._move(node, stream)

    def _memory(self, node: GraphNode) -> list[str]:
        """Outputs of the encoder."""
        return [head for name, other in self.streams.items() if name not in (node.stack, "") for head in other.heads]

    def _sum(self, node: GraphNode, stream: Stream) -> None:
        if stream.added:
            self._link(stream.added, node)
        else:
            self._link(stream.heads, node)
            self._link(stream.residual, node, "residual")
        self._move(node, stream)
        stream.residual = [node.id]

    def _recurrent(self, node: GraphNode, stream: Stream) -> None:
        backward, words = node.id.endswith("backward_layer"), self._in_stack(node, "embedding")
        entry = stream.entry if backward else self._inputs(node, stream)
        if "backward_stack" in node.id and not any("backward_stack" in head for head in stream.heads):
            entry = words
        self._link(entry, node)
        if any(self.nodes[start].kind == "cross-attention" for start in entry):
            self._link(words[:1] if node.layer is None else stream.residual, node)
        if self._is_summed(node.id):  # GNMT's decoder reads its context in every layer
            self._link(self._in_stack(node, "cross-attention"), node)
        self._link(self._in_stack(node, "bridge"), node, "start")
        stream.entry = entry
        stream.heads, stream.added = [*stream.heads, node.id] if backward else [node.id], []
        if not self._is_summed(node.id):
            stream.residual = list(stream.heads)

    def _is_summed(self, layer: str) -> bool:
        """Whether the output of a recurrent layer is added to its input."""
        return f"{layer}.residual_sum" in self.records

    def _bridge(self, node: GraphNode, stream: Stream) -> None:
        self._link(self._memory(node), node, "memory")

    def add_output(self) -> None:
        """The output layer: logits, from the last node of the model."""
        record = self.records.get("logits")
        if record is None:
            return
        heads = self.streams.get("", Stream()).heads or (list(self.streams.values())[-1].heads if self.streams else [])
        side = "target" if "vocabulary" in record.axes else "source"
        node = GraphNode("logits", "output", "Output layer", "logits", ["logits"], side, "")
        self.nodes[node.id] = node
        self._link(heads, node)
