"""Weights go to disk and into models bit for bit, tied weights stay tied, and weights that do not fit are refused."""

from __future__ import annotations

from pathlib import Path

import pytest
import safetensors.torch
import torch
from torch import nn

from regard.errors import ModelError
from regard.train.weights import DTYPES, average_weights, load_weights, read_tensors, tied_names, weights, write_tensors


class Tied(nn.Module):
    """An embedding whose weight is also the readout's, and a buffer."""

    def __init__(self, seed: int = 0) -> None:
        super().__init__()
        torch.manual_seed(seed)
        self.embed = nn.Embedding(7, 4)
        self.norm = nn.LayerNorm(4)
        self.readout = nn.Linear(4, 7, bias=False)
        self.readout.weight = self.embed.weight
        self.register_buffer("seen", torch.tensor(seed))


def every_type() -> dict[str, torch.Tensor]:
    tensors = {str(dtype): torch.arange(6).reshape(2, 3).to(dtype) for dtype in DTYPES}
    return tensors | {
        "scalar": torch.tensor(3.5),
        "empty": torch.zeros(0, 3),
        "nan": torch.tensor([float("nan"), -0.0]),
    }


def bits(tensor: torch.Tensor) -> bytes:
    return tensor.contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()


def test_every_type_comes_back_bit_for_bit(tmp_path: Path) -> None:
    tensors = every_type()
    write_tensors(tmp_path / "a.safetensors", tensors)
    back = read_tensors(tmp_path / "a.safetensors")
    assert back.keys() == tensors.keys()
    for name, tensor in tensors.items():
        assert (back[name].dtype, back[name].shape, bits(back[name])) == (tensor.dtype, tensor.shape, bits(tensor))


def test_the_safetensors_library_reads_our_files(tmp_path: Path) -> None:
    tensors = every_type()
    write_tensors(tmp_path / "a.safetensors", tensors)
    back = safetensors.torch.load_file(tmp_path / "a.safetensors")
    assert {name: bits(tensor) for name, tensor in back.items()} == {
        name: bits(tensor) for name, tensor in tensors.items()
    }


def test_equal_tensors_give_equal_files_whatever_their_order(tmp_path: Path) -> None:
    tensors = every_type()
    one = write_tensors(tmp_path / "a.safetensors", tensors)
    two = write_tensors(tmp_path / "b.safetensors", dict(reversed(tensors.items())))
    assert one == two
    assert (tmp_path / "a.safetensors").read_bytes() == (tmp_path / "b.safetensors").read_bytes()


def test_a_transposed_view_is_stored_transposed(tmp_path: Path) -> None:
    matrix = torch.arange(6.0).reshape(2, 3)
    write_tensors(tmp_path / "a.safetensors", {"plain": matrix, "transposed": matrix.T})
    back = read_tensors(tmp_path / "a.safetensors")
    assert torch.equal(back["transposed"], matrix.T)


def test_tensors_are_read_into_memory_aligned_to_64_bytes(tmp_path: Path) -> None:
    write_tensors(tmp_path / "a.safetensors", {f"w{i}": torch.ones(i + 1) for i in range(9)})
    assert [t.data_ptr() % 64 for t in read_tensors(tmp_path / "a.safetensors").values()] == [0] * 9


def test_a_tied_weight_is_stored_once(tmp_path: Path) -> None:
    model = Tied()
    assert tied_names(weights(model)) == {"readout.weight": "embed.weight"}
    write_tensors(tmp_path / "a.safetensors", weights(model))
    assert "readout.weight" not in read_tensors(tmp_path / "a.safetensors")


def test_empty_tensors_are_not_tied() -> None:
    assert tied_names({"a": torch.zeros(0), "b": torch.zeros(0)}) == {}


def test_views_of_one_memory_with_other_shapes_are_not_tied() -> None:
    flat = torch.arange(6.0)
    assert tied_names({"a": flat, "b": flat.reshape(2, 3), "c": flat[:3]}) == {}


def test_loading_copies_values_and_keeps_parameters_and_ties() -> None:
    model, other = Tied(0), Tied(1)
    embed, address = model.embed.weight, model.embed.weight.data_ptr()
    load_weights(model, weights(other))
    assert model.embed.weight is embed and model.readout.weight is embed and embed.data_ptr() == address
    assert torch.equal(embed, other.embed.weight) and model.seen == 1
    with torch.no_grad():
        other.embed.weight.zero_()
    assert not torch.equal(embed, other.embed.weight)


