"""Prediction with a trained classifier: texts in, class probabilities out, in input order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from regard.device import module_device
from regard.errors import LineError
from regard.tasks.base import length_batches
from regard.tasks.classify.inputs import InputEncoder
from regard.tasks.classify.labels import Labels
from regard.trace import tap, trace_context, tracing

MAX_ROWS = 256
"""Texts per batch, at most."""


@dataclass(frozen=True)
class Prediction:
    """A label and its probability."""

    label: str
    probability: float


@dataclass(frozen=True, eq=False)
class ClassProbs:
    """Class probabilities of one text, and how many of its tokens were cut off."""

    probs_C: np.ndarray | None
    """None for an empty text"""
    truncated: int
    warning: str = ""
    """what a user should know about how the input was read"""

    def top(self, count: int, labels: Labels) -> list[Prediction]:
        """The most probable labels, the best first; none for an empty text."""
        if self.probs_C is None:
            return []
        order = np.argsort(-self.probs_C, kind="stable")[:count]
        return [Prediction(labels.names[i], float(self.probs_C[i])) for i in order]


@dataclass(frozen=True)
class ClassifierPredictor:
    """A classifier with its input encoder and labels."""

    model: Any
    """a Classifier"""
    input_encoder: InputEncoder
    labels: Labels
    tokens: int = 8192
    """positions per batch, padding included"""

    @torch.no_grad()
    def predict(self, lines: Sequence[str], first_line: int = 1) -> list[ClassProbs]:
        """Class probabilities of each text; `first_line` is the number of the first, for messages."""
        encoded = self.input_encoder.encode(lines, first_line)
        probs = [ClassProbs(None, one.truncated, one.warning) for one in encoded]
        for rows in length_batches([len(one.row) for one in encoded], self.tokens, MAX_ROWS):
            inputs = [encoded[i].row for i in rows]
            words = [self.input_encoder.token_texts(row) for row in inputs] if tracing() else []
            with trace_context(source=words, label=self.labels.names):
                features_BD = self.model(self.input_encoder.collate(inputs).to(module_device(self.model)))
                features_BD = tap(self.model, "features", features_BD, "batch width")
                out_BC = tap(self.model, "logits", self.model.readout(features_BD), "batch label:label")
            for i, probs_C in zip(rows, out_BC.cpu().double().softmax(-1).numpy(), strict=True):
                if not np.isfinite(probs_C).all():
                    message = (
                        f"line {first_line + i}: the model's output is not a number; the input is too large for it"
                    )
                    raise LineError(message, first_line + i)
                probs[i] = ClassProbs(probs_C, encoded[i].truncated, encoded[i].warning)
        return probs
