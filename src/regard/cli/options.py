"""Options of all verbs (--quiet, --verbose, --device, --threads, --json), and hints for renamed options."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import click

from regard.device import check_device_name

F = TypeVar("F", bound=Callable[..., Any])

PATH = click.Path(path_type=Path)

RENAMED_OPTIONS = {"--nbest": "--n-best", "--must": "--require"}
SETTING_OPTIONS = {
    "--steps": "train.steps=1000",
    "--epochs": "train.epochs=10",
    "--minutes": "train.minutes=15",
    "--lr": "train.schedule.lr=0.001",
    "--learning-rate": "train.schedule.lr=0.001",
    "--batch-size": "train.batch_tokens=4096",
    "--batch-tokens": "train.batch_tokens=4096",
    "--seed": "seed=1",
    "--layers": "model.layers=3",
    "--width": "model.width=256",
    "--dropout": "model.dropout=0.1",
    "--vocab-size": "text.vocab_size=8000",
}
"""Options of other trainers -> the setting that does the same here."""
RENAMED_COMMANDS = {"neighbours": "neighbors"}
"""Old name -> new name: an old one is answered with a hint."""


@dataclass
class GlobalOptions:
    """How much a command prints and where it computes: set by options before or after the verb."""

    quiet: bool = False
    verbose: bool = False
    device: str | None = None
    """None: the recipe's for training, else auto"""
    threads: int | None = None
    """None: the recipe's for training, else by the size of the model"""

    def training_settings(self) -> tuple[str, ...]:
        """The settings that --device and --threads stand for, for verbs that train.

        >>> GlobalOptions(device="cuda:1").training_settings()
        ('train.device=cuda:1',)
        """
        given = {"train.device": self.device, "train.threads": self.threads}
        return tuple(f"{key}={value}" for key, value in given.items() if value is not None)

    def output_flags(self) -> list[str]:
        """The flags that make another process of regard print as much as this one.

        >>> GlobalOptions(verbose=True).output_flags()
        ['-v']
        """
        return [flag for flag, given in (("-q", self.quiet), ("-v", self.verbose)) if given]


class OrderedGroup(click.Group):
    """A group that lists its commands in the order in which they were added, and adds the global options to each."""

    def add_command(self, cmd: click.Command, name: str | None = None) -> None:
        super().add_command(cmd if isinstance(cmd, click.Group) else global_flags()(cmd), name)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        new = RENAMED_COMMANDS.get(args[0])
        if new in self.commands and args[0] not in self.commands:
            raise click.UsageError(f"no such command: {args[0]}; it is now {new}", ctx)
        return super().resolve_command(ctx, args)


def renamed_option(error: click.NoSuchOption) -> str | None:
    """The message for an option that this command has under a new name, or as a setting."""
    new = RENAMED_OPTIONS.get(error.option_name)
    setting = SETTING_OPTIONS.get(error.option_name)
    if error.ctx is not None and setting and any(p.name == "settings" for p in error.ctx.command.params):
        return f"no such option: {error.option_name}; settings are given as key=value: {setting}"
    if error.ctx is None or all(new not in parameter.opts for parameter in error.ctx.command.params):
        return None
    return f"no such option: {error.option_name}; it is now {new}"


def global_flags(visible: bool = False) -> Callable[[F], F]:
    """Add the options of GlobalOptions to a command; only the help of `regard` lists them, but they work everywhere."""

    def store(ctx: click.Context, param: click.Parameter, value: Any) -> None:
        if value:
            setattr(ctx.find_object(GlobalOptions), str(param.name), value)

    def store_device(ctx: click.Context, param: click.Parameter, value: str | None) -> None:
        if value is not None:
            check_device_name(value, f"--device {value}")
        store(ctx, param, value)

    def decorate(function: F) -> F:
        option: dict[str, Any] = {"expose_value": False, "hidden": not visible, "callback": store}
        at_device = option | {"callback": store_device, "metavar": "NAME"}
        options = (
            click.option("-q", "--quiet", is_flag=True, help="Print results, warnings and errors only.", **option),
            click.option("-v", "--verbose", is_flag=True, help="Print errors with their traceback.", **option),
            click.option("--device", help="Compute on auto, cpu, cuda, cuda:N or mps.  [default: auto]", **at_device),
            click.option("--threads", type=click.IntRange(1), help="Threads of the CPU.  [default: by size]", **option),
        )
        for add in reversed(options):
            function = add(function)
        return function

    return decorate


def global_options() -> GlobalOptions:
    """The global options of the command that is running."""
    return click.get_current_context().find_object(GlobalOptions) or GlobalOptions()


def json_option(function: F) -> F:
    """Add --json to a command."""
    return click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")(function)


def engine_options(function: F) -> F:
    """Add --engine and --precision to a command."""
    precision = click.option(
        "--precision",
        type=click.Choice(["float32", "int8"]),
        default="float32",
        show_default=True,
        help="Of the engine ctranslate2: int8 is faster, and texts may differ.",
    )
    return click.option(
        "--engine",
        type=click.Choice(["regard", "ctranslate2"]),
        default="regard",
        show_default=True,
        help="The library that searches.",
    )(precision(function))


def recipe_arguments(function: F) -> F:
    """Add RECIPE and the settings that override it to a command."""
    settings = click.argument("settings", nargs=-1, metavar="[KEY=VALUE]...")
    return click.argument("recipe", type=PATH)(settings(function))


def run_option(function: F) -> F:
    """Add --out, the run directory, to a command."""
    help_text = "The run directory.  [default: runs/NAME-OF-RECIPE]"
    return click.option("--out", type=PATH, help=help_text)(function)


def print_json(value: Any) -> None:
    """Print a result as JSON on stdout, in any script."""
    click.echo(json.dumps(value, ensure_ascii=False, indent=1))
