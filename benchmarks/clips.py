"""Distance in pixels between the predicted and the true next position of moving shapes, with baselines.

    python benchmarks/clips.py runs/clips-position

Beside the model: the last position seen, and a straight line through the positions of all frames. Both are measured in
the pixels that the model reads, as the mean of the rows and columns of the pixels that differ from the background.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

import regard
from regard.data.moving_shapes import FRAMES, SIZE, make_clip
from regard.tasks.regress.recipe import RegressionModel

NOISE = 24.0
"""difference from the background, of 255, above which a pixel belongs to the shape: four deviations of the noise"""


def seen_positions(frames_TYXC: np.ndarray) -> np.ndarray:
    """(T, 2): column and row of the middle of the shape in each frame."""
    difference = np.abs(frames_TYXC - np.median(frames_TYXC, (0, 1, 2))).max(-1)
    weight_TYX = np.where(difference > NOISE, difference, 0.0)
    total_T = weight_TYX.sum((1, 2))
    center = np.arange(SIZE) + 0.5
    return np.stack([weight_TYX.sum(1) @ center / total_T, weight_TYX.sum(2) @ center / total_T], 1)


def extrapolate(seen_T2: np.ndarray) -> np.ndarray:
    """(2,): the least squares line through the positions of all frames, one frame further."""
    slope, start = np.polyfit(np.arange(len(seen_T2)), seen_T2, 1)
    return np.asarray(slope * len(seen_T2) + start)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("--clips", type=int, default=1000)
    args = parser.parse_args()
    model = regard.load(args.run)
    assert isinstance(model, RegressionModel)
    clips = [make_clip(i, "test") for i in range(args.clips)]
    true_N2 = np.array([clip.next_position for clip in clips])
    seen_NT2 = np.array([seen_positions(clip.render().astype(float)) for clip in clips])
    predicted = model.regress([f"clips#test/{i}" for i in range(args.clips)])
    for name, found_N2 in (
        ("model", np.array([[one["x"], one["y"]] for one in predicted])),
        ("last position seen", seen_NT2[:, -1]),
        ("straight line", np.array([extrapolate(seen_T2) for seen_T2 in seen_NT2])),
        ("last true position", np.array([clip.position(FRAMES - 1) for clip in clips])),
        ("middle of the picture", np.full((1, 2), SIZE / 2)),
    ):
        error_N2 = found_N2 - true_N2
        distance = np.hypot(*error_N2.T)
        mae, rmse = np.abs(error_N2).mean(), np.sqrt(np.square(error_N2).mean())
        print(
            f"{name}: MAE {mae:.3f}, RMSE {rmse:.3f} pixels per coordinate; distance {distance.mean():.3f} on average, "
            f"median {np.median(distance):.3f}, of {SIZE}"
        )


if __name__ == "__main__":
    main()
