"""Preparation of captioned images: a tokenizer, mean and deviation of the pixels, and shards of pixels and ids."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from regard.config import plain
from regard.data import ColumnKind, ShardWriter
from regard.data.images import LoadedImage
from regard.data.scaling import SCALE_FILE, StandardScaler
from regard.data.splits import is_held_out
from regard.errors import DataError
from regard.progress import Progress, no_progress
from regard.tasks.caption.config import CaptionConfig
from regard.tasks.caption.sources import CaptionedImage, CaptionFiles, CaptionSource
from regard.tasks.classify.augment import AugmentConfig
from regard.tasks.classify.images import READ_TOGETHER, ChannelStatistics, ImageInput, printable_reference, read_images
from regard.tasks.classify.prepare import check_split_size, held_out_of_train
from regard.tasks.init_recipe import load_pretrained_tokenizer
from regard.text import Tokenizer, TokenizerConfig

IMAGE, CAPTIONS = "image", "captions"
"""columns of the shards: pixels, and the ids of all captions, each with <EOS> at its end"""
NAME, REFERENCES = "name", "references"
"""columns of validation: the image's reference, and its captions as they were read, one per line"""


@dataclass(frozen=True)
class CaptionPreparation:
    """Splits, reads and tokenizes captioned images, and writes tokenizer, scaler and shards."""

    data: CaptionSource
    text: TokenizerConfig
    task: CaptionConfig

    def identity(self) -> dict[str, Any]:
        """The settings that the prepared files depend on."""
        text = plain(self.text)
        text.pop("dropout")
        return {"data": plain(self.data), "text": text, "max_tokens": self.task.max_tokens}

    def run(self, folder: Path, progress: Progress = no_progress) -> Mapping[str, Mapping[str, int]]:
        """Write everything into `folder`; returns the counts of each split."""
        progress("reading", 0, total=0)
        examples = {split: self.examples(split) for split in ("train", "valid")}
        progress("tokenizer", 0, total=0)
        tokenizer = self.tokenizer(examples["train"])
        statistics, counts = ChannelStatistics(self.data.shape()), {}
        for split, found in examples.items():
            counts[split] = self._write(found, folder / split, tokenizer, statistics, progress)
        tokenizer.save(folder / "tokenizer.json")
        statistics.scaler().save(folder / SCALE_FILE)
        return counts

    def tokenizer(self, examples: Sequence[CaptionedImage]) -> Tokenizer:
        """A tokenizer trained on the training captions, or that of text.tokenizer."""
        if self.text.tokenizer is not None:
            return load_pretrained_tokenizer(self.text.tokenizer, "target", self.text.lowercase)
        return Tokenizer.train((caption for one in examples for caption in one.captions), self.text)

    def examples(self, split: str) -> list[CaptionedImage]:
        """The images of a split; without a valid split, a share of train is held out, by a hash of their names."""
        if not isinstance(self.data, CaptionFiles) or not held_out_of_train(self.data.splits(), split):
            return self.data.examples(split)
        whole, share = self.data.examples("train"), self.data.valid_share
        found = [one for one in whole if is_held_out(one.image, share) == (split == "valid")]
        check_split_size(len(found), len(whole), split, share, self.data.file("train"))
        return found

    def _write(
        self,
        examples: Sequence[CaptionedImage],
        folder: Path,
        tokenizer: Tokenizer,
        statistics: ChannelStatistics,
        progress: Progress,
    ) -> Mapping[str, int]:
        split = folder.name
        columns: dict[str, ColumnKind] = {IMAGE: "uint8", CAPTIONS: tokenizer.size}
        if split == "valid":
            columns |= {NAME: "text", REFERENCES: "text"}
        counts: Counter[str] = Counter({"read": 0, "captions": 0, "too long": 0, "animated": 0})
        with ShardWriter(folder, columns, metadata=self.identity()) as writer:
            images = read_images([one.image for one in examples], self.data.shape())
            for one, image in zip(examples, images, strict=True):
                if not isinstance(image, LoadedImage):
                    raise DataError(f"{one.where}: {image}")
                if split == "train":
                    statistics.add(image.pixels)
                ids = self.encode(one.captions, tokenizer, counts)
                counts["read"] += 1
                counts["animated"] += image.is_animated
                if ids:
                    texts = (printable_reference(one.image), "\n".join(one.captions)) if split == "valid" else ()
                    writer.append([(image.pixels.reshape(-1), ids, *texts)])
                if counts["read"] % READ_TOGETHER == 0:
                    progress(f"reading {split}", counts["read"], total=len(examples))
        if counts["captions"] == counts["too long"]:
            raise DataError(
                f"every caption of {split} has more than task.max_tokens = {self.task.max_tokens} tokens; raise it"
            )
        return counts

    def encode(self, captions: Sequence[str], tokenizer: Tokenizer, counts: Counter[str]) -> list[int]:
        """The ids of all captions that are not too long, each with <EOS> at its end."""
        found: list[int] = []
        for ids in tokenizer.encode_batch(list(captions)):
            counts["captions"] += 1
            if 0 < len(ids) <= self.task.max_tokens:
                found += [*ids, tokenizer.eos]
            else:
                counts["too long"] += 1
        return found


def load_image_input(run: Path, data: CaptionSource, augmentation: AugmentConfig) -> ImageInput:
    """The encoder of images that preparation wrote."""
    return ImageInput(StandardScaler.load(run / SCALE_FILE), data.shape(), augmentation)
