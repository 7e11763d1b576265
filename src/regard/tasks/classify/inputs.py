"""Input encoders of a classifier: a text as token ids, or a table row as standardized numbers."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch

from regard.data import ColumnKind, RowLengths, Shards
from regard.data.scaling import StandardScaler
from regard.data.splitmix import splitmix64_uniform
from regard.data.tables import csv_rows, is_number, parse_number, sniff_delimiter
from regard.errors import DataError, ModelError, at_line
from regard.files import parse_json, write_text_atomically
from regard.manifest import read_kept
from regard.sequence import Tokens
from regard.spaces import FactorizedWords, Values, Words
from regard.tasks.base import check_lines
from regard.tasks.classify.pairs import SEPARATORS, split_pair, truncated_lengths
from regard.text import Tokenizer
from regard.text.token_rows import TokenStrings, tokenizer_strings

COLUMN = "text"
"""Shard column of the encoded inputs."""
VECTORS = "vectors.json"


@dataclass(frozen=True)
class EncodedInput:
    """One encoded text or row, and how many tokens were cut off."""

    row: Any
    """token ids, numbers or pixels; empty for an empty line"""
    truncated: int
    warning: str = ""
    """what a user should know about how it was read"""


class InputEncoder(ABC):
    """Encodes the inputs of a classifier, and batches them."""

    unit: str
    """what one example is, in the plural"""

    @abstractmethod
    def space(self) -> Any:
        """What the model reads: an input space, or the shape of images (Pixels)."""

    @abstractmethod
    def column(self) -> ColumnKind:
        """Kind of the shard column that holds the rows."""

    @abstractmethod
    def summary(self) -> str:
        """The vocabulary or the columns, in a few words."""

    @abstractmethod
    def encode(self, lines: Sequence[str], first_line: int = 1) -> list[EncodedInput]:
        """Encode lines; `first_line` is the number of the first, for messages."""

    @abstractmethod
    def lengths(self, shards: Shards) -> RowLengths:
        """Positions that each row takes in a batch."""

    @abstractmethod
    def collate(self, rows: Sequence[Any]) -> Tokens:
        """Encoded rows as one padded batch."""

    @abstractmethod
    def token_texts(self, row: Sequence[Any]) -> list[str]:
        """The text of each position, for traces and pictures."""

    def batch_length(self, row: Sequence[Any]) -> int:
        """Positions that a row takes in a batch of predictions; 0: it is empty and left out."""
        return len(row)

    def trace_facts(self) -> dict[str, Any]:
        """Facts for a trace: what a view needs to show the input."""
        return {}

    def with_header(self, line: str) -> InputEncoder | None:
        """The encoder of the lines under this header; None if the line is no header."""
        return None

    def collate_augmented(self, rows: Sequence[Any], seeds: np.ndarray, word_dropout: float) -> Tokens:
        """Rows as a batch of training, varied at random by one seed per row; numbers are not varied."""
        return self.collate(rows)


@dataclass(frozen=True)
class TextLengths:
    """Lengths of texts, plus the special tokens around them."""

    shards: Shards
    extra: int

    def __len__(self) -> int:
        return len(self.shards)

    def __getitem__(self, rows: np.ndarray, /) -> np.ndarray:
        return self.shards.lengths(COLUMN)[rows] + self.extra


@dataclass(frozen=True)
class VectorCoverage:
    """How many words of the vocabulary have a pretrained vector: what vectors.json holds."""

    width: int
    found: int
    words: int

    def save(self, folder: Path) -> None:
        write_text_atomically(folder / VECTORS, json.dumps(asdict(self), indent=1) + "\n")

    @classmethod
    def load(cls, folder: Path) -> VectorCoverage:
        try:
            found = parse_json(read_kept(folder / VECTORS))
            return cls(int(found["width"]), int(found["found"]), int(found["words"]))
        except (OSError, ValueError, KeyError, TypeError):
            raise ModelError(f"{folder / VECTORS} cannot be read: expected the width of the word vectors") from None


@dataclass(frozen=True)
class TextInput(InputEncoder):
    """Encodes a text as token ids."""

    tokenizer: Tokenizer
    max_tokens: int
    """the most tokens of a text that are kept"""
    keep: Literal["beginning", "end"] = "beginning"
    """which tokens of a longer text are kept"""
    add_sos: bool = False
    """whether to put <SOS> in front, whose state is then pooled, as BERT's [CLS]"""
    add_eos: bool = False
    """whether to put <EOS> at the end, as BERT's [SEP]"""
    vectors: VectorCoverage | None = None
    """the pretrained word vectors, if the embedding starts from them and has their width"""
    kind: str = "word"
    """the tokenizer's kind, for summaries"""
    unit = "texts"

    def space(self) -> Words:
        size = self.tokenizer.size
        return Words(size) if self.vectors is None else FactorizedWords(size, table=self.vectors.width)

    def token_strings(self) -> TokenStrings:
        """The vocabulary in the form in which vocabularies are compared."""
        return tokenizer_strings(self.tokenizer)

    def column(self) -> ColumnKind:
        return self.tokenizer.size

    def summary(self) -> str:
        return f"tokens  {self.kind} {self.tokenizer.size:,}"

    def encode(self, lines: Sequence[str], first_line: int = 1) -> list[EncodedInput]:
        check_lines(lines, first_line)
        return [self.truncate(ids) for ids in self.tokenizer.encode_batch([text.strip() for text in lines])]

    def encode_whole(self, text: str) -> Sequence[Any]:
        """The row of one text as it is, white space at its ends included, of which no token is left out."""
        return self.tokenizer.encode(text).ids

    def read_whole(self, text: str) -> tuple[Tokens, list[tuple[int, int]]]:
        """A whole text as one row, and the characters of each position; (0, 0) at special tokens."""
        before, after = ([(0, 0)] * len(special) for special in (self.prefix, self.suffix))
        return self.collate([self.encode_whole(text)]), [*before, *self.tokenizer.encode(text).offsets, *after]

    def truncate(self, ids: list[int]) -> EncodedInput:
        """The tokens of a text that are kept."""
        kept = ids[: self.max_tokens] if self.keep == "beginning" else ids[-self.max_tokens :]
        return EncodedInput(kept, len(ids) - len(kept))

    def lengths(self, shards: Shards) -> TextLengths:
        return TextLengths(shards, self.add_sos + self.add_eos)

    def collate(self, rows: Sequence[Any]) -> Tokens:
        return Tokens.pad(rows, before=self.prefix, after=self.suffix)

    @property
    def prefix(self) -> tuple[int, ...]:
        """Special tokens in front of each text."""
        return (self.tokenizer.sos,) if self.add_sos else ()

    @property
    def suffix(self) -> tuple[int, ...]:
        """Special tokens at the end of each text."""
        return (self.tokenizer.eos,) if self.add_eos else ()

    def token_texts(self, row: Sequence[Any]) -> list[str]:
        return self.tokenizer.tokens([*self.prefix, *row, *self.suffix])

    def collate_augmented(self, rows: Sequence[Any], seeds: np.ndarray, word_dropout: float) -> Tokens:
        return self.collate(self.drop_words(rows, seeds, word_dropout) if word_dropout else rows)

    def drop_words(self, rows: Sequence[Any], seeds: np.ndarray, share: float) -> list[np.ndarray]:
        """Word dropout: a share of the tokens becomes unknown, drawn from one seed per row."""
        unknown = self.tokenizer.unk if self.tokenizer.unk >= 0 else self.tokenizer.pad  # GPT-2 has no unknown token
        return [
            np.where(splitmix64_uniform(seed, len(row)) < share, unknown, row)
            for row, seed in zip(rows, seeds, strict=True)
        ]


