"""regard studio: prints its address, reports errors, and ends on Ctrl-C."""

import os
import re
import signal
import socket
import subprocess
import sys
import urllib.request
from contextlib import suppress

import pytest

from helpers import PATIENCE, wait_until
from regard.cli import invoke


@pytest.mark.slow
def test_the_studio_prints_its_address_and_ends_on_ctrl_c(folder, tmp_path):
    command = [sys.executable, "-m", "regard", "studio", str(folder), "--port", "0", "--no-browser"]
    environment = {**os.environ, "REGARD_CACHE": str(tmp_path)}
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, encoding="utf-8", env=environment)
    try:
        line = process.stderr.readline()
        address = re.fullmatch(r"the studio is open at (http://127\.0\.0\.1:\d+/) \(Ctrl-C ends it\)\n", line)[1]
        body = urllib.request.urlopen(address, timeout=PATIENCE).read()
        assert b"regard studio" in body
        process.send_signal(signal.SIGINT)
        _, rest = process.communicate(timeout=PATIENCE)
        assert (process.returncode, rest) == (0, "")
    finally:
        process.kill()
        process.communicate()


BUSY = """
import sys, torch
from regard.studio.service import Studio
def compute(studio):
    print("busy", file=sys.stderr, flush=True)
    while True:
        torch.nn.functional.conv1d(torch.ones(1, 8, 4096), torch.ones(8, 8, 9))
Studio.{method} = compute
from regard.__main__ import main
main()
"""
"""The studio with a method that computes without end."""


@pytest.mark.slow
def test_ctrl_c_ends_the_studio_while_the_example_is_traced(folder, tmp_path):
    script = BUSY.format(method="_trace_example")
    command = [sys.executable, "-c", script, "studio", str(folder), "--port", "0", "--no-browser"]
    environment = {**os.environ, "REGARD_CACHE": str(tmp_path)}
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, encoding="utf-8", env=environment)
    try:
        lines = [process.stderr.readline(), process.stderr.readline()]
        assert "busy\n" in lines
        address = re.search(r"http://127\.0\.0\.1:\d+/", "".join(lines))[0]
        urllib.request.urlopen(address, timeout=PATIENCE).close()  # from here on the server receives the signals
        process.send_signal(signal.SIGINT)
        _, rest = process.communicate(timeout=PATIENCE)
        assert (process.returncode, rest) == (0, "")
    finally:
        process.kill()
        process.communicate()


@pytest.mark.slow
def test_a_second_ctrl_c_ends_the_studio_during_a_computation(tmp_path):
    """A thread that is inside torch while the interpreter ends would abort the process."""
    command = [sys.executable, "-c", BUSY.format(method="info"), "studio", str(tmp_path), "--port", "0", "--no-browser"]
    environment = {**os.environ, "REGARD_CACHE": str(tmp_path)}
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, encoding="utf-8", env=environment)
    try:
        port = int(re.search(r":(\d+)/", process.stderr.readline())[1])
        with socket.create_connection(("127.0.0.1", port)) as client:
            client.sendall(f"GET /api/v1/info HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode())
            assert process.stderr.readline() == "busy\n"
            process.send_signal(signal.SIGINT)
            with pytest.raises(subprocess.TimeoutExpired):  # it waits for the answer
                process.wait(1)

            def is_ended_by_another():  # one that comes before the first was seen is none
                process.send_signal(signal.SIGINT)
                with suppress(subprocess.TimeoutExpired):
                    process.wait(1)
                return process.poll() is not None

            wait_until(is_ended_by_another, "the studio ends")
            _, rest = process.communicate(timeout=PATIENCE)
        assert (process.returncode, rest) == (130, "")
    finally:
        process.kill()
        process.communicate()


def test_a_missing_folder_is_reported(capsys):
    assert invoke(["studio", "nowhere"]) == 66
    assert (
        capsys.readouterr().err
        == "error: nowhere: there is no such folder; expected a run, a pack, or a folder of runs\n"
    )


def test_a_port_in_use_is_reported(capsys, folder, tmp_path, monkeypatch):
    monkeypatch.setenv("REGARD_CACHE", str(tmp_path))
    with socket.socket() as in_use:
        in_use.bind(("127.0.0.1", 0))
        in_use.listen()
        port = in_use.getsockname()[1]
        assert invoke(["studio", str(folder), "--port", str(port), "--no-browser"]) == 74
    assert (
        capsys.readouterr().err
        == f"error: port {port} cannot be used (Address already in use); choose another with --port\n"
    )


def test_without_its_packages_the_studio_says_what_to_install(capsys, folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    assert invoke(["studio", str(folder), "--no-browser"]) == 2
    assert capsys.readouterr().err == (
        'error: the studio needs starlette and uvicorn; install them with: pip install "starlette>=1,<2" uvicorn\n'
    )
