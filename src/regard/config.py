"""Configuration: frozen dataclasses, read from TOML; `kind = "..."` in a table selects a member of a union.

There is no registry: the union type in the annotation is the list of choices; one that is marked `Extensible` has those
of installed packages as well. The string under a field is its documentation in help, schema and error messages. A field
with metadata={"table": NAME} belongs to a class, and stands in the table of another of its fields.
"""

from __future__ import annotations

import ast
import copy
import dataclasses
import difflib
import inspect
import itertools
import textwrap
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import tomli_w

from regard.errors import ConfigError, InputError
from regard.files import load_toml
from regard.plugins import load_plugin, load_plugins, new_names
from regard.renamed import RENAMED_VALUES, renamed_key

T = TypeVar("T")
Table = dict[str, Any]
MAX_SIZE = 1 << 20
"""bytes of the largest recipe"""
MAX_NUMBER = 100_000_000
"""largest size of a part of a model: torch cannot even multiply the sizes of larger matrices"""


class UnknownSetting(ConfigError):
    """An unknown key, with a suggestion."""

    def __init__(self, key: str, guess: str) -> None:
        super().__init__(f'unknown setting "{key}"{guess}')
        self.key, self.guess = key, guess

    def message(self, origin: str) -> str:
        """The error message, with where the key was given."""
        return f'unknown setting "{self.key}", {origin}{self.guess}'


def read(path: Path) -> Table:
    """The tables of a TOML file, which may be a pipe: a recipe that a user names."""
    try:
        with path.open("rb") as file:
            data = file.read(MAX_SIZE + 1)
    except OSError as error:
        raise InputError(f"cannot open the recipe {path}: {error.strerror}") from None
    if len(data) > MAX_SIZE:
        raise ConfigError(f"{path} has more than {MAX_SIZE:,} bytes; expected a recipe")
    return parse_toml(data, path)


def parse_toml(data: bytes, path: Path) -> Table:
    """The tables in the bytes of a TOML file; `path` is for messages."""
    try:
        return load_toml(data)
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path} is not UTF-8 text (byte {error.start})") from None
    except ValueError as error:
        raise ConfigError(f"{path} is not TOML: {error}") from None


def override(table: Table, settings: Sequence[str]) -> Table:
    """A copy of `table` with `a.b=value` settings on top. Values are TOML; a bare word is a string.

    >>> override({"train": {"steps": 5}}, ["train.steps=7", "model.norm=pre"])
    {'train': {'steps': 7}, 'model': {'norm': 'pre'}}
    """
    table = copy.deepcopy(table)
    for setting in settings:
        key, equals, text = setting.partition("=")
        if not equals or not key.strip():
            raise ConfigError(f'"{setting}" is not a setting; write key=value, for example train.steps=100')
        *parents, leaf = key.strip().split(".")
        section = table
        for name in parents:
            section = section.setdefault(name, {})
            if not isinstance(section, dict):
                raise ConfigError(f'"{key}" cannot be set: {name} is not a table')
        section[leaf] = _value(text.strip())
    return table


def parse(cls: type[T], table: Table, where: str = "") -> T:
    """Build `cls` from a table; each mistake raises an error that says where it is and what was expected.

    >>> @dataclasses.dataclass(frozen=True)
    ... class Train:
    ...     steps: int = 100
    >>> parse(Train, {"step": 3}, "train")
    Traceback (most recent call last):
    regard.config.UnknownSetting: unknown setting "train.step"; did you mean train.steps (now 100)?
    """
    return _parse(cls, table, where)


def dump(config: Any) -> str:
    """A config as TOML."""
    return tomli_w.dumps(plain(config))


def plain(config: Any) -> Any:
    """A config as tables, lists and scalars, without fields that are None."""
    if dataclasses.is_dataclass(config):
        fields = [f for f in dataclasses.fields(config) if getattr(config, f.name) is not None]
        found = {f.name: plain(getattr(config, f.name)) for f in fields}
        for f in fields:
            if table := f.metadata.get("table"):
                found[table][f.name] = found.pop(f.name)
        return found
    if isinstance(config, (tuple, list)):
        return [plain(item) for item in config]
    if isinstance(config, Mapping):
        return {key: plain(item) for key, item in config.items()}
    return config.as_posix() if isinstance(config, Path) else config


