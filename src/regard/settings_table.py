"""Table of all settings of all tasks (settings.json): a recipe's names, kinds and types are checked without torch.

`docs/settings.py` writes the file from the config classes, which are defined beside the models and need torch. Classes
made of it have the same fields, types, defaults and documentation, so `config.parse` finds the same mistakes in the
same words. What a class checks by itself, such as heads that must divide a width, is left to the class.
"""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from regard import config
from regard.errors import ConfigError
from regard.plugins import has_plugins
from regard.recipe_tables import read_tables, task_name, with_origin, with_preset, with_started_init

FILE = "settings.json"
SCALARS = {"int": int, "float": float, "str": str, "bool": bool, "path": Path, "none": NoneType}


def check_recipe(path: Path, settings: Sequence[str], started: Path | None = None) -> None:
    """Raise the error that reading a recipe would raise about its names, kinds and types.

    Recipes that start from a model (model.init) take sections from elsewhere, and plugins have settings that are not in
    the table: these are left to the classes. `started` is the run that the recipe is for, which may have such a start.
    """
    table = with_started_init(read_tables(path, settings), started)
    content = _content()
    model = table.get("model", {})
    if isinstance(model, dict) and "init" in model:
        return
    try:
        recipe = _make_class(content["recipes"][task_name(table, list(content["recipes"]))])
        config.parse(recipe, {**table, "model": with_preset(model, content["presets"])})
    except config.UnknownSetting as error:
        if not has_plugins():
            raise with_origin(error, path, settings) from None
    except ConfigError:
        if not has_plugins():
            raise


def preset_names() -> list[str]:
    """The names of all presets."""
    return list(_content()["presets"])


def recipe_shapes() -> dict[str, Any] | None:
    """Classes with the settings of each task, made of the table; None if the true ones are needed or at hand."""
    if has_plugins() or "torch" in sys.modules:
        return None
    return {task: _make_class(name) for task, name in _content()["recipes"].items()}


def write_table(recipes: Iterable[tuple[str, Any]], presets: Mapping[str, config.Table]) -> str:
    """The content of settings.json for these tasks and presets."""
    classes: dict[str, Any] = {}
    names = {name: _write_class(recipe, classes) for name, recipe in recipes}
    return json.dumps({"recipes": names, "presets": presets, "classes": classes}, indent=1) + "\n"


def _write_class(cls: Any, classes: dict[str, Any]) -> str:
    """Add a config class and all that it refers to; returns its name."""
    name = str(cls.__name__)
    if name in classes:
        return name
    classes[name] = {}
    hints, docs = get_type_hints(cls, include_extras=True), config.field_docs(cls)
    for field in dataclasses.fields(cls):
        entry: dict[str, Any] = {"type": _write_type(hints[field.name], classes), "doc": docs.get(field.name, "")}
        if field.default is not dataclasses.MISSING:
            entry["default"] = config.plain(field.default)
        elif field.default_factory is not dataclasses.MISSING:
            entry["factory"] = config.plain(field.default_factory())
        if "table" in field.metadata:
            entry["table"] = field.metadata["table"]
        classes[name][field.name] = entry
    return name


def _write_type(hint: Any, classes: dict[str, Any]) -> Any:
    origin, members = get_origin(hint), get_args(hint)
    if origin is Annotated:  # without what plugins add
        return _write_type(members[0], classes)
    if origin in (Union, UnionType):
        return {"union": [_write_type(member, classes) for member in members]}
    if origin is Literal:
        return {"choices": list(members)}
    if origin is tuple:
        return {"tuple": ["..." if member is Ellipsis else _write_type(member, classes) for member in members]}
    if origin is dict:
        return {"dict": [_write_type(member, classes) for member in members]}
    if dataclasses.is_dataclass(hint):
        return {"class": _write_class(hint, classes)}
    return {scalar: name for name, scalar in SCALARS.items()}[hint]


@cache
def _content() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((files("regard") / FILE).read_text(encoding="utf-8"))
    return found


@cache
def _make_class(name: str) -> Any:
    """A dataclass with the fields of a config class."""
    fields, docs = [], {}
    for key, entry in _content()["classes"][name].items():
        hint = _make_type(entry["type"])
        metadata = {"table": entry["table"]} if "table" in entry else {}
        options: dict[str, Any] = {"metadata": metadata}
        if "default" in entry:
            options["default"] = None if entry["default"] is None else config.parse(hint, entry["default"])
        elif "factory" in entry:
            options["default_factory"] = lambda value=entry["factory"]: value
        fields.append((key, hint, dataclasses.field(**options)))
        docs[key] = entry["doc"]
    return dataclasses.make_dataclass(name, fields, namespace={"__field_docs__": docs}, frozen=True, kw_only=True)


def _make_type(written: Any) -> Any:
    if isinstance(written, str):
        return Ellipsis if written == "..." else SCALARS[written]
    ((form, content),) = written.items()
    if form == "class":
        return _make_class(content)
    if form == "choices":
        return Literal[tuple(content)]
    members = tuple(map(_make_type, content))
    forms: dict[str, Any] = {"union": Union, "tuple": tuple, "dict": dict}
    return forms[form][members]
