"""How this program can be called in the shell that started it: by name, or by its path if PATH does not lead to it."""

from __future__ import annotations

import shlex
import shutil
import sys
from pathlib import Path


def program_name() -> str:
    """`regard` if the shell finds this installation by that name, else the path of its script."""
    own, found = Path(sys.executable).with_name("regard"), shutil.which("regard")
    if found is not None and (not own.exists() or own.samefile(found)):
        return "regard"
    if not own.exists():
        return f"{shlex.quote(sys.executable)} -m regard"
    here = Path.cwd()
    return shlex.quote(str(own.relative_to(here) if own.is_relative_to(here) else own))


def quote_path(path: Path) -> str:
    """A path as one word of a shell's command line.

    >>> quote_path(Path("runs/a")), quote_path(Path("my runs/a")), quote_path(Path("-a"))
    ('runs/a', "'my runs/a'", './-a')
    """
    return shlex.quote(f"./{path}" if str(path).startswith("-") else str(path))


def runnable(command: str) -> str:
    """A command line that begins with `regard`, as it can be typed or pasted into the shell that started this one."""
    return program_name() + command.removeprefix("regard")