def differences(old: Any, new: Any) -> list[str]:
    """Settings in which two configs differ, one line each.

    >>> differences({"train": {"steps": 5}, "seed": 1}, {"train": {"steps": 7}, "seed": 1})
    ['train.steps was 5, is 7']
    """
    a, b = flat(plain(old)), flat(plain(new))
    changed = [key for key in sorted(a.keys() | b.keys()) if a.get(key) != b.get(key)]
    was, now = ([repr(table[key]) if key in table else "not set" for key in changed] for table in (a, b))
    return [f"{key} was {old}, is {new}" for key, old, new in zip(changed, was, now, strict=True)]


def flat(table: Table, prefix: str = "") -> dict[str, Any]:
    """Nested tables as one table with dotted keys."""
    found: dict[str, Any] = {}
    for key, value in table.items():
        found |= flat(value, f"{prefix}{key}.") if isinstance(value, dict) else {f"{prefix}{key}": value}
    return found


@dataclasses.dataclass(frozen=True)
class Setting:
    """One key that a recipe may hold."""

    key: str
    type: str
    default: Any
    doc: str
    choices: tuple[Any, ...] = ()
    of: str = ""
    """the kind of table that has it, where there is a choice of tables"""


def settings(cls: Any, prefix: str = "", of: str = "", defaults: Any = None) -> Iterator[Setting]:
    """All keys of a config class, with those of each member of a union; `defaults` overrides the class's defaults."""
    hints, docs = get_type_hints(cls, include_extras=True), field_docs(cls)
    moved = [f for f in dataclasses.fields(cls) if "table" in f.metadata]
    for field in dataclasses.fields(cls):
        hint = hints[field.name]
        if field in moved:
            continue
        tables = [m for m in union_members(hint) if dataclasses.is_dataclass(m)]
        for member in tables:
            kind = kind_of(member) if len(tables) > 1 else of
            given = _default(field) if defaults is None else getattr(defaults, field.name)
            yield from settings(member, f"{prefix}{field.name}.", kind, given if type(given) is member else None)
        for other in (f for f in moved if f.metadata["table"] == field.name):
            key, doc = f"{prefix}{field.name}.{other.name}", docs.get(other.name, "")
            yield Setting(key, _type_name(hints[other.name]), _default(other), doc)
        if not tables:
            choices = get_args(hint) if get_origin(hint) is Literal else ()
            doc = docs.get(field.name, "")
            default = _default(field) if defaults is None else getattr(defaults, field.name)
            yield Setting(f"{prefix}{field.name}", _type_name(hint), default, doc, choices, of)


def kind_of(cls: Any) -> str:
    """The value of `kind` that selects a config class."""
    return str(get_args(get_type_hints(cls)["kind"])[0])


def union_members(hint: Any) -> tuple[Any, ...]:
    """The members of a union, with those that plugins add; any other type is its own only member."""
    if get_origin(hint) is not Annotated:
        return get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    union, mark = get_args(hint)
    added = load_plugins(mark.group, [kind_of(member) for member in get_args(union)], config_fault)
    return (*get_args(union), *(config for config in added.values() if hasattr(config, mark.method)))


def config_fault(name: str, found: Any) -> str | None:
    """What is wrong with the model config of a plugin."""
    if not (dataclasses.is_dataclass(found) and isinstance(found, type)):
        return f"expected a dataclass, a model's config, found {found!r}"
    kind = kind_of(found) if "kind" in get_type_hints(found) else None
    return None if kind == name else f'its config has the kind {kind!r}; expected kind: Literal["{name}"] = "{name}"'


@cache
def field_docs(cls: type) -> Mapping[str, str]:
    """The string under each field of a dataclass, inherited fields included."""
    found: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        found |= vars(base).get("__field_docs__", {})  # of a class that has no source
        try:
            tree = ast.parse(textwrap.dedent(inspect.getsource(base)))
        except (OSError, TypeError):
            continue
        body = tree.body[0].body  # type: ignore[attr-defined]
        found |= {
            a.target.id: " ".join(b.value.value.split())
            for a, b in itertools.pairwise(body)
            if isinstance(a, ast.AnnAssign) and isinstance(a.target, ast.Name)
            if isinstance(b, ast.Expr) and isinstance(b.value, ast.Constant) and isinstance(b.value.value, str)
        }
    return found


