"""Prediction with a trained tagger: text in, a label for each token out, in input order."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import torch

from regard.device import module_device
from regard.metrics.spans import spans
from regard.sequence import Memory, Tokens
from regard.tasks.base import check_lines, length_batches
from regard.tasks.label.restore import split_plain
from regard.tasks.label.sources import TargetName, TokenUnit
from regard.tasks.label.subwords import SubwordEncoder
from regard.tasks.label.targets import TagTarget, TargetKind, TokenPrediction
from regard.tasks.label.vocab import WordEncoder, WordTypes, WordVocab, split_words
from regard.tasks.sentence_vectors import SentenceReader
from regard.trace import tap, trace_context, tracing

MARGIN = 32
"""Tokens at the ends of a window whose labels are taken from the next window, which has more context for them."""


class InputToken(NamedTuple):
    """A token of the input, and its offsets in the text."""

    text: str
    start: int
    end: int


@dataclass(frozen=True)
class LabeledToken:
    """A token with its offsets and its predicted label."""

    text: str
    """the token as the model reads it"""
    start: int
    end: int
    tag: str
    """a tag, a number, or the written form"""
    probability: float | None
    """None for numbers"""


@dataclass(frozen=True)
class TextSpan:
    """A labeled span of a text, such as a name."""

    kind: str
    text: str
    start: int
    end: int
    probability: float | None
    """that of its least certain word: an upper bound for the whole span; None for numbers"""


@dataclass(frozen=True)
class LabeledText:
    """A text with its predicted labels."""

    text: str
    """the input text"""
    tokens: tuple[LabeledToken, ...]
    output: str
    """token/TAG pairs; where labels are written forms, the restored text"""
    spans: tuple[TextSpan, ...] = ()
    """names or phrases, if tags encode spans"""


class SlidingWindow(NamedTuple):
    """Part of a sentence that is read at once, and the part of it whose labels are used."""

    row: int
    start: int
    end: int
    first: int
    last: int


@dataclass(frozen=True)
class LabelPredictor:
    """A tagger with its vocabulary and targets."""

    model: Any
    """a Tagger or a CRFTagger"""
    vocab: WordVocab
    target: TargetKind
    unit: TokenUnit = "word"
    label_type: TargetName = "tags"
    with_spans: bool = False
    """whether tags encode spans"""
    window: int = 512
    """tokens of the longest text that is read at once; a longer one is read in overlapping windows"""
    tokens: int = 8192
    """positions per batch, padding included"""
    subwords: SubwordEncoder | None = None
    """what cuts words into pieces, if the encoder reads these; the window then counts pieces"""

    @property
    def word_encoder(self) -> WordEncoder:
        """What turns a word into ids."""
        return self.vocab if self.subwords is None else self.subwords

    def label(self, texts: Sequence[str], first_line: int = 1) -> list[LabeledText]:
        """Label texts; `first_line` is the number of the first, for messages."""
        check_lines(texts, first_line)
        tokens = [self.tokenize(text) for text in texts]
        predictions = self.predict_tokens([[token.text for token in row] for row in tokens])
        return [self._labeled_text(*rows) for rows in zip(texts, tokens, predictions, strict=True)]

    def tokenize(self, text: str) -> list[InputToken]:
        """The tokens of a text: words, characters, or plain characters without case and accents."""
        if self.label_type == "text":
            chars, ends = split_plain(text)
            return [InputToken(char, *span) for char, span in zip(chars, pairwise([0, *ends]), strict=True)]
        if self.unit == "character":
            return [InputToken(character, at, at + 1) for at, character in enumerate(text) if not character.isspace()]
        return [InputToken(text[start:end], start, end) for start, end in split_words(text, self.vocab)]

    @torch.no_grad()
    def predict_tokens(self, sentences: Sequence[Sequence[str]]) -> list[list[TokenPrediction]]:
        """Predictions for each token of tokenized sentences."""
        found: list[list[TokenPrediction]] = [[] for _ in sentences]
        numbers: dict[str, int] = {}
        rows = [np.array([numbers.setdefault(word, len(numbers)) for word in words], np.int64) for words in sentences]
        types = WordTypes.encode(numbers, self.word_encoder)
        predictions = dict[SlidingWindow, list[TokenPrediction]]()
        windows = [window for i, words in enumerate(sentences) for window in self._windows(i, words)]
        sizes = [self._size(sentences[w.row][w.start : w.end]) for w in windows]
        for batch in length_batches(sizes, self.tokens):
            group = [windows[i] for i in batch]
            words = [list(sentences[w.row][w.start : w.end]) for w in group] if tracing() else []
            read = words if self.subwords is None else [self.subwords.tokens(row) for row in words]
            names = {"label": self.target.names} if isinstance(self.target, TagTarget) else {}
            with trace_context(source=read, word=words, **names):
                source = types.collate([rows[w.row][w.start : w.end] for w in group]).to(module_device(self.model))
                out_BLC = self.model.readout(self.model(source))
                side = "source" if self.subwords is None else "word"
                out_BLC = tap(self.model, "logits", out_BLC, f"batch position:{side} label:label")
                predictions |= zip(group, self.target.predict(source.like(out_BLC), self.model), strict=True)
        for window in windows:
            found[window.row] += predictions[window][window.first - window.start : window.last - window.start]
        return found

    def collate(self, sentences: Sequence[Sequence[str]]) -> Tokens:
        """Tokenized sentences as a batch."""
        numbers: dict[str, int] = {}
        rows = [np.array([numbers.setdefault(word, len(numbers)) for word in words], np.int64) for words in sentences]
        return WordTypes.encode(numbers, self.word_encoder).collate(rows)

    def first_window(self, words: Sequence[str]) -> Sequence[str]:
        """The words that are read at once: all, or those of the first window."""
        window = next(self._windows(0, words), None)
        return words[: window.end] if window else words

    def _size(self, words: Sequence[str]) -> int:
        """Positions that words take in a batch."""
        return len(words) if self.subwords is None else self.subwords.positions(words)

    def _windows(self, row: int, words: Sequence[str]) -> Iterator[SlidingWindow]:
        """The whole sentence, or overlapping windows if it is longer than `window`."""
        length = len(words)
        if self.subwords is not None:
            margin = min(MARGIN, self.window // 4)
            for part in self.subwords.windows(words, self.window, margin):
                yield SlidingWindow(row, *part)
            return
        if length <= self.window:
            if length:
                yield SlidingWindow(row, 0, length, 0, length)
            return
        margin = min(MARGIN, self.window // 4)
        step = self.window - 2 * margin
        for first in range(0, length, step):
            last = min(first + step, length)
            yield SlidingWindow(row, max(0, first - margin), min(length, last + margin), first, last)

    def _labeled_text(
        self, text: str, inputs: Sequence[InputToken], predictions: Sequence[TokenPrediction]
    ) -> LabeledText:
        tokens = []
        for token, prediction in zip(inputs, predictions, strict=True):
            # a character that is not in the vocabulary stays as it is
            unchanged = self.label_type == "text" and token.text not in self.vocab
            label = text[token.start : token.end] if unchanged else prediction.label
            tokens.append(LabeledToken(token.text, token.start, token.end, label, prediction.probability))
        if self.label_type == "text":
            output = "".join(token.tag for token in tokens) if tokens else text
        else:
            output = " ".join(f"{token.text}/{token.tag}" for token in tokens)
        return LabeledText(text, tuple(tokens), output, self._spans(text, tokens))

    def _spans(self, text: str, tokens: Sequence[LabeledToken]) -> tuple[TextSpan, ...]:
        if not self.with_spans:
            return ()
        found = []
        for span in spans([token.tag for token in tokens]):
            words = tokens[span.start : span.end]
            start, end = words[0].start, words[-1].end
            least = min((word.probability for word in words if word.probability is not None), default=None)
            found.append(TextSpan(span.kind, text[start:end], start, end, least))
        return tuple(found)


class TaggerSentences(SentenceReader, ABC):
    """Sentence vectors of a tagger: the states of its encoder over the words of a text."""

    @abstractmethod
    def predictor(self) -> LabelPredictor:
        """The predictor of the tagger."""

    def sentence_rows(self, texts: Sequence[str]) -> list[Any]:
        """The words of each text, as many as are read at once."""
        predictor = self.predictor()
        return [predictor.first_window([token.text for token in predictor.tokenize(text)]) for text in texts]

    def sentence_memory(self, rows: Sequence[Any]) -> Memory:
        encoder = self.inference_module.encoder
        found: Memory = encoder(self.predictor().collate(rows).to(module_device(encoder)))
        return found