@dataclass(frozen=True)
class PairInput(TextInput):
    """Encodes a pair of texts as [CLS] first [SEP] second [SEP], with segments 0 and 1.

    A row holds the first text, the separator and the second. No text contains the separator's id, since special tokens
    are never read from a text.
    """

    unit = "pairs"

    def encode(self, lines: Sequence[str], first_line: int = 1) -> list[EncodedInput]:
        check_lines(lines, first_line)
        pairs = []
        for number, line in enumerate(lines, first_line):
            with at_line(number) as where:
                pairs.append(split_pair(line, where))
        ids = self.tokenizer.encode_batch([half for pair in pairs for half in pair or ("", "")])
        return [self.truncate_pair(*both) for both in zip(ids[::2], ids[1::2], strict=True)]

    def truncate_pair(self, first: list[int], second: list[int]) -> EncodedInput:
        """The tokens of a pair that are kept, with the separator between them; none if a text has no token."""
        if not (first and second):
            return EncodedInput([], 0)
        halves = []
        for ids, most in zip((first, second), truncated_lengths(len(first), len(second), self.max_tokens), strict=True):
            halves.append(replace(self, max_tokens=most).truncate(ids))
        row = [*halves[0].row, self.tokenizer.eos, *halves[1].row]
        return EncodedInput(row, halves[0].truncated + halves[1].truncated)

    def collate(self, rows: Sequence[Any]) -> Tokens:
        tokens = super().collate(rows)
        ends = (tokens.data == self.tokenizer.eos).long()
        # the separator itself belongs to the first text
        second_BL = (ends.cumsum(1) - ends > 0) & tokens.mask
        return replace(tokens, segments=second_BL.to(torch.long))

    def drop_words(self, rows: Sequence[Any], seeds: np.ndarray, share: float) -> list[np.ndarray]:
        eos, dropped = self.tokenizer.eos, super().drop_words(rows, seeds, share)
        return [np.where(np.asarray(row) == eos, eos, found) for row, found in zip(rows, dropped, strict=True)]


