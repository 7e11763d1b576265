"""Access control: accepts requests of the studio's own page on this machine only, and sets security headers."""

from __future__ import annotations

import json
import re

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from regard.studio.errors import ApiError

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
    """Middleware that refuses other hosts and origins, and adds the same headers to every response.

    The check of Host prevents DNS rebinding, where a page on the internet points its own name at this machine; the
    checks of Origin and of Sec-Fetch-Site, which browsers also send with a GET, prevent cross-site requests.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        refusal = access_error(Headers(scope=scope))
        if refusal is None:
            await self.app(scope, receive, with_headers)
            return
        content = json.dumps(refusal.to_dict()).encode()
        kind = (b"content-type", b"application/json")
        await with_headers({"type": "http.response.start", "status": refusal.status, "headers": [kind]})
        await with_headers({"type": "http.response.body", "body": content})


def access_error(headers: Headers) -> ApiError | None:
    """The error for a request that does not come from the studio's own page on this machine; None if it does.

    >>> access_error(Headers({"host": "evil.example"})).code
    'unknown-host'
    >>> access_error(Headers({"host": "localhost:8000", "origin": "http://evil.example"})).code
    'other-origin'
    >>> access_error(Headers({"host": "localhost:8000", "sec-fetch-site": "cross-site"})).code
    'other-origin'
    """
    host = headers.get("host", "")
    if not HOST.fullmatch(host):
        return ApiError(
            421, "unknown-host", "this server accepts requests from this machine only", "open http://127.0.0.1"
        )
    # a link on another page may open this one; what a page loads without being opened has another mode
    embedded = headers.get("sec-fetch-mode") != "navigate" or headers.get("sec-fetch-dest") not in (None, "document")
    foreign = headers.get("sec-fetch-site", "none") not in ("none", "same-origin") and embedded
    if foreign or headers.get("origin", f"http://{host}") != f"http://{host}":
        return ApiError(
            403, "other-origin", "other pages may not send requests to this server", "open the studio's own page"
        )
    return None
