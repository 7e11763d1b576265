"""What a request says, read with care: whatever a browser sends is a table of values that nobody has checked yet."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from regard.studio.errors import Refusal

T = TypeVar("T")


@dataclass(frozen=True)
class Asked:
    """Names in a request's path, its query, and a table if it has a body.

    >>> Asked({}, {}, {"beam": 4}).given("beam", int)
    4
    """

    path: Mapping[str, str]
    query: Mapping[str, str]
    table: Mapping[str, Any]
    after: str | None = None
    """the last event that somebody has seen, if they come back for the next"""

    def given(self, name: str, kind: type[T]) -> T:
        """A value of the table that must be there."""
        value = self.table.get(name)
        if not isinstance(value, kind) or isinstance(value, bool):
            found = "nothing" if value is None else type(value).__name__
            raise Refusal(422, "bad-request", f"{name}: expected {kind.__name__}, got {found}", "mend the request")
        return value

    def whole(self, name: str, otherwise: int) -> int:
        """A whole number of the query.

        >>> Asked({}, {"since": "12"}, {}).whole("since", 0)
        12
        """
        text = self.query.get(name)
        if text is None:
            return otherwise
        if not text.isdecimal() or len(text) > 15:
            raise Refusal(422, "bad-request", f"{name}: expected a whole number", "leave it out")
        return int(text)
