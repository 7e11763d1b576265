"""A pretend accelerator: tensors whose device is not the CPU, computed by the CPU. What a GPU refuses, it refuses.

The tensors of an operation must be on one device (numbers of no dimension may be on the CPU), nothing is converted to
NumPy without .cpu(), and there is no float64, as on MPS. So a model that trains and answers here makes no tensor on a
fixed device and reads no result without asking for it. Torch's registration of a device in Python is experimental; it
is used in tests only.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any
from unittest import mock

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._mode_utils import no_dispatch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map
from torch.utils.backend_registration import _DummyBackendModule, _setup_privateuseone_for_python_backend

NAME = "pretend"


class Backend(_DummyBackendModule):
    """What torch asks the module of a device for."""

    def get_amp_supported_dtype(self) -> list[torch.dtype]:
        return [torch.bfloat16]


if not hasattr(torch, NAME):  # pytest imports this module again to look for doctests
    _setup_privateuseone_for_python_backend(NAME, Backend())
DEVICE = torch.device(NAME, 0)
COPIES = {torch.ops.aten._to_copy.default, torch.ops.aten.copy_.default}
"""operations that may read one device and write another"""


def lstm_cell(i: Tensor, h: Tensor, cell: Tensor, *biases: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
    gates = i + h + sum(b for b in biases if b is not None)
    a, f, g, o = gates.chunk(4, 1)
    a, f, g, o = a.sigmoid(), f.sigmoid(), g.tanh(), o.sigmoid()
    after = f * cell + a * g
    return o * after.tanh(), after, torch.cat([a, f, g, o], 1)


def lstm_cell_backward(
    hidden: Tensor | None, cell: Tensor | None, before: Tensor, after: Tensor, gates: Tensor, biased: bool
) -> tuple[Tensor, Tensor, Tensor | None]:
    a, f, g, o = gates.chunk(4, 1)
    tanh = after.tanh()
    into_hidden = torch.zeros_like(tanh) if hidden is None else hidden
    into = into_hidden * o * (1 - tanh**2) + (0 if cell is None else cell)
    parts = [
        into * g * a * (1 - a),
        into * before * f * (1 - f),
        into * a * (1 - g**2),
        into_hidden * tanh * o * (1 - o),
    ]
    return torch.cat(parts, 1), into * f, torch.cat(parts, 1).sum(0) if biased else None


def gru_cell(i: Tensor, h: Tensor, hidden: Tensor, *biases: Tensor | None) -> tuple[Tensor, Tensor]:
    (ir, iz, new), (hr, hz, hn) = (
        (t if b is None else t + b).chunk(3, 1) for t, b in zip((i, h), biases or (None, None), strict=True)
    )
    r, z = (ir + hr).sigmoid(), (iz + hz).sigmoid()
    n = (new + r * hn).tanh()
    return n + z * (hidden - n), torch.cat([r, z, n, hidden, hn], 1)


def gru_cell_backward(grad: Tensor, kept: Tensor, biased: bool) -> tuple[Tensor | None, ...]:
    r, z, n, hidden, hn = kept.chunk(5, 1)
    into_n = grad * (1 - z) * (1 - n**2)
    into_r, into_z = into_n * hn * r * (1 - r), grad * (hidden - n) * z * (1 - z)
    i, h = torch.cat([into_r, into_z, into_n], 1), torch.cat([into_r, into_z, into_n * r], 1)
    return i, h, grad * z, i.sum(0) if biased else None, h.sum(0) if biased else None


aten = torch.ops.aten
KERNELS = {
    aten._thnn_fused_lstm_cell.default: lstm_cell,
    aten._thnn_fused_lstm_cell_backward_impl.default: lstm_cell_backward,
    aten._thnn_fused_gru_cell.default: gru_cell,
    aten._thnn_fused_gru_cell_backward.default: gru_cell_backward,
}
"""the fused cells of accelerators, which the CPU has no kernel for"""


class MixedDevices(RuntimeError):
    """An operation got tensors of both devices."""


class PretendTensor(Tensor):
    """A tensor of the pretend device; its numbers are in `held`, on the CPU."""

    held: Tensor

    @staticmethod
    def __new__(cls, held: Tensor) -> PretendTensor:
        return Tensor._make_wrapper_subclass(  # type: ignore[attr-defined]
            cls, held.shape, held.stride(), held.storage_offset(), dtype=held.dtype, device=DEVICE
        )

    def __init__(self, held: Tensor) -> None:
        self.held = held

    def __repr__(self, **_: Any) -> str:
        return f"PretendTensor({self.held})"

    @property  # type: ignore[override]
    def data(self) -> Tensor:
        return self.detach()

    @data.setter
    def data(self, new: Tensor) -> None:
        assert isinstance(new, PretendTensor)
        self.held = new.held

    def data_ptr(self) -> int:
        return self.held.data_ptr()

    def __deepcopy__(self, memo: dict[Any, Any]) -> Tensor:
        key = ("held", self.held.data_ptr(), self.held.shape)  # tied weights stay one tensor
        return memo.setdefault(key, PretendTensor(self.held.clone()))

    def tolist(self) -> Any:
        return self.held.tolist()

    def numpy(self, **_: Any) -> Any:
        raise TypeError(f"can't convert {NAME}:0 device type tensor to numpy; use Tensor.cpu()")

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return run(func, args, kwargs or {})


def run(func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    """Compute an operation on the CPU, after the checks that an accelerator would make."""
    tensors = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, Tensor)]
    here = [t for t in tensors if isinstance(t, PretendTensor)]
    device = kwargs.get("device")
    to_here = device is not None and torch.device(device).type == NAME
    if here and func not in COPIES and any(t.ndim for t in tensors if not isinstance(t, PretendTensor)):
        kinds = ", ".join(f"{'pretend' if isinstance(t, PretendTensor) else 'cpu'} {tuple(t.shape)}" for t in tensors)
        raise MixedDevices(f"{func} expected all tensors on one device, got {kinds}")
    if device is not None and to_here:
        kwargs = {**kwargs, "device": torch.device("cpu")}
    args, kwargs = tree_map(lambda x: x.held if isinstance(x, PretendTensor) else x, (args, kwargs))
    out = KERNELS.get(func, func)(*args, **kwargs)
    if out is None or any(r.alias_info is not None and r.alias_info.is_write for r in func._schema.returns):
        if torch.Tag.inplace_view in func.tags and here:  # the shape that torch shows is the wrapper's own
            with no_dispatch():
                func(here[0], *args[1:], **kwargs)
        return None if out is None else tensors[0]  # in place
    stays = to_here or (bool(here) and (device is None or to_here))
    return tree_map(wrap, out) if stays else out


def wrap(x: Any) -> Any:
    if not isinstance(x, Tensor) or isinstance(x, PretendTensor):
        return x
    if x.dtype == torch.float64:
        raise TypeError(f"the {NAME} device has no float64, as MPS has none")
    with torch.inference_mode(False):  # a wrapper that is an inference tensor cannot be a view of one that is not
        return PretendTensor(x)


class PretendDevice(TorchDispatchMode):
    """Catches the operations that make tensors on the pretend device, or move them there."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return run(func, args, kwargs or {})


