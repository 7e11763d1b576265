"""Records computed from those of an image or a clip, for the page: pixels, rollout, similarity of positions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from regard.errors import RegardError
from regard.look.image_overlay import FRAME, find_image, image_pixels
from regard.look.image_views import position_similarity_view
from regard.look.rollout import rollout_view
from regard.trace import Record

PIXELS, ROLLOUT, SIMILARITY = "pixels", "rollout", "position_similarity"
"""names of the records"""


def image_records(records: Sequence[Record]) -> list[Record]:
    """Records of condensed `records`; none if no image was read."""
    image = find_image(records)
    if image is None:
        return []
    frame = (FRAME,) if FRAME in image.axes else ()
    made = [_record(PIXELS, (*frame, "row", "column", "color"), image_pixels(image), image)]
    try:
        patch, other = ("patch_row", "patch_column"), ("row", "column")
        made.append(_record(ROLLOUT, patch, rollout_view(records).maps[0], image))
        made.append(_record(SIMILARITY, (*patch, *other), position_similarity_view(records).similarity, image))
    except RegardError:  # not a Vision Transformer
        return made
    return made


def _record(name: str, axes: tuple[str, ...], numbers: np.ndarray, image: Record) -> Record:
    data = torch.from_numpy(np.ascontiguousarray(numbers))
    data = data.float() if data.is_floating_point() else data.int()
    labels = {FRAME: image.labels[FRAME]} if FRAME in axes and FRAME in image.labels else {}
    return Record(name, ("batch", *axes), data[None], labels, image.context)
