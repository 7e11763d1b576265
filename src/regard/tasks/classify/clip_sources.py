"""Labeled clips: a folder per class with animated files or folders of frames, and rendered moving shapes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from regard.config import check_at_least
from regard.data.clips import RenderedClips
from regard.data.images import ENDINGS, ImageShape
from regard.data.movie_reviews import LabeledExample
from regard.errors import DataError, InputError
from regard.tasks.classify.image_sources import ImageFolder, ImageSource


@dataclass(frozen=True, kw_only=True)
class ClipFolder(ImageFolder):
    """Clips of your own: a folder per split, with one sub-folder per class."""

    kind: Literal["clips"] = "clips"  # type: ignore[assignment]
    """a folder with one sub-folder per class, in it animated GIF, WebP or PNG files, or a folder of frames per clip"""
    frames: int = 6
    """frames of a clip that the model reads, evenly spaced; a shorter clip repeats some"""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_at_least(self, 2, "frames")

    def shape(self) -> ImageShape:
        return replace(super().shape(), frames=self.frames)

    def examples(self, split: str) -> list[LabeledExample]:
        return read_clip_folder(Path(self.file(split)))


def read_clip_folder(folder: Path) -> list[LabeledExample]:
    """The clips of a folder with one sub-folder per class, in the order of their names."""
    if not folder.is_dir():
        raise InputError(f"{folder}: there is no such folder; expected one with a sub-folder of clips per class")
    classes = sorted(path for path in folder.iterdir() if path.is_dir() and not path.name.startswith("."))
    if not classes:
        raise DataError(f"{folder}: there is no sub-folder in it; expected one per class, each with clips")
    found = []
    for path in classes:
        clips = [p for p in sorted(path.iterdir()) if not p.name.startswith(".")]
        clips = [p for p in clips if p.is_dir() or p.suffix.lower() in ENDINGS]
        if not clips:
            raise DataError(f"{path}: there is no clip in this class; expected animated files, or folders of frames")
        found += [LabeledExample(str(clip), path.name) for clip in clips]
    return found


@dataclass(frozen=True, kw_only=True)
class MovingShapes(RenderedClips, ImageSource):
    """Rendered clips of moving shapes, labeled by their direction."""

    kind: Literal["moving-shapes"] = "moving-shapes"
    """clips of a shape that moves in one of eight directions, 6 frames of 24 x 24 pixels, rendered by rules"""

    def examples(self, split: str) -> list[LabeledExample]:
        return [LabeledExample(name, clip.direction, i) for i, (name, clip) in enumerate(self.clips(split))]

    def scored_on(self, path: Path) -> ImageFolder:
        given = {name: getattr(self, name) for name in ("size", "color", "resize", "frames")}
        return ClipFolder(train=str(path), test=str(path), **given)


ClipData = ClipFolder | MovingShapes
"""Choices of data.kind for clips"""
