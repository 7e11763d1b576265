"""Preparation of the fill task: a tokenizer with [MASK], sequences of consecutive sentences, word frequencies."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from regard.data import Shards, ShardWriter
from regard.data.texts import Piece, TextSource
from regard.errors import DataError
from regard.progress import Progress
from regard.tasks.fill.config import FillConfig
from regard.tasks.fill.sentences import SequenceRow, fill_sequences, split_sentences
from regard.tasks.generate.prepare import BATCH, TextPreparation, chunk_text
from regard.tasks.vectors.prepare import WordFrequencies
from regard.text import Tokenizer

COLUMN, SENTENCES, TEXT = "text", "sentences", "number"
"""shard columns: ids of a sequence, lengths of its sentences, number of its text"""
MAX_TEXTS = 1 << 32


@dataclass(frozen=True)
class FillPreparation(TextPreparation):
    """Trains a tokenizer, writes the sequences of train and valid, and counts the tokens of train."""

    task: FillConfig

    def identity(self) -> dict[str, Any]:
        return super().identity() | {"task": {"room": self.task.room}}

    def run(self, folder: Path, progress: Progress) -> Mapping[str, Mapping[str, int]]:
        """Write tokenizer.json, frequencies.json and both splits; returns texts, sequences and tokens of each."""
        characters = sum(len(piece) for piece in self.data.pieces("train") if piece is not None)
        progress("tokenizer", 0, total=0)
        tokenizer = self._tokenizer(characters).with_mask()
        tokenizer.save(folder / "tokenizer.json")
        counts = {}
        for split, total in (("train", characters), ("valid", 0)):
            write = partial(progress, f"encoding {split}", total=total)
            counts[split] = write_sequences(self.data, split, (tokenizer, self.task.room), folder / split, write)
        WordFrequencies.count(Shards.open(folder / "train").flat(COLUMN), tokenizer.size).save(folder)
        return counts


def write_sequences(
    data: TextSource, split: str, encoding: tuple[Tokenizer, int], folder: Path, progress: Callable[[int], object]
) -> Counter[str]:
    """Write the sequences of a split as shards; returns its counts. `encoding`: tokenizer, and tokens per sequence."""
    tokenizer, room = encoding
    counts = Counter(dict.fromkeys(("texts", "characters", "sequences", "tokens", "unknown"), 0))
    with ShardWriter(folder, {COLUMN: tokenizer.size, SENTENCES: room + 1, TEXT: MAX_TEXTS}) as writer:
        rows = read_sequences(data.pieces(split), tokenizer, room, counts)
        while some := list(islice(rows, 1000)):
            writer.append([(row.ids, row.sentences, [row.text]) for row in some])
            progress(counts["characters"])
    if not counts["sequences"]:
        raise DataError(f"{split}: there is no text in it; expected sentences")
    return counts


def read_sequences(
    pieces: Iterable[Piece], tokenizer: Tokenizer, room: int, counts: Counter[str]
) -> Iterator[SequenceRow]:
    """The sequences of a text; updates `counts`."""

    def sentences() -> Iterator[tuple[list[int], int]]:
        chunks, text = chunk_text(pieces), 0
        while some := list(islice(chunks, BATCH * BATCH)):
            found, numbers = list[str](), list[int]()
            for chunk in some:
                parts = split_sentences(chunk.text)
                found += parts
                numbers += [text] * len(parts)
                text += chunk.ends
                counts["texts"] += chunk.ends
                counts["characters"] += len(chunk.text)
            rows = tokenizer.encode_batch(found)
            counts["unknown"] += sum(row.count(tokenizer.unk) for row in rows)
            yield from ((row, number) for row, number in zip(rows, numbers, strict=True) if row)

    for row in fill_sequences(sentences(), room):
        counts["sequences"] += 1
        counts["tokens"] += len(row.ids)
        yield row
