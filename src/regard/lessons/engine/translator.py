"""A trained translator and one source sentence, decoded while everything is traced."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from regard.decode import Beam, Choice, decode
from regard.errors import ModelError
from regard.lessons.engine.builder import split_words
from regard.lessons.engine.cached_models import train_missing
from regard.look.tokens import token_label
from regard.run import load
from regard.sequence import Tokens
from regard.tasks.translate.recipe import TranslationModel
from regard.trace import Trace, record


def load_translator(path: Path | str) -> TranslationModel:
    """The translation model of a run."""
    model = load(path, "cpu")
    if not isinstance(model, TranslationModel):
        raise ModelError(f"{path} was trained to {model.recipe.kind()}; this lesson needs a translation model")
    return model


@dataclass(frozen=True)
class LessonTranslator:
    """A Transformer for translation, and a source sentence."""

    model: TranslationModel
    source: Tokens
    words: list[str]
    """of the source, <EOS> at the end"""

    @classmethod
    def load(cls, path: Path | str, kind: str, sentence: str) -> LessonTranslator:
        """The model of a run, or the cached model of a kind, with a tokenized sentence."""
        split_words("sentence", sentence)
        model = load_translator(path or train_missing([kind])[0])
        if model.recipe.model.kind != "transformer":
            raise ModelError(
                f"{path} is a model of the kind {model.recipe.model.kind}; this lesson needs a transformer"
            )
        tokenizer = model.vocabularies.source
        ids = tokenizer.encode(sentence.strip()).ids
        words = [token_label(token) for token in tokenizer.tokens(ids)]
        return cls(model, model.translator().pad_source([ids]), [*words, "<EOS>"])

    def target_words(self, ids: Sequence[int]) -> list[str]:
        """Labels of target tokens."""
        return [token_label(token) for token in self.model.vocabularies.target.tokens(ids)]

    def text(self, ids: Sequence[int]) -> str:
        """Target tokens as a sentence, without special tokens."""
        tokenizer = self.model.vocabularies.target
        return tokenizer.decode([i for i in ids if i not in (tokenizer.sos, tokenizer.eos, tokenizer.pad)])

    def search(self, beam: Beam, limit: int) -> tuple[list[Choice], Trace]:
        """Decode at most `limit` tokens: the choice of each step, and the trace."""
        module, prompt = self.model.module, Tokens.pad([[self.model.vocabularies.target.sos]])
        with record(module) as trace:
            choices = list(decode(module, self.source, prompt, beam, torch.tensor([limit])))
        return choices, trace
