"""API endpoints of word embeddings: nearest neighbors, analogies and a map, for every model with a word embedding."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from starlette.responses import JSONResponse, Response

import regard
from regard.errors import ConfigError, DataError
from regard.look.tokens import make_visible
from regard.studio.errors import ApiError
from regard.studio.input_limits import MAX_CHARACTERS
from regard.studio.model_store import ModelEntry
from regard.studio.request import ApiRequest
from regard.studio.service import Studio
from regard.tasks.vectors.predict import embedding_tables
from regard.tasks.vectors.word_table import BLANKS, Neighbor, WordTable

MAX_NEIGHBORS, MAX_MAP_WORDS = 100, 200
"""words per list of neighbors, and per map"""
FIRST_RANK, DEFAULT_MAP_WORDS = 100, 40
"""frequency rank of the first word, and number of words, of a map for which none are named"""
MIN_COMPLETE = 20
"""words that a map has before shorter ones are added"""
Tables = Mapping[str, WordTable]
"""by side: source and target embeddings"""


@dataclass(frozen=True)
class EmbeddingTable:
    """The embedding table of one side of a model."""

    entry: ModelEntry
    step: int
    tables: Tables
    side: str

    @property
    def table(self) -> WordTable:
        """The table of the side."""
        return self.tables[self.side]

    def to_dict(self) -> dict[str, Any]:
        """Model, side and size."""
        size, width = self.table.vectors.shape
        model = {"id": self.entry.id, "name": self.entry.name, "step": self.step}
        return {"model": model, "side": self.side, "sides": list(self.tables), "size": size, "width": width}


class EmbeddingsApi:
    """The endpoints; tables of open models are cached."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._cache: WeakKeyDictionary[regard.Model, Tables] = WeakKeyDictionary()

    def show_neighbors(self, studio: Studio, request: ApiRequest) -> Response:
        """The words with the largest cosine similarity to a word."""
        embedding, word, count = self._find_table(studio, request), _text(request, "word"), _count(request)
        with _api_errors():
            neighbors = embedding.table.neighbors(word, count)
            known_word = embedding.table.display_word(embedding.table.index(word))
        answer = {**embedding.to_dict(), **word_dict(known_word), "neighbors": neighbor_dicts(neighbors)}
        return JSONResponse(answer)

    def show_analogy(self, studio: Studio, request: ApiRequest) -> Response:
        """The words nearest to a sum of words, such as king - man + woman."""
        embedding, text, count = self._find_table(studio, request), _text(request, "sum"), _count(request)
        with _api_errors():
            neighbors = embedding.table.analogy(text, count)
        return JSONResponse({**embedding.to_dict(), "sum": text, "neighbors": neighbor_dicts(neighbors)})

    def show_map(self, studio: Studio, request: ApiRequest) -> Response:
        """PCA map of words; if none are named, of some frequent ones."""
        embedding = self._find_table(studio, request)
        words: Sequence[str] = _text(request, "words").split() if request.query.get("words", "").strip() else ()
        if len(words) > MAX_MAP_WORDS:
            message = f"{len(words):,} words; a map has at most {MAX_MAP_WORDS}"
            raise ApiError(413, "too-many", message, "name fewer words")
        with _api_errors():
            word_map = embedding.table.pca_map(words or default_words(embedding.table))
        rows = zip(word_map.words, word_map.points.tolist(), strict=True)
        points = [{**word_dict(word), "x": x, "y": y} for word, (x, y) in rows]
        explained = {"explained_variance": word_map.explained_variance}
        return JSONResponse({**embedding.to_dict(), "words": points, **explained})

    def _find_table(self, studio: Studio, request: ApiRequest) -> EmbeddingTable:
        entry = studio.model_store.entry(request.path["model"])
        with self._lock:  # a page sends several requests at once: the first one opens the model for all
            model = studio.model_store.open(entry)
            if model not in self._cache:
                self._cache[model] = load_tables(model)
            tables = self._cache[model]
        side = request.query.get("side") or next(iter(tables))
        if side not in tables:
            message = f"side: this model has {' and '.join(tables)}, got {side[:20]!r}"
            raise ApiError(422, "no-side", message, "leave it out")
        return EmbeddingTable(entry, model.step, tables, side)


def load_tables(model: regard.Model) -> Tables:
    """The embedding tables of a model by side; an error if it has none or if they are not finite."""
    try:
        tables = embedding_tables(model)
    except ConfigError as error:
        raise ApiError(422, "no-words", str(error), "choose a model that reads words") from None
    if not all(np.isfinite(table.vectors).all() for table in tables.values()):
        message = "the model's weights are not finite (NaN or infinity)"
        raise ApiError(422, "not-finite", message, "its training has diverged; choose another model")
    return tables


def default_words(table: WordTable) -> list[str]:
    """Whole words after the most frequent ones, without fragments of words; empty if there are too few."""
    words = complete_words(table)
    start = FIRST_RANK if len(words) >= FIRST_RANK + DEFAULT_MAP_WORDS else 0
    indices = words[start : start + DEFAULT_MAP_WORDS]
    return [table.display_word(index) for index in indices] if len(indices) >= 3 else []


def complete_words(table: WordTable) -> list[int]:
    """Indices of words that are probably not the beginning of longer ones.

    Of subwords such as "qu" and "que", one that others continue is left out, and so are those of less than four
    letters, as far as MIN_COMPLETE others are left.

    >>> table = WordTable((" qu", " que", " quel", " maison", " jardin"), np.eye(5))
    >>> [table.words[i] for i in complete_words(table)]
    [' quel', ' maison', ' jardin']
    """
    if not table.has_subwords:
        return table.whole_words
    plain = {i: table.words[i].lstrip("".join(BLANKS)).lower() for i in table.whole_words}
    beginnings = {word[:end] for word in plain.values() for end in range(1, len(word))}
    complete = [i for i, word in plain.items() if word not in beginnings]
    for words in ([i for i in complete if len(plain[i]) > 3], complete):
        if len(words) >= MIN_COMPLETE:
            return words
    return complete if len(complete) >= 3 else table.whole_words


def word_dict(word: str) -> dict[str, str]:
    """A word of the table, and its label: without the blank that begins it, other white space made visible."""
    return {"word": word, "label": make_visible(word.removeprefix(" ") or word)}


def neighbor_dicts(neighbors: Sequence[Neighbor]) -> list[dict[str, Any]]:
    """Words with their cosine similarities."""
    return [{**word_dict(word), "cosine": cosine} for word, cosine in neighbors]


@contextmanager
def _api_errors() -> Iterator[None]:
    """Turn the errors of a word table into API errors."""
    try:
        yield
    except DataError as error:
        raise ApiError(404, "unknown-word", str(error), "choose another word") from None
    except ConfigError as error:
        raise ApiError(422, "bad-request", str(error), "fix the request") from None


def _text(request: ApiRequest, name: str) -> str:
    text = request.query.get(name, "")
    if not text:
        raise ApiError(422, "no-text", f"{name}: expected words, got nothing", f"add {name}=")
    if len(text) > MAX_CHARACTERS:
        message = f"{name}: {len(text):,} characters; the limit is {MAX_CHARACTERS:,}"
        raise ApiError(413, "too-long", message, "shorten it")
    return text


def _count(request: ApiRequest) -> int:
    count = request.integer("count", 10)
    if not 1 <= count <= MAX_NEIGHBORS:
        message = f"count: expected 1 to {MAX_NEIGHBORS}, got {count}"
        raise ApiError(422, "bad-request", message, "request fewer words")
    return count
