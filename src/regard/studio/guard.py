"""Who may talk to the server, and what a browser may do with its answers: this machine only, nothing from elsewhere."""

from __future__ import annotations

import json
import re

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from regard.studio.errors import Refusal

HOST = re.compile(r"(?:localhost|127\.0\.0\.1|\[::1\])(?::\d{1,5})?")
POLICY = "; ".join(
    [
        "default-src 'none'", "script-src 'self'", "style-src 'self'", "img-src 'self' data: blob:",
        "connect-src 'self'", "base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'",
    ]
)  # fmt: skip
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cache-control": "no-store",
}


class Guard:
    """Refuses other hosts and other pages, and puts the same headers on every answer.

    A page on the internet can point its own name at this machine; the name in Host then is not ours. And it can send
    a form here; its Origin then is not ours.

    >>> bool(HOST.fullmatch("127.0.0.1:8000")), bool(HOST.fullmatch("evil.example"))
    (True, False)
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def headed(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        refusal = stranger(Headers(scope=scope))
        if refusal is None:
            await self.app(scope, receive, headed)
            return
        content = json.dumps(refusal.table()).encode()
        kind = (b"content-type", b"application/json")
        await headed({"type": "http.response.start", "status": refusal.status, "headers": [kind]})
        await headed({"type": "http.response.body", "body": content})


def stranger(headers: Headers) -> Refusal | None:
    """Why a request does not come from our own page on this machine; None if it does.

    >>> stranger(Headers({"host": "evil.example"})).code
    'unknown-host'
    >>> stranger(Headers({"host": "localhost:8000", "origin": "http://evil.example"})).code
    'other-origin'
    """
    host = headers.get("host", "")
    if not HOST.fullmatch(host):
        return Refusal(421, "unknown-host", "this server answers on this machine only", "open http://127.0.0.1")
    if headers.get("origin", f"http://{host}") != f"http://{host}":
        return Refusal(403, "other-origin", "another page may not ask this server", "open the studio's own page")
    return None
