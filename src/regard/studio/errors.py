"""What the server says when it cannot do what it was asked: a code for programs, words and a way out for people."""

from __future__ import annotations

from typing import Any


class Refusal(Exception):
    """A request that is not answered, and why.

    >>> Refusal(404, "unknown-trace", "there is no trace x", "make it again").table()
    {'error': {'code': 'unknown-trace', 'message': 'there is no trace x', 'hint': 'make it again'}}
    """

    def __init__(self, status: int, code: str, message: str, hint: str) -> None:
        super().__init__(message)
        self.status, self.code, self.message, self.hint = status, code, message, hint

    def table(self) -> dict[str, Any]:
        """As the page reads it."""
        return {"error": {"code": self.code, "message": self.message, "hint": self.hint}}
