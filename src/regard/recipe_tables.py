"""Tables of a recipe before they are parsed: file and settings, presets, paths, and the training budget."""

from __future__ import annotations

import difflib
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from regard import config
from regard.errors import ConfigError, ModelError
from regard.manifest import RECIPE, read_recipe_table


def read_tables(path: Path | None, settings: Sequence[str]) -> config.Table:
    """The tables of a TOML file with `settings` on top."""
    table = config.override(without_budget(config.read(path), settings) if path else {}, settings)
    if path and not table:
        raise ConfigError(f"{path} has no setting; expected a recipe, as `regard new NAME` writes one")
    for section in ("data", "model", "text"):
        if section in table:
            table[section] = expand_paths(table[section])
    return table


def with_started_init(table: config.Table, started: Path | None) -> config.Table:
    """A recipe whose [model] names neither a kind nor a source, with the model.init of the run that it continues.

    So a run that was started with --from is resumed without it.
    """
    model = table.get("model", {})
    if started is None or not isinstance(model, dict) or {"kind", "preset", "init"} & model.keys():
        return table
    if not (started / RECIPE).is_file():
        return table
    try:
        own = read_recipe_table(started).get("model")
    except (ConfigError, ModelError):  # reported where the run is opened
        return table
    init = own.get("init") if isinstance(own, dict) else None
    return table if init is None else {**table, "model": {**model, "init": init}}


def with_origin(error: config.UnknownSetting, path: Path | None, settings: Sequence[str]) -> ConfigError:
    """The error about an unknown setting, with where it was given."""
    given = [setting.partition("=")[0].strip() for setting in settings]
    pairs = [(f"{key}.", f"{error.key}.") for key in given]  # a setting may be part of a key, or a whole table
    here = path is None or any(a.startswith(b) or b.startswith(a) for a, b in pairs)
    flag = " (by --strict)" if error.key == "task.strict" else ""
    return ConfigError(error.message(f"given on the command line{flag}" if here else f"in {path}"))


def task_name(table: config.Table, names: Sequence[str]) -> str:
    """The task that a table's task.kind names; the first of `names` if it names none."""
    task = table.get("task", {})
    name = task.get("kind", names[0]) if isinstance(task, dict) else None
    if not isinstance(name, str) or name not in names:
        raise ConfigError(f"task.kind: {config.choice_error(name, names)}")
    return name


def with_preset(model: Any, presets: Mapping[str, config.Table]) -> Any:
    """A model section with its preset expanded; other settings of the section override the preset's."""
    if not isinstance(model, dict) or "preset" not in model:
        return model
    name = model["preset"]
    if not isinstance(name, str) or name not in presets:
        raise ConfigError(f"model.preset: {unknown_preset(str(name), list(presets))}")
    shape, rest = presets[name], {key: value for key, value in model.items() if key != "preset"}
    if rest.get("kind", shape["kind"]) != shape["kind"]:
        raise ConfigError(
            f'model.preset = "{name}" is a {shape["kind"]}, and model.kind says {rest["kind"]}; leave one of them out'
        )
    return {**shape, **rest}


def unknown_preset(name: str, presets: Sequence[str]) -> str:
    """The message about a name that no preset has, with the closest one.

    >>> unknown_preset("gpt3", ["gpt-2", "gpt-3"])
    'there is no preset "gpt3"; did you mean gpt-3?'
    """
    close = difflib.get_close_matches(name.lower(), presets, n=1)
    guess = f"did you mean {close[0]}?" if close else "`regard config explain model.preset` lists them"
    return f'there is no preset "{name}"; {guess}'


def expand_paths(value: Any) -> Any:
    """Expand ~ and $VARIABLES in all strings of a table."""
    if isinstance(value, dict):
        return {key: expand_paths(item) for key, item in value.items()}
    if isinstance(value, list):
        return [expand_paths(item) for item in value]
    return os.path.expanduser(os.path.expandvars(value)) if isinstance(value, str) else value  # noqa: PTH111


def without_budget(table: config.Table, settings: Sequence[str]) -> config.Table:
    """Drop the file's training budget (steps, epochs or minutes) if `settings` give another."""
    names = {"steps", "epochs", "minutes"}
    asked = {setting.partition("=")[0].strip() for setting in settings}
    train = table.get("train")
    if isinstance(train, dict) and asked & {f"train.{name}" for name in names}:
        return {**table, "train": {key: value for key, value in train.items() if key not in names}}
    return table