def _parse(hint: Any, value: Any, where: str) -> Any:
    origin = get_origin(hint)
    if origin is Annotated or origin in (Union, UnionType):
        return _parse_union(hint, value, where)
    if origin is tuple:
        return _parse_tuple(get_args(hint), value, where)
    if origin is dict:
        _expect(isinstance(value, dict), where, _type_name(hint), value)
        return {key: _parse(get_args(hint)[1], item, f'{where}."{key}"') for key, item in value.items()}
    if origin is Literal:
        if isinstance(value, (dict, list)) or value not in get_args(hint):
            raise ConfigError(f"{where}: {choice_error(value, tuple(map(str, get_args(hint))), where)}")
        return value
    if dataclasses.is_dataclass(hint):
        return _parse_dataclass(hint, value, where)
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if hint is Path and isinstance(value, str):
        return Path(value)
    _expect(type(value) is hint, where, _type_name(hint), value)
    return value


def _parse_tuple(members: tuple[Any, ...], value: Any, where: str) -> Any:
    _expect(isinstance(value, (list, tuple)), where, "a list", value)
    if members[-1] is Ellipsis:
        members = members[:1] * len(value)
    _expect(len(value) == len(members), where, f"a list of {len(members)}", value)
    return tuple(_parse(hint, item, f"{where}[{i}]") for i, (hint, item) in enumerate(zip(members, value, strict=True)))


def _parse_dataclass(cls: Any, value: Any, where: str) -> Any:
    _expect(isinstance(value, dict), where, "a table", value)
    hints, dot = get_type_hints(cls, include_extras=True), f"{where}." if where else ""
    value = _with_moved(cls, value)
    for key in value:
        if key not in {f.name for f in dataclasses.fields(cls)}:
            raise UnknownSetting(f"{dot}{key}", _guess(cls, key, dot, value))
    missing = [
        dot + f.name
        for f in dataclasses.fields(cls)
        if f.name not in value and f.default is dataclasses.MISSING and f.default_factory is dataclasses.MISSING
    ]
    if missing:
        raise ConfigError(f"{' and '.join(missing)} must be given")
    fields = {f.name: f for f in dataclasses.fields(cls)}
    places = {name: ".".join(filter(None, [where, f.metadata.get("table"), name])) for name, f in fields.items()}
    parts = {k: _parse(hints[k], _complete(fields[k].default, item), places[k]) for k, item in value.items()}
    try:
        return cls(**parts)
    except ConfigError as error:
        raise ConfigError(f"{where}: {error}" if where else str(error)) from None


def _with_moved(cls: Any, value: Table) -> Table:
    """A table in which each field that stands in the table of another field is beside it, as in the class."""
    for field in dataclasses.fields(cls):
        inner = value.get(field.metadata.get("table", ""))
        if isinstance(inner, dict) and field.name in inner:
            rest = {key: item for key, item in inner.items() if key != field.name}
            value = {**value, field.metadata["table"]: rest, field.name: inner[field.name]}
    return value


def _complete(default: Any, item: Any) -> Any:
    """Fill in a partial table from the default, unless it is of another kind: train.schedule.lr=1e-3 is enough."""
    if not dataclasses.is_dataclass(default) or not isinstance(item, dict):
        return item
    values = {f.name: getattr(default, f.name) for f in dataclasses.fields(default)}
    if "kind" in values and item.get("kind", values["kind"]) != values["kind"]:
        return item
    rest = {name: plain(value) for name, value in values.items() if value is not None and name not in item}
    return {**rest, **{name: _complete(values.get(name), value) for name, value in item.items()}}


def _guess(cls: Any, key: str, dot: str, given: Table) -> str:
    fields = {f.name: f for f in dataclasses.fields(cls) if "table" not in f.metadata}  # model.init is in [model]
    if present := renamed_key(f"{dot}{key}", given.get("kind")):
        return f"; {dot}{key} is now {present}"
    if not dot and (inside := _sections_with(cls, key)):
        return f"; did you mean {' or '.join(inside)}?"
    close = difflib.get_close_matches(key, fields, n=1)
    if not close:
        return f"; there are {', '.join(dot + name for name in fields)}"
    now, doc = given.get(close[0], _default(fields[close[0]])), field_docs(cls).get(close[0], "")
    now = None if isinstance(now, dict) or dataclasses.is_dataclass(now) else now
    detail = ", ".join(filter(None, [doc, "" if now is None else f"now {now}"]))
    return f"; did you mean {dot}{close[0]}{f' ({detail})' if detail else ''}?"


