"""Settings of the translate task."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class TranslateConfig:
    """Machine translation of sentences."""

    kind: Literal["translate"] = "translate"
    """translate sentences"""
    share_vocab: bool = True
    """one vocabulary for both languages; needed for model.tie = "all\""""
    bleu_sentences: int = 200
    """validation sentences that are translated greedily and scored with BLEU at each validation; 0: none"""
    samples: int = 4
    """how many of these are written to samples.jsonl"""
    sample_inputs: tuple[str, ...] = ()
    """sentences of your own that are translated at each validation, shown, and written to samples.jsonl"""
