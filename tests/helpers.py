"""Helpers of several test files: messages of errors, environments of child processes."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest

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
