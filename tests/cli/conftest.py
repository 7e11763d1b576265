import io
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from helpers import child_environment
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
ffn_width = 32
[text]
vocab_size = 200
[train]
steps = 30
validate_every = 10
batch_tokens = 512
keep_checkpoints = 5
schedule.lr = 0.01
schedule.warmup = 10
[task]
bleu_sentences = 3
"""


@dataclass(frozen=True)
class CliResult:
    """The output of a command, and its exit code."""

    code: int
    out: str
    err: str


@pytest.fixture
def run_cli(capsys, monkeypatch):
    """Run a command line in this process."""

    def run(*arguments, typed=b""):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(typed), encoding="utf-8"))
        capsys.readouterr()
        code = invoke([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return CliResult(code, captured.out, captured.err)

    return run


@pytest.fixture
def start():
    """Start a command line in its own process."""
    started = []

    def start_process(*arguments, **options):
        command = [sys.executable, "-m", "regard", *map(str, arguments)]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "encoding": "utf-8"}
        hangup = {"preexec_fn": lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL)}  # also if nohup started the tests
        started.append(
            subprocess.Popen(command, env=child_environment(PYTHONUNBUFFERED="1"), **pipes | hangup | options)
        )
        return started[-1]

    yield start_process
    for process in started:
        process.kill()
        process.communicate()


@pytest.fixture
def tiny(tmp_path, monkeypatch) -> Path:
    """A recipe in its own folder, in which commands run."""
    monkeypatch.chdir(tmp_path)
    Path("tiny.toml").write_text(TINY, encoding="utf-8")
    return Path("tiny.toml")


@pytest.fixture(scope="session")
def trained(tmp_path_factory) -> Path:
    """A trained run; tests must not change it."""
    folder = tmp_path_factory.mktemp("trained")
    (folder / "tiny.toml").write_text(TINY, encoding="utf-8")
    assert invoke(["train", str(folder / "tiny.toml"), "--out", str(folder / "run"), "--quiet"]) == 0
    return folder / "run"
