"""Listeners that write files, and what happens to these files when a run is killed and resumed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from regard.errors import OutputError
from regard.train.events import Began, MetricsFile, Saved, Stepped, Validated, drop_after

TRAIN = """
import os, signal, sys
from pathlib import Path
from regard.models.seq2seq import Seq2SeqConfig
from regard.spaces import Words
from regard.objective import NextToken, Objective
from regard.tasks.copying import CopyTask
from regard.train.events import MetricsFile, Stepped
from regard.train.config import TrainConfig
from regard.train.trainer import train

def die(event):
    if isinstance(event, Stepped) and event.step == int(sys.argv[2]):
        with (run / "samples.jsonl").open("ab") as file:
            file.write(b'{"event": "validated", "st')  # an incomplete line
        os.kill(os.getpid(), signal.SIGKILL)

run = Path(sys.argv[1])
model = Seq2SeqConfig(layers=1, width=8).build(Words(8), Words(8))
validate = lambda: ({"loss": 1.0}, [{"source": "é"}])
config = TrainConfig(steps=12, validate_every=5, save_every=2)
train(Objective(model, NextToken(Words(8))), CopyTask(), config, run, listeners=[MetricsFile(run, 1), die],
      validate=validate)
"""


def rows(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.mark.slow
def test_a_run_that_was_killed_and_resumed_logs_no_step_twice(tmp_path: Path) -> None:
    for last in (1, 7, 11, 0):
        done = subprocess.run([sys.executable, "-c", TRAIN, str(tmp_path), str(last)], capture_output=True, text=True)
        assert done.returncode == (-signal.SIGKILL if last else 0), done.stderr
    metrics = rows(tmp_path / "metrics.jsonl")
    assert [row["step"] for row in metrics if row["event"] == "stepped"] == list(range(1, 13))
    assert [row["step"] for row in metrics if row["event"] == "validated"] == [5, 10, 12]
    assert [row["step"] for row in metrics if row["event"] == "began"] == [0, 0, 6, 10]
    assert [row["step"] for row in rows(tmp_path / "samples.jsonl")] == [5, 10, 12]


def test_lines_of_later_steps_and_incomplete_lines_are_dropped(tmp_path: Path) -> None:
    file = MetricsFile(tmp_path, every=1)
    for step in range(1, 7):
        file(Stepped(step, 1.0, 1e-3, 1.0, 100, 0.1))
    file(Validated(6, {"loss": 1.0}, True, [{"source": "é\u2028\u0085", "output": "a"}]))
    metrics, samples = tmp_path / "metrics.jsonl", tmp_path / "samples.jsonl"
    with metrics.open("ab") as torn:
        torn.write(b"\0" * 40 + b"\n[4]\n\xff\n" + b"[" * 100_000 + b'\n{"event": "stepped", "step": 2')
    file(Began(4, 9, 10))
    assert [(row["event"], row["step"]) for row in rows(metrics)] == [
        ("stepped", 1), ("stepped", 2), ("stepped", 3), ("stepped", 4), ("began", 4)
    ]  # fmt: skip
    assert samples.read_bytes() == b""
    assert sorted(path.name for path in tmp_path.iterdir()) == ["metrics.jsonl", "samples.jsonl"]


def test_a_sample_of_the_step_that_a_run_resumes_from_stays(tmp_path: Path) -> None:
    file, sample = MetricsFile(tmp_path), {"source": "é\u2028\u0085\r", "output": "a\nb"}
    file(Validated(6, {"loss": 1.0}, True, [sample]))
    file(Validated(8, {"loss": 1.0}, True, [sample]))
    file(Saved(8, tmp_path / "checkpoints" / "00000008"))
    file(Began(6, 9, 10))
    lines = (tmp_path / "samples.jsonl").read_bytes().split(b"\n")
    assert [json.loads(line) for line in lines[:-1]] == [{"event": "validated", "step": 6, **sample}]
    assert lines[-1] == b""


def test_a_concurrent_reader_sees_complete_lines(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    path.write_text('{"step": 1}\n{"step": 2}\n')
    with path.open() as reader:
        drop_after(path, 1)
        assert reader.read() == '{"step": 1}\n{"step": 2}\n'
    assert path.read_text() == '{"step": 1}\n'


def test_a_file_with_nothing_to_drop_is_not_rewritten(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    path.write_text('{"step": 1}\n')
    before = path.stat().st_ino, path.stat().st_mtime_ns
    drop_after(path, 1)
    assert (path.stat().st_ino, path.stat().st_mtime_ns) == before


def test_a_file_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "metrics.jsonl").mkdir()
    with pytest.raises(OutputError) as caught:
        MetricsFile(tmp_path)(Began(0, 9, 10))
    assert str(caught.value) == f"{tmp_path}/metrics.jsonl: cannot be written ({os.strerror(21)})"
