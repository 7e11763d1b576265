"""Validation of a classifier during training."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from regard.device import module_device
from regard.metrics.classification import macro_f1
from regard.objective import Objective
from regard.tasks.classify.labels import Labels
from regard.tasks.classify.loader import ExampleLoader
from regard.tasks.classify.predict import ClassifierPredictor


@dataclass(frozen=True)
class ClassifyValidation:
    """Loss, accuracy and macro F1 on the validation data, and sample predictions."""

    objective: Objective
    loader: ExampleLoader
    labels: Labels
    samples: int = 4

    @torch.no_grad()
    def __call__(self) -> tuple[Mapping[str, float], Sequence[Mapping[str, Any]]]:
        model, space, size = self.objective.model, self.objective.task.space, len(self.labels.names)
        found = torch.zeros(size * size + 1, dtype=torch.double)
        for batch in self.loader.valid_batches():
            if len(batch):
                batch = batch.to(module_device(model))
                out_BC: Tensor = model.readout(model(batch.source))  # type: ignore[operator]
                found[:-1] += torch.bincount((batch.target * size + out_BC.argmax(-1)).cpu(), minlength=size * size)
                found[-1] += space.nll(out_BC, batch.target).cpu().double()
        self.loader.group.all_reduce_(found)
        counts_CC, total = found[:-1].view(size, size).numpy(), float(found[:-1].sum())
        metrics = {
            "loss": float(found[-1]) / total,
            "accuracy": 100 * float(counts_CC.trace()) / total,
            "macro_f1": macro_f1(counts_CC),
        }
        return metrics, self.sample_predictions() if self.loader.group.is_main else ()

    def sample_predictions(self) -> list[dict[str, str]]:
        """Predictions of evenly spaced examples, since many files are sorted by label."""
        size = len(self.loader.valid)
        rows = np.arange(min(size, self.samples)) * size // max(1, min(size, self.samples))
        texts, labels = self.loader.valid_texts(rows)
        predictor = ClassifierPredictor(self.objective.model, self.loader.input_encoder, self.labels)
        outputs = [probs.top(1, self.labels)[0].label for probs in predictor.predict(texts)]
        return [
            {"text": text, "output": output, "reference": self.labels.names[label]}
            for text, output, label in zip(texts, outputs, labels, strict=True)
        ]
