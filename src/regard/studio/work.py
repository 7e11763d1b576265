"""What the server does when it is asked: one pass of one model at a time, and its trace kept."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from torch import Tensor

import regard
from regard.errors import RegardError
from regard.look import shown
from regard.studio import example
from regard.studio.condense import condensed
from regard.studio.exports import tensor_of
from regard.studio.header import header
from regard.studio.library import Library
from regard.studio.refusal import Refusal
from regard.studio.shelf import Kept, Shelf

CHARACTERS, TOKENS, BEAM = 2000, 256, 16
"""the longest text in characters, in tokens, and the widest beam"""
WAITING = 8
"""requests that may wait for a model; the next is told to come back"""
MEMORY = 2.0
"""gigabytes that the recording of one pass may take while it is made"""
EXAMPLE = "example"
"""the number of the built-in trace"""
OFF = 64
"""heads that may be switched off at once"""


@dataclass(frozen=True)
class Wish:
    """A pass that somebody wants to see.

    >>> Wish("ab12", "je suis").off
    ()
    """

    model: str
    text: str
    beam: int | None = None
    """None: as the model was told when it was trained"""
    off: tuple[tuple[str, int], ...] = ()
    """heads that are switched off: (name of their weights, number)"""
    fork: Mapping[str, Any] | None = None
    """what it is compared with"""


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
            "limits": {"characters": CHARACTERS, "tokens": TOKENS, "beam": BEAM},
            "sentence": example.TEXT,
        }

    def tokenize(self, model: str, text: str) -> dict[str, Any]:
        """How a model cuts a text: tokens with the characters they stand for."""
        found = self.library.tokens(self.library.entry(model), checked(text))
        columns = zip(found.ids, found.tokens, found.offsets, strict=True)
        return {"tokens": [{"id": i, "token": t, "shown": shown(t), "start": a, "end": b} for i, t, (a, b) in columns]}

    def trace(self, wish: Wish, number: str | None = None) -> Kept:
        """Give a text to a model and keep all that happens inside."""
        wish = replace(wish, text=checked(wish.text))
        entry = self.library.entry(wish.model)
        tokens = len(self.library.tokens(entry, wish.text).ids)
        if tokens > TOKENS:
            raise Refusal(413, "too-long", f"the text has {tokens:,} tokens; at most {TOKENS} are shown", "shorten it")
        needed = appetite(entry.recipe, tokens, wish.beam)
        if needed > MEMORY:
            message = (
                f"recording {tokens} tokens in this model would take about {needed:.1f} GB; at most {MEMORY:g} are used"
            )
            raise Refusal(413, "too-much", message, "shorten the text, or choose a smaller beam")
        with self._one_at_a_time():
            model = self.library.open(entry)
            began = time.perf_counter()
            try:
                with searching(model, wish.beam), model.record(changes(wish.off)) as recording:
                    answer = model.answer(wish.text)
            except RegardError as error:
                raise Refusal(422, "not-answered", str(error), "try another text or another model") from None
            told = {
                "model": {"id": entry.id, "name": entry.name},
                "text": wish.text,
                "answer": answer,
                "made": datetime.now(UTC).isoformat(timespec="seconds"),
                "seconds": round(time.perf_counter() - began, 4),
                "decode": {"beam": wish.beam},
                "fork": wish.fork,
            }
            kept = condensed(recording)
            return self.shelf.put(kept, told | header(kept, recording), number)

    def fork(self, number: str, name: str, head: int) -> Kept:
        """The same text through the same model with one head more switched off."""
        kept = self.shelf.get(number)
        record, before = tensor_of(kept.recording, name), kept.header
        if not name.endswith("weights") or "head" not in record.axes:
            raise Refusal(422, "bad-request", f"{name[:80]} has no heads", "choose attention weights")
        heads = record.data.shape[record.axes.index("head")]
        if not 0 <= head < heads:
            raise Refusal(422, "bad-request", f"head: there are 0 to {heads - 1}, got {head}", "choose one of them")
        old = before.get("fork") or {"of": number, "answer": before["answer"], "off": []}
        off = [*old["off"], *([] if [name, head] in old["off"] else [[name, head]])]
        if len(off) > OFF:
            raise Refusal(422, "bad-request", f"at most {OFF} heads can be switched off", "begin with the first trace")
        heads_off = tuple((str(name), int(head)) for name, head in off)
        return self.trace(
            Wish(before["model"]["id"], before["text"], before["decode"]["beam"], heads_off, {**old, "off": off})
        )

    def gradients(self, number: str, name: str | None) -> dict[str, Any]:
        """How much each word's loss depends on the state at each word, in the text that a trace is of."""
        before = self.shelf.get(number).header
        if before.get("fork"):
            raise Refusal(422, "no-gradients", "heads are switched off in this trace", "go back to the model as it is")
        entry = self.library.entry(before["model"]["id"])
        with self._one_at_a_time():
            model = self.library.open(entry)
            try:
                with searching(model, before["decode"]["beam"]):
                    reading = model.reading(before["text"])
                return reading.gradients(model.module, name).to_dict()
            except RegardError as error:
                raise Refusal(422, "no-gradients", str(error), "choose other states or another model") from None

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


@contextmanager
def searching(model: regard.Model, beam: int | None) -> Iterator[None]:
    """The same model, for a moment with another beam; one pass runs at a time, so nobody else sees it."""
    before: Any = model.recipe
    if beam is None:
        yield
        return
    if "decode" not in {field.name for field in fields(before)}:
        raise Refusal(422, "no-beam", "this model does not search", "leave the beam as trained")
    model.recipe = replace(before, decode=replace(before.decode, beam=beam))
    try:
        yield
    finally:
        model.recipe = before


def changes(off: Sequence[tuple[str, int]]) -> dict[str, Callable[[Tensor], Tensor]]:
    """What a pass goes on with where heads are switched off: weights of 0.

    >>> import torch
    >>> changes([("cross.weights", 1)])["cross.weights"](torch.ones(1, 2, 1, 1)).flatten().tolist()
    [1.0, 0.0]
    """
    heads: dict[str, list[int]] = {}
    for name, head in off:
        heads.setdefault(name, []).append(head)

    def silenced(which: list[int]) -> Callable[[Tensor], Tensor]:
        def change(weights_NHTL: Tensor) -> Tensor:
            changed = weights_NHTL.clone()
            changed[:, which] = 0.0
            return changed

        return change

    return {name: silenced(which) for name, which in heads.items()}


def checked(text: str) -> str:
    """A text that may be given to a model.

    >>> checked("  je suis ")
    'je suis'
    """
    text = text.strip()
    if not text:
        raise Refusal(422, "no-text", "the text is empty", "type a sentence")
    if len(text) > CHARACTERS:
        raise Refusal(
            413, "too-long", f"the text has {len(text):,} characters; at most {CHARACTERS:,} are read", "shorten it"
        )
    return text
