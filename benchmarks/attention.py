"""Training attention in bfloat16 on a CPU: torch's fused kernel against products one by one, forward and backward.

Both in turns in one process and by one thread, in CPU time. Printed are milliseconds of the fused kernel and the ratio
fused / products (above 1: products are faster), median and range over rounds.

    python benchmarks/attention.py [--rounds 5] [--keys 16 64 256 512 1024]

`regard.nn.attention.FEW_KEYS` is the number of keys up to which products are used; it follows from this.
"""

from __future__ import annotations

import argparse
import statistics
import time

import torch
from torch import nn

from regard.nn import attention
from regard.nn.attention import KeysValues, attend
from regard.train.parallel import tune_malloc

POSITIONS, HEADS, WIDTH = 4096, 4, 64
"""positions of a batch, heads, width of a head"""
STEPS = 4


def seconds(few_keys: int, query: torch.Tensor, kv: KeysValues, gradient: torch.Tensor) -> float:
    """CPU seconds of a few passes, with products for so many keys at most."""
    attention.FEW_KEYS = few_keys
    started = time.process_time()
    for _ in range(STEPS):
        with torch.autocast("cpu", torch.bfloat16):
            out = attend(nn.Identity(), query, kv, "causal", "query key")
        out.backward(gradient)
    return (time.process_time() - started) / STEPS


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--keys", type=int, nargs="+", default=[16, 64, 256, 512, 1024])
    args = parser.parse_args()
    torch.set_num_threads(1)
    tune_malloc()
    for keys in args.keys:
        shape = (POSITIONS // keys, keys, HEADS, WIDTH)
        query, key, value = (torch.randn(shape).bfloat16().transpose(1, 2).requires_grad_() for _ in range(3))
        gradient = torch.randn(query.shape).bfloat16()
        fused, products = [], []
        for _ in range(args.rounds + 1):
            fused.append(seconds(0, query, KeysValues(key, value), gradient))
            products.append(seconds(keys, query, KeysValues(key, value), gradient))
        ratios = sorted(f / p for f, p in zip(fused[1:], products[1:], strict=True))  # the first round warms up
        middle, fused_ms = statistics.median(ratios), 1000 * statistics.median(fused[1:])
        print(f"{keys:5} keys: {fused_ms:6.1f} ms, {middle:.2f} x ({ratios[0]:.2f} to {ratios[-1]:.2f})", flush=True)


if __name__ == "__main__":
    main()
