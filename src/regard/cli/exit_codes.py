"""What becomes of an error: a line on stderr and an exit code; a traceback only for a bug, or when asked for."""

from __future__ import annotations

import errno
import os
import sys
import tempfile
import traceback
from collections.abc import Callable
from typing import Any

import click

import regard
from regard.cli.options import Manners
from regard.errors import Interrupted, RegardError


def outcome(command: Callable[[], Any], manners: Manners) -> int:
    """Run a command; its exit code, after what went wrong was said.

    >>> outcome(lambda: None, Manners())
    0
    """
    try:
        code = command()
        return code if isinstance(code, int) else 0
    except click.exceptions.Exit as leaving:  # --help and --version
        return leaving.exit_code
    except click.ClickException as error:
        return _usage(error)
    except RegardError as error:
        return _said(str(error), error.exit_code, manners)
    except (KeyboardInterrupt, click.Abort):
        return _said("interrupted", Interrupted.exit_code, manners)
    except BrokenPipeError:
        return 0  # whoever reads has had enough, as `head` does
    except MemoryError:
        return _said(_memory(), 1, manners)
    except Exception as error:
        return _unexpected(error, manners)


def _said(message: str, code: int, manners: Manners) -> int:
    if manners.verbose:
        traceback.print_exc()
    print(f"error: {message}", file=sys.stderr)
    return code


def _usage(error: click.ClickException) -> int:
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        print(error.format_message(), file=sys.stderr)
        return error.exit_code
    context = error.ctx if isinstance(error, click.UsageError) else None
    message = error.format_message().strip().rstrip(".").replace(". Did you", "; did you")
    hint = f" (see {context.command_path} --help)" if context is not None else ""
    print(f"error: {message[:1].lower()}{message[1:]}{hint}", file=sys.stderr)
    return error.exit_code


def _memory() -> str:
    return "there is not enough memory; try fewer train.tokens, a smaller model or a smaller beam"


def _unexpected(error: Exception, manners: Manners) -> int:
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EROFS):
        where = f"{error.filename}: " if error.filename else ""
        return _said(f"{where}cannot be written ({error.strerror})", 74, manners)
    if isinstance(error, RuntimeError) and "allocate memory" in str(error):  # torch's own MemoryError
        return _said(_memory(), 1, manners)
    if manners.verbose:
        traceback.print_exc()
    kind = f"{type(error).__name__}: {error}".splitlines()[0]
    print(f"error: this is a bug in regard {regard.__version__} ({kind})", file=sys.stderr)
    print(f"       {_kept()}", file=sys.stderr)
    return 1


def _kept() -> str:
    """Where the traceback went."""
    try:
        descriptor, path = tempfile.mkstemp(".txt", "regard-bug-")
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(f"regard {' '.join(sys.argv[1:])}\n{traceback.format_exc()}")
    except OSError:
        return "run it again with -v to see where"
    return f"please report it with {path}, or run it again with -v to see where"
