"""Settings of a model of another library (config.json, GGUF metadata): read by name, unsupported values refused."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from regard.errors import InputError, ModelError
from regard.files import parse_json, read_bounded

MAX_CONFIG = 16 << 20
"""bytes of the largest configuration file"""
MISSING = object()


@dataclass(frozen=True)
class ForeignSettings:
    """Named values of another library's configuration, and where they stand.

    >>> found = ForeignSettings(Path("config.json"), {"n_layer": 12})
    >>> found.whole("n_layer"), found.whole("n_head", 8)
    (12, 8)
    """

    path: Path
    values: Mapping[str, Any]

    def get(self, name: str, default: Any = None) -> Any:
        """A value as it stands there; None counts as absent."""
        found = self.values.get(name)
        return default if found is None else found

    def whole(self, name: str, default: Any = MISSING) -> int:
        """A whole number from 0 on."""
        found = self._value(name, default)
        if type(found) is not int or found < 0:
            raise self._unusable(name, found, "a whole number")
        return found

    def number(self, name: str, default: Any = MISSING) -> float:
        """A number."""
        found = self._value(name, default)
        if isinstance(found, bool) or not isinstance(found, (int, float)):
            raise self._unusable(name, found, "a number")
        return float(found)

    def require(self, name: str, *allowed: Any) -> None:
        """Refuse a setting that changes what the model computes; absent ones have the first of the allowed values."""
        found = self.get(name, allowed[0])
        if found not in allowed:
            values = " or ".join(repr(value) for value in allowed)
            raise ModelError(f"{self.path}: {name} = {found!r}, and the model here computes as with {values} only")

    def _value(self, name: str, default: Any) -> Any:
        found = self.get(name, default)
        if found is MISSING:
            raise ModelError(f"{self.path}: expected a setting {name!r}, found none; it is not a config of this model")
        return found

    def _unusable(self, name: str, found: Any, expected: str) -> ModelError:
        return ModelError(f"{self.path}: {name} = {found!r}, expected {expected}")


def read_settings(path: Path) -> ForeignSettings:
    """The settings of a JSON file."""
    try:
        found = parse_json(read_bounded(path, MAX_CONFIG))
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror or error})") from error
    except ValueError as error:
        raise ModelError(f"{path}: expected a JSON object ({error})") from None
    if not isinstance(found, dict):
        raise ModelError(f"{path}: expected a JSON object, found something else")
    return ForeignSettings(path, found)


def read_optional(path: Path) -> ForeignSettings:
    """The settings of a JSON file that may be absent."""
    return read_settings(path) if path.exists() else ForeignSettings(path, {})
