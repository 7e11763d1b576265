"""Record of a back-translation beside its output: by which model and settings, what is done, and what was dropped."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from regard.config import differences, parse, plain
from regard.errors import ConfigError
from regard.files import parse_json, read_bounded, write_text_atomically
from regard.tasks.init_weights import ModelOrigin
from regard.tasks.translate.filters import FilterConfig

MAX_SIZE = 1 << 20
"""bytes of the largest record that is read"""
SUFFIX = ".json"


@dataclass(frozen=True)
class BackTranslationConfig:
    """Settings of a back-translation: the search, and the tags."""

    beam: int | None = None
    """beam size; 1 is greedy search; not set: the recipe's"""
    sample: bool = False
    """sample each token instead of searching for the most probable output (Edunov et al. 2018)"""
    temperature: float = 1.0
    """with sample: softmax temperature; below 1 is more peaked"""
    seed: int = 0
    """with sample: random seed; the same seed gives the same file"""
    tag: str | None = None
    """tag that the model reads before each text, if it was trained with tags"""
    mark: str | None = None
    """tag that is written before each synthetic source (tagged back-translation, Caswell et al. 2019)"""


@dataclass(frozen=True)
class SyntheticRecord:
    """What a file of synthetic pairs was made from, and how far it is."""

    origin: ModelOrigin
    """the model"""
    input: str
    """the monolingual file"""
    input_sha256: str
    total: int
    """lines of the input"""
    config: BackTranslationConfig
    filter: FilterConfig
    done: int = 0
    """lines of the input that are done"""
    size: int = 0
    """bytes of their pairs"""
    sha256: str = ""
    """of these bytes"""
    counts: dict[str, int] = field(default_factory=dict)
    """lines that were read, and dropped by reason"""
    complete: bool = False

    @staticmethod
    def path(output: Path) -> Path:
        """The file of the record of an output."""
        return output.with_name(output.name + SUFFIX)

    @classmethod
    def find(cls, output: str | Path) -> SyntheticRecord | None:
        """The record of an output; None if there is none, or it is not what `save` wrote."""
        try:
            return parse(cls, parse_json(read_bounded(cls.path(Path(output)), MAX_SIZE)))
        except (OSError, ValueError, RecursionError, ConfigError):
            return None

    def save(self, output: Path) -> None:
        """Write the record beside an output, atomically."""
        text = json.dumps(plain(self), ensure_ascii=False, indent=1)
        write_text_atomically(self.path(output), text + "\n")

    def changes(self, wanted: SyntheticRecord) -> list[str]:
        """Settings in which this record differs from another one; files may have moved, their digests say the same."""
        return differences(self._settings(), wanted._settings())

    def _settings(self) -> dict[str, Any]:
        """What the output depends on."""
        model, text = {"sha256": self.origin.digest}, {"sha256": self.input_sha256}
        return {"model": model, "text": text, "filter": self.filter, **plain(self.config)}

    @property
    def pair_count(self) -> int:
        """Synthetic pairs so far."""
        return self.counts.get("read", 0) - sum(self.drop_counts.values())

    @property
    def drop_counts(self) -> dict[str, int]:
        """Lines that gave no pair, by reason."""
        return {reason: count for reason, count in self.counts.items() if reason != "read" and count}

    def summary(self) -> str:
        """Counts in a line."""
        dropped = ", ".join(f"{count:,} {reason}" for reason, count in self.drop_counts.items()) or "none"
        return f"{self.pair_count:,} pairs of {self.counts.get('read', 0):,} lines; dropped: {dropped}"

    def credit(self) -> str:
        """The lineage, for the model card."""
        one = self.origin
        by = f"{one.path} ({one.model}, step {one.step:,}, digest {one.digest})"
        return f"back-translated from {self.input} by {by}"
