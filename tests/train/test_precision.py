"""bfloat16 where oneDNN's matrix tiles would end the process."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from regard.train import precision
from regard.train.precision import Precision


@pytest.fixture(autouse=True)
def anew():
    precision.tiles_work.cache_clear()
    yield
    precision.tiles_work.cache_clear()


def tiles(monkeypatch: pytest.MonkeyPatch, folder: Path, flags: str, probe: str) -> None:
    (folder / "cpuinfo").write_text(f"flags : fpu {flags}\n")
    monkeypatch.setattr(precision, "FLAGS", folder / "cpuinfo")
    monkeypatch.setattr(precision, "PROBE", probe)


DIES = "import os, signal; os.kill(os.getpid(), signal.SIGILL)"


def test_where_a_probe_dies_onednn_is_left_out_and_comes_back(monkeypatch, tmp_path):
    tiles(monkeypatch, tmp_path, "amx_tile", DIES)
    with pytest.raises(KeyError), Precision("bfloat16", "cpu").around():
        assert not torch.backends.mkldnn.enabled
        raise KeyError
    assert torch.backends.mkldnn.enabled


@pytest.mark.parametrize(("name", "flags", "probe"), [("bfloat16", "amx_tile", "pass"), ("float32", "amx_tile", DIES)])
def test_elsewhere_onednn_stays(monkeypatch, tmp_path, name, flags, probe):
    tiles(monkeypatch, tmp_path, flags, probe)
    with Precision(name, "cpu").around():
        assert torch.backends.mkldnn.enabled


def test_a_processor_without_tiles_is_not_probed(monkeypatch, tmp_path):
    tiles(monkeypatch, tmp_path, "avx2", DIES)
    assert precision.tiles_work()
    monkeypatch.setattr(precision, "FLAGS", tmp_path / "none")
    precision.tiles_work.cache_clear()
    assert precision.tiles_work()
