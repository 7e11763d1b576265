"""Plugins: models, tasks and commands of other installed packages, found by their entry points.

A package names them in its pyproject.toml, and a recipe or a command line then uses the name:

    [project.entry-points."regard.models"]
    bigram = "bigram_model:BigramConfig"

Nothing is imported until a name is used that regard itself does not have, or all names are listed.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from regard.errors import ConfigError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

MODELS, TASKS, COMMANDS = GROUPS = ("regard.models", "regard.tasks", "regard.commands")
"""The groups of entry points."""
PluginCheck = Callable[[str, Any], str | None]
"""Name and loaded object -> what is wrong with it."""


class PluginWarning(UserWarning):
    """A plugin that cannot be used; everything else works."""


class PluginError(ConfigError):
    """A plugin that was asked for and cannot be used."""


@dataclass(frozen=True)
class Extensible:
    """Marks a union of configs that plugins extend: `Annotated[A | B, Extensible(MODELS, "build")]`."""

    group: str
    method: str
    """what a config must have to belong to this union"""


def describe(point: EntryPoint) -> str:
    """An entry point with the package that it comes from.

    >>> from importlib.metadata import EntryPoint
    >>> describe(EntryPoint("bigram", "bigram_model:BigramConfig", "regard.models"))
    'regard.models "bigram" (bigram_model:BigramConfig)'
    """
    package = f" of {point.dist.name} {point.dist.version}" if point.dist is not None else ""
    return f'{point.group} "{point.name}" ({point.value}{package})'


def plugin_points(group: str) -> Mapping[str, EntryPoint]:
    """The entry points of a group by name; of two with one name the first is kept."""
    return _scan(tuple(sys.path))[group]


@cache
def _scan(path: tuple[str, ...]) -> Mapping[str, Mapping[str, EntryPoint]]:
    """All entry points of our groups; read once, unless the path of modules changes."""
    from importlib.metadata import entry_points  # slower to import than the rest of --help, so only when needed

    every = entry_points()
    found: dict[str, dict[str, EntryPoint]] = {group: {} for group in GROUPS}
    for group, points in found.items():
        for point in every.select(group=group):
            points.setdefault(point.name, point)
    return found


def duplicate(point: EntryPoint) -> str:
    """The message about a plugin that has the name of something in regard itself."""
    return f"{describe(point)} is not used: regard has a {point.name} of its own; rename the entry point"


def new_names(group: str, own: Collection[str]) -> list[str]:
    """Names that plugins add to `own`, the names that regard has; a plugin with one of those is refused by name."""
    names = []
    for point in plugin_points(group).values():
        if point.name in own:
            warn(duplicate(point))
        else:
            names.append(point.name)
    return names


def load_plugin(group: str, name: str, check: PluginCheck) -> Any:
    """The object that an entry point names; `check` returns what is wrong with it, or None."""
    point = plugin_points(group)[name]
    try:
        found = point.load()
        wrong = check(name, found)
    except Exception as error:  # a plugin may fail in any way; it must not take the rest with it
        text = " ".join(str(error).split())
        raise PluginError(f"{describe(point)} cannot be imported: {type(error).__name__}: {text}") from error
    if wrong is not None:
        raise PluginError(f"{describe(point)} cannot be used: {wrong}")
    return found


def load_plugins(group: str, own: Collection[str], check: PluginCheck) -> dict[str, Any]:
    """All plugins of a group that can be used, by name; each of the others is named in a warning."""
    found = {}
    for name in new_names(group, own):
        try:
            found[name] = load_plugin(group, name, check)
        except PluginError as error:
            warn(str(error))
    return found


@cache
def warn(message: str) -> None:
    """Warn once per process."""
    warnings.warn(message, PluginWarning, stacklevel=3)


def has_plugins() -> bool:
    """Whether any installed package adds a model or a task: then only the classes themselves know all settings."""
    return bool(plugin_points(MODELS) or plugin_points(TASKS))
