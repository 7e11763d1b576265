import io
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from regard.cli import invoke

TINY = """
[data]
kind = "phrases"
count = 300
[model]
kind = "transformer"
layers = 1
width = 16
heads = 2
inner = 32
[text]
size = 200
[train]
steps = 30
every = 10
tokens = 512
keep = 5
schedule.lr = 0.01
schedule.warmup = 10
[task]
scored = 3
"""


@dataclass(frozen=True)
class Said:
    """What a command said, and the code it ended with."""

    code: int
    out: str
    err: str


@pytest.fixture
def say(capsys, monkeypatch):
    """Run a command line in this process."""

    def said(*arguments, typed=b""):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(typed), encoding="utf-8"))
        capsys.readouterr()
        code = invoke([str(argument) for argument in arguments])
        told = capsys.readouterr()
        return Said(code, told.out, told.err)

    return said


@pytest.fixture
def start():
    """Start a command line in a process of its own."""
    started = []

    def starting(*arguments, **options):
        command = [sys.executable, "-m", "regard", *map(str, arguments)]
        given = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "encoding": "utf-8"} | options
        started.append(subprocess.Popen(command, env={**os.environ, "PYTHONUNBUFFERED": "1"}, **given))
        return started[-1]

    yield starting
    for process in started:
        process.kill()
        process.communicate()


@pytest.fixture
def tiny(tmp_path, monkeypatch) -> Path:
    """A recipe in a folder of its own, which is where commands run."""
    monkeypatch.chdir(tmp_path)
    Path("tiny.toml").write_text(TINY, encoding="utf-8")
    return Path("tiny.toml")


@pytest.fixture(scope="session")
def trained(tmp_path_factory) -> Path:
    """A run that was trained; tests do not change it."""
    folder = tmp_path_factory.mktemp("trained")
    (folder / "tiny.toml").write_text(TINY, encoding="utf-8")
    assert invoke(["train", str(folder / "tiny.toml"), "--out", str(folder / "run"), "--quiet"]) == 0
    return folder / "run"
