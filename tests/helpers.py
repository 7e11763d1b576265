"""Helpers of several test files: messages of errors, child processes and their environments, waiting."""

from __future__ import annotations

import os
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

PATIENCE = 180
"""seconds until a test takes something for a hang: far more than it needs on a slow machine with busy neighbors"""
TINY_TRANSLATOR = """
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
"""
"""sections of a recipe up to [text]; a test adds its own settings"""


def refusal(kind: type[Exception], act: Callable[[], object]) -> str:
    """Message of the error of this kind that `act` raises."""
    with pytest.raises(kind) as caught:
        act()
    return str(caught.value)


def check_refused(kind: type[Exception], message: str, act: Callable[[], object]) -> None:
    """Assert that `act` raises an error of this kind with exactly this message."""
    found = refusal(kind, act)
    assert found == message, found


def child_environment(**variables: str) -> dict[str, str]:
    """Environment of a child process: this one, a single thread, Gloo on the loopback interface, and `variables`."""
    return {**os.environ, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo", **variables}


def wait_until(
    condition: Callable[[], object],
    what: str,
    process: subprocess.Popen | None = None,
    seconds: float = PATIENCE,
    pause: float = 0.02,
) -> None:
    """Wait until a condition holds; fail if it does not in time, or if the process that should make it hold ends."""
    deadline = time.monotonic() + seconds
    while True:
        is_late, has_ended = time.monotonic() > deadline, process is not None and process.poll() is not None
        if condition():  # looked at last: a test that was stalled itself, or a process that was fast, fails nothing
            return
        if process is not None and has_ended:
            errors = process.communicate(timeout=seconds)[1]
            raise AssertionError(f"{what}: the process ended with {process.returncode} before: {errors}")
        assert not is_late, f"{what}: it did not happen within {seconds} seconds"
        time.sleep(pause)


def says(path: Path, text: str) -> Callable[[], bool]:
    """Condition of `wait_until`: a file exists and has this text."""
    return lambda: path.exists() and text in path.read_text(encoding="utf-8")


def join_all(*threads: threading.Thread) -> None:
    """Wait for threads to end; one that does not is a deadlock."""
    for thread in threads:
        thread.join(PATIENCE)
        assert not thread.is_alive(), f"{thread.name} did not end within {PATIENCE} seconds"
