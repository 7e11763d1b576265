"""Hidden state of truncated BPTT as tensors for a checkpoint: one state per rank, for its own rows."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import torch
from safetensors.torch import load, save
from torch import Tensor
from torch.utils._pytree import tree_flatten, tree_leaves, tree_unflatten

from regard.distributed import ProcessGroup
from regard.errors import ModelError

PLAIN = "plain"
"""name of the leaves that are not tensors, stored as the bytes of a JSON text"""


def pack(hidden_state: Any) -> dict[str, Tensor]:
    """A hidden state as named tensors, leaves numbered; its structure is not stored, since a model gives it again."""
    leaves = tree_leaves(hidden_state)
    plain = json.dumps([None if torch.is_tensor(leaf) else leaf for leaf in leaves]).encode()
    cpu = {str(i): leaf.detach().cpu() for i, leaf in enumerate(leaves) if torch.is_tensor(leaf)}
    tensors = {name: tensor.clone(memory_format=torch.contiguous_format) for name, tensor in cpu.items()}
    return {**tensors, PLAIN: torch.tensor(list(plain), dtype=torch.uint8)}


def unpack(tensors: Mapping[str, Tensor], like: Any) -> Any:
    """The hidden state that was packed, in the structure of `like`; another number of leaves is an error."""
    if PLAIN not in tensors:
        raise ModelError("the checkpoint has no hidden state for this process; start again with --fresh")
    plain = json.loads(bytes(tensors[PLAIN].tolist()))
    if plain == [None] and len(tensors) == 1:
        return None  # a rank without rows has no hidden state
    leaves, structure = tree_flatten(like)
    if len(leaves) != len(plain):
        raise ModelError(
            f"the hidden state of the checkpoint has {len(plain)} parts, this model's has {len(leaves)}; "
            "start again with --fresh"
        )
    found = [tensors.get(str(i), value) for i, value in enumerate(plain)]
    placed = [new.to(old.device) if torch.is_tensor(old) else new for new, old in zip(found, leaves, strict=True)]
    return tree_unflatten(placed, structure)


def gather(hidden_state: Any, group: ProcessGroup) -> dict[str, Tensor]:
    """The hidden states of all ranks, each name prefixed by its rank; empty if no rank has one."""
    if not group.max_over_ranks(int(hidden_state is not None)):
        return {}
    parts = group.gather(save(pack(hidden_state)))
    return {f"{rank}.{name}": tensor for rank, part in enumerate(parts) for name, tensor in load(part).items()}


def select_rank(tensors: Mapping[str, Tensor], rank: int) -> dict[str, Tensor]:
    """The tensors that one rank contributed to `gather`."""
    return {name.partition(".")[2]: t for name, t in tensors.items() if name.partition(".")[0] == str(rank)}
