"""Clips: image sequences from an animated file (GIF, WebP, PNG) or a folder of frames, and rendered moving shapes.

A clip is named by a reference: the path of an animated file; a folder with one image file per frame, in the order of
their names; or clips#SPLIT/NUMBER, a clip of data/moving_shapes.py. Longer and shorter clips are resampled evenly.
"""

from __future__ import annotations

import re
import warnings
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO

import numpy as np

from regard.config import check_at_least
from regard.data.images import (
    DECODE_ERRORS,
    FORMATS,
    MAX_BYTES,
    MAX_PIXELS,
    ImageShape,
    ImageShapeConfig,
    LoadedImage,
    fit_image,
    image_files,
    load_image,
    opaque_image,
)
from regard.data.moving_shapes import FRAMES, MovingShape, make_clip
from regard.data.splits import SPLITS
from regard.errors import ConfigError, DataError, InputError
from regard.files import open_regular

CLIP = re.compile(r"clips#(?P<split>train|valid|test)/(?P<number>\d+)")
MAX_FRAMES = 10_000
"""frames of the longest animated file that is read"""


@dataclass(frozen=True, kw_only=True)
class RenderedClips(ImageShapeConfig):
    """Settings of the rendered clips of moving shapes: no download; a subclass says what is predicted."""

    size: int = 24
    frames: int = FRAMES
    """frames of a clip that the model reads"""
    count: int = 4000
    """clips to train on; a tenth as many to validate on, a quarter to evaluate on"""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_at_least(self, 2, "frames")
        check_at_least(self, 80, "count")

    def shape(self) -> ImageShape:
        return replace(super().shape(), frames=self.frames)

    def splits(self) -> tuple[str, ...]:
        """Names of the splits."""
        return SPLITS

    def file(self, split: str) -> str:
        """What a split is read from, for messages."""
        return f"{split} of the moving shapes"

    def clips(self, split: str) -> list[tuple[str, MovingShape]]:
        """Reference and content of each clip of a split."""
        counts = {"train": self.count, "valid": self.count // 10, "test": self.count // 4}
        if split not in counts:
            raise ConfigError(f'there is no split "{split}" (splits: {", ".join(SPLITS)})')
        return [(f"clips#{split}/{i}", make_clip(i, split)) for i in range(counts[split])]

    def credit(self) -> str:
        """Origin and license, for the model card."""
        return "rendered clips of moving shapes, part of regard; MIT license"


def load_clip(reference: str, shape: ImageShape) -> LoadedImage:
    """Read `shape.frames` frames of a clip, evenly spaced, as pixels (frames, channels, height, width)."""
    from PIL import Image

    path = Path(reference)
    if clip := CLIP.fullmatch(reference):
        frames = make_clip(int(clip["number"]), clip["split"]).render()
        chosen = [frames[i] for i in frame_numbers(len(frames), shape.frames)]
        return LoadedImage(np.stack([fit_image(Image.fromarray(frame), shape) for frame in chosen]))
    if path.is_dir():
        files = list(image_files(path))
        check_clip_length(len(files), reference)
        chosen_files = [files[i] for i in frame_numbers(len(files), shape.frames)]
        return LoadedImage(np.stack([load_image(str(file), shape).pixels for file in chosen_files]))
    return LoadedImage(np.stack(read_frames(path, shape)))


def frame_numbers(found: int, wanted: int) -> list[int]:
    """Which of the frames that were found are read: evenly spaced, the first and the last among them.

    >>> frame_numbers(9, 3), frame_numbers(2, 4), frame_numbers(5, 5)
    ([0, 4, 8], [0, 0, 1, 1], [0, 1, 2, 3, 4])
    """
    return np.linspace(0, found - 1, wanted).round().astype(int).tolist()


def read_frames(path: Path, shape: ImageShape) -> list[np.ndarray]:
    """Frames of an animated file."""
    try:
        with open_regular(path) as file:
            return decode_frames(file, str(path), shape)
    except FileNotFoundError:
        raise InputError(f"{path}: there is no such clip") from None
    except OSError as error:
        raise DataError(f"{path}: the clip cannot be read ({error})") from None


def decode_frames(file: BinaryIO, name: str, shape: ImageShape) -> list[np.ndarray]:
    """Frames of an opened animated file; the sizes in its header are checked before anything is decoded."""
    from PIL import Image, UnidentifiedImageError

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Pillow warns of metadata that is not used here
            if file.seek(0, 2) > MAX_BYTES:
                raise DataError(f"{name}: the file has more than {MAX_BYTES >> 20} MiB; cut it")
            file.seek(0)
            image = Image.open(file, formats=FORMATS)
            width, height = image.size
            found = int(getattr(image, "n_frames", 1))
            if width * height > MAX_PIXELS or found > MAX_FRAMES:
                limit = f"at most {MAX_PIXELS:,} pixels and {MAX_FRAMES:,} frames are read; cut it or scale it down"
                raise DataError(f"{name}: {found:,} frames of {width:,} x {height:,} pixels; {limit}")
            check_clip_length(found, name)
            frames = []
            for number in frame_numbers(found, shape.frames):
                image.seek(number)
                frames.append(fit_image(opaque_image(image.copy()), shape))
            return frames
    except UnidentifiedImageError:
        raise DataError(f"{name}: this is no image; expected an animated GIF, WebP or PNG, or a folder") from None
    except Image.DecompressionBombError:
        raise DataError(f"{name}: too many pixels; at most {MAX_PIXELS:,} are read, scale it down") from None
    except DECODE_ERRORS as error:
        raise DataError(f"{name}: the clip cannot be read ({error}); it may be truncated or damaged") from None


def check_clip_length(frames: int, name: str) -> None:
    """Refuse a clip of less than two frames."""
    if frames < 2:
        raise DataError(
            f"{name}: {frames} frame{'' if frames == 1 else 's'}; a clip needs at least two: an animated GIF, WebP or "
            "PNG, or a folder with an image file per frame"
        )
