"""Distributed training: rank, world size, all-reduce. One process is a group of size 1."""

from __future__ import annotations

import importlib
import os
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.rendezvous import rendezvous

from regard.rank_watch import LONGEST_TIMEOUT, START, RankWatch


@dataclass(frozen=True)
class ProcessGroup:
    """Process group of data-parallel training: one of `size` processes that work on different rows.

    >>> ProcessGroup().sum({"loss": torch.tensor(2.0)})
    {'loss': tensor(2., dtype=torch.float64)}
    """

    rank: int = 0
    size: int = 1
    watch: RankWatch | None = field(default=None, repr=False, compare=False)

    @classmethod
    def init(cls, timeout: float = 10.0) -> ProcessGroup:
        """Join the group of torchrun or `--nproc`, else a group of size 1; `timeout` is train.timeout, in minutes."""
        size = int(os.environ.get("WORLD_SIZE", "1"))
        if size == 1:
            return cls()
        watch = None
        if not dist.is_initialized():
            # Imported later, by an optimizer, its functions would take the group as their default argument and keep it
            # alive after `close`: a thread of gloo that ends after the interpreter aborts the process.
            importlib.import_module("torch.distributed.nn.functional")
            # counts, metrics and messages are on the CPU; gradients are where the model is
            backend = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() and dist.is_nccl_available() else "gloo"
            meeting, rank = os.environ.get("REGARD_INIT_METHOD", "env://"), int(os.environ["RANK"])
            store, _, _ = next(rendezvous(meeting, rank, size, timeout=timedelta(seconds=START)))
            watch = RankWatch(dist.PrefixStore("watch", store), rank, size, 60 * timeout)
            watch.wait_for_start()
            limit = timedelta(minutes=min(timeout, LONGEST_TIMEOUT))
            dist.init_process_group(backend, store=store, rank=rank, world_size=size, timeout=limit)
        return cls(dist.get_rank(), dist.get_world_size(), watch)

    @property
    def is_main(self) -> bool:
        """Whether this is rank 0, which writes files and logs."""
        return self.rank == 0

    def sum(self, values: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Each value summed over all ranks, in double precision, on the CPU."""
        stacked = torch.stack([value.detach().cpu().double() for value in values.values()])
        self.all_reduce_(stacked)
        return dict(zip(values, stacked.unbind(), strict=True))

    def all_reduce_(self, tensor: Tensor) -> None:
        """Sum `tensor` over all ranks, in place."""
        if self.size > 1:
            with self._explain_failures():
                dist.all_reduce(tensor)

    def wait_for_main(self) -> None:
        """Wait until the main rank gets here, after work that it does alone; that may take longer than the timeout."""
        if self.watch is not None:
            self.watch.wait_for_main()
        else:
            self.max_over_ranks(0)

    def _explain_failures(self) -> AbstractContextManager[None]:
        return self.watch.explain_failures() if self.watch is not None else nullcontext()

    def gather(self, message: bytes) -> list[bytes]:
        """All-gather: the messages of all ranks, in the order of ranks; they may differ in length."""
        if self.size == 1:
            return [message]
        lengths = torch.zeros(self.size, dtype=torch.long)
        lengths[self.rank] = len(message)
        self.all_reduce_(lengths)
        parts = torch.zeros(int(lengths.sum()), dtype=torch.uint8).split(lengths.tolist())
        parts[self.rank].copy_(torch.frombuffer(bytearray(message), dtype=torch.uint8))
        with self._explain_failures():
            for rank, part in enumerate(parts):
                dist.broadcast(part, rank)
        return [bytes(part.numpy()) for part in parts]

    def max_over_ranks(self, flag: int) -> int:
        """The largest flag of all ranks: all see the same, so all stop at the same step."""
        if self.size == 1:
            return flag
        flags = torch.tensor(flag)
        with self._explain_failures():
            dist.all_reduce(flags, dist.ReduceOp.MAX)
        return int(flags)

    def close(self) -> None:
        """Destroy the process group."""
        if self.watch is not None:
            self.watch.close()
        if self.size > 1 and dist.is_initialized():
            dist.destroy_process_group()
