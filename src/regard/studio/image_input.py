"""Images and clips as input of a model: uploads (base64) or rendered ones, decoded by the reader of all image files."""

from __future__ import annotations

import base64
import binascii
import io
import math
import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

import regard
from regard.data.clips import CLIP, check_clip_length, decode_frames, frame_numbers
from regard.data.images import DIGIT, SCENE, ImageShape, decode_image, fit_image
from regard.errors import RegardError
from regard.look import Recording, TeacherForcedPass
from regard.look.image_records import PIXELS
from regard.sequence import Clips, Images, Tokens
from regard.studio.errors import ApiError
from regard.studio.model_store import ModelEntry
from regard.tasks.caption.recipe import CaptionModel
from regard.tasks.classify.recipe import ClassificationModel
from regard.tasks.regress.recipe import RegressionModel
from regard.trace import record

MAX_IMAGE_BYTES = 8 << 20
"""maximum size of an uploaded image file"""
MAX_NAME = 200
"""characters of the name of an image"""
MAX_FILES = 256
"""files of a clip that is uploaded frame by frame"""
Uploads = str | tuple[str, ...]
"""a data URL or a reference, or a data URL per frame of a clip"""
UPLOAD = re.compile(r"data:[\w.+/-]*;base64,(?P<content>[A-Za-z0-9+/=]*)")


def check_input(entry: ModelEntry, image: Uploads | None) -> None:
    """Refuse a text for a model that reads images, an image for one that reads texts, and files for a single image.

    A text is never a path here: otherwise a request could read the images of this machine.
    """
    if entry.reads_images and image is None:
        what = "a clip" if entry.reads_clips else "an image"
        raise ApiError(422, "no-image", f"this model reads {what}", "choose a file")
    if not entry.reads_images and image is not None:
        raise ApiError(422, "no-text", "this model reads a text, not an image", "type a sentence")
    if not entry.reads_clips and isinstance(image, tuple):
        raise ApiError(422, "one-image", "this model reads one image", "choose one file")


def read_pixels(model: regard.Model, image: Uploads, name: str) -> np.ndarray:
    """Pixels of an upload, or of a reference such as digits#test/7, in the model's shape.

    (channels, height, width) of an image, (frames, channels, height, width) of a clip.
    """
    encoder = image_model(model).image_input()
    shape = encoder.shape
    try:
        if isinstance(image, str) and is_rendered(image):
            return encoder.read(image)
        if isinstance(image, tuple):
            check_clip_length(len(image), name)
            chosen = [image[i] for i in frame_numbers(len(image), shape.frames)]
            return np.stack([read_upload(one, name, shape) for one in chosen])
        if shape.frames:
            return np.stack(decode_frames(decode_upload(image), name, shape))
        return read_upload(image, name, shape)
    except RegardError as error:
        hint = "choose an animated file, or an image file per frame" if shape.frames else "choose another image"
        raise ApiError(422, "no-image", str(error), hint) from None


def is_rendered(image: str) -> bool:
    """Whether an image is a reference to one that is rendered here."""
    return any(pattern.fullmatch(image) for pattern in (DIGIT, SCENE, CLIP))


def read_upload(image: str, name: str, shape: ImageShape) -> np.ndarray:
    """Pixels (channels, height, width) of a data URL with one image."""
    return fit_image(decode_image(decode_upload(image), name, shape.decoded_side)[0], shape)


def decode_upload(image: str) -> io.BytesIO:
    """The file in a data URL."""
    found = UPLOAD.fullmatch(image)
    if found is None:
        message = "image: expected a data URL (data:image/png;base64,...) or digits#test/7"
        raise ApiError(422, "bad-request", message, "choose an image file")
    if 3 * len(found["content"]) // 4 > MAX_IMAGE_BYTES + 2:
        raise ApiError(413, "too-large", f"an image has at most {MAX_IMAGE_BYTES >> 20} MiB", "scale it down")
    try:
        return io.BytesIO(base64.b64decode(found["content"], validate=True))
    except binascii.Error:
        raise ApiError(422, "bad-request", "image: the base64 text is damaged", "choose the file again") from None


def recorded_pixels(model: regard.Model, recording: Recording) -> np.ndarray:
    """Pixels of the image or the clip that a trace is about, as of read_pixels(): the same 8-bit numbers."""
    colors = next(r.data[0] for r in recording.records if r.name == PIXELS).numpy()
    channels = image_model(model).image_input().shape.channels
    return np.ascontiguousarray(np.moveaxis(colors[..., :channels], -1, -3).astype(np.uint8))


def image_model(model: regard.Model) -> ClassificationModel | CaptionModel | RegressionModel:
    """A model that reads images or clips."""
    if not isinstance(model, ClassificationModel | CaptionModel | RegressionModel):
        raise ApiError(422, "no-image", "this model reads no images", "type a sentence")
    return model


def teacher_forced_pass(model: regard.Model, recording: Recording, text: str) -> TeacherForcedPass:
    """The teacher-forced pass of a trace: of its image, whose text is only a name, or of its text."""
    if isinstance(model, CaptionModel):
        return model.teacher_forced_pixels(recorded_pixels(model, recording))
    return model.teacher_forced(text)


def image_gigabytes(model: regard.Model) -> float:
    """Size of the recording of one image or clip in GB: counted by a pass without numbers, on the meta device."""
    chosen = image_model(model)
    shape, random_state = chosen.image_input().shape, torch.get_rng_state()
    size = shape.channels, shape.height, shape.width
    with torch.device("meta"), torch.no_grad():
        module: Any = chosen.untrained_module()
        with record(module) as trace:
            if isinstance(chosen, CaptionModel):
                decode = chosen.recipe.decode
                target = Tokens.full(torch.empty(decode.beam, decode.max_extra_tokens, dtype=torch.long))
                module(Images(torch.empty(decode.beam, *size)), target)
            elif shape.frames:
                module(Clips(torch.empty(1, shape.frames, *size)))
            else:
                module(Images(torch.empty(1, *size)))
    torch.set_rng_state(random_state)
    return sum(math.prod(r.data.shape) * r.data.element_size() for r in trace.records) / 1e9


def parse_image(value: Any) -> Uploads:
    """The image of a request: one data URL or reference, or the data URLs of the frames of a clip."""
    if isinstance(value, str):
        return value
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise ApiError(422, "bad-request", "image: expected a data URL, or a list of data URLs", "fix the request")
    if not 0 < len(value) <= MAX_FILES:
        message = f"image: expected 1 to {MAX_FILES} frames, got {len(value)}"
        raise ApiError(422, "bad-request", message, "choose fewer files")
    return tuple(value)


def image_name(table: Mapping[str, Any], image: Uploads) -> str:
    """Display name of an image: of the file, or the reference of a rendered one."""
    name = table.get("name")
    if isinstance(image, str) and is_rendered(image):
        return image
    return name.strip()[:MAX_NAME] if isinstance(name, str) and name.strip() else "image"
