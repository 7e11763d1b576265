"""Attention over an image: where each word of a caption looked (Xu et al. 2015, "Show, Attend and Tell")."""

from __future__ import annotations

from collections.abc import Sequence

from regard.errors import ModelError
from regard.look import decoding_path
from regard.look.attention import AttentionView
from regard.look.image_overlay import ImageOverlay, cell_grid, find_image, image_pixels
from regard.trace import Record


def is_over_image(view: AttentionView, records: Sequence[Record]) -> bool:
    """Whether words attend to the cells of a feature map, or to the patches of an image."""
    image = find_image(records)
    return image is not None and view.sides == ("target", "source") and _grid(view, image) is not None


def over_image(view: AttentionView, records: Sequence[Record], row: int = 0) -> ImageOverlay:
    """Attention weights as light on copies of the image, one copy per word."""
    image = find_image(records)
    grid = None if image is None else _grid(view, image)
    if image is None or grid is None or view.sides != ("target", "source"):
        raise ModelError(f"{view.name}: no words attend to an image here; use attention()")
    traced, source = decoding_path.find_sentence(image.name, records, row)
    record, at = traced.path(source)[0]
    before, rows, columns = grid
    notes = [f"[CLS] {weight:.2f}" for weight in view.weights[:, :before].sum(1)] if before else []
    maps = view.weights[:, before:].reshape(-1, rows, columns)
    return ImageOverlay(view.title, image_pixels(record, at), maps, list(view.rows), notes)


def _grid(view: AttentionView, image: Record) -> tuple[int, int, int] | None:
    return cell_grid(view.weights.shape[1], image.data.shape[-2], image.data.shape[-1])
