"""Connections that send half a request, or nothing, are closed; others are not."""

import http.client
import socket
import threading

import pytest

from helpers import PATIENCE, wait_until
from regard.studio import connections

HALVES = {
    "nothing": b"",
    "half a line": b"GET /api/v1/in",
    "half of the headers": b"GET /api/v1/info HTTP/1.1\r\nHost: localhost\r\n",
    "half of a body": (
        b"POST /api/v1/tokenize HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        b"Content-Length: 100\r\n\r\n{"
    ),
}


def assert_none_open(server):
    """The server forgets a connection a moment after its client sees the end."""
    wait_until(lambda: not server.running.server_state.connections, "all connections are closed")


def skip_time(server, seconds):
    """Set the clock of the server's event loop forward, which has an open connection; it is not set back."""
    loop = next(iter(server.running.server_state.connections)).loop
    now, has_passed = loop.time, threading.Event()

    def skip():
        loop.time = lambda: now() + seconds
        loop.call_later(0, has_passed.set)  # after all that is due by now

    loop.call_soon_threadsafe(skip)
    assert has_passed.wait(PATIENCE)


@pytest.mark.parametrize("sent", HALVES.values(), ids=HALVES)
def test_half_a_request_is_closed_after_a_while(bare_server, monkeypatch, sent):
    monkeypatch.setattr(connections, "REQUEST_SECONDS", 0.2)
    with socket.create_connection(("127.0.0.1", bare_server.port), timeout=PATIENCE) as client:
        client.sendall(sent)
        while client.recv(65536):  # ends when the server closes, or with a timeout
            pass
    assert_none_open(bare_server)


def test_half_of_the_next_request_of_a_connection_is_closed_too(bare_server, monkeypatch):
    monkeypatch.setattr(connections, "REQUEST_SECONDS", PATIENCE)
    client = http.client.HTTPConnection("127.0.0.1", bare_server.port, timeout=PATIENCE)
    client.request("GET", "/api/v1/info")
    assert client.getresponse().read()
    monkeypatch.setattr(connections, "REQUEST_SECONDS", 0.2)
    client.sock.sendall(b"GET /api")
    assert client.sock.recv(1) == b""
    client.close()


def test_a_request_that_trickles_in_is_closed_too(bare_server, monkeypatch):
    monkeypatch.setattr(connections, "REQUEST_SECONDS", 0.3)
    with socket.create_connection(("127.0.0.1", bare_server.port), timeout=PATIENCE) as client:
        client.settimeout(0.05)
        for byte in b"GET /api/v1/info HTTP/1.1\r\nX-Long: " + b"x" * 10_000:
            try:
                client.send(bytes([byte]))
                if client.recv(1) == b"":
                    return
            except TimeoutError:
                continue
            except (BrokenPipeError, ConnectionResetError):
                return
    raise AssertionError("the connection was never closed")


def test_two_hundred_half_open_connections_do_not_stay(bare_server, monkeypatch):
    monkeypatch.setattr(connections, "REQUEST_SECONDS", PATIENCE)
    open_connections = bare_server.running.server_state.connections
    clients = [socket.create_connection(("127.0.0.1", bare_server.port), timeout=PATIENCE) for _ in range(200)]
    try:
        for client in clients:
            client.sendall(b"GET / HTTP/1.1\r\n")
        assert bare_server.get("/api/v1/info").status == 200
        wait_until(lambda: len(open_connections) >= 200, "all connections are open")
        skip_time(bare_server, 2 * PATIENCE)
        assert all(client.recv(1) == b"" for client in clients)
    finally:
        for client in clients:
            client.close()
    assert_none_open(bare_server)


def test_a_whole_request_is_answered_and_its_connection_may_be_used_again(bare_server, monkeypatch):
    monkeypatch.setattr(connections, "REQUEST_SECONDS", PATIENCE)
    monkeypatch.setattr(bare_server.running.config, "timeout_keep_alive", 10 * PATIENCE)
    client = http.client.HTTPConnection("127.0.0.1", bare_server.port, timeout=PATIENCE)
    used = set()
    for _ in range(2):
        client.request("GET", "/api/v1/info")
        answer = client.getresponse()
        assert answer.status == 200 and answer.read()
        used.add(client.sock.getsockname())
        skip_time(bare_server, 2 * PATIENCE)  # a request may not take so long to arrive, a connection may rest longer
    client.close()
    assert len(used) == 1
