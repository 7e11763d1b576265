"""Preparation of the generate task: running text becomes one long row of ids, a series one long row of numbers.

Training predicts the next token at every position of a window at once: the window "This" is read as "Thi", and the
targets are "his".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from regard.config import plain
from regard.data import ShardWriter
from regard.data.scaling import SCALE_FILE, StandardScaler
from regard.data.texts import Piece, TextSource
from regard.errors import DataError
from regard.progress import Progress
from regard.tasks.generate.sources import NumberFiles
from regard.tasks.init_recipe import load_pretrained_tokenizer
from regard.text import Tokenizer, TokenizerConfig
from regard.text.tokenizer_training import TRAIN_CHARACTERS

CHUNK = 1 << 16
"""Characters that are tokenized at once: memory stays small, however long a text is"""
BATCH = 16
"""Chunks that are tokenized together, on all cores"""
COLUMN = "text"


@dataclass(frozen=True)
class TextPreparation:
    """Trains a tokenizer and writes each split as one long row of ids."""

    data: TextSource
    text: TokenizerConfig
    artifacts: ClassVar[tuple[str, ...]] = ("tokenizer.json",)

    def identity(self) -> dict[str, Any]:
        return {"data": plain(self.data), "text": plain(self.text)}

    def run(self, folder: Path, progress: Progress) -> Mapping[str, Mapping[str, int]]:
        """Write tokenizer.json, and the ids of train and valid; returns texts, characters, bytes and tokens of each."""
        characters = sum(len(piece) for piece in self.data.pieces("train") if piece is not None)
        progress("tokenizer", 0, total=0)
        tokenizer = self._tokenizer(characters)
        counts = {}
        for split, total in (("train", characters), ("valid", 0)):
            counts[split] = Counter({"texts": 0, "characters": 0, "bytes": 0, "tokens": 0, "unknown": 0})
            with ShardWriter(folder / split, {COLUMN: tokenizer.size}) as writer:
                for ids in encode_text(self.data.pieces(split), tokenizer, counts[split]):
                    writer.append([(ids,)])
                    progress(f"encoding {split}", counts[split]["characters"], total=total)
        tokenizer.save(folder / "tokenizer.json")
        return counts

    def _tokenizer(self, characters: int) -> Tokenizer:
        """The tokenizer that text.tokenizer names, or one that is trained on the training text."""
        if self.text.tokenizer is not None:
            return load_pretrained_tokenizer(self.text.tokenizer, "target", self.text.lowercase)
        stride = max(1, -(-characters // TRAIN_CHARACTERS))
        chunks = (chunk.text for chunk in chunk_text(self.data.pieces("train")))
        return Tokenizer.train(islice(chunks, 0, None, stride), self.text)


@dataclass(frozen=True)
class NumberPreparation:
    """Fits a scaler on the training data and writes the standardized numbers of each split."""

    data: NumberFiles
    artifacts = (SCALE_FILE,)

    def identity(self) -> dict[str, Any]:
        return {"data": plain(self.data)}

    def run(self, folder: Path, progress: Progress) -> Mapping[str, Mapping[str, int]]:
        """Write scale.json, and the numbers of train and valid; returns the number of positions of each."""
        counts, scaler = {}, None
        for split in ("train", "valid"):
            progress(f"reading {split}", 0, total=0)
            table = self.data.table(split)
            scaler = scaler or StandardScaler.fit(table)
            if table.names != scaler.names:
                raise DataError(
                    f"{split} has the columns {', '.join(table.names)}, train has {', '.join(scaler.names)}; "
                    "name those that both have in data.columns"
                )
            with ShardWriter(folder / split, {COLUMN: "float32"}) as writer:
                writer.append([(scaler.transform(table.values).reshape(-1),)])
            counts[split] = {"positions": len(table.values)}
        assert scaler is not None
        scaler.save(folder / SCALE_FILE)
        return counts


@dataclass(frozen=True)
class TextChunk:
    """Part of a text."""

    text: str
    begins: bool
    """whether it is the beginning of its text"""
    ends: bool
    """whether it is the end of its text"""


def chunk_text(pieces: Iterable[Piece], size: int = CHUNK) -> Iterator[TextChunk]:
    """Join pieces and cut them into chunks before a word, so that no token spans a cut.

    >>> [(chunk.text, chunk.ends) for chunk in chunk_text(["To be, or ", "not to be", None, "Ay", None], size=12)]
    [('To be, or not to', False), (' be', True), ('Ay', True)]
    """
    waiting, length, begins = [""], 0, True
    for piece in pieces:
        if piece is None:
            yield TextChunk("".join(waiting), begins, True)
            waiting, length, begins = [""], 0, True
            continue
        waiting.append(piece)
        length += len(piece)
        if length >= size:
            text = "".join(waiting)
            at = _last_word_boundary(text)
            yield TextChunk(text[:at], begins, False)
            waiting, length, begins = [text[at:]], len(text) - at, at == len(text)
    if length:
        yield TextChunk("".join(waiting), begins, False)


def _last_word_boundary(text: str) -> int:
    """The position of the last single space; a script without spaces is cut at the end."""
    at = text.rfind(" ", 1, len(text) - 1)
    while at > 0 and (text[at - 1].isspace() or text[at + 1].isspace()):
        at = text.rfind(" ", 1, at)
    return at if at > 0 else len(text)


def encode_text(
    pieces: Iterable[Piece], tokenizer: Tokenizer, counts: Counter[str] | None = None
) -> Iterator[list[int]]:
    """The ids of a text, many at a time, with <EOS> after each text that ends; updates `counts`.

    The end of a text counts as one character and as one byte, so that bits per character and per byte include <EOS>.
    """
    counts = Counter() if counts is None else counts
    # some tokenizers put a space before a text; in the middle of a text, that is the space before its first word
    spaced = "".join(tokenizer.encode("a").tokens).startswith(" ")
    chunks = chunk_text(pieces)
    while some := list(islice(chunks, BATCH)):
        rows = tokenizer.encode_batch([c.text[1:] if spaced and not c.begins else c.text for c in some])
        rows = [[*ids, tokenizer.eos] if c.ends else ids for c, ids in zip(some, rows, strict=True)]
        for c, ids in zip(some, rows, strict=True):
            counts["texts"] += c.ends
            counts["characters"] += len(c.text) + c.ends
            counts["bytes"] += len(c.text.encode()) + c.ends
            counts["tokens"] += len(ids)
            counts["unknown"] += ids.count(tokenizer.unk)
        yield list(chain.from_iterable(rows))


def encode_split(data: TextSource, split: str, tokenizer: Tokenizer) -> tuple[np.ndarray, Counter[str]]:
    """A split of raw text as one row of ids, and its counts."""
    counts: Counter[str] = Counter()
    ids = chain.from_iterable(encode_text(data.pieces(split), tokenizer, counts))
    return np.fromiter(ids, np.int64), counts
