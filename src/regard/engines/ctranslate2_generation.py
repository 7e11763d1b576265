"""Greedy continuation of prompts by CTranslate2, with the limits of the generator here."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from regard.decode import DecodeConfig, Hypothesis
from regard.engines.ctranslate2_folder import Precision, load_folder
from regard.errors import ConfigError
from regard.tasks.generate.predict import ContinuationEngine
from regard.text import Tokenizer

UNSUPPORTED = {"beam": 1, "repetition_penalty": 1.0, "no_repeat_ngram": 0, "min_length": 0}
"""settings of [decode] that are not in this engine, and their neutral values"""


class CTranslate2Generation(ContinuationEngine):
    """Greedy search of a CTranslate2 folder; threads are those of torch when it is first used."""

    name = "ctranslate2"

    def __init__(self, folder: Path, tokenizer: Tokenizer, precision: Precision) -> None:
        self.folder, self.tokenizer, self.precision = folder, tokenizer, precision

    @cached_property
    def generator(self) -> Any:
        """CTranslate2's generator."""
        return load_folder("Generator", self.folder, self.precision)

    def check(self, config: DecodeConfig) -> None:
        if config.sample:
            raise ConfigError(
                "the engine ctranslate2 takes the most probable token here and does not sample; give --temperature 0, "
                "or leave --engine out"
            )
        for name, neutral in UNSUPPORTED.items():
            if (found := getattr(config, name)) != neutral:
                raise ConfigError(f"decode.{name} = {found} is not in the engine ctranslate2; leave --engine out")

    def continue_ids(
        self, ids: Sequence[Sequence[int]], limits: Sequence[int], excluded: Collection[int]
    ) -> list[Hypothesis]:
        names, eos = self.tokenizer.vocabulary, self.tokenizer.eos
        found = []
        for row, limit in zip(ids, limits, strict=True):
            (one,) = self.generator.generate_batch(
                [[names[id] for id in row]], max_length=limit, min_length=0, beam_size=1, sampling_topk=1,
                return_scores=True, return_end_token=True, include_prompt_in_result=False,
                end_token=[] if eos in excluded else [eos], length_penalty=0,
                suppress_sequences=[[names[id]] for id in sorted(excluded)] or None,
            )  # fmt: skip
            tokens = tuple(one.sequences_ids[0])
            ended = bool(tokens) and tokens[-1] == eos and eos not in excluded
            found.append(Hypothesis(tokens, one.scores[0], one.scores[0], ended))
        return found
