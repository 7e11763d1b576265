"""Images: files read with Pillow, images of an IDX file (MNIST), and rendered digits; as arrays of 8-bit pixels.

An image is named by a reference: the path of a file; FILE#NUMBER, an image of an IDX file, counted from 0;
digits#SPLIT/NUMBER, a digit that data/digits.py renders; or shapes#SPLIT/NUMBER, a scene of data/shapes.py.
"""

from __future__ import annotations

import re
import struct
import warnings
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, ClassVar, Literal

import numpy as np

from regard.config import check_at_least
from regard.data.digits import render_digit
from regard.data.shapes import make_scene
from regard.errors import ConfigError, DataError, InputError
from regard.files import open_regular

if TYPE_CHECKING:
    from PIL import Image

ENDINGS = frozenset({".png", ".jpg", ".jpeg", ".webp", ".gif", ".bmp", ".tif", ".tiff", ".ppm", ".pgm"})
"""endings of the names of image files"""
FORMATS = ("PNG", "JPEG", "WEBP", "GIF", "BMP", "TIFF", "PPM")
"""formats that are decoded; others of Pillow, such as EPS, would run other programs"""
MAX_PIXELS = 100_000_000
"""pixels of the largest image that is decoded; a larger one could fill the memory"""
MAX_BYTES = 256 << 20
"""bytes of the largest image file that is read"""
LIMITS = f"at most {MAX_PIXELS:,} pixels and {MAX_BYTES >> 20} MiB are read; scale it down"
DECODE_ERRORS = (OSError, ValueError, SyntaxError, struct.error, EOFError, LookupError, TypeError, MemoryError)
"""what Pillow raises for a file that is truncated or damaged: a GIF cut in the header of a frame is an IndexError"""
IDX_IMAGES = 0x00000803
REFERENCE = re.compile(r"(?P<file>.+)#(?P<number>\d+)")
DIGIT = re.compile(r"digits#(?P<split>train|valid|test)/(?P<number>\d+)")
SCENE = re.compile(r"shapes#(?P<split>train|valid|test|unseen|unseen-pairs)/(?P<number>\d+)")
CHANNEL_NAMES = {1: ("gray",), 3: ("red", "green", "blue")}


@dataclass(frozen=True)
class ImageShape:
    """Size and channels of the images that a model reads, and how images of another size are fitted."""

    height: int
    width: int
    channels: Literal[1, 3] = 3
    resize: Literal["crop", "pad", "stretch"] = "crop"
    """crop: the middle of the scaled image; pad: the whole with black bars; stretch: another ratio of the sides"""
    frames: int = 0
    """frames of a clip (data/clips.py); 0: a single image"""

    @property
    def channel_names(self) -> tuple[str, ...]:
        """red, green and blue, or gray."""
        return CHANNEL_NAMES[self.channels]

    @property
    def decoded_side(self) -> int:
        """Rows and columns that a decoded image must keep: twice those of the result, which is scaled from it."""
        return 2 * max(self.height, self.width)


@dataclass(frozen=True, kw_only=True)
class ImageShapeConfig:
    """Settings of the images that a model reads, in the `[data]` table of a recipe."""

    size: int = 32
    """rows and columns of the images that the model reads; images of another size are scaled"""
    color: Literal["color", "gray"] = "color"
    """three channels (red, green, blue), or one"""
    resize: Literal["crop", "pad", "stretch"] = "crop"
    """how an image that is not square is fitted: its middle, with black bars, or with another ratio of its sides"""

    max_size: ClassVar[int] = 1024

    def __post_init__(self) -> None:
        check_at_least(self, 1, "size")
        if self.size > self.max_size:
            raise ConfigError(f"size = {self.size} must be at most {self.max_size} pixels")

    def shape(self) -> ImageShape:
        """The shape of the images that the model reads."""
        return ImageShape(self.size, self.size, 3 if self.color == "color" else 1, self.resize)


@dataclass(frozen=True)
class LoadedImage:
    """Pixels of an image."""

    pixels: np.ndarray
    """(channels, height, width), uint8"""
    is_animated: bool = False
    """whether the file has more frames, of which the first was read"""


def image_names(image: str | PathLike[str] | Iterable[str | PathLike[str]]) -> list[str]:
    """One image or several, from a Python program, as a list of their names.

    >>> image_names(Path("a.png")), image_names(["a.png", Path("b.png")])
    (['a.png'], ['a.png', 'b.png'])
    >>> image_names(["a.png", 3])
    Traceback (most recent call last):
    regard.errors.DataError: image 2: expected the path of a file, got 3 (int)
    """
    if isinstance(image, str | PathLike):
        return [fspath(image)]
    if not isinstance(image, Iterable) or isinstance(image, bytes | Mapping):
        raise DataError(f"expected the path of an image or a list of paths, got {image!r:.60} ({type(image).__name__})")
    images = list(image)
    for number, one in enumerate(images, 1):
        if not isinstance(one, str | PathLike):
            raise DataError(f"image {number}: expected the path of a file, got {one!r:.60} ({type(one).__name__})")
    return [fspath(one) for one in images]


def load_image(reference: str, shape: ImageShape) -> LoadedImage:
    """Read the image of a reference and fit it to a shape."""
    if digit := DIGIT.fullmatch(reference):
        image, animated = _from_array(render_digit(int(digit["number"]), digit["split"])), False
    elif scene := SCENE.fullmatch(reference):
        image, animated = _from_array(make_scene(int(scene["number"]), scene["split"]).render()), False
    elif not Path(reference).exists() and (found := REFERENCE.fullmatch(reference)):
        image, animated = _from_array(_idx_image(Path(found["file"]), int(found["number"]))), False
    else:
        image, animated = open_image(Path(reference), shape.decoded_side)
    return LoadedImage(fit_image(image, shape), animated)


