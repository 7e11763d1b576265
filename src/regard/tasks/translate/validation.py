"""Validation of a translation model: loss, perplexity and BLEU, and samples of its translations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from regard.metrics import bleu as bleu_score
from regard.objective import Objective
from regard.tasks.translate.config import TranslateConfig
from regard.tasks.translate.loader import PairLoader
from regard.tasks.translate.predict import Translator
from regard.train.validation import validation_loss


@dataclass(frozen=True)
class TranslateValidation:
    """Loss, perplexity, and BLEU of the translations of some validation sentences."""

    objective: Objective
    loader: PairLoader
    translator: Translator
    task: TranslateConfig
    lowercase: bool = False
    """score without case, since the tokenizer lowercases"""

    def __call__(self) -> tuple[Mapping[str, float], Sequence[Mapping[str, Any]]]:
        metrics = validation_loss(self.objective, self.loader, self.loader.group)
        size, scored = len(self.loader.valid), self.task.bleu_sentences
        # evenly spaced: many files begin with their shortest sentences
        rows = np.arange(size) if size <= scored else np.arange(scored) * size // scored
        translated = self.translate_inputs() if self.loader.group.is_main else []
        if not len(rows):
            return metrics, translated
        bleu, samples = torch.zeros(()), []
        if self.loader.group.is_main:
            sources, references = self.loader.texts(rows)
            outputs = [found[0].text for found in self.translator.translate(sources)]
            bleu = torch.tensor(bleu_score(outputs, references, lowercase=self.lowercase).value)
            triples = zip(sources, outputs, references, strict=True)
            samples = [{"source": a, "output": b, "reference": c} for a, b, c in triples][: self.task.samples]
        self.loader.group.wait_for_main()  # it translates alone
        # all ranks must decide the same from the same numbers
        return {**metrics, "bleu": float(self.loader.group.sum({"bleu": bleu})["bleu"])}, [*samples, *translated]

    def translate_inputs(self) -> list[Mapping[str, str]]:
        """The sentences of task.sample_inputs with their translations."""
        inputs = self.task.sample_inputs
        outputs = self.translator.translate(inputs)
        return [{"sample_input": text, "output": out[0].text} for text, out in zip(inputs, outputs, strict=True)]
