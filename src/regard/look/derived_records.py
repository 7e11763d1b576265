"""Records computed from those of a pass: logit lens, pixels of an image, attention rollout over an image or a text.

Torch operations compute them, so that a tape of the pass explains their numbers as it does those of the pass.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from regard.errors import ModelError
from regard.look.image_records import PIXELS, image_records
from regard.look.lens import IDS, LensHead, lens_records
from regard.look.text_rollout import ROLLOUT, rollout_records
from regard.trace import Record


def with_derived(records: Sequence[Record], head: LensHead | None) -> list[Record]:
    """Condensed `records` with those computed from them, as far as they have none yet."""
    names, found = {record.name for record in records}, list(records)
    if head is not None and IDS not in names:
        with suppress(ModelError):  # a model without a lens
            found += lens_records(records, head)
    if PIXELS not in names:
        found += image_records(records)
    if not any(name.rpartition(".")[2] == ROLLOUT for name in names):
        found += rollout_records(records)
    return found
