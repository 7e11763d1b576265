"""Signals during training: a flag for SIGINT, SIGTERM and SIGHUP."""

from __future__ import annotations

import signal
from types import FrameType

from regard.interrupts import SignalScope


class SignalFlag(SignalScope):
    """Signals set `caught`, which the trainer reads after each step; a second Ctrl-C stops at once."""

    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

    def __init__(self) -> None:
        self.caught = 0

    def handle(self, number: int, frame: FrameType | None) -> None:
        if self.caught and number == signal.SIGINT:
            raise KeyboardInterrupt
        self.caught = number
