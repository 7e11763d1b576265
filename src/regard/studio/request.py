"""API request: path parameters, query and JSON body, with checked access to their values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from regard.studio.errors import ApiError

T = TypeVar("T")


@dataclass(frozen=True)
class ApiRequest:
    """A parsed request; the values of `body` and `query` are not validated yet.

    >>> ApiRequest({}, {}, {"beam": "four"}).required("beam", int)
    Traceback (most recent call last):
    regard.studio.errors.ApiError: beam: expected int, got str
    """

    path: Mapping[str, str]
    query: Mapping[str, str]
    body: Mapping[str, Any]
    last_event_id: str | None = None
    """header Last-Event-ID of a browser that reconnects to a stream of events"""

    def required(self, name: str, kind: type[T]) -> T:
        """A value of the body that must be present."""
        value = self.body.get(name)
        if not isinstance(value, kind) or isinstance(value, bool):
            found = "nothing" if value is None else type(value).__name__
            raise ApiError(422, "bad-request", f"{name}: expected {kind.__name__}, got {found}", "fix the request")
        return value

    def integer(self, name: str, default: int) -> int:
        """A non-negative integer of the query."""
        text = self.query.get(name)
        if text is None:
            return default
        if not text.isdecimal() or len(text) > 15:
            raise ApiError(422, "bad-request", f"{name}: expected a whole number", "leave it out")
        return int(text)
