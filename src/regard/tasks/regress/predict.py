"""Prediction with a trained regression model: images or clips in, numbers out, in input order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from regard.data.scaling import StandardScaler
from regard.device import module_device
from regard.errors import LineError
from regard.tasks.base import length_batches
from regard.tasks.classify.images import ImageInput
from regard.tasks.classify.inputs import EncodedInput
from regard.trace import tap, trace_context, tracing

MAX_ROWS, POSITIONS = 256, 8192
"""images per batch, at most, and their size in positions (ImageInput.batch_length)"""


@dataclass(frozen=True, eq=False)
class NumberPrediction:
    """Predicted numbers of one image or clip."""

    numbers: np.ndarray | None
    """(F,) in the units of the data; None for an empty line"""
    warning: str = ""
    """what a user should know about how the input was read"""

    def by_name(self, names: Sequence[str]) -> dict[str, float]:
        """Each number under its name; empty for an empty line."""
        return {} if self.numbers is None else dict(zip(names, self.numbers.tolist(), strict=True))


@dataclass(frozen=True)
class Regressor:
    """A model with its input encoder, and the scaler of what it predicts."""

    model: Any
    """a Classifier whose head gives numbers"""
    image_input: ImageInput
    targets: StandardScaler

    def predict(self, lines: Sequence[str], first_line: int = 1) -> list[NumberPrediction]:
        """The numbers of each image or clip; `first_line` is the number of the first, for messages."""
        return self.predict_encoded(self.image_input.encode(lines, first_line), first_line)

    @torch.no_grad()
    def predict_encoded(self, encoded: Sequence[EncodedInput], first_line: int = 1) -> list[NumberPrediction]:
        """The numbers of encoded inputs."""
        found = [NumberPrediction(None, one.warning) for one in encoded]
        lengths = [self.image_input.batch_length(one.row) for one in encoded]
        for rows in length_batches(lengths, POSITIONS, MAX_ROWS):
            numbers_BF = self.targets.inverse_transform(self._forward([encoded[i].row for i in rows]).numpy())
            for i, numbers_F in zip(rows, numbers_BF, strict=True):
                if not np.isfinite(numbers_F).all():
                    raise LineError(f"line {first_line + i}: the model's output is not a number", first_line + i)
                found[i] = NumberPrediction(numbers_F, encoded[i].warning)
        return found

    def _forward(self, inputs: Sequence[Any]) -> Tensor:
        """(B, F): standardized numbers."""
        words = [self.image_input.token_texts(row) for row in inputs] if tracing() else []
        with trace_context(source=words, output=self.targets.names, **self.image_input.trace_facts()):
            features_BD = self.model(self.image_input.collate(inputs).to(module_device(self.model)))
            features_BD = tap(self.model, "features", features_BD, "batch width")
            numbers_BF: Tensor = tap(self.model, "numbers", self.model.readout(features_BD), "batch output:output")
            units = self.targets.inverse_transform(numbers_BF.cpu().double().numpy())
            tap(self.model, "prediction", torch.from_numpy(units), "batch output:output")
        return numbers_BF.cpu().double()
