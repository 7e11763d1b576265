"""Statistics of prepared captioned images, for `regard data stats`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from regard.tasks.base import read_counts
from regard.tasks.caption.loader import CaptionLoader
from regard.tasks.caption.prepare import CAPTIONS


def collect_statistics(run: Path, loader: CaptionLoader) -> dict[str, Any]:
    """Vocabulary and image size, and the counts and caption lengths of each split, as plain JSON."""
    counts = read_counts(run)
    found: dict[str, Any] = {"vocabulary": loader.tokenizer.size, "images": loader.image_input.summary()}
    for split, shards in (("train", loader.train), ("valid", loader.valid)):
        captions = counts[split]["captions"] - counts[split]["too long"]
        tokens = int(np.sum(shards.lengths(CAPTIONS)[np.arange(len(shards))]))
        found[split] = counts[split] | {"kept": len(shards), "mean_tokens": round(tokens / max(1, captions) - 1, 2)}
    return found


def format_statistics(statistics: Mapping[str, Any]) -> list[str]:
    """The same as lines of text."""
    lines = [f"vocabulary  {statistics['vocabulary']:,} tokens       {statistics['images']}"]
    for split in ("train", "valid"):
        part = statistics[split]
        lines.append(
            f"{split:<10}  {part['kept']:,} of {part['read']:,} images, {part['captions']:,} captions of "
            f"{part['mean_tokens']} tokens; {part['too long']:,} too long"
        )
    return lines
