"""Devices: their names in settings and options, which of them this machine has, and how many threads a CPU uses.

Torch is imported only where it is asked, so that a wrong name is reported at once.
"""

from __future__ import annotations

import difflib
import os
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from regard.errors import ConfigError

if TYPE_CHECKING:
    import torch
    from torch import nn

NAMES = ("auto", "cpu", "cuda", "mps")
"""kinds of device; cuda may have an index, such as cuda:1"""
ALIASES = {"gpu": "cuda", "nvidia": "cuda", "rocm": "cuda", "hip": "cuda", "metal": "mps", "apple": "mps"}
"""other words for a kind, for suggestions"""
PATTERN = re.compile(r"auto|cpu|mps|cuda(:\d{1,3})?")
SMALL_MODEL = 300_000
"""parameters up to which training takes one thread, and use with ten times as many (benchmarks/threads.py)"""


@dataclass(frozen=True)
class DeviceInfo:
    """A device of this machine."""

    name: str
    """as in settings: cpu, cuda:0, mps"""
    description: str = ""
    """the product"""
    memory: float | None = None
    """its memory in GiB"""

    def __str__(self) -> str:
        memory = "" if self.memory is None else f"{self.memory:.0f} GiB"
        detail = ", ".join(filter(None, (self.description, memory)))
        return f"{self.name} ({detail})" if detail else self.name


def check_device_name(name: str, shown: str) -> None:
    """Refuse a name that is none of a device; `shown` is how the error writes it, such as `--device gpu`.

    >>> check_device_name("gpu", "--device gpu")
    Traceback (most recent call last):
    regard.errors.ConfigError: --device gpu must be auto, cpu, cuda, cuda:N or mps; did you mean cuda?
    """
    if PATTERN.fullmatch(name):
        return
    kind = name.lower().partition(":")[0]
    close = [ALIASES[kind]] if kind in ALIASES else difflib.get_close_matches(kind, NAMES, n=1, cutoff=0.7)
    guess = f"; did you mean {close[0]}?" if close else ""
    raise ConfigError(f"{shown} must be auto, cpu, cuda, cuda:N or mps{guess}")


def devices() -> list[DeviceInfo]:
    """The devices of this machine that torch can use: the CPU first."""
    import torch

    found = [DeviceInfo("cpu")]
    if torch.cuda.is_available():
        for index in range(torch.cuda.device_count()):
            properties = torch.cuda.get_device_properties(index)
            found.append(DeviceInfo(f"cuda:{index}", properties.name, properties.total_memory / (1 << 30)))
    if torch.backends.mps.is_available():
        found.append(DeviceInfo("mps", "Apple GPU", torch.mps.recommended_max_memory() / (1 << 30)))
    return found


def resolve_device(name: str, processes: int = 1, before: str | None = None) -> torch.device:
    """The device that a name stands for on this machine; an error says what there is instead.

    "auto" is `before` if this machine has it (the kind of device that a run was trained on), else CUDA, else MPS, else
    the CPU. One of several `processes` gets the CUDA device of its local rank.

    >>> resolve_device("cpu")
    device(type='cpu')
    """
    import torch

    check_device_name(name, f"device {name}")
    here = [info.name for info in devices()]
    kinds = [kind for kind in ("cuda", "mps", "cpu") if any(found.partition(":")[0] == kind for found in here)]
    if name == "auto":
        usable = [kind for kind in kinds if kind != "mps" or processes == 1]
        name = before if before in usable else usable[0]
    kind, _, index = name.partition(":")
    if kind not in kinds:
        label = {"cuda": "CUDA", "mps": "MPS"}[kind]
        built = (
            f" (torch {torch.__version__} is built without CUDA)" if kind == "cuda" and not _built_with_cuda() else ""
        )
        raise ConfigError(f"device {name}: there is no {label} device{built}; this machine has {', '.join(here)}")
    if kind == "mps" and processes > 1:
        raise ConfigError(f"device mps: {processes} processes cannot share it; use --nproc 1, or --device cpu")
    if kind != "cuda":
        return torch.device(kind)
    count = len([found for found in here if found.startswith("cuda")])
    if processes > 1:
        if index:
            raise ConfigError(f"device {name}: {processes} processes take one CUDA device each; use --device cuda")
        index = os.environ.get("LOCAL_RANK", "0")
        if int(index) >= count:
            more = f"{count} CUDA device{'s' if count > 1 else ''}, and each process takes one"
            raise ConfigError(f"device cuda: this machine has {more}; use --nproc {count}, or --device cpu")
    if int(index or 0) >= count:
        raise ConfigError(f"device {name}: there is no such device; this machine has {', '.join(here)}")
    return torch.device("cuda", int(index or 0))


def _built_with_cuda() -> bool:
    import torch

    return torch.version.cuda is not None or torch.version.hip is not None


def describe_device(device: torch.device) -> str:
    """A device with its product and memory, as logs show it."""
    return next((str(info) for info in devices() if info.name == str(device)), str(device))


def module_device(module: nn.Module) -> torch.device:
    """The device of a module's weights; a module without weights of its own computes on the CPU."""
    import torch

    return next((tensor.device for tensor in module.parameters()), torch.device("cpu"))


def seed_device(device: torch.device, seed: int) -> None:
    """Seed the random generators that computations on a device use: torch.manual_seed, but faster on a CPU.

    On a machine without CUDA torch.manual_seed formats a traceback at every call.

    >>> import torch
    >>> seed_device(torch.device("cpu"), 5)
    >>> drawn, _ = torch.rand(2), torch.manual_seed(5)
    >>> torch.equal(drawn, torch.rand(2))
    True
    """
    import torch

    if device.type == "cpu":
        torch.default_generator.manual_seed(seed)
    else:
        torch.manual_seed(seed)


def widest_float(device: torch.device) -> torch.dtype:
    """The type of sums on a device: float64 on CPU and CUDA, float32 elsewhere; MPS has no float64."""
    import torch

    return torch.float64 if device.type in ("cpu", "cuda", "meta") else torch.float32


def default_threads(parameters: int, training: bool) -> int:
    """Threads for a model of this size where neither a setting nor OMP_NUM_THREADS says how many.

    One for training a small model and for using any but a large one: the work of an operation is then smaller than the
    cost of distributing it, and other programs keep a core. Otherwise those of torch: one per physical core.
    """
    import torch

    if "OMP_NUM_THREADS" in os.environ:
        return torch.get_num_threads()
    return 1 if parameters <= SMALL_MODEL * (1 if training else 10) else torch.get_num_threads()
