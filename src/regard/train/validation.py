"""Validation of the current weights: the loss, and the refusal of weights or losses that are NaN or infinite."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from regard.distributed import ProcessGroup
from regard.errors import Diverged
from regard.objective import Loader, Objective

Metrics = Mapping[str, float]
Samples = Sequence[Mapping[str, Any]]
Validate = Callable[[], tuple[Metrics, Samples]]
"""Validation of the current weights: metrics and sample outputs."""


class NonfiniteValidation(Diverged):
    """Weights or a validation loss that are NaN or infinite: nothing is decoded with them, and nothing saved."""


@torch.no_grad()
def validation_loss(objective: Objective, loader: Loader, group: ProcessGroup) -> Metrics:
    """Validation loss and perplexity, without label smoothing; the hidden state of a stream starts empty."""
    total, count, hidden_state = torch.zeros((), dtype=torch.double), torch.zeros((), dtype=torch.double), None
    for batch in loader.valid_batches():
        if len(batch):
            loss, hidden_state = objective(batch, hidden_state)
            total += sum(t.cpu().double() for t in loss.totals.values())
            count += sum(objective.task.counts(batch).values())
    sums = group.sum({"total": total, "count": count})
    mean = float(sums["total"] / sums["count"].clamp(min=1))
    if not math.isfinite(mean):  # before a task decodes; all ranks have the same sum
        raise NonfiniteValidation(f"the validation loss is {mean}")
    return {"loss": mean, "ppl": math.exp(min(mean, 700.0))}


def validate_finite(objective: Objective, validate: Validate, weights: Iterable[Tensor]) -> tuple[Metrics, Samples]:
    """Validate in evaluation mode; weights or a loss that are NaN or infinite raise NonfiniteValidation."""
    if not all(bool(weight.isfinite().all()) for weight in weights):
        raise NonfiniteValidation("the weights are NaN or infinite")
    objective.eval()
    try:
        metrics, samples = validate()
    finally:
        objective.train()
    if not math.isfinite(loss := metrics.get("loss", 0.0)):
        raise NonfiniteValidation(f"the validation loss is {loss}")
    return metrics, samples
