"""Server process: binds a port of this machine, runs the studio, and opens a browser."""

from __future__ import annotations

import os
import socket
import threading
import webbrowser
from collections.abc import Callable
from pathlib import Path

import uvicorn

from regard.device import resolve_device
from regard.errors import Interrupted, OutputError
from regard.studio.app import build
from regard.studio.connections import TimedProtocol
from regard.studio.service import Studio


def bind_socket(port: int) -> socket.socket:
    """A listening socket on the loopback interface; port 0 is any free port."""
    # asyncio sets TCP_NODELAY only if the protocol is named; without it every response takes 40 ms longer
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind(("127.0.0.1", port))
        listening.listen()  # requests that arrive before the server is up wait for it
    except OSError as error:
        listening.close()
        raise OutputError(f"port {port} cannot be used ({error.strerror}); choose another with --port") from None
    return listening


class StudioServer(uvicorn.Server):
    """A server that ends its event streams before it waits for connections to close."""

    def __init__(self, studio: Studio, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.studio = studio

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Close the event streams, then wait for requests and close all connections; a second Ctrl-C ends at once."""
        self.studio.closing.set()
        await super().shutdown(sockets)
        if self.force_exit:  # a request that is inside torch would abort the end of the interpreter
            os._exit(Interrupted.exit_code)


def server_config(studio: Studio) -> uvicorn.Config:
    """The server's settings: HTTP only, no log of requests, and a time limit for each request to arrive."""
    return uvicorn.Config(
        build(studio), log_level="warning", access_log=False, ws="none", http=TimedProtocol, loop="asyncio"
    )


def serve(
    root: Path, cache: Path, port: int, browser: bool, report: Callable[[str], None], device: str = "auto"
) -> None:
    """Serve until Ctrl-C; models compute on `device`."""
    resolve_device(device)  # a missing one is reported at once, not on the page
    studio = Studio(root, cache, device=device)
    with bind_socket(port) as listening:
        address = f"http://127.0.0.1:{listening.getsockname()[1]}/"
        server = StudioServer(studio, server_config(studio))
        try:
            address += studio.start()
            report(f"the studio is open at {address} (Ctrl-C ends it)")
            if browser:
                threading.Timer(0.5, webbrowser.open, [address]).start()
            server.run(sockets=[listening])
        except KeyboardInterrupt:
            pass
        # a thread that is inside torch while the interpreter ends would abort the process
        if server.force_exit:
            os._exit(Interrupted.exit_code)
        if studio.is_tracing_example:
            os._exit(0)
