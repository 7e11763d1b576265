"""Commands of other installed packages (entry points `regard.commands`), and the check of all plugins for `doctor`."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Collection, Iterator
from typing import Any, TextIO, get_args

import click

from regard import plugins
from regard.cli.options import OrderedGroup


class ExtensibleGroup(OrderedGroup):
    """The group `regard`: its own commands, then those of plugins, which are imported when they are used or listed."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        own = super().list_commands(ctx)
        return [*own, *(name for name in plugins.plugin_points(plugins.COMMANDS) if name not in own)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        try:
            self._add_plugin(cmd_name)
        except plugins.PluginError as error:  # it is only listed
            plugins.warn(str(error))
        return super().get_command(ctx, cmd_name)

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        self._add_plugin(args[0])  # raises what is wrong with it
        return super().resolve_command(ctx, args)

    def _add_plugin(self, name: str) -> None:
        if name not in self.commands and name in plugins.plugin_points(plugins.COMMANDS):
            self.add_command(plugins.load_plugin(plugins.COMMANDS, name, command_fault), name)


def command_fault(name: str, found: Any) -> str | None:
    """What is wrong with the command of a plugin."""
    return None if isinstance(found, click.Command) else f"expected a click command, found {found!r}"


def check_plugins(verbs: Collection[str]) -> Iterator[tuple[str, str | None]]:
    """Every plugin with what is wrong with it, or None; `verbs`: the commands of regard itself."""
    from regard.config import config_fault, kind_of
    from regard.models import EncoderOnlyConfig, ModelConfig
    from regard.tasks import TASKS, recipe_fault

    models = [kind_of(member) for union in (ModelConfig, EncoderOnlyConfig) for member in get_args(get_args(union)[0])]
    groups = (
        (plugins.MODELS, models, config_fault),
        (plugins.TASKS, list(TASKS), recipe_fault),
        (plugins.COMMANDS, verbs, command_fault),
    )
    for group, own, check in groups:
        for point in plugins.plugin_points(group).values():
            try:
                if point.name in own:
                    raise plugins.PluginError(plugins.duplicate(point))
                plugins.load_plugin(group, point.name, check)
                yield plugins.describe(point), None
            except plugins.PluginError as error:
                yield plugins.describe(point), str(error)


def show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """Print a warning about a plugin in one line, and any other as Python does."""
    if issubclass(category, plugins.PluginWarning):
        print(f"warning: {message}", file=sys.stderr)
    else:
        print(warnings.formatwarning(message, category, filename, lineno, line), file=file or sys.stderr, end="")
