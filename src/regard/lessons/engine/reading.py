"""What a lesson refers to: its item of the course, the usual terms, papers; and its figure, a graph of its values."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any


@dataclass(frozen=True)
class Reading:
    """Source of a lesson, usual terms, and where to read on."""

    source: str
    """item of the course, as docs/concordance.md names it"""
    terms: tuple[str, ...]
    """terms of the field for what the lesson shows"""
    papers: tuple[str, ...]
    """author, year, title, and the section"""

    def to_dict(self) -> dict[str, Any]:
        """JSON form."""
        return {"source": self.source, "terms": list(self.terms), "papers": list(self.papers)}


@dataclass(frozen=True)
class Figure:
    """A graph of what is computed from what; a node is a value of the lesson by its name, or an operation.

    >>> Figure.parse("x > norm > z; x > add#2").edges
    (('x', 'norm'), ('norm', 'z'), ('x', 'add#2'))
    """

    chains: tuple[tuple[str, ...], ...] = ()
    """paths through the graph; a node that stands in several of them is one node"""

    @classmethod
    def parse(cls, text: str) -> Figure:
        """The graph of chains such as "x > norm > z; x > z". What follows a # only tells nodes apart."""
        chains = (tuple(node.strip() for node in chain.split(">")) for chain in text.split(";") if chain.strip())
        return cls(tuple(chains))

    @property
    def nodes(self) -> tuple[str, ...]:
        """Every node once, in the order of its first occurrence."""
        return tuple(dict.fromkeys(node for chain in self.chains for node in chain))

    @property
    def edges(self) -> tuple[tuple[str, str], ...]:
        """Every arrow once."""
        return tuple(dict.fromkeys(pair for chain in self.chains for pair in pairwise(chain)))

    def to_dict(self) -> dict[str, Any]:
        """JSON form: names of the nodes, and arrows as pairs of their indices."""
        index = {node: i for i, node in enumerate(self.nodes)}
        return {"nodes": list(self.nodes), "edges": [[index[a], index[b]] for a, b in self.edges]}


def node_label(node: str) -> str:
    """The text of an operation.

    >>> node_label("norm#2")
    'norm'
    """
    return node.partition("#")[0]
