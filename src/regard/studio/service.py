"""What the server does when it is asked: one pass of one model at a time, and its trace kept."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import regard
from regard import config
from regard.errors import RegardError
from regard.look import Recording, Saliency, shown
from regard.look.decoding_path import ANSWER
from regard.studio import example, interventions
from regard.studio.errors import Refusal
from regard.studio.exports import tensor_of
from regard.studio.input_limits import AT_ONCE, CHARACTERS, SERIES, checked, places
from regard.studio.interventions import (
    Change,
    HeadOff,
    NoMask,
    NoPositions,
    RowWritten,
    TokenSaid,
    acting,
    last_said,
    replacing,
)
from regard.studio.model_store import Entry, Library
from regard.studio.trace_diff import moved
from regard.studio.trace_store import Kept, Shelf
from regard.studio.unmasked_pass import reread

TOKENS, BEAM = 256, 16
"""the longest text in tokens, and the widest beam"""
WAITING = 8
"""requests that may wait for a model; the next is told to come back"""
MEMORY = 2.0
"""gigabytes that the recording of one pass may take while it is made"""
EXAMPLE = "example"
"""the number of the built-in trace"""
CHANGES = 64
"""changes of one trace"""


@dataclass(frozen=True)
class Wish:
    """A pass that somebody wants to see.

    >>> Wish("ab12", "je suis").changes
    ()
    """

    model: str
    text: str
    beam: int | None = None
    """None: as the model was told when it was trained"""
    changes: tuple[Change, ...] = ()
    """what if"""
    of: Kept | None = None
    """the trace of the model as it is, with which a changed one is compared"""


class Studio:
    """The models under a folder, the traces that were made of them, and the built-in example.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as cache:
    ...     Studio(Path("nowhere"), Path(cache)).info()["models"]
    0
    """

    def __init__(self, root: Path, cache: Path, recipe: str = example.RECIPE) -> None:
        self.root = root
        self.shelf = Shelf(cache / "traces")
        self.example = example.Example(cache, self._show_example, recipe)
        self.library = Library(root, self.example.ready)
        self.ending = threading.Event()
        """set when the server is about to end: whoever is being told something is told no more"""
        self._turn, self._waiting = threading.Lock(), threading.Semaphore(WAITING)

    def begin(self) -> None:
        """Something to look at, where there is nothing yet."""
        if self.example.ready() is None:
            if not any(entry.usable for entry in self.library.entries()):
                self.example.make()
        elif not self.shelf.has(EXAMPLE):
            threading.Thread(target=self._show_example, daemon=True).start()

    def info(self) -> dict[str, Any]:
        """What this server is and what it allows."""
        return {
            "regard": regard.__version__,
            "models": len(self.library.entries()),
            "example": self.example.table(),
            "limits": {"characters": CHARACTERS, "series": SERIES, "tokens": TOKENS, "beam": BEAM},
            "sentence": example.TEXT,
        }

    def tokenize(self, model: str, text: str) -> dict[str, Any]:
        """How a model cuts a text: tokens with the characters they stand for."""
        found = self.library.tokens(self.library.entry(model), checked(text))
        columns = zip(found.ids, found.tokens, found.offsets, strict=True)
        return {"tokens": [{"id": i, "token": t, "shown": shown(t), "start": a, "end": b} for i, t, (a, b) in columns]}

    def trace(self, wish: Wish, number: str | None = None) -> Kept:
        """Give a text to a model and keep all that happens inside."""
        entry = self.library.entry(wish.model)
        wish = replace(wish, text=checked(wish.text, entry.job))
        with self._one_at_a_time():
            model = self.library.open(entry)
            self._check(entry, model, wish)
            if wish.of is not None and wish.of.header["model"].get("step") != model.step:
                # it was trained on meanwhile: what is compared must have the same weights
                wish = replace(wish, of=self._made(entry, model, Wish(wish.model, wish.text, wish.beam)))
            return self._made(entry, model, wish, number)

    def _check(self, entry: Entry, model: regard.Model, wish: Wish) -> None:
        """Refuse what would be too long to draw or too large to keep."""
        cut = self.library.tokenizer(entry) is not None
        tokens = len(self.library.tokens(entry, wish.text).ids) if cut else places(model, wish.text)
        if tokens > TOKENS:
            raise Refusal(413, "too-long", f"the text has {tokens:,} tokens; at most {TOKENS} are shown", "shorten it")
        needed = appetite(entry.recipe, tokens, 1 if entry.job in AT_ONCE else wish.beam)
        if needed > MEMORY:
            message = (
                f"recording {tokens} tokens in this model would take about {needed:.1f} GB; at most {MEMORY:g} are used"
            )
            raise Refusal(413, "too-much", message, "shorten the text, or choose a smaller beam")

    def _made(self, entry: Entry, model: regard.Model, wish: Wish, number: str | None = None) -> Kept:
        """One pass, kept."""
        began = time.perf_counter()
        try:
            recording, answer = passed(model, wish)
        except RegardError as error:
            raise Refusal(422, "not-answered", str(error), "try another text or another model") from None
        kept = recording.condensed()
        told = {
            "model": {"id": entry.id, "name": entry.name, "step": model.step, **sized(model)},
            "kind": model.recipe.kind(),
            "text": wish.text,
            "answer": answer,
            "made": datetime.now(UTC).isoformat(timespec="seconds"),
            "seconds": round(time.perf_counter() - began, 4),
            "decode": {"beam": wish.beam},
            "can": interventions.possible(model, kept),
            "fork": forked(wish, kept),
        }
        return self.shelf.put(kept, told | kept.header(recording), number)

    def fork(self, number: str, change: Change) -> Kept:
        """The same text through the same model with one thing more changed."""
        kept = self.shelf.get(number)
        before, change = kept.header, checked_change(kept, change)
        old = before.get("fork")
        changes = (*(interventions.read(table) for table in (old["changes"] if old else ())), change)
        if len(changes) > CHANGES:
            raise Refusal(422, "bad-request", f"at most {CHANGES} things can be changed", "begin with the first trace")
        root = self.shelf.get(old["of"]) if old else kept
        wish = Wish(before["model"]["id"], before["text"], before["decode"]["beam"], changes, root)
        return self.trace(wish)

    def gradients(self, number: str, name: str | None) -> dict[str, Any]:
        """How much each word's loss depends on the state at each word, in the text that a trace is of."""
        with self._again(number, "no-gradients") as (model, before):
            with acting(model, before["decode"]["beam"], ()):
                reading = model.reading(before["text"])
            return reading.gradients(model.module, name).to_dict()

    def saliency(self, number: str) -> Saliency:
        """What the answer hung on, of the text that a trace is of."""
        with self._again(number, "no-saliency") as (model, before):
            return model.saliency(before["text"])

    @contextmanager
    def _again(self, number: str, code: str) -> Iterator[tuple[regard.Model, Mapping[str, Any]]]:
        """The model that a trace is of, as it was, for whatever else somebody wants to know of the same text."""
        before = self.shelf.get(number).header
        if before.get("fork"):
            raise Refusal(422, code, "something was changed in this trace", "go back to the model as it is")
        entry = self.library.entry(before["model"]["id"])
        with self._one_at_a_time():
            model = self.library.open(entry)
            if before["model"].get("step") != model.step:
                raise Refusal(
                    409, "trained-on", "the model was trained on since this trace was made", "press Run again"
                )
            try:
                yield model, before
            except RegardError as error:
                raise Refusal(422, code, str(error), "choose other states or another model") from None

    def close(self) -> None:
        """Stop what is still going on."""
        self.example.close()

    @contextmanager
    def _one_at_a_time(self) -> Iterator[None]:
        if not self._waiting.acquire(blocking=False):
            raise Refusal(503, "busy", f"{WAITING} requests are waiting for a model already", "try again in a moment")
        try:
            with self._turn:
                yield
        finally:
            self._waiting.release()

    def _show_example(self) -> None:
        entry = self.library.entries()[-1]
        self.trace(Wish(entry.id, example.TEXT, 4), EXAMPLE)


