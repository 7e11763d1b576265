"""Windows of a generated text: when a model's context is full, it reads its last half again and continues from there.

Each window is a decoding pass of its own, with keys and values of its own; they cannot be joined into one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from regard.errors import ConfigError
from regard.look.decoding_path import TracedPass, passes, strip_padding, to_list
from regard.trace import Record


@dataclass(frozen=True)
class GenerationWindow:
    """One window of the answer to the first prompt."""

    number: int
    """from 0"""
    before: tuple[int, ...]
    """ids that were generated in earlier windows"""
    ids: tuple[int, ...]
    """ids that were generated in this one"""


def generation_windows(records: Sequence[Record]) -> list[GenerationWindow]:
    """Windows of the first prompt's answer; empty if it was generated in one pass."""
    found = [traced for traced in passes("logits", records) if traced.is_decoding]
    last = next((number for number, traced in enumerate(found) if traced.answer is not None), None)
    if not last:
        return []
    source, ids = found[0].sources[0], found[last].answer_ids(found[0].sources[0])
    windows: list[GenerationWindow] = []
    at, history = 0, _prompt(found[0], source)
    for traced in found[: last + 1]:
        if source not in traced.sources:
            break
        read = _prompt(traced, source)
        if history[len(history) - len(read) :] != read:  # another text, such as the next batch
            return []
        count = len(ids) - at if traced is found[last] else len(traced.records)
        windows.append(GenerationWindow(len(windows), tuple(ids[:at]), tuple(ids[at : at + count])))
        history, at = [*history, *ids[at : at + count]], at + count
    return windows if len(windows) > 1 and at == len(ids) else []


def find_window(records: Sequence[Record], number: int) -> GenerationWindow | None:
    """The window with a number; None if the answer was generated in one pass, whose number is 0."""
    windows = generation_windows(records)
    if not 0 <= number < max(1, len(windows)):
        known = f"the windows 0 to {len(windows) - 1}" if windows else "one window, 0"
        raise ConfigError(f"window: the answer has {known}, got {number}")
    return windows[number] if windows else None


def _prompt(traced: TracedPass, source: int) -> list[int]:
    """Ids that were read before the first step of a pass."""
    record = traced.records[0]
    return strip_padding(to_list(record.context["target"][traced.sources.index(source)]))
