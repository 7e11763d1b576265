"""Prediction with a trained classifier: texts in, class probabilities out, in input order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from regard.device import module_device
from regard.errors import LineError
from regard.sequence import Memory
from regard.tasks.base import length_batches
from regard.tasks.classify.inputs import EncodedInput, InputEncoder, TextInput
from regard.tasks.classify.labels import Labels
from regard.tasks.sentence_vectors import SentenceReader, no_sentence_vectors
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

    def predict(self, lines: Sequence[str], first_line: int = 1) -> list[ClassProbs]:
        """Class probabilities of each text; `first_line` is the number of the first, for messages."""
        return self.predict_encoded(self.input_encoder.encode(lines, first_line), first_line)

    @torch.no_grad()
    def predict_encoded(self, encoded: Sequence[EncodedInput], first_line: int = 1) -> list[ClassProbs]:
        """Class probabilities of encoded inputs."""
        probs = [ClassProbs(None, one.truncated, one.warning) for one in encoded]
        lengths = [self.input_encoder.batch_length(one.row) for one in encoded]
        for rows in length_batches(lengths, self.tokens, MAX_ROWS):
            inputs = [encoded[i].row for i in rows]
            words = [self.input_encoder.token_texts(row) for row in inputs] if tracing() else []
            with trace_context(source=words, label=self.labels.names, **self.input_encoder.trace_facts()):
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


class ClassifierSentences(SentenceReader):
    """Sentence vectors of a classifier: the states of its encoder."""

    input_encoder: InputEncoder

    def sentence_rows(self, texts: Sequence[str]) -> list[Any]:
        """Texts as the classifier reads them."""
        if not isinstance(self.input_encoder, TextInput):
            raise no_sentence_vectors(self.recipe.kind())
        return [one.row for one in self.input_encoder.encode(texts)]

    def sentence_memory(self, rows: Sequence[Any]) -> Memory:
        encoder = self.inference_module.encoder
        found: Memory = encoder(self.input_encoder.collate(rows).to(module_device(encoder)))
        return found
