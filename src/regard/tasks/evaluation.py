"""Evaluation of a trained model: what `regard eval` asks for, and what a task answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from regard.errors import ConfigError
from regard.metrics import Score, UnitSums


@dataclass(frozen=True)
class EvalRequest:
    """Request of `regard eval`: the data to score a model on."""

    files: Sequence[Path] = ()
    """the user's files; translate takes two (source and reference), the other tasks one"""
    split: str | None = None
    """or a split of the recipe's data; if neither is given, test if there is one, else valid"""
    beam: int | None = None
    """beam size; refused by tasks without beam search"""
    stride: int | None = None
    """targets that each position of a sliding window scores; refused by all tasks but generate"""
    tag: str | None = None
    """of a mix, the parts with this tag; of files, the tag of each source; of translate only"""

    def refuse_stride(self) -> None:
        """Refuse a stride, for tasks that do not score running text."""
        if self.stride is not None:
            raise ConfigError(
                "--stride: a sliding window scores running text, and this task has none; leave --stride out"
            )

    def one_file(self) -> Path | None:
        """The file to score, for tasks with one file, no beam search and no stride; None: a split is scored."""
        if self.beam is not None:
            raise ConfigError("--beam: this task does not use beam search; leave --beam out")
        self.refuse_stride()
        if len(self.files) > 1:
            raise ConfigError(f"--data: expected one file, got {len(self.files)}")
        return self.files[0] if self.files else None

    def choose_split(self, splits: Sequence[str]) -> str:
        """The requested split; by default test if there is one, else valid."""
        return self.split or ("test" if "test" in splits else "valid")


@dataclass(frozen=True)
class ScoredExample:
    """One example of an evaluation: the input, the model's output, and the reference."""

    source: str
    output: str
    reference: str


@dataclass(frozen=True)
class Evaluation:
    """Result of `regard eval`."""

    data: str
    """name of the scored data: a split, or files"""
    scores: Sequence[Score]
    examples: Sequence[ScoredExample] = ()
    """one per sentence where sentences are scored: for paired tests and scores by length"""
    seconds: float | None = None
    """time that decoding took; None: nothing was decoded, or it was not timed"""
    summary_lines: Sequence[str] = ()
    """further results as text: a confusion matrix, scores by tag or by column"""
    detail: Mapping[str, Any] = field(default_factory=dict)
    """the same as plain JSON"""
    unit: str = "sentences"
    """the scored unit: sentences, windows, questions ..."""
    per_unit: UnitSums = ()
    """contribution of each unit to the first score, in the order of the data: for paired tests"""
