"""What all verbs have in common: how much they say, and how their help reads."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])


@dataclass
class Manners:
    """How much is said: set by flags before or after the verb.

    >>> Manners().quiet
    False
    """

    quiet: bool = False
    verbose: bool = False


class Verbs(click.Group):
    """Commands in the order in which one needs them, not in that of the alphabet.

    >>> Verbs("runs").list_commands(click.Context(Verbs("runs")))
    []
    """

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)


def polite(shown: bool = False) -> Callable[[F], F]:
    """Give a command --quiet and -v; they are shown in the help of `regard` alone, and work everywhere.

    >>> @click.command()
    ... @polite()
    ... def hush() -> None:
    ...     print(manners().quiet)
    >>> hush.main(["--quiet"], standalone_mode=False, obj=Manners())
    True
    """

    def set_quiet(ctx: click.Context, param: click.Parameter, value: bool) -> None:
        ctx.find_object(Manners).quiet |= value  # type: ignore[union-attr]

    def set_verbose(ctx: click.Context, param: click.Parameter, value: bool) -> None:
        ctx.find_object(Manners).verbose |= value  # type: ignore[union-attr]

    def decorate(function: F) -> F:
        option = {"is_flag": True, "expose_value": False, "hidden": not shown}
        quiet = click.option("-q", "--quiet", callback=set_quiet, help="Results and errors only.", **option)  # type: ignore[arg-type]
        verbose = click.option("-v", "--verbose", callback=set_verbose, help="Errors with their traceback.", **option)  # type: ignore[arg-type]
        return quiet(verbose(function))

    return decorate


def manners() -> Manners:
    """The manners of the command that is running."""
    return click.get_current_context().find_object(Manners) or Manners()


def json_option(function: F) -> F:
    """Give a command --json.

    >>> json_option(click.command()(lambda as_json: None)).params[0].opts
    ['--json']
    """
    return click.option("--json", "as_json", is_flag=True, help="The result as JSON, for programs.")(function)


def print_json(value: Any) -> None:
    """A result as JSON on stdout, in any script.

    >>> print_json({"text": "étudiant"})
    {
     "text": "étudiant"
    }
    """
    click.echo(json.dumps(value, ensure_ascii=False, indent=1))
