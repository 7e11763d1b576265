"""Putting the studio on a port of this machine, and opening a browser at it."""

from __future__ import annotations

import socket
import threading
import webbrowser
from collections.abc import Callable
from pathlib import Path

import uvicorn

from regard.errors import OutputError
from regard.studio.app import build
from regard.studio.service import Studio

PORT = 8642
"""unless another is asked for"""


def bound(port: int) -> socket.socket:
    """A socket on this machine alone; port 0 is any that is free.

    >>> with bound(0) as found:
    ...     found.getsockname()[0], found.proto == socket.IPPROTO_TCP
    ('127.0.0.1', True)
    """
    # asyncio sends at once, without waiting to fill a packet, only where the protocol is named: 40 ms an answer
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind(("127.0.0.1", port))
        listening.listen()  # whoever comes before the server is up waits for it
    except OSError as error:
        listening.close()
        raise OutputError(f"port {port} cannot be used ({error.strerror}); choose another with --port") from None
    return listening


class Server(uvicorn.Server):
    """A server that ends what it is still telling somebody before it waits for that to end."""

    def __init__(self, studio: Studio, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.studio = studio

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Take no more, tell no more."""
        self.studio.ending.set()
        await super().shutdown(sockets)


def serve(root: Path, cache: Path, port: int, browser: bool, say: Callable[[str], None]) -> None:
    """Serve until Ctrl-C."""
    studio = Studio(root, cache)
    with bound(port) as listening:
        address = f"http://127.0.0.1:{listening.getsockname()[1]}/"
        server = Server(studio, uvicorn.Config(build(studio), log_level="warning", access_log=False))
        studio.begin()
        say(f"the studio is open at {address} (Ctrl-C ends it)")
        if browser:
            threading.Timer(0.5, webbrowser.open, [address]).start()
        server.run(sockets=[listening])
