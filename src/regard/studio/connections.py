"""HTTP connections with a time limit: a request that is not complete in time closes its connection."""

from __future__ import annotations

import asyncio

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

REQUEST_SECONDS = 10.0
"""time in which a request must have arrived completely, from the connection or from its first byte"""


class TimedProtocol(H11Protocol):
    """HTTP/1.1 whose connections cannot be held open by half a request, or by none.

    uvicorn limits only the time between two requests of a connection. Responses may take as long as they need.
    """

    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._set_deadline()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._set_deadline()

    def connection_lost(self, exc: Exception | None) -> None:
        self._cancel_deadline()
        super().connection_lost(exc)

    def _set_deadline(self) -> None:
        """Start the clock with the first part of a request, stop it with the last."""
        if self.conn.their_state not in (h11.IDLE, h11.SEND_BODY):
            self._cancel_deadline()
        elif self._deadline is None:
            self._deadline = self.loop.call_later(REQUEST_SECONDS, self.transport.close)

    def _cancel_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
