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

TEXT = b"Go.\tVa !\tby nobody\n" * 3
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
class Behaviour:
    """What the server does with the file it has, and what it was asked for."""

    content: bytes = WHEEL
    ranges: bool = True
    cuts: list[int] = field(default_factory=list)
    """How many bytes each of the next answers carries before the connection is closed."""
    asked: list[str] = field(default_factory=list)
    password: str = ""
    on_page: str = TINY.archive.file
    digest: str = ""


class Registry(BaseHTTPRequestHandler):
    behaviour: Behaviour
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: object) -> None:
        pass

    def do_GET(self) -> None:
        if self.behaviour.password and self.headers.get("Authorization") != self.behaviour.password:
            return self.answer(401, b"")
        if self.path == "/simple/tiny/":
            link = f"/files/{self.behaviour.on_page}{self.behaviour.digest}"
            page = f'<!DOCTYPE html><html><body><a href="{link}">{self.behaviour.on_page}</a></body></html>'
            return self.answer(200, page.encode(), {"Content-Type": "text/html"})
        if not self.path.startswith("/files/"):
            return self.answer(404, b"")
        asked = self.headers.get("Range", "all")
        self.behaviour.asked.append(asked)
        content = self.behaviour.content
        start = int(re.findall(r"\d+", asked)[0]) if asked != "all" and self.behaviour.ranges else 0
        if start == 0:
            return self.answer(200, content)
        if start >= len(content):
            return self.answer(416, b"")
        self.answer(206, content[start:], {"Content-Range": f"bytes {start}-{len(content) - 1}/{len(content)}"})

    def answer(self, status: int, body: bytes, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.path.startswith("/files/") and self.behaviour.cuts and status in (200, 206):
            self.wfile.write(body[: self.behaviour.cuts.pop(0)])
            self.close_connection = True
        else:
            self.wfile.write(body)
