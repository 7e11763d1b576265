"""Where a forecaster starts: as the best straight line, so that the network learns only what a line cannot tell.

What stands beside the network is linear in the weights of the head, so its best start is solved for, not stepped to.
How strongly weights are held back is chosen on validation. The network starts hushed.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor

from regard.models.forecaster import Forecaster
from regard.tasks.forecast.baselines import ridge
from regard.tasks.forecast.windows import Windows

WIDEST = 4096
"""Numbers that a line is solved for at most; a wider one starts as everything else does."""
MOST = 100_000
"""Windows that it is solved from at most, spread evenly."""
CHUNK = 4096


@torch.no_grad()
def straighten(model: Forecaster, train: Windows, valid: Windows) -> None:
    """Set the head of a fresh forecaster to the best line, and its doubts to what that line is off by.

    >>> from regard.models.mlp import MLPConfig
    >>> from regard.models.forecaster import Shape
    >>> from regard.sequence import last
    >>> from regard.spaces import Values
    >>> from regard.tasks.forecast.prepare import ForecastConfig
    >>> task, shape = ForecastConfig(horizon=2, window=4), Shape(rows=4, columns=1, patch=4, answers=2, straight=1)
    >>> model = Forecaster(MLPConfig(width=8).build_encoder(Values(4)), last, task.space(2), shape).eval()
    >>> wave = np.sin(np.arange(200.0) / 3)[:, None]
    >>> train, valid = (Windows(task, part, np.zeros((len(part), 0))) for part in (wave[:150], wave[150:]))
    >>> straighten(model, train, valid)
    >>> batch = valid.batch(np.arange(len(valid)))
    >>> bool((task.parts(model.readout(model(batch.source)))[0] - batch.target).abs().mean() < 0.1)
    True
    """
    width = model.straight
    if not model.shape.straight or width > WIDEST or not len(train) or not len(valid):
        return
    gram, reached = torch.zeros(width + 1, width + 1).double(), torch.zeros(width + 1, model.shape.answers).double()
    for x_BN, y_BA in _rows(model, train):
        gram += x_BN.T @ x_BN
        reached += x_BN.T @ y_BA
    lines = [torch.from_numpy(line) for line in ridge(gram.numpy(), reached.numpy()).values()]
    off = torch.zeros(len(lines), model.shape.answers).double()
    count = 0
    for x_BN, y_BA in _rows(model, valid):
        off += torch.stack([(y_BA - x_BN @ line).abs().sum(0) for line in lines])
        count += len(x_BN)
    best = int(off.sum(1).argmin())
    model.begin(lines[best].float(), (off[best] / count).float())


def _rows(model: Forecaster, windows: Windows) -> Iterator[tuple[Tensor, Tensor]]:
    """What the line reads and a 1, and what is wanted, of windows that are spread evenly."""
    there = len(windows)
    numbers = np.arange(there) if there <= MOST else np.linspace(0, there - 1, MOST).astype(np.int64)
    for start in range(0, len(numbers), CHUNK):
        batch = windows.batch(numbers[start : start + CHUNK])
        x_BN = model.line(batch.source).double()
        assert isinstance(batch.target, Tensor)
        yield torch.cat([x_BN, torch.ones(len(x_BN), 1).double()], 1), batch.target.double()
