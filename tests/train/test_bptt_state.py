"""Hidden state of truncated BPTT, packed for a checkpoint and unpacked again."""

from __future__ import annotations

import pytest
import torch

from regard.distributed import ProcessGroup
from regard.errors import ModelError
from regard.models.base import State
from regard.sequence import Padded
from regard.train.bptt_state import gather, pack, select_rank, unpack


def state(fill: float = 1.0, layers: int = 2) -> State:
    """Two rows; the state is a view of a wider tensor, as fused kernels return it."""
    memory = Padded(torch.zeros(2, 0, 1), torch.zeros(2, dtype=torch.long), ragged=False)
    wide = torch.full((2, 3, layers), fill).permute(2, 0, 1)
    return State(memory, tuple((wide[i], wide[i] * 2) for i in range(layers)))


def test_a_state_is_unpacked_bit_for_bit() -> None:
    original = state(-0.0)
    found = unpack(pack(original), state(5.0))
    assert found.width == 1 and found.source.ragged is False
    for a, b in zip(found.hypothesis, original.hypothesis, strict=True):
        for x, y in zip(a, b, strict=True):
            assert torch.equal(x.signbit(), y.signbit()) and torch.equal(x, y)
            assert x.is_contiguous() and x.data_ptr() % 64 == 0


def test_every_rank_has_its_own_state_and_one_without_rows_has_none() -> None:
    both = gather(state(), ProcessGroup()) | {f"1.{name}": tensor for name, tensor in pack(None).items()}
    assert torch.equal(unpack(select_rank(both, 0), state(0.0)).hypothesis[0][0], torch.ones(2, 3))
    assert unpack(select_rank(both, 1), None) is None
    assert gather(None, ProcessGroup()) == {}


def test_the_state_of_another_model_or_rank_is_refused() -> None:
    with pytest.raises(ModelError) as caught:
        unpack(pack(state(layers=1)), state())
    assert str(caught.value) == (
        "the hidden state of the checkpoint has 6 parts, this model's has 8; start again with --fresh"
    )
    with pytest.raises(ModelError) as caught:
        unpack(select_rank(gather(state(), ProcessGroup()), 3), state())
    assert str(caught.value) == ("the checkpoint has no hidden state for this process; start again with --fresh")
