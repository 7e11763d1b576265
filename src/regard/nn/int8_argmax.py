"""Exact argmax over a large vocabulary by an int8 copy of the output projection: an accelerator at batch size 1.

Decoding one sentence is bound by memory, and the output projection of a large vocabulary is a good part of what is read
for every word. An int8 copy is a quarter of that. Its error is bounded; so the words that can be the argmax are known,
mostly one or two, and only these are multiplied in float32.
"""

from __future__ import annotations

import math
import threading
import warnings

import torch
import torch.nn.functional as F
from torch import Tensor

MIN_ELEMENTS = 2**20
"""elements of a matrix from which it is faster"""
PASSES = 2
"""products with the copy: seven bits say little of a vector with outliers, and then the rest is multiplied too"""
OPERATORS = ("linear_prepack", "linear_with_input_q_dq_qweight_dq_output_fp32")
"""private operators of torch.ops.quantized; without them greedy search takes the plain path"""
_PACKING = threading.Lock()


class Int8Argmax:
    """The row of a matrix (V, D) with the largest product with a vector: exact, the lowest row among equals.

    With w' for a row in eight bits and x' for the vector in seven, |w x - w' x'| <= |w - w'| |x| + |w'| |x - x'|
    (Cauchy-Schwarz). The norms of w - w' and w' are computed once, those of x and x - x' per call. Where that leaves
    many rows, x - x' is rounded and multiplied as well. Construction takes as long as decoding some hundred words.

    >>> Int8Argmax(torch.eye(4)).argmax(torch.tensor([[0.0, 3.0, -9.0, 3.0]]))
    tensor([1])
    """

    def __init__(self, weight_VD: Tensor) -> None:
        steps_V1 = weight_VD.abs().amax(1, keepdim=True).div(127).clamp(min=1e-30)
        int8_VD = (weight_VD / steps_V1).round()
        near_VD = int8_VD * steps_V1
        self.weight, self.packed = weight_VD, _pack(int8_VD.to(torch.int8), steps_V1.squeeze(1))
        self.errors, self.norms = (_norm(rows_VD).float() for rows_VD in (weight_VD - near_VD, near_VD))
        """(V,) each: |w - w'| and |w'|"""

    @staticmethod
    def is_supported(weight_VD: Tensor) -> bool:
        """Whether the matrix is large enough, and this machine and torch have the operators."""
        return (
            weight_VD.numel() >= MIN_ELEMENTS
            and weight_VD.device.type == "cpu"
            and weight_VD.dtype is torch.float32
            and "fbgemm" in torch.backends.quantized.supported_engines
            and hasattr(torch, "_make_per_channel_quantized_tensor")
            and all(hasattr(torch.ops.quantized, name) for name in OPERATORS)
        )

    def argmax(self, x_1D: Tensor, banned_N: Tensor | None = None, noise_V: Tensor | None = None) -> Tensor:
        """(1,): the row of the largest product plus noise, `banned_N` left out; these are not all rows."""
        rows_K = self.candidates(x_1D, banned_N, noise_V)
        if len(rows_K) == 1:
            return rows_K
        if not 0 < len(rows_K) <= len(self.weight) // 8:  # the bound says nothing: NaN, or all rows alike
            out_1V = F.linear(x_1D, self.weight)
            out_1V = out_1V if noise_V is None else out_1V + noise_V
            return (out_1V if banned_N is None else out_1V.index_fill(1, banned_N, -math.inf)).argmax(1)
        # row by row: the rounding of a matrix product depends on the place of a row, and equal rows would differ
        out_K = (self.weight.index_select(0, rows_K) * x_1D).sum(1)
        out_K = out_K if noise_V is None else out_K + noise_V.index_select(0, rows_K)
        return rows_K.index_select(0, out_K.argmax(0, keepdim=True))

    def candidates(self, x_1D: Tensor, banned_N: Tensor | None = None, noise_V: Tensor | None = None) -> Tensor:
        """(K,): the rows that can have the largest product plus noise, in order; none if the vector is not finite.

        A banned row is no candidate, and bounds no other: the largest product is that of the other rows.
        """
        size = float(_norm(x_1D))
        slack = 1e-6 * float(noise_V.abs().amax()) if noise_V is not None else 0.0  # of float32 sums
        rounding = 1e-4 * size  # of float32 products; those of x' and w' are products of integers, and exact
        multiply = torch.ops.quantized.linear_with_input_q_dq_qweight_dq_output_fp32
        rough_V = torch.zeros_like(self.norms) if noise_V is None else noise_V.clone()
        if banned_N is not None:
            rough_V[banned_N] = -math.inf
        rest_1D, rows_K = x_1D, torch.empty(0, dtype=torch.long, device="cpu")
        for _ in range(PASSES):
            step = max(float(rest_1D.abs().amax()) / 63, 1e-30)
            if not math.isfinite(step):
                return rows_K
            near_1D = (rest_1D / step).round() * step  # whole steps, which the operator does not round to others
            rough_V += multiply(near_1D, step, 64, self.packed)[0]
            rest_1D = rest_1D - near_1D
            bound_V = torch.add(self.errors * size, self.norms, alpha=float(_norm(rest_1D)) + rounding)
            rows_K = (rough_V + bound_V >= (rough_V - bound_V).amax() - slack).nonzero().squeeze(1)
            if len(rows_K) <= len(self.weight) // 32:
                break
        return rows_K


def _norm(x_ND: Tensor) -> Tensor:
    """(N,), in double precision: the squares of small numbers underflow in float32."""
    return torch.linalg.vector_norm(x_ND, dim=1, dtype=torch.double)


def _pack(int8_VD: Tensor, steps_V: Tensor) -> object:
    """fbgemm's layout. Seven bits of x are what processors without wide byte sums still add up exactly."""
    with _PACKING, warnings.catch_warnings():  # both are process-wide
        warnings.simplefilter("ignore")  # torch is going to replace quantized tensors
        engine = torch.backends.quantized.engine
        zeros_V = torch.zeros(len(steps_V), dtype=torch.long, device="cpu")
        quantized = torch._make_per_channel_quantized_tensor(int8_VD, steps_V.double(), zeros_V, 0)
        try:
            torch.backends.quantized.engine = "fbgemm"
            return torch.ops.quantized.linear_prepack(quantized, None)
        finally:
            torch.backends.quantized.engine = engine
