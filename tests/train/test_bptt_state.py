"""What batches hand to one another, on its way to a checkpoint and back."""

from __future__ import annotations

import pytest
import torch

from regard.distributed import World
from regard.errors import ModelError
from regard.models.base import State
from regard.sequence import Padded
from regard.train.bptt_state import gather, of_rank, pack, unpack


def state(fill: float = 1.0, layers: int = 2) -> State:
    """Two rows; what is remembered is a view of something wider, as fused kernels give it."""
    memory = Padded(torch.zeros(2, 0, 1), torch.zeros(2, dtype=torch.long), ragged=False)
    wide = torch.full((2, 3, layers), fill).permute(2, 0, 1)
    return State(memory, tuple((wide[i], wide[i] * 2) for i in range(layers)))


def test_what_was_packed_comes_back_bit_for_bit() -> None:
    given = state(-0.0)
    found = unpack(pack(given), state(5.0))
    assert found.width == 1 and found.source.ragged is False
    for a, b in zip(found.hypothesis, given.hypothesis, strict=True):
        for x, y in zip(a, b, strict=True):
            assert torch.equal(x.signbit(), y.signbit()) and torch.equal(x, y)
            assert x.is_contiguous() and x.data_ptr() % 64 == 0


def test_every_rank_has_its_own_and_one_without_rows_has_nothing() -> None:
    both = gather(state(), World()) | {f"1.{name}": tensor for name, tensor in pack(None).items()}
    assert torch.equal(unpack(of_rank(both, 0), state(0.0)).hypothesis[0][0], torch.ones(2, 3))
    assert unpack(of_rank(both, 1), None) is None
    assert gather(None, World()) == {}


def test_the_state_of_another_model_or_of_no_process_is_refused() -> None:
    with pytest.raises(ModelError) as caught:
        unpack(pack(state(layers=1)), state())
    assert str(caught.value) == (
        "the state that training goes on from has 6 parts, this model's has 8; start anew with --fresh"
    )
    with pytest.raises(ModelError) as caught:
        unpack(of_rank(gather(state(), World()), 3), state())
    assert str(caught.value) == (
        "the state that training goes on from is not that of this process; start anew with --fresh"
    )
