"""The `[task]` table of a labeling recipe: tag scheme, CRF, character encoder, vocabulary."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from torch import nn

from regard.config import check_at_least
from regard.errors import ConfigError
from regard.metrics.spans import Scheme
from regard.models.base import ModelConfigBase
from regard.nn.char_encoder import CharCNN, CharEncoder, CharLSTM, WordCharEmbedding
from regard.spaces import InputSpace, SpelledInput, Words
from regard.tasks.label.vocab import WordVocab


@dataclass(frozen=True)
class NoCharEncoder:
    """Word embeddings only."""

    kind: Literal["none"] = "none"
    """word embeddings only"""

    @property
    def width(self) -> int:
        return 0


@dataclass(frozen=True)
class CharCNNConfig:
    """Settings of a `CharCNN` (Ma and Hovy 2016)."""

    kind: Literal["convolution"] = "convolution"
    """convolution and max pooling over the characters of a word"""
    width: int = 50
    """filters: so much of the model's width is the character vector, the rest is the word embedding"""
    embedding: int = 30
    """width of a character embedding"""
    kernel: int = 3
    """characters per window"""

    def __post_init__(self) -> None:
        check_at_least(self, 1, "width", "embedding", "kernel")
        if self.kernel % 2 == 0:
            raise ConfigError(
                f"kernel = {self.kernel} must be odd, so that a window is centered on a character; "
                f"try {self.kernel - 1} or {self.kernel + 1}"
            )

    def build(self, chars: int) -> CharEncoder:
        """The encoder of a vocabulary of so many characters, with initial weights."""
        return CharCNN(chars, self.embedding, self.kernel, self.width)


@dataclass(frozen=True)
class CharLSTMConfig:
    """Settings of a `CharLSTM` (Lample et al. 2016)."""

    kind: Literal["lstm"] = "lstm"
    """a bidirectional LSTM over the characters of a word"""
    width: int = 50
    """so much of the model's width is the character vector, half per direction; the rest is the word embedding"""
    embedding: int = 25
    """width of a character embedding"""

    def __post_init__(self) -> None:
        check_at_least(self, 1, "width", "embedding")
        if self.width % 2:
            raise ConfigError(f"width = {self.width} must be even: each direction has half of it")

    def build(self, chars: int) -> CharEncoder:
        """The encoder of a vocabulary of so many characters, with initial weights."""
        return CharLSTM(chars, self.embedding, self.width)


CharEncoderConfig = NoCharEncoder | CharCNNConfig | CharLSTMConfig


@dataclass(frozen=True)
class WordCharSpace(InputSpace):
    """Input space of words with their characters: a word id and character ids at each position."""

    words: int
    chars: int
    config: CharCNNConfig | CharLSTMConfig

    def embed(self, width: int) -> nn.Module:
        check_char_width(self.config.width, width)
        return WordCharEmbedding(self.words, self.config.build(self.chars), width)


@dataclass(frozen=True)
class SpelledWordCharSpace(SpelledInput):
    """Input space of spelled words whose characters are also read by a character encoder."""

    chars: int
    config: CharCNNConfig | CharLSTMConfig

    def embed(self, width: int) -> nn.Module:
        return WordCharSpace(self.words, self.chars, self.config).embed(width)


def check_char_width(chars: int, width: int) -> None:
    """Refuse a character vector that leaves no room for the word embedding."""
    if width <= chars:
        raise ConfigError(
            f"task.char_encoder.width = {chars} leaves nothing of model.width = {width} for the word embedding"
        )


def input_space(vocab: WordVocab, config: CharEncoderConfig) -> InputSpace:
    """Input space of the model: words, with their characters if there is a character encoder or they are spelled."""
    if isinstance(config, NoCharEncoder):
        return SpelledInput(vocab.size) if vocab.spelled else Words(vocab.size)
    return (SpelledWordCharSpace if vocab.spelled else WordCharSpace)(vocab.size, vocab.char_size, config)


@dataclass(frozen=True)
class LabelConfig:
    """Token labeling: a tag, a number, an angle or a written form for each token."""

    kind: Literal["label"] = "label"
    """words in, a tag for each of them out"""
    scheme: Literal["none", "bio", "bioes"] = "none"
    """how tags encode spans such as names: B-X I-X, or B-X I-X E-X and S-X; none: tags are not spans"""
    strict: bool = False
    """refuse tags that violate the scheme or are not in training, instead of repairing and counting them"""
    crf: Literal["none", "linear"] = "none"
    """linear: a linear-chain CRF decodes the tags jointly (Viterbi); none: each token independently"""
    tokens: Literal["words", "subwords"] = "words"
    """what the encoder reads: whole words, or the pieces that the tokenizer of [text] cuts them into; the first piece
    then predicts the label of its word, as with BERT"""
    char_encoder: CharEncoderConfig = NoCharEncoder()
    """encoder of a word's characters, concatenated with its embedding"""
    min_count: int = 1
    """words that occur less often in training are unknown: only their characters are read"""
    lowercase: bool = False
    """word embeddings ignore case; the character encoder never does"""
    max_length: int = 512
    """longest training sentence, in tokens; a longer text is labeled in overlapping windows of this size; subwords: in
    pieces, and a longer training sentence is truncated after the last word that fits"""
    samples: int = 4
    """validation sentences that are written with their predictions to samples.jsonl"""

    def __post_init__(self) -> None:
        for name, least in (("min_count", 1), ("max_length", 1), ("samples", 0)):
            check_at_least(self, least, name)

    @property
    def span_scheme(self) -> Scheme | None:
        """The scheme; None if tags are not spans."""
        return None if self.scheme == "none" else self.scheme


def check_spellings(model: ModelConfigBase, task: LabelConfig) -> None:
    """Refuse settings that do not fit a model that reads the characters of words itself."""
    if not model.reads_spellings:
        return
    if task.tokens == "subwords":
        raise ConfigError(f'model.kind = "{model.kind}" reads the characters of whole words; use task.tokens = "words"')
    if not model.embeds_word_ids and not isinstance(task.char_encoder, NoCharEncoder):
        raise ConfigError(
            f'task.char_encoder.kind = "{task.char_encoder.kind}": model.kind = "{model.kind}" reads characters by '
            'itself; use "none", or model.kind = "elmo-recurrent"'
        )
