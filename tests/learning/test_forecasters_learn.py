"""Each encoder learns to forecast a series in seconds, better than the baselines and with calibrated intervals."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from regard.progress import no_progress
from regard.run import Run, load
from regard.tasks import EvalRequest, Recipe

READERS = {
    "mlp": ["model.kind=mlp", "model.width=32"],
    "tanh": ["model.kind=recurrent", "model.cell=tanh", "model.width=32", "model.bidirectional=false"],
    "lstm": ["model.kind=recurrent", "model.cell=lstm", "model.width=32"],
    "gru": ["model.kind=recurrent", "model.cell=gru", "model.width=32", "task.patch=2"],
    "convolution": ["model.kind=convolution", "model.width=32", "model.layers=2", "task.pool=mean"],
    "transformer": [
        "model.kind=transformer",
        "model.layers=1",
        "model.width=32",
        "model.heads=2",
        "model.ffn_width=64",
    ],
}
TRAIN = ["task.kind=forecast", "train.batch_tokens=128", "train.steps=400", "train.validate_every=200",
         "train.schedule.kind=cosine", "train.schedule.lr=0.01", "train.schedule.warmup=20",
         "data.kind=csv"]  # fmt: skip


def chaos(folder: Path, rows: int = 900) -> Path:
    """The logistic map (May 1976): each row is a nonlinear function of the previous one."""
    values = [0.3]
    while len(values) < rows:
        values.append(3.7 * values[-1] * (1 - values[-1]))
    noise = np.random.default_rng(0).normal(size=rows) / 100
    (folder / "chaos.csv").write_text("x\n" + "".join(f"{a + b:.4f}\n" for a, b in zip(values, noise, strict=True)))
    return folder / "chaos.csv"


def scored(folder: Path, *settings: str) -> tuple[dict[str, float], float]:
    """The MAE of a model and of the baselines on test rows, and the coverage at 80 %."""
    recipe = Recipe.read(None, [*TRAIN, f"data.train={chaos(folder)}", *settings])
    Run(folder / "run").train(recipe)
    found = load(folder / "run").evaluate(EvalRequest(split="test"), no_progress)
    return {name: numbers[0] for name, numbers in found.detail["MAE"].items()}, found.scores[-1].value


@pytest.mark.parametrize("reader", ["mlp", *(pytest.param(n, marks=pytest.mark.slow) for n in READERS if n != "mlp")])
def test_every_encoder_forecasts_a_nonlinear_series(reader: str, tmp_path: Path) -> None:
    errors, coverage = scored(tmp_path, "task.window=4", "task.horizon=2", *READERS[reader])
    assert errors["model"] < 0.5 * min(errors["naive"], errors["seasonal"], errors["linear"])
    assert 70 <= coverage <= 90


@pytest.mark.slow
@pytest.mark.parametrize("shape", [["task.window=1", "task.horizon=3"], ["task.window=4", "task.horizon=1"]])
@pytest.mark.parametrize("head", ["point", "gaussian", "laplace"])
def test_every_head_learns_one_to_many_and_many_to_one(head: str, shape: list[str], tmp_path: Path) -> None:
    bare = ["task.center=none", "task.linear_skip=none", f"task.head={head}"]
    errors, coverage = scored(tmp_path, *shape, *bare, *READERS["mlp"])
    assert errors["model"] < 0.6 * min(errors["naive"], errors["linear"])
    assert 70 <= coverage <= 90
