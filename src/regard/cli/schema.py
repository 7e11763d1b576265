"""JSON Schema of recipes, for editors that complete and check TOML."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from regard.config import field_docs, plain, union_members

TYPE_NAMES = {int: "integer", float: "number", str: "string", bool: "boolean", Path: "string"}


def schema(hint: Any) -> dict[str, Any]:
    """The JSON Schema of a type: dataclasses are objects, a union of them is discriminated by `kind`.

    >>> schema(int | None)
    {'type': 'integer'}
    >>> schema(Literal["a", "b"])
    {'enum': ['a', 'b']}
    """
    origin, members = get_origin(hint), get_args(hint)
    if origin is Annotated or origin in (Union, UnionType):
        options = [schema(member) for member in union_members(hint) if member is not NoneType]
        return options[0] if len(options) == 1 else {"anyOf": options}
    if origin is Literal:
        return {"enum": list(members)}
    if origin is tuple:
        if members[-1] is Ellipsis:
            return {"type": "array", "items": schema(members[0])}
        return {"type": "array", "prefixItems": [schema(member) for member in members], "minItems": len(members)}
    if origin is dict:
        return {"type": "object", "additionalProperties": schema(members[1])}
    if dataclasses.is_dataclass(hint):
        return dataclass_schema(hint)
    return {"type": TYPE_NAMES[hint]}


def dataclass_schema(cls: Any) -> dict[str, Any]:
    """The JSON Schema of a dataclass: its fields with documentation and defaults; no other keys are allowed."""
    hints, docs = get_type_hints(cls, include_extras=True), field_docs(cls)
    properties: dict[str, Any] = {}
    required: list[str] = []
    for field in dataclasses.fields(cls):
        entry = schema(hints[field.name])
        if docs.get(field.name):
            entry["description"] = docs[field.name]
        if field.default is not dataclasses.MISSING and field.default is not None:
            entry["default"] = plain(field.default)
        elif field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING:
            required.append(field.name)
        properties[field.name] = entry
    for field in dataclasses.fields(cls):
        if table := field.metadata.get("table"):
            entry = properties.pop(field.name)
            for option in properties[table].get("anyOf", [properties[table]]):
                option["properties"][field.name] = entry
    found = {"type": "object", "properties": properties, "additionalProperties": False}
    return found | ({"required": required} if required else {})


def recipe_schema(recipe_class: Any) -> dict[str, Any]:
    """The JSON Schema of a task's recipes, with the presets of its models."""
    from regard.models import PRESETS

    found = dataclass_schema(recipe_class)
    model = found["properties"]["model"]
    preset = {"enum": list(PRESETS), "description": "a published configuration by name; other settings override it"}
    for option in model.get("anyOf", [model]):
        option["properties"]["preset"] = preset
    return found
