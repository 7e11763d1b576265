"""Next position of a moving shape: how far the prediction is from the position, in pixels.

    regard train recipes/classify/clips-position.toml
    python benchmarks/clips.py runs/clips-position

The model gives a probability for each cell of a grid. Its mean position, the cells' middles weighted by their
probabilities, is compared with where the shape is in the frame after the last; beside it, the last position seen.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

import regard
from regard.data.moving_shapes import FRAMES, SIZE, cell_center, make_clip
from regard.tasks.classify.recipe import ClassificationModel


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("--clips", type=int, default=1000)
    args = parser.parse_args()
    model = regard.load(args.run)
    assert isinstance(model, ClassificationModel)
    clips = [make_clip(i, "test") for i in range(args.clips)]
    true_N2 = np.array([clip.position(FRAMES) for clip in clips])
    found = model.predictor().predict([f"clips#test/{i}" for i in range(args.clips)])
    probs_NC = np.array([one.probs_C for one in found])
    mean_N2 = probs_NC @ np.array([cell_center(name) for name in model.labels.names])
    last_N2 = np.array([clip.position(FRAMES - 1) for clip in clips])
    for name, predicted_N2 in (("predicted", mean_N2), ("last seen", last_N2), ("middle", np.full((1, 2), SIZE / 2))):
        distance = np.hypot(*(predicted_N2 - true_N2).T)
        print(f"{name}: mean distance {distance.mean():.2f} pixels, median {np.median(distance):.2f}, of {SIZE}")


if __name__ == "__main__":
    main()