def _sections_with(cls: Any, leaf: str) -> list[str]:
    """Settings of that name inside of a section: steps is train.steps."""
    return list(dict.fromkeys(s.key for s in settings(cls) if s.key.count(".") == 1 and s.key.endswith(f".{leaf}")))


def _parse_union(hint: Any, value: Any, where: str) -> Any:
    union, *marks = get_args(hint) if get_origin(hint) is Annotated else (hint,)
    members = tuple(m for m in get_args(union) if m is not NoneType)
    if value is None and NoneType in get_args(union):
        return None
    tables = {kind_of(m): m for m in members if dataclasses.is_dataclass(m)}
    if not tables:
        return _parse(members[0], value, where)
    _expect(isinstance(value, dict), where, "a table", value)
    kind = value.get("kind") if isinstance(value.get("kind"), str) else None
    if marks and kind in new_names(marks[0].group, tables):
        load_plugin(marks[0].group, value["kind"], config_fault)  # raises what is wrong with this one
    if marks and kind not in tables:
        tables = {kind_of(m): m for m in union_members(hint) if dataclasses.is_dataclass(m)}
    if kind not in tables:
        if "kind" not in value:
            raise ConfigError(f"{where}.kind must be given: one of {', '.join(tables)}")
        raise ConfigError(f"{where}.kind: {choice_error(value['kind'], tuple(tables), f'{where}.kind')}")
    return _parse(tables[value["kind"]], value, where)


def choice_error(value: Any, choices: Sequence[str], key: str = "") -> str:
    """The message about a value that is none of the choices, with its present name or the closest choice."""
    close = difflib.get_close_matches(str(value), choices, n=1)
    guess = f"; did you mean {close[0]}?" if close else ""
    if present := RENAMED_VALUES.get((key, str(value))):
        guess = f'; "{value}" is now "{present}"'
    return f"expected one of {', '.join(choices)}, got {value!r}{guess}"


def check_at_least(config: Any, least: float, *names: str) -> None:
    """Raise ConfigError unless all of these fields are at least `least`."""
    if not all(getattr(config, name) >= least for name in names):  # also refuses NaN
        *head, last = (f"{name} = {getattr(config, name)}" for name in names)
        fields = f"{', '.join(head)} and {last}" if head else last
        raise ConfigError(f"{fields} must be at least {least}")


def check_numbers(config: Any, where: str) -> None:
    """Raise ConfigError for a whole number beyond MAX_NUMBER in a config or in its tables."""
    for key, value in flat(plain(config)).items():
        if isinstance(value, int) and value > MAX_NUMBER:
            raise ConfigError(f"{where}.{key} must be at most {MAX_NUMBER:,}, got a number of {len(str(value))} digits")


def check_share(config: Any, *names: str) -> None:
    """Raise ConfigError unless each of these fields is a share, at least 0 and below 1."""
    for name in names:
        if not 0 <= getattr(config, name) < 1:
            raise ConfigError(f"{name} = {getattr(config, name)} must be at least 0 and below 1")


def _expect(holds: bool, where: str, expected: str, got: Any) -> None:
    if not holds:
        raise ConfigError(f"{where}: expected {expected}, got {got!r}")


def _type_name(hint: Any) -> str:
    names = {int: "a whole number", float: "a number", str: "a text", bool: "true or false", Path: "a path"}
    if hint in names:
        return names[hint]
    if get_origin(hint) is Literal:
        return "one of " + ", ".join(map(str, get_args(hint)))
    if get_origin(hint) in (tuple, dict):
        return "a list" if get_origin(hint) is tuple else "a table"
    return " or ".join(_type_name(m) for m in get_args(hint) if m is not NoneType) or str(hint)


def _default(field: dataclasses.Field[Any]) -> Any:
    if field.default is not dataclasses.MISSING:
        return field.default
    return field.default_factory() if field.default_factory is not dataclasses.MISSING else None


def _value(text: str) -> Any:
    try:
        return tomllib.loads(f"x = {text}")["x"]
    except tomllib.TOMLDecodeError:
        return text