def test_one_name_of_a_tied_weight_is_enough_whichever_it_is() -> None:
    for left_out in ("embed.weight", "readout.weight"):
        model, other = Tied(0), Tied(1)
        load_weights(model, {name: tensor for name, tensor in weights(other).items() if name != left_out})
        assert torch.equal(model.readout.weight, other.embed.weight)


def test_two_different_weights_for_a_tied_weight_are_refused() -> None:
    tensors = weights(Tied()) | {"readout.weight": torch.ones(7, 4)}
    with pytest.raises(ModelError) as caught:
        load_weights(Tied(), tensors, "run/last")
    assert str(caught.value) == (
        "run/last does not fit the model: 'embed.weight' and 'readout.weight' are one weight in the model and two "
        "different ones there; is it from another recipe?"
    )


def test_all_misfits_are_named_and_nothing_is_loaded() -> None:
    model = Tied(0)
    before = {name: bits(tensor) for name, tensor in weights(model).items()}
    tensors = {
        "embed.weight": torch.ones(9, 4),
        "norm.bias": torch.ones(4),
        "seen": torch.tensor(0.5),
        "extra": torch.ones(1),
    }
    with pytest.raises(ModelError) as caught:
        load_weights(model, tensors, "run/last")
    assert str(caught.value) == (
        "run/last does not fit the model: 1 missing ('norm.weight'), 1 unexpected ('extra'), 2 of another shape "
        "or type ('seen' is float32 [], expected int64 [], 'embed.weight' is float32 [9, 4], expected float32 [7, 4]); "
        "is it from another recipe?"
    )
    assert {name: bits(tensor) for name, tensor in weights(model).items()} == before


def test_of_many_misfits_three_are_shown() -> None:
    with pytest.raises(ModelError, match=r"9 unexpected \('a0', 'a1', 'a2', \.\.\.\)"):
        load_weights(nn.Identity(), {f"a{i}": torch.ones(1) for i in range(9)})


def test_a_tensor_that_safetensors_cannot_hold_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelError) as caught:
        write_tensors(tmp_path / "a.safetensors", {"w": torch.ones(2, device="meta")})
    assert str(caught.value) == (
        f"{tmp_path}/a.safetensors: 'w' cannot be stored: safetensors has no such tensor "
        "(torch.float32, torch.strided, on meta)"
    )


def test_an_alias_without_its_owner_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    write_tensors(path, {"w": torch.ones(2)})
    with pytest.raises(ModelError) as caught:
        read_tensors(path, {"alias": "owner"})
    assert str(caught.value) == f"{path}: 'alias' should be the same weight as 'owner', which is not there"


def test_a_file_that_is_not_safetensors_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.safetensors").write_bytes(b"\xff" * 100)
    with pytest.raises(ModelError, match=r"a\.safetensors: cannot be read as safetensors \("):
        read_tensors(tmp_path / "a.safetensors")


def test_the_mean_is_rounded_once() -> None:
    large, small = torch.tensor([2.0**25]), torch.tensor([1.0])
    # In float32 each 1 would be lost beside 2 ** 25: the sum must not be rounded before the end.
    sets = [("a", {"w": large}), *(("b", {"w": small}) for _ in range(7))]
    assert average_weights(sets)["w"].item() == torch.tensor((2.0**25 + 7) / 8).item()
    assert average_weights(sets)["w"].dtype == torch.float32


def test_the_mean_keeps_ties_and_takes_counters_from_the_last() -> None:
    averaged = average_weights(("run", weights(Tied(seed))) for seed in (1, 2, 3))
    assert averaged["readout.weight"] is averaged["embed.weight"]
    assert averaged["seen"] == 3 and averaged["seen"].dtype == torch.int64
    expected = sum(Tied(seed).embed.weight.detach().double() for seed in (1, 2, 3)) / 3
    assert torch.equal(averaged["embed.weight"], expected.float())


def test_weights_with_other_names_or_shapes_are_not_averaged() -> None:
    for other, what in (
        ({"w": torch.ones(3)}, "'w' is float32 [3] in one and float32 [2] in the other"),
        ({"w": torch.ones(2), "x": torch.ones(1)}, "'x' is float32 [1] in one and missing in the other"),
        ({}, "'w' is missing in one and float32 [2] in the other"),
    ):
        with pytest.raises(ModelError) as caught:
            average_weights([("run/a", {"w": torch.ones(2)}), ("run/b", other)])
        assert str(caught.value) == f"run/b cannot be averaged with run/a: {what}; average checkpoints of one run"
    with pytest.raises(ModelError, match="nothing to average: expected at least one checkpoint, got none"):
        average_weights([])
