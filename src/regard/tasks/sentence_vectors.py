"""Sentence vectors: the states of a model over a text, pooled to one vector; and search by cosine similarity.

Any model with an encoder or a language model has them: it turns texts into rows (`sentence_rows`) and rows into states
(`sentence_memory`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor

from regard.data.lines import text_list
from regard.device import module_device
from regard.errors import ConfigError, DataError, LineError
from regard.sequence import Memory, Tokens, first, last, mean
from regard.tasks.batching import check_lines, length_batches

Pooling = Literal["mean", "first", "last"]
POOLS: dict[str, Callable[[Memory], Tensor]] = {"mean": mean, "first": first, "last": last}
MAX_POSITIONS = 4096
"""positions of a text that a model without a fixed context reads, which bounds the memory"""
BATCH_POSITIONS = 8192
"""positions per batch, padding included"""
MAX_ROWS = 256
"""texts per batch"""
CHUNK = 1024
"""lines of a corpus that are encoded together"""


class SentenceReader:
    """What sentence vectors need of a trained model: its texts as rows, and the states over rows."""

    inference_module: Any
    recipe: Any

    @property
    def reads_left_to_right(self) -> bool:
        """Whether the state at a position has seen only the positions before it."""
        return getattr(self.recipe.model, "receptive_field", "full") == "left"

    @property
    def sentence_limit(self) -> int | None:
        """Most positions of a text; None: any number."""
        limit: int | None = self.recipe.model.position_limit
        return limit

    def sentence_rows(self, texts: Sequence[str]) -> list[Any]:
        """Each text as the encoder or language model reads it; the length of a row is its number of positions."""
        raise no_sentence_vectors(self.recipe.kind())

    def sentence_memory(self, rows: Sequence[Any]) -> Memory:
        """The states over a batch of such rows."""
        module = self.inference_module
        found: Memory = module.encoder(Tokens.pad(rows).to(module_device(module)))
        return found

    def sentence_vectors(self, texts: Sequence[str], pool: Pooling = "mean") -> np.ndarray:
        """(N, D): a vector for each text: the mean of its token states, or the first or last of them."""
        return SentenceEncoder(self, pool).encode(text_list(texts))

    def search(self, query: str, texts: Sequence[str], k: int = 5, pool: Pooling = "mean") -> list[SentenceMatch]:
        """The k texts most similar to a query, by the cosine of their sentence vectors."""
        return search_sentences(SentenceEncoder(self, pool), query, text_list(texts), k)[0]


class SentenceMatch(NamedTuple):
    """A line of a corpus and its cosine similarity to a query."""

    cosine: float
    line: int
    text: str


@dataclass(frozen=True)
class SentenceEncoder:
    """Encodes texts as vectors by a model's states: their mean over the real positions, the first, or the last."""

    model: SentenceReader
    pool: Pooling = "mean"

    def __post_init__(self) -> None:
        if self.pool not in POOLS:
            raise ConfigError(f'pool = "{self.pool}": expected one of {", ".join(POOLS)}')
        if self.pool == "first" and self.model.reads_left_to_right:
            raise ConfigError(
                "--pool first: the first state of a model that reads from left to right has seen one token only; use "
                "mean or last"
            )

    @torch.no_grad()
    def encode(self, texts: Sequence[str], first_line: int = 1) -> np.ndarray:
        """(N, D) float32; a text without a token has no vector and raises LineError."""
        vectors, empty = self.encode_known(texts, first_line)
        if len(empty):
            line = first_line + int(empty[0])
            raise LineError(f"line {line}: the text is empty; a sentence vector needs a word", line)
        return vectors

    @torch.no_grad()
    def encode_known(self, texts: Sequence[str], first_line: int = 1) -> tuple[np.ndarray, np.ndarray]:
        """(N, D) float32, with zeros for texts without a token; and the numbers of these."""
        check_lines(texts, first_line)
        limit = self.model.sentence_limit or MAX_POSITIONS
        rows = [row[:limit] for row in self.model.sentence_rows([text.strip() for text in texts])]
        rows = [row if text.strip() else row[:0] for row, text in zip(rows, texts, strict=True)]
        found: dict[int, np.ndarray] = {}
        for chosen in length_batches([len(row) for row in rows], BATCH_POSITIONS, MAX_ROWS):
            memory = self.model.sentence_memory([rows[i] for i in chosen])
            pooled = POOLS[self.pool](memory).float().cpu().numpy()
            found |= zip(chosen, pooled, strict=True)
        empty = np.array([i for i in range(len(rows)) if i not in found], np.int64)
        if not found:
            return np.zeros((len(rows), 0), np.float32), empty
        width = len(next(iter(found.values())))
        zeros = np.zeros(width, np.float32)
        return np.stack([found.get(i, zeros) for i in range(len(rows))]), empty


def search_sentences(
    encoder: SentenceEncoder,
    query: str,
    lines: Iterable[str],
    count: int,
    progress: Callable[[int], object] = lambda done: None,
) -> tuple[list[SentenceMatch], int]:
    """The `count` lines nearest to a query by cosine similarity, the nearest first, and how many lines had a vector.

    Lines are read in chunks, and only the nearest are kept. Blank lines have no vector.
    """
    if count < 1:
        raise ConfigError(f"k = {count} must be at least 1")
    try:
        wanted = unit_vectors(encoder.encode([query]))[0]
    except LineError:
        raise DataError("the query is empty; give a text to search for") from None
    best: list[SentenceMatch] = []
    known = done = 0
    for chunk in _chunks(lines):
        vectors, empty = encoder.encode_known(chunk, done + 1)
        if vectors.shape[1]:
            cosines = unit_vectors(vectors) @ wanted
            cosines[empty] = -np.inf
            order = np.argsort(-cosines, kind="stable")[:count]
            best += [SentenceMatch(float(cosines[i]), done + int(i) + 1, chunk[i]) for i in order if i not in empty]
            best = sorted(best, key=lambda match: (-match.cosine, match.line))[:count]
        known, done = known + len(chunk) - len(empty), done + len(chunk)
        progress(done)
    return best, known


def unit_vectors(vectors: np.ndarray) -> np.ndarray:
    """Vectors of length 1; a zero vector stays one.

    >>> unit_vectors(np.array([[3.0, 4.0], [0.0, 0.0]])).tolist()
    [[0.6, 0.8], [0.0, 0.0]]
    """
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0)


def _chunks(lines: Iterable[str]) -> Iterator[list[str]]:
    stream = iter(lines)
    while chunk := list(islice(stream, CHUNK)):
        yield chunk


def no_sentence_vectors(task: str) -> ConfigError:
    """The error for a model that reads no sentences."""
    return ConfigError(
        f"a model that was trained to {task} on these data reads no sentences, so it has no sentence vectors; use a "
        "model of texts"
    )
