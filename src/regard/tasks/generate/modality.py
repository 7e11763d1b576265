"""The two modalities of a language model, text and numbers: preparation, output space, metrics, sampling."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from regard.data import Shards
from regard.data.scaling import SCALE_FILE, StandardScaler
from regard.data.texts import ImportedText, TextSource
from regard.decode import DecodeConfig
from regard.errors import ConfigError, DataError
from regard.metrics import Score
from regard.spaces import Gaussian, Space, SpelledWords, Words
from regard.tasks.generate.chat import ChatML
from regard.tasks.generate.condition import require_no_condition
from regard.tasks.generate.config import GenerateOptions
from regard.tasks.generate.numbers import NumberGenerator, format_numbers
from regard.tasks.generate.predict import Generator, TextGenerator
from regard.tasks.generate.prepare import COLUMN, NumberPreparation, TextPreparation, encode_split
from regard.tasks.generate.sources import NumberFiles
from regard.text import Tokenizer, TokenizerConfig
from regard.text.token_rows import TokenStrings, tokenizer_strings
from regard.text.tokenizer_training import EOS, UNK

PROMPT_LENGTH = 16
"""positions of the validation data that samples continue if task.prompt is empty"""
NOUNS = {"char": "characters", "word": "words"}
"""names of the tokens by kind of tokenizer; the others are tokens"""
TOKEN_SETTINGS = ("beam", "top_k", "top_p", "min_p", "repetition_penalty", "no_repeat_ngram")
"""settings of sampling that choose among tokens"""


class Modality(ABC):
    """What differs between text and numbers: made from a recipe's sections and, once there is one, the run folder."""

    @property
    @abstractmethod
    def unit(self) -> str:
        """Kind of one position: the kind of token, or numbers."""

    @abstractmethod
    def preparation(self) -> TextPreparation | NumberPreparation:
        """Turns raw data into the files that training reads."""

    def check_best_metric(self, name: str) -> None:
        """Refuse a metric that validation does not measure."""
        return

    def check_decode(self, decode: DecodeConfig) -> None:
        """Refuse decoding settings that do not apply."""
        return

    @property
    @abstractmethod
    def size_label(self) -> str:
        """Size of the vocabulary, or the names of the columns."""

    @abstractmethod
    def space(self, label_smoothing: float = 0.0) -> Space:
        """Input and output space of the model."""

    def source_space(self) -> Space:
        """Input space of the encoder, where the model reads a condition."""
        return self.space()

    @abstractmethod
    def sequence(self, shards: Shards) -> np.ndarray:
        """A prepared split as one sequence."""

    @abstractmethod
    def read_split(self, data: Any, split: str) -> tuple[np.ndarray, Mapping[str, int]]:
        """A split of raw data as one sequence, and its counts."""

    @abstractmethod
    def validation_metrics(self, loss: Mapping[str, float], counts: Mapping[str, int]) -> Mapping[str, float]:
        """The metrics of validation, from its loss and perplexity."""

    @abstractmethod
    def eval_scores(self, perplexity: Score, counts: Mapping[str, int]) -> list[Score]:
        """The scores of an evaluation, from its perplexity."""

    @abstractmethod
    def generator(self, model: Any, options: GenerateOptions, context: int | None) -> Generator:
        """Generates with a model."""

    @abstractmethod
    def default_prompt(self, sequence: np.ndarray) -> str:
        """The beginning of a sequence, as a prompt for samples."""

    @abstractmethod
    def id_to_token(self) -> Mapping[str, Callable[[int], str]]:
        """For each recorded side, the function from token id to token."""

    def vocabulary(self) -> TokenStrings | None:
        """The tokens in the form in which vocabularies are compared; None: there are none."""
        return None

    def unknown_token_notes(self, name: str, counts: Mapping[str, int], sequence: np.ndarray) -> Sequence[str]:
        """Notes on tokens that the model does not know; raises if it knows none."""
        return ()


