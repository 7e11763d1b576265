"""Exit codes and error messages: one line on stderr, a traceback only with --verbose or in the report of a bug."""

from __future__ import annotations

import errno
import os
import sys
import tempfile
import traceback
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import click

import regard
from regard.cli.options import GlobalOptions, renamed_option
from regard.errors import ConfigError, Interrupted, OutputError, RegardError

OUT_OF_MEMORY = "there is not enough memory; try fewer train.batch_tokens, a smaller model or a smaller beam"


def run_command(command: Callable[[], Any], options: GlobalOptions) -> int:
    """Run a command, print its error if it fails, and return the exit code."""
    try:
        code = command()
        return code if isinstance(code, int) else 0
    except click.exceptions.Exit as leaving:  # --help and --version
        return leaving.exit_code
    except click.ClickException as error:
        return _print_usage_error(error)
    except RegardError as error:
        return _print_error(str(error), error.exit_code, options)
    except (KeyboardInterrupt, click.Abort):
        return _print_error("interrupted", Interrupted.exit_code, options)
    except BrokenPipeError:
        return 0  # the reader has closed the pipe, as `head` does
    except MemoryError:
        return _print_error(OUT_OF_MEMORY, 1, options)
    except Exception as error:
        return _print_unexpected(error, options)


def _print_error(message: str, code: int, options: GlobalOptions) -> int:
    if options.verbose:
        traceback.print_exc()
    with suppress(OSError):  # the terminal was closed
        print(f"error: {message}", file=sys.stderr)
    return code


def _print_usage_error(error: click.ClickException) -> int:
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        print(error.format_message(), file=sys.stderr)
        return error.exit_code
    context = error.ctx if isinstance(error, click.UsageError) else None
    message = renamed_option(error) if isinstance(error, click.NoSuchOption) else None
    message = message or join_suggestion(error.format_message().strip().rstrip("."))
    hint = f" (see {context.command_path} --help)" if context is not None else ""
    print(f"error: {message[:1].lower()}{message[1:]}{hint}", file=sys.stderr)
    return error.exit_code


def join_suggestion(message: str) -> str:
    """A message of click in one sentence, without brackets around the suggestions.

    >>> join_suggestion("No such command 'trian'. (Did you mean one of: 'line', 'train'?)")
    "No such command 'trian'; did you mean one of: 'line', 'train'?"
    """
    stem, suggested, rest = message.partition("Did you mean")
    if not suggested:
        return message
    return f"{stem.rstrip(' .(')}; did you mean{rest.replace(')', '')}"


def _print_unexpected(error: Exception, options: GlobalOptions) -> int:
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EBADF):
        where = f"{error.filename}: " if error.filename else "stdout: " if error.errno == errno.EBADF else "the output "
        return _print_error(f"{where}cannot be written ({error.strerror})", OutputError.exit_code, options)
    if isinstance(error, OSError) and error.errno == errno.ENAMETOOLONG:
        long = f"{str(error.filename)[:40]}... is a longer name than the file system allows; choose a shorter one"
        return _print_error(long, ConfigError.exit_code, options)
    if isinstance(error, RuntimeError) and "allocate memory" in str(error):  # torch's own MemoryError
        return _print_error(OUT_OF_MEMORY, 1, options)
    if options.verbose:
        traceback.print_exc()
    kind = f"{type(error).__name__}: {error}".splitlines()[0]
    print(f"error: this is a bug in regard {regard.__version__} ({kind})", file=sys.stderr)
    print(f"       {_save_traceback()}", file=sys.stderr)
    return 1


def _save_traceback() -> str:
    """Save the traceback to a file; what to do with it."""
    try:
        descriptor, path = tempfile.mkstemp(".txt", "regard-bug-")
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(f"regard {' '.join(sys.argv[1:])}\n{traceback.format_exc()}")
    except OSError:
        return "run it again with -v to see where"
    return f"please report it with {path}, or run it again with -v to see where"
