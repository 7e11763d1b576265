"""regard doctor: checks the installation and the machine."""

from __future__ import annotations

import os
import platform
import shutil
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path

import click

from regard.cli.options import json_option, print_json

ENOUGH_MEMORY, ENOUGH_DISK = 2.0, 2.0
"""free memory and disk space below which `doctor` warns, in GiB"""


@dataclass(frozen=True)
class CheckResult:
    """Result of one check."""

    name: str
    ok: bool
    found: str
    remedy: str = ""
    needed: bool = False
    """whether regard cannot work without it"""

    def line(self) -> str:
        """The result on one line."""
        todo = f"; {self.remedy}" if self.remedy and not self.ok else ""
        return f"{'ok' if self.ok else 'not':<4} {self.name:<10}  {self.found}{todo}"


@click.command(short_help="Check this machine.")
@json_option
def doctor(as_json: bool) -> int:
    """Check this machine: Python, torch, devices, threads, memory, disk, cache, package index, compiler, plugins.

    The exit code is 0 unless something is broken that regard cannot work without.

    \b
    Examples:
      regard doctor
      regard doctor --json
    """
    results: list[CheckResult] = []
    for check in (python, torch, devices, threads, memory, disk, cache, package_index, compiler, plugins):
        results.append(check())
        if not as_json:
            click.echo(results[-1].line())
    if as_json:
        print_json([asdict(result) for result in results])
    return 1 if any(result.needed and not result.ok for result in results) else 0


def python() -> CheckResult:
    """Check the version of Python."""
    ok = sys.version_info >= (3, 11)
    return CheckResult("python", ok, platform.python_version(), "regard needs Python 3.11 or newer", needed=True)


def torch() -> CheckResult:
    """Check that torch is installed and works."""
    try:
        import torch

        works = float((torch.ones(2, 2) @ torch.ones(2, 2)).sum()) == 8.0
        return CheckResult("torch", works, torch.__version__, "install it again: pip install torch", needed=True)
    except Exception as error:
        return CheckResult("torch", False, f"{type(error).__name__}: {error}", "pip install torch", needed=True)


def devices() -> CheckResult:
    """List the devices that torch can use, and which of them is taken by default."""
    try:
        from regard import device

        found = ", ".join(map(str, device.devices()))
        return CheckResult("devices", True, f"{found}; auto takes {device.resolve_device('auto')}")
    except Exception as error:
        return CheckResult("devices", False, f"{type(error).__name__}: {error}", "use --device cpu")


def threads() -> CheckResult:
    """Compare the number of cores with the threads that torch may use."""
    cores = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
    try:
        import torch

        used = torch.get_num_threads()
    except Exception:
        used = 0
    remedy = "OMP_NUM_THREADS sets fewer than there are"
    return CheckResult("threads", used >= cores, f"{used} of {cores} cores; small models use one", remedy)


def memory() -> CheckResult:
    """Check the available memory."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        free = next(int(line.split()[1]) for line in lines if line.startswith("MemAvailable")) / (1 << 20)
    except (OSError, StopIteration, ValueError):
        return CheckResult("memory", True, "not known on this system")
    remedy = "close other programs, or lower train.batch_tokens"
    return CheckResult("memory", free >= ENOUGH_MEMORY, f"{free:.1f} GiB free", remedy)


def disk() -> CheckResult:
    """Check the free disk space of the current folder."""
    free = shutil.disk_usage(Path.cwd()).free / (1 << 30)
    remedy = "free some space, or use --out elsewhere"
    return CheckResult("disk", free >= ENOUGH_DISK, f"{free:.1f} GiB free here", remedy)


def cache() -> CheckResult:
    """Check that the cache for downloaded data can be written."""
    from regard.data.download.datasets import cache_folder

    folder = cache_folder()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        return CheckResult("cache", False, f"{folder}: {error.strerror}", "set REGARD_CACHE to a folder of your own")
    return CheckResult("cache", True, str(folder))


def package_index() -> CheckResult:
    """Check that the package index, from which datasets are downloaded, can be reached."""
    import requests

    from regard.data.download.index import error_reason, find_indexes, session, without_credentials

    indexes = find_indexes()
    failures = []
    with session(indexes) as opened:
        for address in indexes.addresses:
            try:
                answer = opened.get(f"{address.rstrip('/')}/nmt/", timeout=3, stream=True)
                answer.close()
                answer.raise_for_status()
                return CheckResult("index", True, without_credentials(address))
            except requests.RequestException as error:
                failures.append(f"{without_credentials(address)}: {error_reason(error)}")
    remedy = "your own data and the built-in phrases (data.kind=phrases) need no network"
    return CheckResult("index", False, "; ".join(failures) or indexes.summary(), remedy)


def compiler() -> CheckResult:
    """Check for a C++ compiler, which train.compile needs."""
    names = filter(None, (os.environ.get("CXX"), "c++", "g++", "clang++"))
    found = next((path for name in names if (path := shutil.which(name))), None)
    return CheckResult("compiler", found is not None, found or "no C++ compiler", "only train.compile=true needs one")


def plugins() -> CheckResult:
    """Import the models, tasks and commands of other packages."""
    from regard.cli.plugins import check_plugins

    program = click.get_current_context().find_root().command
    found = list(check_plugins(program.commands if isinstance(program, click.Group) else ()))
    faults = [fault for _, fault in found if fault is not None]
    summary = "; ".join(faults or [name for name, _ in found]) or "none installed"
    return CheckResult("plugins", not faults, summary, "everything else works; update or remove what is named here")