@dataclass(frozen=True)
class TextModality(Modality):
    """Text, as tokens."""

    data: TextSource
    text: TokenizerConfig
    run: Path = Path()

    @cached_property
    def tokenizer(self) -> Tokenizer:
        """The tokenizer that preparation trained."""
        return Tokenizer.load(self.run / "tokenizer.json")

    @property
    def has_ends(self) -> bool:
        """Whether texts end with <EOS>; those of a file of one's own also begin after it."""
        return self.data.ends if isinstance(self.data, ImportedText) else self.data.unit != "file"

    @property
    def begin(self) -> int | None:
        """The token before every text; None: a text may begin anywhere."""
        if isinstance(self.data, ImportedText):
            return self.tokenizer.sos if self.data.begins else None
        return self.tokenizer.eos if self.has_ends else None

    def chat_format(self) -> ChatML:
        """The chat format of a model that was trained on conversations."""
        if isinstance(self.data, ImportedText) and self.data.chat == "chatml":
            return ChatML(self.data.system)
        raise ConfigError("this model was not trained on conversations, so it has no chat format; leave --chat out")

    @property
    def excluded_ids(self) -> frozenset[int]:
        """Tokens that are never generated; a model that was trained elsewhere may predict any."""
        words, end = self.tokenizer, {self.tokenizer.eos}
        special = end if isinstance(self.data, ImportedText) else {words.pad, words.sos, words.unk} | end
        return frozenset(id for id in special - (end if self.has_ends else set()) if id >= 0)

    @property
    def unit(self) -> str:
        return self.text.kind

    def preparation(self) -> TextPreparation:
        return TextPreparation(self.data, self.text)

    @property
    def size_label(self) -> str:
        return f"{self.tokenizer.size:,}"

    def vocabulary(self) -> TokenStrings:
        return tokenizer_strings(self.tokenizer)

    def space(self, label_smoothing: float = 0.0) -> Words:
        return SpelledWords(self.tokenizer.size, label_smoothing, self.tokenizer.vocabulary)

    def sequence(self, shards: Shards) -> np.ndarray:
        return shards.flat(COLUMN)

    def read_split(self, data: Any, split: str) -> tuple[np.ndarray, Mapping[str, int]]:
        return encode_split(data, split, self.tokenizer)

    def validation_metrics(self, loss: Mapping[str, float], counts: Mapping[str, int]) -> Mapping[str, float]:
        return {**loss, "bits": bits_per_unit(loss["loss"], counts, "characters")}

    def eval_scores(self, perplexity: Score, counts: Mapping[str, int]) -> list[Score]:
        bounds = (perplexity.value, perplexity.low, perplexity.high)
        scores = [perplexity]
        for name, unit in (("bits", "character"), ("bits_per_byte", "byte")):
            value, low, high = (bits_per_unit(math.log(number), counts, f"{unit}s") for number in bounds)
            signature = perplexity.signature.replace("unit:token", f"unit:{unit}")
            scores.append(Score(name, value, low, high, signature, perplexity.n))
        return scores

    def generator(self, model: Any, options: GenerateOptions, context: int | None) -> TextGenerator:
        require_no_condition(options.condition)
        return TextGenerator(
            model, self.tokenizer, options.decode, context, options.stop, options.sliding_window,
            begin=self.begin, samples_are_lines=self.data.unit == "line", excluded=self.excluded_ids,
            chat=self.chat_format() if options.chat else None,
        )  # fmt: skip

    def default_prompt(self, sequence: np.ndarray) -> str:
        if self.has_ends:
            return ""
        ids = sequence[sequence != self.tokenizer.unk][:PROMPT_LENGTH].tolist()
        return self.tokenizer.decode(ids) or self.tokenizer.vocabulary[-1]

    def id_to_token(self) -> Mapping[str, Callable[[int], str]]:
        return {"target": self.tokenizer.token}

    def unknown_token_notes(self, name: str, counts: Mapping[str, int], sequence: np.ndarray) -> Sequence[str]:
        unknown, total = counts["unknown"], counts["tokens"] - counts["texts"]
        if not unknown:
            return ()
        noun = NOUNS.get(self.text.kind, "tokens")
        tokens = {self.tokenizer.vocabulary[int(id)] for id in np.unique(sequence)} - {*UNK, *EOS}
        if not any(character.isalnum() for token in tokens for character in token):
            raise DataError(
                f"{name}: {unknown:,} of {total:,} {noun} are unknown to this model, and not one letter or digit is "
                "known; evaluate it on text like its training data"
            )
        return (f"{unknown:,} of {total:,} {noun} are unknown to this model; each is scored as <UNK>",)


