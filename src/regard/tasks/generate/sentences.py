"""Sentence vectors of a language model: its features over a text, of both directions if it has two."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from regard.device import module_device
from regard.errors import ConfigError
from regard.sequence import Memory, Padded, Tokens
from regard.tasks.generate.loader import empty_source
from regard.tasks.generate.modality import Modality, TextModality
from regard.tasks.sentence_vectors import SentenceReader, no_sentence_vectors


class LanguageModelSentences(SentenceReader):
    """What sentence vectors need of a language model."""

    modality: Modality

    @property
    def reads_left_to_right(self) -> bool:
        return not hasattr(self.inference_module, "backward_decoder")

    @property
    def sentence_limit(self) -> int | None:
        limit: int | None = self.recipe.model.position_limit
        return None if limit is None else min(limit, self.recipe.task.window)

    def sentence_rows(self, texts: Sequence[str]) -> list[Any]:
        """Ids of each text, after the token that begins a text if the model knows one."""
        if not isinstance(self.modality, TextModality):
            raise no_sentence_vectors(self.recipe.kind())
        if self.recipe.condition != "none":
            raise ConfigError("the states of a conditional model depend on its condition; use a model without one")
        begin = [] if self.modality.begin is None else [self.modality.begin]
        return [[*begin, *ids] for ids in self.modality.tokenizer.encode_batch(list(texts))]

    def sentence_memory(self, rows: Sequence[Any]) -> Memory:
        module: Any = self.inference_module
        tokens = Tokens.pad(rows).to(module_device(module))
        memory = module.encoder(empty_source(len(rows)).to(tokens.device))
        features_BTD = module.decoder(tokens, module.decoder.start(memory, 0))[0]
        if not self.reads_left_to_right:
            backward = module.backward_decoder
            reversed_BTD = backward(tokens.reverse(), backward.start(memory, 0))[0]
            features_BTD = torch.cat([features_BTD, tokens.like(reversed_BTD).reverse().data], -1)
        return Memory(Padded(features_BTD, tokens.lengths, tokens.ragged))
