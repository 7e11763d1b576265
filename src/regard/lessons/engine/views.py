"""One sentence through a trained translator, with everything that was seen on the way."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from regard.decode import Beam, Choice, decode
from regard.errors import ConfigError, ModelError
from regard.lessons.engine.cached_models import trained
from regard.look.tokens import shown
from regard.run import load
from regard.sequence import Tokens
from regard.tasks.translate.recipe import TranslationModel
from regard.trace import Trace, record


@dataclass(frozen=True)
class Reader:
    """A translator and a sentence that it reads.

    >>> Reader.of("runs/none", "transformer", "je suis")
    Traceback (most recent call last):
    regard.errors.ModelError: runs/none is not a run: there is no such directory
    """

    model: TranslationModel
    source: Tokens
    words: list[str]
    """of the source, <EOS> at the end"""

    @classmethod
    def of(cls, path: Path | str, kind: str, sentence: str) -> Reader:
        """The model of a run, or the small one of this kind, and what it makes of a sentence."""
        if not sentence.split():
            raise ConfigError("sentence: expected some words, got none")
        model = load(path or trained([kind])[0])
        if not isinstance(model, TranslationModel):
            raise ModelError(f"{path} was trained to {model.recipe.kind()}; this lesson looks into translators")
        if kind != "rnnsearch" and model.recipe.model.kind != "transformer":
            raise ModelError(
                f"{path} is a model of the kind {model.recipe.model.kind}; this lesson needs a transformer"
            )
        ours = model.vocabularies.source
        ids = ours.encode(sentence.strip()).ids
        words = [shown(token) for token in ours.tokens(ids)]
        return cls(model, model.translator().source([ids]), [*words, "<EOS>"])

    def said(self, ids: Sequence[int]) -> list[str]:
        """Words of the other side."""
        return [shown(token) for token in self.model.vocabularies.target.tokens(ids)]

    def text(self, ids: Sequence[int]) -> str:
        """The same as a sentence."""
        theirs = self.model.vocabularies.target
        return theirs.decode([i for i in ids if i not in (theirs.sos, theirs.eos, theirs.pad)])

    def search(self, beam: Beam, limit: int) -> tuple[list[Choice], Trace]:
        """Say something about it in at most so many words: each step's choice, and all that was seen."""
        module, prompt = self.model.module, Tokens.of([[self.model.vocabularies.target.sos]])
        with record(module) as trace:
            choices = list(decode(module, self.source, prompt, beam, torch.tensor([limit])))
        return choices, trace
