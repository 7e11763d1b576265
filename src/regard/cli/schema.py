"""The JSON Schema of a config class, so that an editor can complete and check a recipe."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from regard.config import documented, plain

PLAIN = {int: "integer", float: "number", str: "string", bool: "boolean", Path: "string"}


def schema(hint: Any) -> dict[str, Any]:
    """The JSON Schema of a type: dataclasses are objects, a union of them is told apart by `kind`.

    >>> schema(int | None)
    {'type': 'integer'}
    >>> schema(Literal["a", "b"])
    {'enum': ['a', 'b']}
    """
    origin, members = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        options = [schema(member) for member in members if member is not NoneType]
        return options[0] if len(options) == 1 else {"anyOf": options}
    if origin is Literal:
        return {"enum": list(members)}
    if origin is tuple:
        if members[-1] is Ellipsis:
            return {"type": "array", "items": schema(members[0])}
        return {"type": "array", "prefixItems": [schema(member) for member in members], "minItems": len(members)}
    if dataclasses.is_dataclass(hint):
        return table(hint)
    return {"type": PLAIN[hint]}


def table(cls: Any) -> dict[str, Any]:
    """The JSON Schema of a dataclass: its fields with documentation and defaults, and no others.

    >>> @dataclasses.dataclass(frozen=True)
    ... class Train:
    ...     steps: int = 100
    >>> table(Train)["properties"]
    {'steps': {'type': 'integer', 'default': 100}}
    """
    hints, told = get_type_hints(cls), documented(cls)
    properties: dict[str, Any] = {}
    needed: list[str] = []
    for field in dataclasses.fields(cls):
        entry = schema(hints[field.name])
        if told.get(field.name):
            entry["description"] = told[field.name]
        if field.default is not dataclasses.MISSING and field.default is not None:
            entry["default"] = plain(field.default)
        elif field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING:
            needed.append(field.name)
        properties[field.name] = entry
    found = {"type": "object", "properties": properties, "additionalProperties": False}
    return found | ({"required": needed} if needed else {})


def of_recipe(job: Any) -> dict[str, Any]:
    """The JSON Schema of a job's recipes, with the presets that its models have.

    >>> from regard.tasks import TranslateRecipe
    >>> of_recipe(TranslateRecipe)["required"]
    ['data', 'model']
    """
    from regard.models import PRESETS

    found = table(job)
    model = found["properties"]["model"]
    preset = {"enum": list(PRESETS), "description": "a published shape under its name; other settings go on top"}
    for option in model.get("anyOf", [model]):
        option["properties"]["preset"] = preset
    return found