def appetite(recipe: Mapping[str, Any], tokens: int, beam: int | None) -> float:
    """About how many gigabytes a recording takes: heads show all their keys and values at every step.

    >>> appetite({"model": {"heads": 8, "width": 512, "layers": 6}, "decode": {"beam": 4}}, 60, None)
    0.7077888
    """
    model, task, decode = (recipe.get(name, {}) for name in ("model", "task", "decode"))
    if "heads" not in model:
        return 0.0
    places = tokens + int(task.get("length") or 0)
    rows = beam or decode.get("beam", 4)
    return 16 * places**2 * rows * model.get("width", 512) * model.get("layers", 6) / 1e9


def sized(model: regard.Model) -> dict[str, int]:
    """How many numbers a model has learnt, and the bytes that they take."""
    weights = list(model.module.parameters())
    counts = {"parameters": sum(weight.numel() for weight in weights)}
    return counts | {"bytes": sum(weight.numel() * weight.element_size() for weight in weights)}


def passed(model: regard.Model, wish: Wish) -> tuple[Recording, str]:
    """What a model does with a text, as somebody wants to see it, and its answer."""
    with acting(model, wish.beam, wish.changes):
        with model.record(replacing(wish.changes)) as recording:
            answer = model.answer(wish.text)
        if any(isinstance(change, NoMask) for change in wish.changes):
            recording = reread(model, wish.text, recording, replacing(wish.changes))
    said, wanted = [int(i) for record in recording.find(ANSWER)[:1] for i in record.data[0]], last_said(wish.changes)
    if wanted is not None and said[wanted.step : wanted.step + 1] != [wanted.id]:  # such as <EOS> before the shortest
        told = f"{wanted.shown!r} cannot be said there: the rules of the search forbid it"
        raise Refusal(422, "not-said", told, "choose another word")
    return recording, answer


