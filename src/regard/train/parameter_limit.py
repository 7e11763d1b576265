"""Limit on the parameters of a model that is built to be loaded: no more than its checkpoint has, with some slack.

A recipe may say layers = 2,000,000; without a limit such a model is built, for hours or until memory is full, before
it is compared with the weights. Parameters are counted while the model is built, whatever its kind.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path

from torch import nn
from torch.nn.modules.module import register_module_parameter_registration_hook

from regard.errors import ModelError
from regard.files import open_regular, parse_json
from regard.train.checkpoint_store import search_order

FILE = "model.safetensors"
MAX_HEADER = 16 << 20
"""bytes of the largest header of a safetensors file"""
SLACK, SPARE = 4, 256
"""Parameters that are made and then tied to others, or laid out again for inference, count more than once."""


@dataclass
class _Left:
    """What may still be registered: parameters, and numbers in them."""

    parameters: int
    numbers: int


class _TooManyParameters(Exception):
    """The model being built has more parameters than its checkpoint."""


_limit = threading.local()


def _count(module: nn.Module, name: str, parameter: nn.Parameter | None) -> None:
    left: _Left | None = getattr(_limit, "left", None)
    if left is None or parameter is None:
        return
    left.parameters, left.numbers = left.parameters - 1, left.numbers - parameter.numel()
    if left.parameters < 0 or left.numbers < 0:
        raise _TooManyParameters


register_module_parameter_registration_hook(_count)  # once: other threads may be building models


@contextmanager
def parameter_limit(saved: Path) -> Iterator[None]:
    """Refuse, in this thread, to build a model with many more parameters than a checkpoint has."""
    tensors, size = count_tensors(saved / FILE), (saved / FILE).stat().st_size
    # a number has 4 bytes; one embedding that is tied to another and to the output projection is registered five times
    _limit.left = _Left(SLACK * tensors + SPARE, 2 * size + SPARE)
    try:
        yield
    except _TooManyParameters:
        raise ModelError(
            f"{saved} does not fit the model: its recipe describes many more parameters than the {tensors:,} tensors "
            "that were saved; is it from another recipe?"
        ) from None
    finally:
        _limit.left = None


def resume_limit(run: Path) -> AbstractContextManager[None]:
    """The limit for a run that is resumed, by its newest checkpoint with a header; none without a checkpoint."""
    for folder in search_order(run):
        with suppress(ModelError):
            count_tensors(folder / FILE)
            return parameter_limit(folder)
    return nullcontext()


def count_tensors(path: Path) -> int:
    """Number of tensors in a safetensors file, by its header."""
    try:
        with open_regular(path) as file:
            size = int.from_bytes(file.read(8), "little")
            header = parse_json(file.read(size)) if size <= MAX_HEADER else None
    except (OSError, ValueError) as error:
        raise ModelError(f"{path}: cannot be read as safetensors ({error})") from error
    if not isinstance(header, dict):
        raise ModelError(f"{path}: cannot be read as safetensors (its header has {size:,} bytes)")
    return len(header)
