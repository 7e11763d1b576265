"""Data sources of the generate task: text, texts with conditions (both in data/), or a series of real numbers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Literal

from regard.data.conditioned_texts import ConditionedFiles, NumberNames, SentenceKinds
from regard.data.english_texts import EnglishTexts
from regard.data.sources import FileSource
from regard.data.splits import check_valid_share
from regard.data.tables import NumericTable, read_numeric_table
from regard.data.texts import ImportedText, Shakespeare, TextFiles


@dataclass(frozen=True, kw_only=True)
class NumberFiles(FileSource):
    """A series of real numbers in files of your own, one row per line."""

    kind: Literal["numbers"] = "numbers"
    """a series of real numbers, in a file of your own"""
    train: str
    """the file, one position per line: numbers separated by commas, semicolons, tabs or spaces; a header is optional"""
    columns: tuple[str, ...] = ()
    """the columns to read, by name or by number from 1; none: all numeric columns"""
    valid_share: float = 0.1
    """share at the end of train that is held out if there is no valid file"""

    holds_out: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_valid_share(self.valid_share)

    def table(self, split: str) -> NumericTable:
        """The numbers of a split."""
        whole = read_numeric_table(self.file(split), self.columns)
        if split == "test" or self.valid is not None:
            return whole
        cut = int(len(whole.values) * (1 - self.valid_share))
        return replace(whole, values=whole.values[:cut] if split == "train" else whole.values[cut:])


GenerateData = (
    TextFiles | Shakespeare | EnglishTexts | NumberFiles | ConditionedFiles | SentenceKinds | NumberNames | ImportedText
)
"""Choices of data.kind"""
