"""Preparation of regression data: scalers of the pixels and of the numbers, and shards."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from regard.config import plain
from regard.data import ColumnKind, ShardWriter
from regard.data.images import LoadedImage
from regard.data.scaling import SCALE_FILE, StandardScaler
from regard.data.splits import is_held_out
from regard.data.tables import NumericTable
from regard.errors import DataError
from regard.progress import Progress
from regard.tasks.classify.images import READ_TOGETHER, ChannelStatistics, ImageInput, printable_reference, read_images
from regard.tasks.classify.prepare import check_split_size, held_out_of_train
from regard.tasks.regress.sources import MeasuredImages, MeasuredTable, RegressSource

TARGETS = "targets.json"
"""mean and standard deviation of the numbers to predict"""
IMAGE, NUMBERS, NAME = "image", "numbers", "name"
"""columns of the shards: pixels, standardized numbers, and, of validation, the reference"""


@dataclass(frozen=True)
class RegressPreparation:
    """Reads images or clips and writes scalers and shards; both scalers are fitted to the training data alone."""

    data: RegressSource

    def identity(self) -> dict[str, Any]:
        """The settings that the prepared files depend on."""
        return {"data": plain(self.data)}

    def load_input(self, run: Path) -> ImageInput:
        """The encoder of images that preparation wrote."""
        return ImageInput(StandardScaler.load(run / SCALE_FILE), self.data.shape())

    def run(self, folder: Path, progress: Progress) -> Mapping[str, Mapping[str, int]]:
        """Write everything into `folder`; returns the counts of each split."""
        progress("reading", 0, total=0)
        splits = {split: self.examples(split) for split in ("train", "valid")}
        train = splits["train"]
        targets = StandardScaler.fit(NumericTable(train.names, np.array([row.numbers for row in train.rows])))
        statistics, counts = ChannelStatistics(self.data.shape()), {}
        for split, found in splits.items():
            if found.names != train.names:
                raise DataError(
                    f"{self.file(split)} has the columns {', '.join(found.names)}, train has {', '.join(train.names)}; "
                    "name those that both have in data.columns"
                )
            counts[split] = self._write(found, folder / split, targets, statistics, progress)
        statistics.scaler().save(folder / SCALE_FILE)
        targets.save(folder / TARGETS)
        return counts

    def examples(self, split: str) -> MeasuredImages:
        """The examples of a split; without a valid split, a share of train is held out, by a hash of their names."""
        if not isinstance(self.data, MeasuredTable) or not held_out_of_train(self.data.splits(), split):
            return self.data.examples(split)
        whole, share = self.data.examples("train"), self.data.valid_share
        rows = [row for row in whole.rows if is_held_out(row.reference, share) == (split == "valid")]
        check_split_size(len(rows), len(whole.rows), split, share, self.data.file("train"))
        return MeasuredImages(whole.names, rows)

    def file(self, split: str) -> str:
        """What a split is read from."""
        return self.data.file("train" if held_out_of_train(self.data.splits(), split) else split)

    def scored_on(self, path: Path, names: tuple[str, ...]) -> MeasuredImages:
        """A table to score a model on, with the columns that it predicts."""
        data = self.data.scored_on(path)
        return (replace(data, columns=names) if isinstance(data, MeasuredTable) else data).examples("test")

    def _write(
        self,
        examples: MeasuredImages,
        folder: Path,
        targets: StandardScaler,
        statistics: ChannelStatistics,
        progress: Progress,
    ) -> Mapping[str, int]:
        split = folder.name
        columns: dict[str, ColumnKind] = {IMAGE: "uint8", NUMBERS: "float32"}
        counts: Counter[str] = Counter({"read": 0, "animated": 0})
        with ShardWriter(
            folder, columns | ({NAME: "text"} if split == "valid" else {}), metadata=self.identity()
        ) as writer:
            found = read_images([row.reference for row in examples.rows], self.data.shape())
            for row, image in zip(examples.rows, found, strict=True):
                if not isinstance(image, LoadedImage):
                    raise DataError(f"{row.where}: {image}")
                if split == "train":
                    statistics.add(image.pixels)
                name = (printable_reference(row.reference),) if split == "valid" else ()
                writer.append([(image.pixels.reshape(-1), targets.transform(np.array([row.numbers]))[0], *name)])
                counts["read"] += 1
                counts["animated"] += image.is_animated
                if counts["read"] % READ_TOGETHER == 0:
                    progress(f"reading {split}", counts["read"], total=len(examples.rows))
        return counts
