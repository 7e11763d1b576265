"""Weights on disk and in a model: safetensors files, tied names, loading by copy, averaging."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor, nn

from regard.errors import ModelError
from regard.files import FileDigest, write_file

DTYPES = {
    torch.float64: "F64", torch.float32: "F32", torch.float16: "F16", torch.bfloat16: "BF16", torch.int64: "I64",
    torch.int32: "I32", torch.int16: "I16", torch.int8: "I8", torch.uint8: "U8", torch.bool: "BOOL",
}  # fmt: skip
"""names of dtypes in safetensors"""


def tied_names(tensors: Mapping[str, Tensor]) -> dict[str, str]:
    """Tied weights, names that share the memory of an earlier name: alias -> owner."""
    owners: dict[tuple[object, ...], str] = {}
    table = {}
    for name, tensor in tensors.items():
        if tensor.numel() == 0 or tensor.is_meta:  # without memory of their own; their address is 0
            continue
        place = (tensor.device, tensor.data_ptr(), tensor.dtype, tensor.shape, tensor.stride())
        owner = owners.setdefault(place, name)
        if owner != name:
            table[name] = owner
    return table


def write_tensors(path: Path, tensors: Mapping[str, Tensor]) -> FileDigest:
    """Write a new safetensors file without aliases (see tied_names); needs no memory beyond the tensors.

    Not written by the safetensors library so that bytes are hashed on their way to the disk and never copied as a
    whole, and a full disk is an OSError; equal tensors give equal files.
    """
    aliases = tied_names(tensors)
    stored = {name: tensor for name, tensor in tensors.items() if name not in aliases}
    for name, tensor in stored.items():
        if tensor.dtype not in DTYPES or tensor.is_meta or tensor.layout != torch.strided:
            kind = f"{tensor.dtype}, {tensor.layout}, on {tensor.device}"
            raise ModelError(f"{path}: {name!r} cannot be stored: safetensors has no such tensor ({kind})")
    # Wide types first: every tensor is then aligned to its element's size.
    names = sorted(stored, key=lambda name: (-stored[name].element_size(), name))
    return write_file(path, _chunks(names, stored))


def _chunks(names: list[str], tensors: Mapping[str, Tensor]) -> Iterator[bytes | memoryview]:
    header: dict[str, object] = {"__metadata__": {"format": "pt"}}
    start = 0
    for name in names:
        tensor = tensors[name]
        end = start + tensor.numel() * tensor.element_size()
        header[name] = {"dtype": DTYPES[tensor.dtype], "shape": list(tensor.shape), "data_offsets": [start, end]}
        start = end
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    yield len(text).to_bytes(8, "little") + text
    for name in names:
        yield _bytes(tensors[name].detach().cpu()).numpy().data


def _bytes(tensor: Tensor) -> Tensor:
    return tensor.contiguous().reshape(-1).view(torch.uint8)


def read_tensors(path: Path, aliases: Mapping[str, str] | None = None) -> dict[str, Tensor]:
    """Read the tensors of a safetensors file as copies; an alias is the same tensor object as its owner."""
    try:
        with safe_open(path, framework="pt") as file:
            # Cloned: in the file a tensor is aligned to its element's size only, and sums over memory that is not
            # aligned to 64 bytes differ in their last bit.
            tensors = {name: file.get_tensor(name).clone() for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, OSError, RuntimeError) as error:
        raise ModelError(f"{path}: cannot be read as safetensors ({error})") from error
    for alias, owner in (aliases or {}).items():
        if owner not in tensors:
            raise ModelError(f"{path}: {alias!r} should be the same weight as {owner!r}, which is not there")
        tensors[alias] = tensors[owner]
    return tensors


def weights(model: nn.Module) -> dict[str, Tensor]:
    """State dict of a model: parameters and persistent buffers, detached but not copied."""
    return {name: tensor.detach() for name, tensor in model.state_dict().items()}


def load_weights(model: nn.Module, tensors: Mapping[str, Tensor], source: str = "the checkpoint") -> None:
    """Copy tensors into a model's parameters and buffers in place; tied weights stay tied.

    Of tied names one is enough. Nothing is changed unless everything fits.
    """
    own = weights(model)
    groups: dict[str, list[str]] = {}
    aliases = tied_names(own)
    for name in own:
        groups.setdefault(aliases.get(name, name), []).append(name)
    _check_fit(own, groups, tensors, source)
    with torch.no_grad():
        for owner, names in groups.items():
            own[owner].copy_(next(tensors[name] for name in names if name in tensors))


def _check_fit(
    own: Mapping[str, Tensor], groups: Mapping[str, list[str]], tensors: Mapping[str, Tensor], source: str
) -> None:
    missing = [repr(owner) for owner, names in groups.items() if not any(name in tensors for name in names)]
    unexpected = [repr(name) for name in tensors if name not in own]
    wrong = [
        f"{name!r} is {_dtype_and_shape(tensors[name])}, expected {_dtype_and_shape(own[name])}"
        for name in own
        if name in tensors and not _fits(tensors[name], own[name])
    ]
    problems = {"missing": missing, "unexpected": unexpected, "of another shape or type": wrong}
    found = [f"{len(names)} {what} ({_join_first(names)})" for what, names in problems.items() if names]
    if found:
        raise ModelError(f"{source} does not fit the model: {', '.join(found)}; is it from another recipe?")
    for names in groups.values():
        first, *others = [name for name in names if name in tensors]
        for other in others:
            one, two = tensors[first], tensors[other]
            if one is not two and (one.dtype != two.dtype or not torch.equal(_bytes(one), _bytes(two))):
                raise ModelError(
                    f"{source} does not fit the model: {first!r} and {other!r} are one weight in the model and two "
                    f"different ones there; is it from another recipe?"
                )


def _join_first(names: list[str], limit: int = 3) -> str:
    return ", ".join(names[:limit]) + (", ..." if len(names) > limit else "")


def _dtype_and_shape(tensor: Tensor) -> str:
    return f"{str(tensor.dtype).removeprefix('torch.')} {list(tensor.shape)}"


def _fits(given: Tensor, expected: Tensor) -> bool:
    same_type = given.dtype == expected.dtype or (given.is_floating_point() and expected.is_floating_point())
    return given.shape == expected.shape and same_type


def average_weights(sources: Iterable[tuple[str, Mapping[str, Tensor]]]) -> dict[str, Tensor]:
    """Mean of several sets of weights, each with the name of its source; summed in float64, returned in float32.

    Integer buffers (counters) are taken from the last set; tied names stay tied.

    >>> average_weights([("a", {"w": torch.tensor([1.0])}), ("b", {"w": torch.tensor([4.0])})])
    {'w': tensor([2.5000])}
    """
    total: dict[str, Tensor] = {}
    aliases: dict[str, str] = {}
    first, count = "", 0
    for source, tensors in sources:
        if count == 0:
            first, aliases = source, tied_names(tensors)
            owners = {name: tensor for name, tensor in tensors.items() if name not in aliases}
            total = {name: tensor.double() if tensor.is_floating_point() else tensor for name, tensor in owners.items()}
            shapes = {name: _dtype_and_shape(tensor) for name, tensor in tensors.items()}
        else:
            _check_alike(shapes, tensors, first, source)
            for name in total:
                total[name] = total[name] + tensors[name] if tensors[name].is_floating_point() else tensors[name]
        count += 1
    if count == 0:
        raise ModelError("nothing to average: expected at least one checkpoint, got none")
    result = {name: (sum_ / count).float() if sum_.is_floating_point() else sum_ for name, sum_ in total.items()}
    return result | {alias: result[owner] for alias, owner in aliases.items()}


def _check_alike(shapes: Mapping[str, str], tensors: Mapping[str, Tensor], first: str, source: str) -> None:
    for name in sorted(shapes.keys() | tensors.keys()):
        here = _dtype_and_shape(tensors[name]) if name in tensors else "missing"
        there = shapes.get(name, "missing")
        if here != there:
            raise ModelError(
                f"{source} cannot be averaged with {first}: {name!r} is {here} in one and {there} in the other; "
                f"average checkpoints of one run"
            )