class FromPython(TorchFunctionMode):
    """torch.tensor fills a tensor below the dispatcher: so it is made on the CPU and moved."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        if func is torch.tensor and torch.device(kwargs.get("device") or "cpu").type == NAME:
            return torch.tensor(*args, **{**kwargs, "device": "cpu"}).to(DEVICE)
        if func is Tensor.new_tensor and isinstance(args[0], PretendTensor):
            return torch.tensor(*args[1:], **{"dtype": args[0].dtype, **kwargs}).to(DEVICE)
        return func(*args, **kwargs)


@contextmanager
def pretend_device() -> Iterator[torch.device]:
    """Inside this block tensors can be made on the device and moved to it.

    Modules are moved by swapping their parameters for tensors of the device: else tied weights would part. Torch does
    not swap a parameter that has a weak reference, as those of recurrent layers have; here none of them is used later.
    """
    before = torch.__future__.get_swap_module_params_on_conversion()
    torch.__future__.set_swap_module_params_on_conversion(True)
    try:
        without_references = mock.patch.object(torch.utils, "weakref", SimpleNamespace(getweakrefs=lambda tensor: []))
        with PretendDevice(), FromPython(), without_references:
            yield DEVICE
    finally:
        torch.__future__.set_swap_module_params_on_conversion(before)
