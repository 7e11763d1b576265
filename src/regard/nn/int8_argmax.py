"""The likeliest word without all of the softmax's matrix: a copy in eight bits says which words can be it.

One sentence at a time, a decoder waits for memory, and a large vocabulary's matrix is a good part of what it reads for
every word. A copy in eight bits is a quarter of that. What it says of a word is wrong by no more than a bound; so the
words that can be the likeliest are known, mostly one or two, and only these are multiplied in float32.
"""

from __future__ import annotations

import math
import threading
import warnings

import torch
import torch.nn.functional as F
from torch import Tensor

SMALLEST = 2**20
"""Numbers in a matrix from which on it is worth while"""
_PACKING = threading.Lock()


class Screen:
    """Finds the row of a matrix (V, D) with the largest product with a vector: exactly, the lowest row among equals.

    With w' for a row in eight bits and x' for the vector in seven, |w x - w' x'| <= |w - w'| |x| + |w'| |x - x'|
    (Cauchy and Schwarz). The lengths of w - w' and of w' are known beforehand, those of x and x - x' are soon found.
    Making one takes as long as some hundred words; a server has that back with its first sentences.

    >>> Screen(torch.eye(4)).likeliest(torch.tensor([[0.0, 3.0, -9.0, 3.0]]))
    tensor([1])
    """

    def __init__(self, weight_VD: Tensor) -> None:
        steps_V1 = weight_VD.abs().amax(1, keepdim=True).div(127).clamp(min=1e-30)
        eighth_VD = (weight_VD / steps_V1).round()
        near_VD = eighth_VD * steps_V1
        self.weight, self.packed = weight_VD, _packed(eighth_VD.to(torch.int8), steps_V1.squeeze(1))
        self.lost, self.lengths = (_length(rows_VD).float() for rows_VD in (weight_VD - near_VD, near_VD))
        """(V,) each: |w - w'| and |w'|"""

    @staticmethod
    def serves(weight_VD: Tensor) -> bool:
        """Whether the matrix is large enough, and this machine has what it takes.

        >>> Screen.serves(torch.eye(8))
        False
        """
        return (
            weight_VD.numel() >= SMALLEST
            and weight_VD.device.type == "cpu"
            and weight_VD.dtype is torch.float32
            and "fbgemm" in torch.backends.quantized.supported_engines
        )

    def likeliest(self, x_1D: Tensor) -> Tensor:
        """(1,): the row of the largest product."""
        near_K = self.near(x_1D)
        if len(near_K) == 1:
            return near_K
        if not 0 < len(near_K) <= len(self.weight) // 4:  # nothing is known: not a number, or all alike
            return F.linear(x_1D, self.weight).argmax(1)
        # row by row: the rounding of a product of matrices depends on where a row stands, and twins would differ
        return near_K.index_select(0, (self.weight.index_select(0, near_K) * x_1D).sum(1).argmax(0, keepdim=True))

    def near(self, x_1D: Tensor) -> Tensor:
        """(K,): the rows that can have the largest product, in order; none if the vector is not of numbers."""
        step = max(float(x_1D.abs().amax()) / 63, 1e-30)
        if not math.isfinite(step):
            return torch.empty(0, dtype=torch.long)
        rough_V = torch.ops.quantized.linear_with_input_q_dq_qweight_dq_output_fp32(x_1D, step, 64, self.packed)[0]
        size, off = (float(_length(row_1D)) for row_1D in (x_1D, x_1D - (x_1D / step).round() * step))
        rounding = 1e-4 * size  # of the products in float32; those of x' and w' are of whole numbers, and exact
        doubt_V = torch.add(self.lost * size, self.lengths, alpha=off + rounding)
        return (rough_V + doubt_V >= (rough_V - doubt_V).amax()).nonzero().squeeze(1)


def _length(x_ND: Tensor) -> Tensor:
    """(N,), in double precision: the squares of small numbers are no numbers in float32."""
    return torch.linalg.vector_norm(x_ND, dim=1, dtype=torch.double)


def _packed(eighth_VD: Tensor, steps_V: Tensor) -> object:
    """As fbgemm wants it. Seven bits of x are what processors without wide sums of bytes still add up exactly."""
    with _PACKING, warnings.catch_warnings():  # both are of the whole process
        warnings.simplefilter("ignore")  # tensors that know their own scale are to be replaced in torch some day
        engine = torch.backends.quantized.engine
        zeros_V = torch.zeros(len(steps_V), dtype=torch.long)
        known = torch._make_per_channel_quantized_tensor(eighth_VD, steps_V.double(), zeros_V, 0)
        try:
            torch.backends.quantized.engine = "fbgemm"
            return torch.ops.quantized.linear_prepack(known, None)
        finally:
            torch.backends.quantized.engine = engine
