"""Which numbers layers compute with: float32, or bfloat16 by torch.autocast; weights and sums stay float32."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import torch

FLAGS = Path("/proc/cpuinfo")
PROBE = "import torch; torch.ones(64, 128).bfloat16() @ torch.ones(128, 128).bfloat16()"


@dataclass(frozen=True)
class Precision:
    """How one device computes; `around` forward and backward, `inside` forward only.

    >>> precision = Precision("bfloat16", "cpu")
    >>> with precision.around(), precision.inside():
    ...     (torch.ones(2, 3) @ torch.ones(3, 2)).dtype
    torch.bfloat16
    """

    name: str
    device: str

    def inside(self) -> torch.autocast:
        """For what is computed forward."""
        return torch.autocast(self.device, torch.bfloat16, enabled=self.name == "bfloat16")

    @contextmanager
    def around(self) -> Iterator[None]:
        """For forward and backward: without oneDNN where its bfloat16 would end the process."""
        if self.name == "float32" or self.device != "cpu" or tiles_work():
            yield
            return
        before = torch.backends.mkldnn.enabled
        torch.backends.mkldnn.enabled = False  # type: ignore[assignment]
        try:
            yield
        finally:
            torch.backends.mkldnn.enabled = before


@cache
def tiles_work() -> bool:
    """Whether a product of bfloat16 matrices survives here.

    Some virtual machines say that the processor has matrix tiles (AMX) and hide how large they are; oneDNN believes
    the first, and an illegal instruction ends the process. So another process tries, where there are tiles at all.

    >>> tiles_work() in (True, False)
    True
    """
    if not FLAGS.exists() or "amx_tile" not in FLAGS.read_text(encoding="utf-8", errors="replace"):
        return True
    return subprocess.run([sys.executable, "-c", PROBE], capture_output=True, check=False).returncode >= 0
