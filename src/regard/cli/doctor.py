"""regard doctor: is everything here that regard needs, and what to do if not."""

from __future__ import annotations

import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import click

from regard.cli.options import json_option, polite, print_json

ENOUGH_MEMORY, ENOUGH_DISK = 2.0, 2.0
"""GiB below which training gets narrow"""


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at.

    >>> Finding("python", True, "3.11.9").line()
    'ok   python      3.11.9'
    """

    name: str
    ok: bool
    found: str
    remedy: str = ""
    needed: bool = False
    """whether nothing works without it"""

    def line(self) -> str:
        """The finding for people."""
        todo = f"; {self.remedy}" if self.remedy and not self.ok else ""
        return f"{'ok' if self.ok else 'not':<4} {self.name:<10}  {self.found}{todo}"


@click.command(short_help="Look at this machine.")
@json_option
@polite()
def doctor(as_json: bool) -> int:
    """Look at this machine: Python, torch, threads, memory, disk, cache, registry, compiler.

    Ends with 0 unless something that regard cannot do without is broken.

    \b
    Examples:
      regard doctor
      regard doctor --json
    """
    looked: list[Finding] = []
    checks: tuple[Callable[[], Finding], ...] = (python, torch, threads, memory, disk, cache, registry, compiler)
    for check in checks:
        looked.append(check())
        if not as_json:
            click.echo(looked[-1].line())
    if as_json:
        print_json([asdict(finding) for finding in looked])
    return 1 if any(finding.needed and not finding.ok for finding in looked) else 0


def python() -> Finding:
    """The interpreter.

    >>> python().ok
    True
    """
    ok = sys.version_info >= (3, 11)
    return Finding("python", ok, platform.python_version(), "regard needs Python 3.11 or newer", needed=True)


def torch() -> Finding:
    """Whether torch is there and can multiply.

    >>> torch().ok
    True
    """
    try:
        import torch

        works = float((torch.ones(2, 2) @ torch.ones(2, 2)).sum()) == 8.0
        return Finding("torch", works, torch.__version__, "install it again: pip install torch", needed=True)
    except Exception as error:
        return Finding("torch", False, f"{type(error).__name__}: {error}", "pip install torch", needed=True)


def threads() -> Finding:
    """How many cores there are, and how many torch uses.

    >>> threads().found.endswith("cores")
    True
    """
    cores = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
    try:
        import torch

        used = torch.get_num_threads()
    except Exception:
        used = 0
    return Finding("threads", used >= cores, f"{used} of {cores} cores", "OMP_NUM_THREADS sets fewer than there are")


def memory() -> Finding:
    """Memory that is free for us.

    >>> memory().name
    'memory'
    """
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        free = next(int(line.split()[1]) for line in lines if line.startswith("MemAvailable")) / (1 << 20)
    except (OSError, StopIteration, ValueError):
        return Finding("memory", True, "not told by this system")
    return Finding("memory", free >= ENOUGH_MEMORY, f"{free:.1f} GiB free", "close something, or lower train.tokens")


def disk() -> Finding:
    """Room where runs go.

    >>> disk().found.endswith("GiB free here")
    True
    """
    free = shutil.disk_usage(Path.cwd()).free / (1 << 30)
    return Finding("disk", free >= ENOUGH_DISK, f"{free:.1f} GiB free here", "make room, or use --out elsewhere")


def cache() -> Finding:
    """Whether the cache for fetched data can be written."""
    from regard.data.download.datasets import cache_folder

    folder = cache_folder()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        return Finding("cache", False, f"{folder}: {error.strerror}", "set REGARD_CACHE to a folder of your own")
    return Finding("cache", True, str(folder))


def registry() -> Finding:
    """Whether datasets can be fetched."""
    import requests

    from regard.data.download.index import bare, find_indexes, reason, session

    indexes = find_indexes()
    said = []
    with session(indexes) as opened:
        for address in indexes.addresses:
            try:
                answer = opened.get(f"{address.rstrip('/')}/nmt/", timeout=3, stream=True)
                answer.close()
                answer.raise_for_status()
                return Finding("registry", True, bare(address))
            except requests.RequestException as error:
                said.append(f"{bare(address)}: {reason(error)}")
    remedy = "data of your own and the built-in phrases (data.kind=phrases) need no network"
    return Finding("registry", False, "; ".join(said) or indexes.shown(), remedy)


def compiler() -> Finding:
    """Whether train.compile can work.

    >>> compiler().remedy
    'only train.compile=true needs one'
    """
    names = filter(None, (os.environ.get("CXX"), "c++", "g++", "clang++"))
    found = next((path for name in names if (path := shutil.which(name))), None)
    return Finding("compiler", found is not None, found or "no C++ compiler", "only train.compile=true needs one")
