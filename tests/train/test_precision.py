"""bfloat16 on machines where oneDNN's matrix tiles (AMX) would crash the process."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from regard.train import precision
from regard.train.precision import Precision


@pytest.fixture(autouse=True)
def clear_cache():
    precision.bf16_matmul_works.cache_clear()
    yield
    precision.bf16_matmul_works.cache_clear()


def fake_cpu(monkeypatch: pytest.MonkeyPatch, folder: Path, flags: str, program: str) -> None:
    (folder / "cpuinfo").write_text(f"flags : fpu {flags}\n")
    monkeypatch.setattr(precision, "CPU_INFO", folder / "cpuinfo")
    monkeypatch.setattr(precision, "MATMUL", program)


CRASH = "import os, signal; os.kill(os.getpid(), signal.SIGILL)"


def test_onednn_is_disabled_where_its_matmul_crashes_and_enabled_afterwards(monkeypatch, tmp_path):
    fake_cpu(monkeypatch, tmp_path, "amx_tile", CRASH)
    with pytest.raises(KeyError), Precision("bfloat16", "cpu").backend():
        assert not torch.backends.mkldnn.enabled
        raise KeyError
    assert torch.backends.mkldnn.enabled


@pytest.mark.parametrize(("name", "program"), [("bfloat16", "pass"), ("float32", CRASH)])
def test_onednn_stays_enabled_otherwise(monkeypatch, tmp_path, name, program):
    fake_cpu(monkeypatch, tmp_path, "amx_tile", program)
    with Precision(name, "cpu").backend():
        assert torch.backends.mkldnn.enabled


def test_a_processor_without_tiles_is_not_tested(monkeypatch, tmp_path):
    fake_cpu(monkeypatch, tmp_path, "avx2", CRASH)
    assert precision.bf16_matmul_works()
    monkeypatch.setattr(precision, "CPU_INFO", tmp_path / "none")
    precision.bf16_matmul_works.cache_clear()
    assert precision.bf16_matmul_works()
