"""Walk along a tape: from a number, through operations that only move it, to where it was computed or recorded."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import torch
from torch import Tensor

from regard.look.explain.moves import CONSTANT, constant, is_move, move, moved_operands
from regard.look.explain.tape import OperationTape


@dataclass(frozen=True)
class Elements:
    """Numbers on a tape: a node and a flat index of each; the node CONSTANT has its numbers in `constants`."""

    nodes: Tensor
    flats: Tensor
    constants: Tensor

    @classmethod
    def of(cls, node: int, flats: Tensor) -> Elements:
        """Numbers of one node."""
        return cls(torch.full_like(flats, node), flats.clone(), torch.zeros(len(flats), dtype=torch.float64))

    def __len__(self) -> int:
        return len(self.nodes)

    def pairs(self) -> list[tuple[int, int]]:
        """(node, flat index) of each."""
        return list(zip(self.nodes.tolist(), self.flats.tolist(), strict=True))


class TapeWalk:
    """Follows numbers of a tape back.

    >>> x = torch.arange(6.0).view(2, 3)
    >>> with OperationTape() as tape:
    ...     y = torch.cat([x, x * 2]).t()
    >>> walk = TapeWalk(tape)
    >>> found = walk.origin(Elements.of(tape.number(y), torch.tensor([3])))
    >>> tape.nodes[int(found.nodes)].operation, int(found.flats), float(walk.numbers(found))
    ('mul', 3, 6.0)
    """

    def __init__(self, tape: OperationTape) -> None:
        self.tape = tape
        self._data: dict[int, Tensor] = {}

    def origin(self, elements: Elements, stops: Collection[int] = ()) -> Elements:
        """Where numbers were computed; or, on the way there, the first of the nodes `stops`."""
        nodes, flats, constants = elements.nodes.clone(), elements.flats.clone(), elements.constants.clone()
        while True:
            moving = [n for n in nodes.unique().tolist() if n >= 0 and n not in stops and self._is_move(n)]
            if not moving:
                return Elements(nodes, flats, constants)
            here = max(moving)  # operands are older than their operation: each node is met once
            at = (nodes == here).nonzero().squeeze(1)
            nodes[at], flats[at] = self._step(here, flats[at])
            fixed = at[nodes[at] == CONSTANT]
            constants[fixed] = constant(self.tape.nodes[here])

    def _is_move(self, number: int) -> bool:
        node = self.tape.nodes[number]
        return is_move(node.operation, node.output)

    def _step(self, number: int, flats: Tensor) -> tuple[Tensor, Tensor]:
        """Nodes and flat indices from which the numbers of a node were moved."""
        node = self.tape.nodes[number]
        operands = list(dict.fromkeys(moved_operands(node)))
        sizes = [self.tape.nodes[n].shape.numel() for n in operands]
        starts = dict(zip(operands, [0, *torch.tensor(sizes).cumsum(0).tolist()], strict=False))

        def indices(n: int) -> Tensor:
            shape = self.tape.nodes[n].shape
            return torch.arange(starts[n], starts[n] + shape.numel()).view(shape)

        codes = move(node, indices, self.data).reshape(-1)[flats]
        bounds = torch.tensor([starts[n] for n in operands])
        which = (torch.bucketize(codes, bounds, right=True) - 1).clamp(min=0)
        found = torch.tensor(operands)[which]
        return torch.where(codes < 0, CONSTANT, found), torch.where(codes < 0, 0, codes - bounds[which])

    def data(self, number: int) -> Tensor:
        """All numbers of a node, moved again if it has none of its own."""
        node = self.tape.nodes[number]
        if node.data is not None:
            return node.data
        if number not in self._data:
            flats = torch.arange(node.shape.numel())
            kind = self.data(moved_operands(node)[0]).dtype
            numbers = self.numbers(Elements.of(number, flats)).to(kind)
            self._data[number] = numbers.view(node.shape)
        return self._data[number]

    def numbers(self, elements: Elements) -> Tensor:
        """The numbers themselves, in double precision."""
        found = self.origin(elements)
        out = found.constants.clone()
        for number in found.nodes.unique().tolist():
            if number == CONSTANT:
                continue
            at = (found.nodes == number).nonzero().squeeze(1)
            data = self.tape.nodes[number].data
            assert data is not None
            data = data.detach()  # a weight may require a gradient
            index = torch.unravel_index(found.flats[at], data.shape) if data.ndim else ()
            out[at] = data[index].double().expand(len(at)) if data.ndim else data.double().expand(len(at))
        return out