def fit_image(image: Image.Image, shape: ImageShape) -> np.ndarray:
    """An image as pixels of a shape: (channels, height, width), uint8."""
    image = image.convert("L" if shape.channels == 1 else "RGB")
    pixels = np.asarray(_fit(image, shape), np.uint8).reshape(shape.height, shape.width, shape.channels)
    return np.ascontiguousarray(pixels.transpose(2, 0, 1))


def open_image(path: Path, least: int | None = None) -> tuple[Image.Image, bool]:
    """Decode the first frame of an image file, upright and over white; and whether it has more frames.

    The size in the header is checked before anything is decoded. A larger JPEG is decoded at a half, a quarter or an
    eighth of its size, which is much faster, as long as no side is shorter than `least`; None: at its whole size.
    """
    try:
        with open_regular(path) as file:
            return decode_image(file, str(path), least)
    except FileNotFoundError:
        raise InputError(f"{path}: there is no such image") from None
    except IsADirectoryError:
        raise DataError(f"{path}: it is a folder; expected an image file") from None
    except OSError as error:
        raise DataError(f"{path}: the image cannot be read ({error.strerror or error})") from None


def decode_image(file: BinaryIO, name: str, least: int | None = None) -> tuple[Image.Image, bool]:
    """Decode the first frame of an opened image file; `name` is for messages, `least` as for open_image."""
    from PIL import Image, ImageOps, UnidentifiedImageError

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Pillow warns of metadata that is not used here
            image: Image.Image = Image.open(file, formats=FORMATS)
            width, height = image.size
            if width * height > MAX_PIXELS or file.seek(0, 2) > MAX_BYTES:
                raise DataError(f"{name}: {width:,} x {height:,} pixels; {LIMITS}")
            if least is not None:
                image.draft(None, (least, least))  # no effect on formats but JPEG
            image.load()
            animated = bool(getattr(image, "is_animated", False))
            ImageOps.exif_transpose(image, in_place=True)
            return opaque_image(_eight_bit(image, name)), animated
    except UnidentifiedImageError:
        raise DataError(f"{name}: this is no image; expected PNG, JPEG, WebP, GIF, BMP, TIFF or PPM") from None
    except Image.DecompressionBombError as error:  # more than twice Pillow's own limit
        pixels = re.search(r"\d+", str(error))
        raise DataError(f"{name}: {f'{int(pixels[0]):,}' if pixels else 'too many'} pixels; {LIMITS}") from None
    except DECODE_ERRORS as error:
        raise DataError(f"{name}: the image cannot be read ({error}); it may be truncated or damaged") from None


def _eight_bit(image: Image.Image, name: str) -> Image.Image:
    """An image with 16 bits per pixel as one with 8; others as they are."""
    from PIL import Image

    if image.mode == "F":
        raise DataError(f"{name}: pixels are floating-point numbers, without a known range; save it as PNG first")
    if not image.mode.startswith("I"):
        return image
    values = np.asarray(image).astype(np.int64)
    return Image.fromarray((values.clip(0, 65535) // 257).astype(np.uint8))


def opaque_image(image: Image.Image) -> Image.Image:
    """An image without transparency: over white."""
    from PIL import Image

    if image.mode not in ("RGBA", "LA", "PA") and "transparency" not in image.info:
        return image
    over = image.convert("RGBA")
    return Image.alpha_composite(Image.new("RGBA", over.size, (255, 255, 255, 255)), over)


def _fit(image: Image.Image, shape: ImageShape) -> Image.Image:
    from PIL import Image, ImageOps

    size = (shape.width, shape.height)
    if image.size == size:
        return image
    match shape.resize:
        case "crop":
            return ImageOps.fit(image, size, Image.Resampling.BILINEAR)
        case "pad":
            return ImageOps.pad(image, size, Image.Resampling.BILINEAR)
        case "stretch":
            return image.resize(size, Image.Resampling.BILINEAR)


def _from_array(pixels_YX: np.ndarray) -> Image.Image:
    from PIL import Image

    return Image.fromarray(pixels_YX)


def read_idx(path: Path) -> np.ndarray:
    """The images (N, rows, columns) or labels (N,) of an IDX file, the format of MNIST, as a read-only view."""
    try:
        with open_regular(path) as file:
            head = file.read(4)
            dims = head[3] if len(head) == 4 and head[:3] == b"\x00\x00\x08" else 0
            shape = struct.unpack(f">{dims}I", file.read(4 * dims)) if dims in (1, 3) else ()
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None
    except struct.error:
        shape = ()
    start = 4 + 4 * len(shape)
    if not shape or path.stat().st_size != start + int(np.prod(shape, dtype=np.int64)):
        raise DataError(f"{path}: expected an IDX file of bytes, the format of MNIST; it is another one, or truncated")
    return np.memmap(path, np.uint8, "r", start, shape)


@lru_cache(maxsize=4)
def _idx_file(path: Path) -> np.ndarray:
    return read_idx(path)


def _idx_image(path: Path, number: int) -> np.ndarray:
    if not path.exists():
        raise InputError(f"{path}#{number}: there is no such image, nor a file {path}")
    images = _idx_file(path)
    if images.ndim != 3 or number >= len(images):
        what = f"{len(images):,} images, counted from 0" if images.ndim == 3 else "labels, not images"
        raise DataError(f"{path}#{number}: the file has {what}")
    return np.asarray(images[number])


def image_files(folder: Path) -> Iterator[Path]:
    """The image files below a folder, by name; hidden files and other endings are passed over."""
    for path in sorted(folder.rglob("*")):
        if path.suffix.lower() in ENDINGS and not path.name.startswith(".") and path.is_file():
            yield path