@dataclass(frozen=True)
class NumberModality(Modality):
    """Real numbers, one or several per position, each with a predicted variance."""

    data: NumberFiles
    run: Path = Path()

    @cached_property
    def scaler(self) -> StandardScaler:
        """The scaler that preparation fitted."""
        return StandardScaler.load(self.run / SCALE_FILE)

    @property
    def unit(self) -> str:
        return "numbers"

    def preparation(self) -> NumberPreparation:
        return NumberPreparation(self.data)

    def check_best_metric(self, name: str) -> None:
        if name != "loss":
            raise ConfigError(f"train.best_metric: models of numbers measure only loss, got {name!r}")

    def check_decode(self, decode: DecodeConfig) -> None:
        defaults = GenerateOptions().decode
        for name in TOKEN_SETTINGS:
            if getattr(decode, name) != getattr(defaults, name):
                setting = f"{name} = {getattr(decode, name)}"
                raise ConfigError(f"{setting} chooses among tokens, and this model generates numbers; leave it out")

    @property
    def size_label(self) -> str:
        return ", ".join(self.scaler.names)

    def space(self, label_smoothing: float = 0.0) -> Gaussian:
        return Gaussian(len(self.scaler.names))

    def sequence(self, shards: Shards) -> np.ndarray:
        return shards.flat(COLUMN).reshape(-1, len(self.scaler.names))

    def read_split(self, data: Any, split: str) -> tuple[np.ndarray, Mapping[str, int]]:
        table = data.table(split)
        return self.scaler.transform(table.values), {"positions": len(table.values)}

    def validation_metrics(self, loss: Mapping[str, float], counts: Mapping[str, int]) -> Mapping[str, float]:
        return {"loss": loss["loss"]}  # perplexity is not defined for a density

    def eval_scores(self, perplexity: Score, counts: Mapping[str, int]) -> list[Score]:
        value, low, high = (math.log(number) for number in (perplexity.value, perplexity.low, perplexity.high))
        signature = perplexity.signature.replace("unit:token", "unit:position")
        return [Score("loss", value, low, high, signature, perplexity.n)]

    def generator(self, model: Any, options: GenerateOptions, context: int | None) -> NumberGenerator:
        require_no_condition(options.condition)
        if options.chat:
            raise ConfigError("a chat is text, and this model generates numbers; leave --chat out")
        if options.stop:
            raise ConfigError("stop strings end a text, and this model generates numbers; leave them out")
        return NumberGenerator(model, self.scaler, options.decode, context, options.sliding_window)

    def default_prompt(self, sequence: np.ndarray) -> str:
        return format_numbers(self.scaler.inverse_transform(sequence[:PROMPT_LENGTH]))

    def id_to_token(self) -> Mapping[str, Callable[[int], str]]:
        return {}


def bits_per_unit(nats: float, counts: Mapping[str, int], units: str) -> float:
    """Bits per character or per byte from nats per token: comparable between models with different tokens.

    >>> round(bits_per_unit(math.log(8), {"tokens": 2, "characters": 3, "bytes": 6}, "bytes"), 6)
    1.0
    """
    return nats / math.log(2) * counts["tokens"] / max(1, counts[units])
