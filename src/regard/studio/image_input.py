"""Images as input of a model: an upload (base64) or a rendered image, decoded by the reader of all image files."""

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
from regard.data.images import DIGIT, SCENE, decode_image, fit_image
from regard.errors import RegardError
from regard.look import Recording, TeacherForcedPass
from regard.look.image_records import PIXELS
from regard.sequence import Images, Tokens
from regard.studio.errors import ApiError
from regard.studio.model_store import ModelEntry
from regard.tasks.caption.recipe import CaptionModel
from regard.tasks.classify.recipe import ClassificationModel
from regard.trace import record

MAX_IMAGE_BYTES = 8 << 20
"""maximum size of an uploaded image file"""
MAX_NAME = 200
"""characters of the name of an image"""
UPLOAD = re.compile(r"data:[\w.+/-]*;base64,(?P<content>[A-Za-z0-9+/=]*)")


def check_input(entry: ModelEntry, image: str | None) -> None:
    """Refuse a text for a model that reads images, and an image for one that reads texts.

    A text is never a path here: otherwise a request could read the images of this machine.
    """
    if entry.reads_clips:
        raise ApiError(422, "no-clip", "this model reads clips, which the page does not show", "use regard classify")
    if entry.reads_images and image is None:
        raise ApiError(422, "no-image", "this model reads an image", "choose an image file")
    if not entry.reads_images and image is not None:
        raise ApiError(422, "no-text", "this model reads a text, not an image", "type a sentence")


def read_pixels(model: regard.Model, image: str, name: str) -> np.ndarray:
    """Pixels (channels, height, width) of a data URL, or of a reference such as digits#test/7, in the model's shape."""
    encoder = image_model(model).image_input()
    try:
        if DIGIT.fullmatch(image) or SCENE.fullmatch(image):
            return encoder.read(image)
        found = UPLOAD.fullmatch(image)
        if found is None:
            message = "image: expected a data URL (data:image/png;base64,...) or digits#test/7"
            raise ApiError(422, "bad-request", message, "choose an image file")
        if 3 * len(found["content"]) // 4 > MAX_IMAGE_BYTES + 2:
            raise ApiError(413, "too-large", f"an image has at most {MAX_IMAGE_BYTES >> 20} MiB", "scale it down")
        content = base64.b64decode(found["content"], validate=True)
        picture, _ = decode_image(io.BytesIO(content), name, encoder.shape.decoded_side)
        return fit_image(picture, encoder.shape)
    except binascii.Error:
        raise ApiError(422, "bad-request", "image: the base64 text is damaged", "choose the file again") from None
    except RegardError as error:
        raise ApiError(422, "no-image", str(error), "choose another image") from None


def recorded_pixels(model: regard.Model, recording: Recording) -> np.ndarray:
    """Pixels (channels, height, width) of the image that a trace is about: the same 8-bit numbers that were read."""
    colors_YX3 = next(r.data[0] for r in recording.records if r.name == PIXELS).numpy()
    channels = image_model(model).image_input().shape.channels
    return np.ascontiguousarray(colors_YX3.transpose(2, 0, 1)[:channels].astype(np.uint8))


def image_model(model: regard.Model) -> ClassificationModel | CaptionModel:
    """A model that classifies or captions images."""
    if not isinstance(model, ClassificationModel | CaptionModel):
        raise ApiError(422, "no-image", "this model reads no images", "type a sentence")
    return model


def teacher_forced_pass(model: regard.Model, recording: Recording, text: str) -> TeacherForcedPass:
    """The teacher-forced pass of a trace: of its image, whose text is only a name, or of its text."""
    if isinstance(model, CaptionModel):
        return model.teacher_forced_pixels(recorded_pixels(model, recording))
    return model.teacher_forced(text)


def image_gigabytes(model: regard.Model) -> float:
    """Size of the recording of one image in GB: counted by a pass without numbers, on the meta device."""
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
            else:
                module(Images(torch.empty(1, *size)))
    torch.set_rng_state(random_state)
    return sum(math.prod(r.data.shape) * r.data.element_size() for r in trace.records) / 1e9


def image_name(table: Mapping[str, Any], image: str) -> str:
    """Display name of an image: of the file, or the reference of a rendered one."""
    name = table.get("name")
    if DIGIT.fullmatch(image) or SCENE.fullmatch(image):
        return image
    return name.strip()[:MAX_NAME] if isinstance(name, str) and name.strip() else "image"
