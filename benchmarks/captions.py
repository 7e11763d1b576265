"""Captions of rendered shapes: exact match by split, and how much of a word's attention lies on the shape it names.

    regard train recipes/caption/shapes-attention.toml
    python benchmarks/captions.py runs/shapes-attention [more runs]

For every color and shape word of a correct caption, the attention mass inside the box of the shape that the word is
about, divided by the share of the image's area that the box covers: 1 is what uniform attention gives. A cell of the
feature map that lies partly in the box counts by its part. Weights are those of the recorded pass, the mean of all
heads of each layer.
"""

from __future__ import annotations

import argparse
import statistics
from pathlib import Path

import numpy as np

import regard
from regard.data.shapes import COLORS, SHAPES, SIZE, Scene, ShapeObject, make_scene
from regard.metrics.captions import exact_match
from regard.tasks.caption.recipe import CaptionModel

SPLITS = ("test", "unseen", "unseen-pairs")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="+", type=Path)
    parser.add_argument("--images", type=int, default=1000, help="images per split")
    parser.add_argument("--looks", type=int, default=200, help="images of test whose attention is measured")
    args = parser.parse_args()
    for run in args.runs:
        model = regard.load(run)
        assert isinstance(model, CaptionModel)
        for split in SPLITS:
            names = [f"shapes#{split}/{i}" for i in range(args.images)]
            references = [make_scene(i, split).captions for i in range(args.images)]
            print(f"{run}  {split:<13} {exact_match(model.caption(names), references)}", flush=True)
        for layer, ratios in attention_ratios(model, args.looks).items():
            what = f"median {statistics.median(ratios):.2f}, mean {statistics.mean(ratios):.2f}"
            above = 100 * sum(ratio >= 3 for ratio in ratios) / len(ratios)
            title = f"{run}  {layer}: attention mass in the box / its share of the area"
            print(f"{title}: {what} of {len(ratios)} words; {above:.0f} % >= 3", flush=True)


def attention_ratios(model: CaptionModel, images: int) -> dict[str, list[float]]:
    """Per attention, the ratio of each color and shape word of the captions that are right."""
    found: dict[str, list[float]] = {}
    for i in range(images):
        scene = make_scene(i, "test")
        with model.record() as trace:
            caption = model.caption(f"shapes#test/{i}")
        if caption not in scene.captions:
            continue
        names = dict.fromkeys(record.name for record in trace.find("decoder*cross.weights"))
        for name in names:
            view = trace.caption_attention(name.removesuffix(".weights"))
            for word, one in named_shapes(caption, scene).items():
                share, ratio = box_share(one, view.maps[word])
                found.setdefault(name, []).append(ratio / share)
    return found


def named_shapes(caption: str, scene: Scene) -> dict[int, ShapeObject]:
    """The shape that each color and shape word of a caption is about, by the number of the word."""
    words = caption.split()
    about = [i for i, word in enumerate(words) if word in COLORS or word in SHAPES]
    first, second = (scene.first, scene.second) if caption == scene.captions[0] else (scene.second, scene.first)
    return dict(zip(about, (first, first, second, second), strict=True))


def box_share(one: ShapeObject, map_YX: np.ndarray) -> tuple[float, float]:
    """The share of the area that a shape's box covers, and the mass of a map inside it."""
    left, top, right, bottom = one.box
    rows, columns = map_YX.shape
    cover_Y, cover_X = (
        np.clip(np.minimum(high, (np.arange(n) + 1) * SIZE / n) - np.maximum(low, np.arange(n) * SIZE / n), 0, None)
        * n
        / SIZE
        for low, high, n in ((top, bottom, rows), (left, right, columns))
    )
    return (right - left) * (bottom - top) / SIZE**2, float((map_YX * np.outer(cover_Y, cover_X)).sum())


if __name__ == "__main__":
    main()
