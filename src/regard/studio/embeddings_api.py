"""What the page asks about words as points: neighbours, sums and a map, of any model that reads or says words."""

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
from regard.look.tokens import visible
from regard.studio.errors import Refusal
from regard.studio.input_limits import CHARACTERS
from regard.studio.model_store import Entry
from regard.studio.request import Asked
from regard.studio.service import Studio
from regard.tasks.vectors.embeddings import tables_of
from regard.text.word_table import Near, WordTable

NEAR = 100
"""words of one list, at most"""
DRAWN = 200
"""words of one map, at most"""
FIRST, SHOWN = 100, 40
"""where the words begin that are drawn if none are named, past the commonest, and how many they are"""
Tables = Mapping[str, WordTable]
"""by side: what a model reads, and what it says"""


@dataclass(frozen=True)
class Found:
    """The table that a request is about, and whose it is.

    >>> from pathlib import Path
    >>> entry, table = Entry("ab12", "sea", Path("runs/sea"), {}), WordTable(("sea", "sky"), np.ones((2, 8)))
    >>> Found(entry, 300, {"source": table}, "source").told()["size"]
    2
    """

    entry: Entry
    step: int
    tables: Tables
    side: str

    @property
    def table(self) -> WordTable:
        """The table of the side."""
        return self.tables[self.side]

    def told(self) -> dict[str, Any]:
        """Which table it is, for the page."""
        size, width = self.table.numbers.shape
        model = {"id": self.entry.id, "name": self.entry.name, "step": self.step}
        return {"model": model, "side": self.side, "sides": list(self.tables), "size": size, "width": width}


class WordPoints:
    """The tables of the models that are open: a second question about a model is answered at once.

    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as cache:
    ...     WordPoints().show_map(Studio(Path("nowhere"), Path(cache)), Asked({"model": "ab12"}, {}, {}))
    Traceback (most recent call last):
    regard.studio.errors.Refusal: there is no such model any more
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: WeakKeyDictionary[regard.Model, Tables] = WeakKeyDictionary()

    def show_neighbours(self, studio: Studio, asked: Asked) -> Response:
        """The words that point most nearly the same way as one."""
        found, word, count = self._found(studio, asked), _text(asked, "word"), _count(asked)
        with _told():
            near = found.table.neighbours(word, count)
            asked_for = found.table.spelled(found.table.place(word))
        return JSONResponse({**found.told(), **named(asked_for), "near": listed(near)})

    def show_analogy(self, studio: Studio, asked: Asked) -> Response:
        """The words nearest to a sum of words."""
        found, text, count = self._found(studio, asked), _text(asked, "sum"), _count(asked)
        with _told():
            near = found.table.calculate(text, count)
        return JSONResponse({**found.told(), "sum": text, "near": listed(near)})

    def show_map(self, studio: Studio, asked: Asked) -> Response:
        """Words on a plane; none named: some that are neither the commonest nor rare."""
        found = self._found(studio, asked)
        words: Sequence[str] = _text(asked, "words").split() if asked.query.get("words", "").strip() else ()
        if len(words) > DRAWN:
            told = f"{len(words):,} words; at most {DRAWN} are drawn"
            raise Refusal(413, "too-many", told, "name fewer words")
        with _told():
            drawn = found.table.map(words or some(found.table))
        rows = zip(drawn.words, drawn.points.tolist(), strict=True)
        places = [{**named(word), "x": x, "y": y} for word, (x, y) in rows]
        return JSONResponse({**found.told(), "words": places, "shares": drawn.shares})

    def _found(self, studio: Studio, asked: Asked) -> Found:
        entry = studio.library.entry(asked.path["model"])
        with self._lock:  # one page asks several questions at once: the first opens the model for all of them
            model = studio.library.open(entry)
            if model not in self._kept:
                self._kept[model] = tables(model)
            kept = self._kept[model]
        side = asked.query.get("side") or next(iter(kept))
        if side not in kept:
            told = f"side: this model has {' and '.join(kept)}, got {side[:20]!r}"
            raise Refusal(422, "no-side", told, "leave it out")
        return Found(entry, model.step, kept, side)


def tables(model: regard.Model) -> Tables:
    """The tables of words of a model, by side; a model without words is refused, and one whose numbers are lost."""
    try:
        found = tables_of(model)
    except ConfigError as error:
        raise Refusal(422, "no-words", str(error), "choose a model that reads words") from None
    if not all(np.isfinite(table.numbers).all() for table in found.values()):
        told = "the model's numbers are not finite any more (NaN or infinity)"
        raise Refusal(422, "not-finite", told, "its training has diverged; choose another model")
    return found


def some(table: WordTable) -> list[str]:
    """Words for a first look: whole ones, after the very commonest; none: the table's own choice.

    >>> some(WordTable(("the", ".", "sea", "42", "sky"), np.eye(5)))
    ['the', 'sea', 'sky']
    """
    start = FIRST if len(table.whole) >= FIRST + SHOWN else 0
    chosen = table.whole[start : start + SHOWN]
    return [table.spelled(at) for at in chosen] if len(chosen) >= 3 else []


def named(word: str) -> dict[str, str]:
    """A word as the table has it, and as people may see it.

    >>> named(" sea")
    {'word': ' sea', 'shown': '␣sea'}
    """
    return {"word": word, "shown": visible(word)}


def listed(near: Sequence[Near]) -> list[dict[str, Any]]:
    """Words with their cosines.

    >>> listed([Near("sea", 0.5)])
    [{'word': 'sea', 'shown': 'sea', 'cosine': 0.5}]
    """
    return [{**named(word), "cosine": cosine} for word, cosine in near]


@contextmanager
def _told() -> Iterator[None]:
    """What a table says of a word or a sum that is none, as the page reads it."""
    try:
        yield
    except DataError as error:
        raise Refusal(404, "unknown-word", str(error), "choose another word") from None
    except ConfigError as error:
        raise Refusal(422, "bad-request", str(error), "mend the request") from None


def _text(asked: Asked, name: str) -> str:
    text = asked.query.get(name, "")
    if not text:
        raise Refusal(422, "no-text", f"{name}: expected words, got nothing", f"add {name}=")
    if len(text) > CHARACTERS:
        told = f"{name}: {len(text):,} characters; at most {CHARACTERS:,} are read"
        raise Refusal(413, "too-long", told, "shorten it")
    return text


def _count(asked: Asked) -> int:
    count = asked.whole("count", 10)
    if not 1 <= count <= NEAR:
        raise Refusal(422, "bad-request", f"count: expected 1 to {NEAR}, got {count}", "ask for fewer words")
    return count