@dataclass(frozen=True)
class SingleOrPairInput(PairInput):
    """Encodes a line as a pair where it has a tab or [SEP], otherwise as one text.

    So a classifier is read that was trained elsewhere: nothing in its folder says which of the two it was trained on.
    """

    unit = "texts"

    def encode(self, lines: Sequence[str], first_line: int = 1) -> list[EncodedInput]:
        check_lines(lines, first_line)
        pairs = {i for i, line in enumerate(lines) if any(sign in line.strip() for sign in SEPARATORS)}
        singles = iter(TextInput.encode(self, [line for i, line in enumerate(lines) if i not in pairs]))
        shorter = replace(self, max_tokens=self.max_tokens - 1)  # a pair has one separator more
        return [
            PairInput.encode(shorter, [line], first_line + i)[0] if i in pairs else next(singles)
            for i, line in enumerate(lines)
        ]


@dataclass(frozen=True)
class TableInput(InputEncoder):
    """Encodes a table row as numbers standardized by the training data, all at one position.

    >>> row = TableInput(StandardScaler(("width", "height"), (1.0, 0.0), (1.0, 2.0)))
    >>> row.encode(["3,4", ""])[0].row, row.with_header("height,width,kind").encode(["4,3,rose"])[0].row
    ([2.0, 2.0], [2.0, 2.0])
    """

    scaler: StandardScaler
    positions: tuple[int, ...] = ()
    """of each column, its position in a line; (): in order, and no other columns"""
    line_width: int = 0
    """cells per line; 0: one per column"""
    unit = "rows"

    def space(self) -> Values:
        return Values(len(self.scaler.names))

    def column(self) -> ColumnKind:
        return "float32"

    def summary(self) -> str:
        names = self.scaler.names
        return f"columns  {', '.join(names[:6])}{', ...' if len(names) > 6 else ''}"

    def with_header(self, line: str) -> TableInput | None:
        header = [cell.strip() for cell in _cells(line, "line 1")]
        if not header or any(map(is_number, header)):
            return None
        missing = [name for name in self.scaler.names if name not in header]
        if missing:
            raise DataError(
                f"line 1: there is no column {missing[0]} (columns: {', '.join(header)}); this model reads "
                f"{', '.join(self.scaler.names)}"
            )
        positions = tuple(header.index(name) for name in self.scaler.names)
        return replace(self, positions=positions, line_width=len(header))

    def encode(self, lines: Sequence[str], first_line: int = 1) -> list[EncodedInput]:
        encoded = []
        for number, line in enumerate(lines, first_line):
            with at_line(number) as where:
                encoded.append(self.encode_line(line, where))
        return encoded

    def encode_line(self, line: str, where: str) -> EncodedInput:
        """Encode one line; an empty line gives an empty row."""
        names, cells = self.scaler.names, _cells(line, where) if line.strip() else []
        if not cells:
            return EncodedInput([], 0)
        if len(cells) != (self.line_width or len(names)):
            raise DataError(
                f"{where}: expected {self.line_width or len(names)} columns, found {len(cells)}; this model reads "
                f"{', '.join(names)}"
            )
        positions = self.positions or range(len(names))
        values = [parse_number(cells[i], name, where) for i, name in zip(positions, names, strict=True)]
        return EncodedInput(self.scaler.transform(np.array([values]))[0].tolist(), 0)

    def lengths(self, shards: Shards) -> RowLengths:
        return np.ones(len(shards), np.int64)

    def collate(self, rows: Sequence[Any]) -> Tokens:
        numbers = np.asarray(rows, np.float32).reshape(len(rows), 1, len(self.scaler.names))
        return Tokens.full(torch.from_numpy(numbers))

    def token_texts(self, row: Sequence[Any]) -> list[str]:
        return ["row"]


def _cells(line: str, where: str) -> list[str]:
    return next(csv_rows([line], where, sniff_delimiter(line) or ","), (0, []))[1]
