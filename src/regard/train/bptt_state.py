"""What a batch hands to the next one (truncated BPTT), as tensors that a checkpoint can hold: every rank's own rows."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import torch
from safetensors.torch import load, save
from torch import Tensor
from torch.utils._pytree import tree_flatten, tree_leaves, tree_unflatten

from regard.distributed import World
from regard.errors import ModelError

PLAIN = "plain"
"""The name under which whatever is no tensor is kept, as the bytes of a JSON text."""


def pack(carry: Any) -> dict[str, Tensor]:
    """A carry as named tensors, its leaves numbered; its shape is not kept, since a model gives it again.

    >>> from regard.sequence import Padded
    >>> sorted(pack(Padded(torch.zeros(2, 3), torch.tensor([3, 3]))))
    ['0', '1', 'plain']
    """
    leaves = tree_leaves(carry)
    plain = json.dumps([None if torch.is_tensor(leaf) else leaf for leaf in leaves]).encode()
    tensors = {str(i): _own(leaf) for i, leaf in enumerate(leaves) if torch.is_tensor(leaf)}
    return {**tensors, PLAIN: torch.tensor(list(plain), dtype=torch.uint8)}


def _own(tensor: Tensor) -> Tensor:
    """The same in memory of its own, on the host, as a file would give it back."""
    return tensor.detach().cpu().clone(memory_format=torch.contiguous_format)


def unpack(tensors: Mapping[str, Tensor], like: Any) -> Any:
    """The carry that was packed, in the shape of `like`; another number of leaves is an error.

    >>> from regard.sequence import Padded
    >>> carry = Padded(torch.tensor([[1.0]]), torch.tensor([1]), ragged=False)
    >>> unpack(pack(carry), Padded(torch.zeros(1, 1), torch.zeros(1))) == carry
    True
    """
    if PLAIN not in tensors:
        raise ModelError("the state that training goes on from is not that of this process; start anew with --fresh")
    plain = json.loads(bytes(tensors[PLAIN].tolist()))
    if plain == [None] and len(tensors) == 1:
        return None  # a rank without rows carries nothing
    leaves, structure = tree_flatten(like)
    if len(leaves) != len(plain):
        raise ModelError(
            f"the state that training goes on from has {len(plain)} parts, this model's has {len(leaves)}; "
            "start anew with --fresh"
        )
    found = [tensors.get(str(i), value) for i, value in enumerate(plain)]
    placed = [new.to(old.device) if torch.is_tensor(old) else new for new, old in zip(found, leaves, strict=True)]
    return tree_unflatten(placed, structure)


def gather(carry: Any, world: World) -> dict[str, Tensor]:
    """The carries of all ranks, each name with its rank in front; empty if nobody carries anything.

    >>> gather(None, World())
    {}
    """
    if not world.any(int(carry is not None)):
        return {}
    parts = world.gather(save(pack(carry)))
    return {f"{rank}.{name}": tensor for rank, part in enumerate(parts) for name, tensor in load(part).items()}


def of_rank(tensors: Mapping[str, Tensor], rank: int) -> dict[str, Tensor]:
    """What one rank gave to `gather`.

    >>> of_rank({"0.plain": torch.zeros(1), "1.plain": torch.ones(1)}, 1)
    {'plain': tensor([1.])}
    """
    return {name.partition(".")[2]: t for name, t in tensors.items() if name.partition(".")[0] == str(rank)}
