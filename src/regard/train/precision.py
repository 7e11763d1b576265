"""Mixed precision: float32, or bfloat16 through torch.autocast; weights and sums stay float32."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import torch

CPU_INFO = Path("/proc/cpuinfo")
MATMUL = "import torch; torch.ones(64, 128).bfloat16() @ torch.ones(128, 128).bfloat16()"


@dataclass(frozen=True)
class Precision:
    """Precision on one device: `backend` around forward and backward, `autocast` around forward only."""

    name: str
    device: str

    def autocast(self) -> torch.autocast:
        """Autocast context of the forward pass."""
        return torch.autocast(self.device, torch.bfloat16, enabled=self.name == "bfloat16")

    @contextmanager
    def backend(self) -> Iterator[None]:
        """Context of forward and backward: disables oneDNN where its bfloat16 kernels crash the process."""
        if self.name == "float32" or self.device != "cpu" or bf16_matmul_works():
            yield
            return
        before = torch.backends.mkldnn.enabled
        torch.backends.mkldnn.enabled = False  # type: ignore[assignment]
        try:
            yield
        finally:
            torch.backends.mkldnn.enabled = before


@cache
def bf16_matmul_works() -> bool:
    """Whether a bfloat16 matrix product survives on this CPU.

    Some virtual machines report matrix tiles (AMX) and hide their size; oneDNN believes the first, and an illegal
    instruction ends the process. So a subprocess tries, on machines that report tiles at all.
    """
    if not CPU_INFO.exists() or "amx_tile" not in CPU_INFO.read_text(encoding="utf-8", errors="replace"):
        return True
    return subprocess.run([sys.executable, "-c", MATMUL], capture_output=True, check=False).returncode >= 0
