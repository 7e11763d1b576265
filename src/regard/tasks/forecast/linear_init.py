"""Initialization of a forecaster at the ridge regression solution, so that the network learns only the residual.

The skip connection is linear in the weights of the head, so its best start is solved for. The ridge penalty is chosen
on validation. The network branch starts scaled by 0.1.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor

from regard.models.forecaster import Forecaster
from regard.tasks.forecast.baselines import ridge
from regard.tasks.forecast.windows import Windows

MAX_INPUTS = 4096
"""Inputs of the widest linear model that is solved for; a wider one keeps its random weights."""
MAX_WINDOWS = 100_000
"""Windows that it is fitted to at most, evenly spaced."""
CHUNK = 4096


@torch.no_grad()
def init_from_ridge(model: Forecaster, train: Windows, valid: Windows) -> None:
    """Set the head of a fresh forecaster to the ridge solution, and its scales to that solution's errors."""
    width, outputs = model.linear_width, model.shape.outputs
    if not model.shape.linear_columns or width > MAX_INPUTS or not len(train) or not len(valid):
        return
    squares, products = torch.zeros(width + 1, width + 1).double(), torch.zeros(width + 1, outputs).double()
    for x_BN, y_BA in _regression_rows(model, train):
        squares += x_BN.T @ x_BN
        products += x_BN.T @ y_BA
    solutions = [torch.from_numpy(weights) for weights in ridge(squares.numpy(), products.numpy()).values()]
    errors = torch.zeros(len(solutions), outputs).double()
    count = 0
    for x_BN, y_BA in _regression_rows(model, valid):
        errors += torch.stack([(y_BA - x_BN @ weights).abs().sum(0) for weights in solutions])
        count += len(x_BN)
    best = int(errors.sum(1).argmin())
    model.init_linear(solutions[best].float(), (errors[best] / count).float())


def _regression_rows(model: Forecaster, windows: Windows) -> Iterator[tuple[Tensor, Tensor]]:
    """Inputs of the skip connection with a constant 1, and targets, of evenly spaced windows."""
    total = len(windows)
    numbers = np.arange(total) if total <= MAX_WINDOWS else np.linspace(0, total - 1, MAX_WINDOWS).astype(np.int64)
    for start in range(0, len(numbers), CHUNK):
        batch = windows.batch(numbers[start : start + CHUNK])
        x_BN = model.linear_features(batch.source).double()
        assert isinstance(batch.target, Tensor)
        yield torch.cat([x_BN, torch.ones(len(x_BN), 1).double()], 1), batch.target.double()
