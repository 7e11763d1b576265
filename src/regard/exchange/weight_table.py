"""Weight tables: which tensor of another library's model is which weight here, and its layout; for both directions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from regard.errors import InputError, ModelError
from regard.files import open_regular, parse_json, read_bounded
from regard.train.parameter_limit import count_tensors

MAX_NAMED = 3
"""tensors that a message names"""
MAX_INDEX = 16 << 20
"""bytes of the largest list of weight files"""
WEIGHTS, INDEX = "model.safetensors", "model.safetensors.index.json"
UNSAFE = (".bin", ".pt", ".pth", ".ckpt", ".h5", ".msgpack", ".ot")
"""endings of weight files in formats that are not read"""


@dataclass(frozen=True)
class WeightRow:
    """A row of a weight table: a weight here, and the tensors that it is made of there."""

    ours: str
    theirs: tuple[str, ...]
    """one tensor, or several that are joined along the first axis"""
    transposed: bool = False
    """theirs has the axes of a matrix in the other order"""
    sizes: tuple[int, ...] = ()
    """rows of each of several tensors; none: all have the same number"""
    shape: tuple[int, ...] = ()
    """the shape there, where it has axes of length 1 that are not here"""

    def expected_shapes(self, shape: Sequence[int]) -> list[list[int]]:
        """The shapes of their tensors if ours has this shape."""
        if self.transposed:
            return [list(reversed(shape))]
        if self.shape:
            return [list(self.shape)]
        sizes = self.sizes or (shape[0] // len(self.theirs),) * len(self.theirs)
        return [[size, *shape[1:]] for size in sizes] if len(self.theirs) > 1 else [list(shape)]

    def join(self, tensors: Sequence[Tensor], shape: Sequence[int]) -> Tensor:
        """Our weight from their tensors."""
        joined = torch.cat(list(tensors)) if len(tensors) > 1 else tensors[0]
        return (joined.t() if self.transposed else joined).reshape(tuple(shape)).contiguous()

    def split(self, tensor: Tensor) -> dict[str, Tensor]:
        """Their tensors from our weight."""
        if len(self.theirs) == 1:
            whole = tensor.t() if self.transposed else tensor
            return {self.theirs[0]: (whole.reshape(self.shape) if self.shape else whole).contiguous()}
        sizes = self.sizes or (tensor.shape[0] // len(self.theirs),) * len(self.theirs)
        parts = tensor.split(list(sizes))
        return {name: part.contiguous() for name, part in zip(self.theirs, parts, strict=True)}


def same(ours: str, theirs: str) -> list[WeightRow]:
    """A weight that is the same tensor there."""
    return [WeightRow(ours, (theirs,))]


def linear(ours: str, *theirs: str, transposed: bool = False, sizes: tuple[int, ...] = ()) -> list[WeightRow]:
    """Weight and bias of a linear layer, or of a normalization; several layers there may be one here."""
    return [
        WeightRow(f"{ours}.weight", tuple(f"{name}.weight" for name in theirs), transposed, sizes),
        WeightRow(f"{ours}.bias", tuple(f"{name}.bias" for name in theirs), False, sizes),
    ]


class TensorSource(ABC):
    """Named tensors of a model that was made elsewhere: their shapes are known before any of them is read."""

    path: Path

    @abstractmethod
    def shapes(self) -> Mapping[str, list[int]]:
        """The shape of each tensor, by its name."""

    @abstractmethod
    def read(self, name: str) -> Tensor:
        """A tensor in float32."""


class SafetensorsFolder(TensorSource):
    """The safetensors files of a Hugging Face folder, one or several with an index."""

    def __init__(self, folder: Path, prefix: str = "") -> None:
        """`prefix`: begins the names of tensors under a head; where no name begins so, it is put before all of them."""
        self.path, self._files, self._shapes = folder, {}, {}
        for file in weight_files(folder):
            for name, shape in read_shapes(file).items():
                self._files[name], self._shapes[name] = (file, name), shape
        if prefix and not any(name.startswith(prefix) for name in self._shapes):
            self._files = {f"{prefix}{name}": place for name, place in self._files.items()}
            self._shapes = {f"{prefix}{name}": shape for name, shape in self._shapes.items()}

    def shapes(self) -> Mapping[str, list[int]]:
        return self._shapes

    def read(self, name: str) -> Tensor:
        file, own = self._files[name]
        try:
            with safe_open(file, framework="pt") as opened:
                return opened.get_tensor(own).float().clone()
        except (SafetensorError, OSError, RuntimeError) as error:
            raise ModelError(f"{file}: {own!r} cannot be read ({error})") from error


def weight_files(folder: Path) -> list[Path]:
    """The safetensors files of a folder; other formats are refused, since they may run code when they are read."""
    if (folder / WEIGHTS).exists():
        return [folder / WEIGHTS]
    index = folder / INDEX
    if index.exists():
        try:
            names = set(parse_json(read_bounded(index, MAX_INDEX))["weight_map"].values())
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise ModelError(f"{index}: expected the file of each tensor under weight_map ({error})") from None
        for name in names:
            if not isinstance(name, str) or Path(name).name != name or not name.endswith(".safetensors"):
                raise ModelError(f"{index}: {name!r} is not the name of a safetensors file in this folder")
        return [folder / name for name in sorted(names)]
    found = sorted(file.name for file in folder.iterdir() if file.suffix in UNSAFE) if folder.is_dir() else []
    if found:
        raise InputError(
            f"{folder}: {found[0]} may run code when it is read, so it is not; write the weights as safetensors where "
            "you trust them: CLASS.from_pretrained(FOLDER).save_pretrained(NEW) in transformers, with the CLASS that "
            "config.json names under architectures (AutoModel would leave out the head), and copy the tokenizer"
        )
    raise InputError(f"{folder}: expected the weights in {WEIGHTS}, or in several files with {INDEX}; found neither")


def read_shapes(file: Path) -> dict[str, list[int]]:
    """Shape of each tensor of a safetensors file, from its header; the library checks sizes, offsets and overlaps."""
    try:
        with open_regular(file):
            count_tensors(file)  # bounds the header
        with safe_open(file, framework="pt") as opened:
            return {name: list(opened.get_slice(name).get_shape()) for name in opened.keys()}  # noqa: SIM118
    except (SafetensorError, OSError, RuntimeError) as error:
        raise ModelError(f"{file}: cannot be read as safetensors ({error}); it is damaged or was cut off") from error


def to_ours(
    rows: Iterable[WeightRow],
    source: TensorSource,
    shapes: Mapping[str, Sequence[int]],
    unused: Callable[[str], bool] = lambda name: False,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> dict[str, Tensor]:
    """Our weights from their tensors; all names and shapes are compared before a tensor is read.

    `shapes` are those of our weights; `unused` says which of their tensors the model needs no more.
    """
    theirs, table = source.shapes(), list(rows)
    missing = [repr(name) for row in table for name in row.theirs if name not in theirs]
    used = {name for row in table for name in row.theirs}
    extra = [repr(name) for name in theirs if name not in used and not unused(name)]
    wrong = [
        f"{name!r} is {theirs[name]}, expected {shape}"
        for row in table
        for name, shape in zip(row.theirs, row.expected_shapes(shapes[row.ours]), strict=True)
        if name in theirs and theirs[name] != shape
    ]
    problems = {"missing": missing, "that the model does not have": extra, "of another shape": wrong}
    found = [f"{len(names)} {what} ({_first(names)})" for what, names in problems.items() if names]
    if found:
        raise ModelError(f"{source.path}: its tensors are not those of the model that its config describes: "
                         f"{', '.join(found)}")  # fmt: skip
    ours = {}
    for done, row in enumerate(table, 1):
        ours[row.ours] = row.join([source.read(name) for name in row.theirs], shapes[row.ours])
        progress(done, len(table))
    return ours


def to_theirs(rows: Iterable[WeightRow], weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Their tensors from our weights."""
    found: dict[str, Tensor] = {}
    for row in rows:
        found |= row.split(weights[row.ours])
    return found


def expand(layers: int, rows: Callable[[int], Iterable[WeightRow]]) -> Iterator[WeightRow]:
    """The rows of each layer."""
    for number in range(layers):
        yield from rows(number)


def _first(names: list[str]) -> str:
    return ", ".join(names[:MAX_NAMED]) + (", ..." if len(names) > MAX_NAMED else "")
