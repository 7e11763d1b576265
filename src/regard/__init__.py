"""Sequence models from the RNN to the Transformer: training, inference and inspection."""

from __future__ import annotations

__version__ = "0.1.0"

TYPE_CHECKING = False  # as in typing, whose import takes time in which a Ctrl-C would show a traceback
if TYPE_CHECKING:
    from typing import Any

    from regard.look import Recording
    from regard.run import Run, load, record
    from regard.tasks import Model, Recipe

_MODULES = {"Model": "tasks", "Recipe": "tasks", "Recording": "look", "Run": "run", "load": "run", "record": "run"}
__all__ = ["Model", "Recipe", "Recording", "Run", "load", "record"]


def __getattr__(name: str) -> Any:
    """Import public names on first access: `regard --help` must not wait for torch."""
    import importlib

    if name in _MODULES:
        return getattr(importlib.import_module(f"regard.{_MODULES[name]}"), name)
    raise AttributeError(f"module 'regard' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
