"""Tables of a recipe before they are parsed: presets, paths, and the training budget."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from regard import config
from regard.errors import ConfigError
from regard.models import PRESETS


def with_preset(model: Any) -> Any:
    """A model section with its preset expanded; other settings of the section override the preset's."""
    if not isinstance(model, dict) or "preset" not in model:
        return model
    name = model["preset"]
    if not isinstance(name, str) or name not in PRESETS:
        raise ConfigError(f'model.preset: there is no "{name}"; there are {", ".join(PRESETS)}')
    shape, rest = config.plain(PRESETS[name].config), {key: value for key, value in model.items() if key != "preset"}
    if rest.get("kind", shape["kind"]) != shape["kind"]:
        raise ConfigError(
            f'model.preset = "{name}" is a {shape["kind"]}, and model.kind says {rest["kind"]}; leave one of them out'
        )
    return {**shape, **rest}


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
