"""API errors: an HTTP status, a code for programs, and a message with a hint for people."""

from __future__ import annotations

from typing import Any


class ApiError(Exception):
    """A request that cannot be answered."""

    def __init__(self, status: int, code: str, message: str, hint: str) -> None:
        message = message.encode(errors="replace").decode()  # a path may hold bytes that are not UTF-8
        super().__init__(message)
        self.status, self.code, self.message, self.hint = status, code, message, hint

    def to_dict(self) -> dict[str, Any]:
        """JSON form."""
        return {"error": {"code": self.code, "message": self.message, "hint": self.hint}}