def forked(wish: Wish, kept: Recording) -> dict[str, Any] | None:
    """What a trace was forked from, what was changed, and what moved; None: nothing was changed."""
    if wish.of is None:
        return None
    before = wish.of.header
    return {
        "of": before["id"],
        "answer": before["answer"],
        "log": sum(step["log"] for step in before["steps"]) if before["steps"] else None,
        "changes": [config.plain(change) for change in wish.changes],
        **moved(wish.of.recording, kept),
    }


def checked_change(kept: Kept, change: Change) -> Change:
    """A change that this trace can have, with all that is needed to make it."""
    header = kept.header
    match change:
        case HeadOff() | RowWritten():
            record = tensor_of(kept.recording, change.tensor)
            if not change.tensor.endswith("weights") or record.axes != interventions.WEIGHTS:
                raise Refusal(422, "bad-request", f"{change.tensor[:80]} has no heads", "choose attention weights")
            heads, queries, keys = record.data.shape[1:]
            _within("head", change.head, heads)
            if isinstance(change, RowWritten):
                _within("query", change.query, queries)
                scores = kept.recording.find(f"{change.tensor.removesuffix('weights')}scores")
                interventions.check_row(change, keys, scores[0].data[0, change.head, change.query] if scores else None)
        case TokenSaid():
            _within("step", change.step, len(header["steps"]))
            step = header["steps"][change.step]
            word = next((w for w in (step["chosen"], *step["best"]) if w["id"] == change.id), None)
            if word is None:
                told = f"id: expected one of the {len(step['best'])} best of this step, got {change.id}"
                raise Refusal(422, "bad-request", told, "choose one of the list")
            before = tuple(said["chosen"]["id"] for said in header["steps"][: change.step])
            return replace(change, shown=word["shown"], before=before)
        case NoPositions() | NoMask() if change.kind not in header.get("can", ()):
            what = "positions" if isinstance(change, NoPositions) else "mask"
            raise Refusal(422, "bad-request", f"this model has no {what}", "choose another change")
    return change


def _within(name: str, value: int, size: int) -> None:
    if not 0 <= value < size:
        raise Refusal(422, "bad-request", f"{name}: there are 0 to {size - 1}, got {value}", "choose one of them")
