"""Who else is training: rank, size, sums over ranks. One process is a world of size 1; nobody else asks."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import Tensor

PATIENCE = timedelta(hours=12)
"""how long ranks wait for one another: the leader may prepare much data alone. A rank that dies is noticed at once"""


@dataclass(frozen=True)
class World:
    """One of `size` processes that do the same thing to different rows.

    >>> World().sum({"loss": torch.tensor(2.0)})
    {'loss': tensor(2., dtype=torch.float64)}
    """

    rank: int = 0
    size: int = 1

    @classmethod
    def join(cls) -> World:
        """The world that torchrun or `--nproc` put this process into; alone otherwise."""
        size = int(os.environ.get("WORLD_SIZE", "1"))
        if size == 1:
            return cls()
        if not dist.is_initialized():
            backend = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo"
            meeting, rank = os.environ.get("REGARD_MEETING", "env://"), int(os.environ["RANK"])
            dist.init_process_group(backend, init_method=meeting, rank=rank, world_size=size, timeout=PATIENCE)
        return cls(dist.get_rank(), dist.get_world_size())

    @property
    def leads(self) -> bool:
        """Whether this process writes files and speaks."""
        return self.rank == 0

    def sum(self, values: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Each value summed over all ranks, in double precision."""
        stacked = torch.stack([value.detach().double() for value in values.values()])
        self.add_up(stacked)
        return dict(zip(values, stacked.unbind(), strict=True))

    def add_up(self, tensor: Tensor) -> None:
        """Sum `tensor` over all ranks, in place."""
        if self.size > 1:
            dist.all_reduce(tensor)

    def gather(self, message: bytes) -> list[bytes]:
        """The messages of all ranks, in the order of ranks; they may differ in length. Everybody gets them."""
        if self.size == 1:
            return [message]
        lengths = torch.zeros(self.size, dtype=torch.long)
        lengths[self.rank] = len(message)
        dist.all_reduce(lengths)
        parts = torch.zeros(int(lengths.sum()), dtype=torch.uint8).split(lengths.tolist())
        parts[self.rank].copy_(torch.frombuffer(bytearray(message), dtype=torch.uint8))
        for rank, part in enumerate(parts):
            dist.broadcast(part, rank)
        return [bytes(part.numpy()) for part in parts]

    def any(self, flag: int) -> int:
        """The largest of all ranks' flags: all see the same, so all stop at the same step."""
        if self.size == 1:
            return flag
        flags = torch.tensor(flag)
        dist.all_reduce(flags, dist.ReduceOp.MAX)
        return int(flags)

    def leave(self) -> None:
        """Say goodbye, so that nobody waits."""
        if self.size > 1 and dist.is_initialized():
            dist.destroy_process_group()
