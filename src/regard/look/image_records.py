"""Records computed from those of an image or a clip, for the page: pixels, rollout, similarity of positions.

Torch operations compute them, so that a tape of the pass explains their numbers as it does those of the pass.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from regard.errors import RegardError
from regard.look.image_overlay import FRAME, find_image, pixel_values
from regard.look.image_views import position_similarity
from regard.look.rollout import patch_rollout
from regard.trace import Record

PIXELS, ROLLOUT, SIMILARITY = "pixels", "rollout", "position_similarity"
"""names of the records"""


def image_records(records: Sequence[Record]) -> list[Record]:
    """Records of condensed `records`; none if no image was read."""
    image = find_image(records)
    if image is None:
        return []
    frame = (FRAME,) if FRAME in image.axes else ()
    made = [_record(PIXELS, (*frame, "row", "column", "color"), pixel_values(image).to(torch.int32), image)]
    try:
        patch, other = ("patch_row", "patch_column"), ("row", "column")
        made.append(_record(ROLLOUT, patch, patch_rollout(records).float(), image))
        made.append(_record(SIMILARITY, (*patch, *other), position_similarity(records).float(), image))
    except RegardError:  # not a Vision Transformer
        return made
    return made


def _record(name: str, axes: tuple[str, ...], data: Tensor, image: Record) -> Record:
    labels = {FRAME: image.labels[FRAME]} if FRAME in axes and FRAME in image.labels else {}
    return Record(name, ("batch", *axes), data[None], labels, image.context)
