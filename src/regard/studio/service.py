"""The studio's service: runs one traced pass at a time, with or without interventions, and stores the trace."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

import regard
from regard import config
from regard.errors import RegardError
from regard.look import PixelSaliency, Recording, Saliency, token_label
from regard.look.decoding_path import ANSWER
from regard.look.image_records import PIXELS
from regard.studio import example, interventions
from regard.studio.answer_parts import answer_with_parts, with_typical_error
from regard.studio.errors import ApiError
from regard.studio.exports import find_tensor
from regard.studio.image_input import (
    MAX_IMAGE_BYTES,
    Uploads,
    check_input,
    image_gigabytes,
    image_model,
    read_pixels,
    recorded_pixels,
    teacher_forced_pass,
)
from regard.studio.input_limits import (
    GENERATE,
    MAX_CHARACTERS,
    MAX_SERIES_CHARACTERS,
    SINGLE_PASS_TASKS,
    input_length,
    validate_text,
)
from regard.studio.interventions import (
    AblateHead,
    ForceToken,
    Intervention,
    RemoveCausalMask,
    RemovePositions,
    SetAttentionRow,
    apply_interventions,
    last_forced_token,
    replacements,
)
from regard.studio.model_store import ModelEntry, ModelStore
from regard.studio.recording_size import memory_estimate, recordable_length
from regard.studio.trace_diff import trace_difference
from regard.studio.trace_store import WINDOW, StoredTrace, TraceStore
from regard.studio.unmasked_pass import run_unmasked

MAX_TOKENS, MAX_BEAM = 256, 16
MAX_WAITING = 8
"""requests that may wait for a model; further ones are refused"""
MAX_GIGABYTES = 2.0
"""estimated memory of the recording of one pass"""
EXAMPLE_ID = "example"
"""id of the trace of the built-in example"""
MAX_CHANGES = 64
"""interventions per trace"""
MAX_WINDOWS = 32
"""windows of a generated text that are stored"""


@dataclass(frozen=True)
class TraceRequest:
    """A pass to be traced."""

    model: str
    """id of the model"""
    text: str
    beam: int | None = None
    """None: the beam of the recipe"""
    changes: tuple[Intervention, ...] = ()
    base: StoredTrace | None = None
    """trace of the unchanged model, with which a changed one is compared"""
    window: int = 0
    """window of a generated text whose trace is returned, if there are several"""
    image: Uploads | None = None
    """an image or a clip as a data URL, or a reference to a rendered one; `text` is then its name"""
    pixels: np.ndarray | None = None
    """of the image or the clip, in the model's shape"""
    length: int | None = None
    """tokens that a language model generates at most; None: as many as its recipe says"""


class Studio:
    """The models under a folder, their traces, and the built-in example."""

    def __init__(self, root: Path, cache: Path, device: str = "auto") -> None:
        self.root = root
        self.trace_store = TraceStore(cache / "traces")
        self.example = example.Example(cache)
        self.model_store = ModelStore(root, self.example.ready, device)
        self.closing = threading.Event()
        """set when the server shuts down: event streams end"""
        self._model_lock, self._waiting = threading.Lock(), threading.Semaphore(MAX_WAITING)
        self._example_thread = threading.Thread(target=self._trace_example, daemon=True)

    @property
    def is_tracing_example(self) -> bool:
        """Whether the built-in example is being traced in a thread of its own."""
        return self._example_thread.is_alive()

    def start(self) -> str:
        """Extract and trace the built-in example; returns the address that a browser should open.

        Without a model of the user's own this is the trace of the example, which is made before the page is served.
        """
        if any(entry.usable and entry.path != self.example.path for entry in self.model_store.entries()):
            self._example_thread.start()
            return ""
        self._trace_example()
        return f"#/t/{EXAMPLE_ID}"

    def info(self) -> dict[str, Any]:
        """Version, counts and limits."""
        return {
            "regard": regard.__version__,
            "models": len(self.model_store.entries()),
            "limits": {
                "characters": MAX_CHARACTERS,
                "image": MAX_IMAGE_BYTES,
                "series": MAX_SERIES_CHARACTERS,
                "tokens": MAX_TOKENS,
                "beam": MAX_BEAM,
            },
            "sentence": example.TEXT,
        }

    def tokenize(self, model: str, text: str) -> dict[str, Any]:
        """Tokens of a text under a model's tokenizer, with their character offsets."""
        encoded = self.model_store.encode(self.model_store.entry(model), validate_text(text))
        rows = zip(encoded.ids, encoded.tokens, encoded.offsets, strict=True)
        return {
            "tokens": [
                {"id": id, "token": token, "label": token_label(token), "start": start, "end": end}
                for id, token, (start, end) in rows
            ]
        }

    def trace(self, request: TraceRequest, trace_id: str | None = None) -> StoredTrace:
        """Run a model on a text and store the trace."""
        entry = self.model_store.entry(request.model)
        if request.base is None:
            check_input(entry, request.image)
        if not entry.reads_images:
            request = replace(request, text=validate_text(request.text, entry.task))
        with self.one_at_a_time():
            model = self.model_store.open(entry)
            request = replace(request, length=self._check(entry, model, request))
            if request.image is not None:
                request = replace(request, pixels=read_pixels(model, request.image, request.text))
            elif request.base is not None and request.base.recording.find(PIXELS):
                request = replace(request, pixels=recorded_pixels(model, request.base.recording))
            if request.base is not None and request.base.header["model"].get("step") != model.step:
                # trained further meanwhile: both traces must have the same weights
                base = self._run_and_store(entry, model, replace(request, changes=(), base=None, window=0))
                request = replace(request, base=base)
            return self._run_and_store(entry, model, request, trace_id)

    def load(self, model: str) -> None:
        """Load a model, so that the next pass does not wait for it."""
        with self.one_at_a_time():
            self.model_store.open(self.model_store.entry(model))

    def _check(self, entry: ModelEntry, model: regard.Model, request: TraceRequest) -> int | None:
        """The length of a generated text. A text too long to draw, or whose recording is too large, is refused."""
        if entry.reads_images:
            if (gigabytes := image_gigabytes(model)) > MAX_GIGABYTES:
                message = f"recording this model would take {gigabytes:.1f} GB; the limit is {MAX_GIGABYTES:g} GB"
                raise ApiError(413, "too-much", message, "use regard look --view maps, or a smaller model")
            return None
        if self.model_store.tokenizer_path(entry) is None:
            tokens = input_length(model, request.text)
        else:
            tokens = len(self.model_store.encode(entry, request.text).ids)
        if tokens > MAX_TOKENS:
            message = f"the text has {tokens:,} tokens; the limit is {MAX_TOKENS}"
            raise ApiError(413, "too-long", message, "shorten it")
        beam = 1 if entry.task in SINGLE_PASS_TASKS else request.beam
        length = recordable_length(entry.recipe, tokens, beam, MAX_GIGABYTES) if entry.task == GENERATE else None
        gigabytes = memory_estimate(entry.recipe, tokens, beam, length)
        if gigabytes > MAX_GIGABYTES:
            need = f"recording {tokens} tokens in this model would take about {gigabytes:.1f} GB"
            message = f"{need}; the limit is {MAX_GIGABYTES:g} GB"
            raise ApiError(413, "too-much", message, "shorten the text, or choose a smaller beam")
        return length

    def _run_and_store(
        self, entry: ModelEntry, model: regard.Model, request: TraceRequest, trace_id: str | None = None
    ) -> StoredTrace:
        """Run one pass and store its trace; of a text generated in several windows, one trace per window."""
        started = time.perf_counter()
        try:
            recording, answer, parts = run_traced(model, request)
        except RegardError as error:
            raise ApiError(422, "not-answered", str(error), "try another text or another model") from None
        first = self.trace_store.new_id() if trace_id is None else trace_id
        count = min(MAX_WINDOWS, max(1, len(recording.windows())))
        ids = [f"{first}{WINDOW}{number}" if number else first for number in range(count)]
        seconds, stored = round(time.perf_counter() - started, 4), list[StoredTrace]()
        for number in reversed(range(count)):  # the first window last, which makes it the newest
            condensed = recording.condense(number)
            changes = interventions.supported_interventions(model, condensed)
            header = {
                "model": {
                    "id": entry.id,
                    "name": entry.name,
                    "step": model.step,
                    "untrained": entry.is_untrained,
                    **model_size(model),
                },
                "kind": model.recipe.kind(),
                "text": request.text,
                "answer": answer,
                "parts": with_typical_error(parts, entry),
                "created": datetime.now(UTC).isoformat(timespec="seconds"),
                "seconds": seconds,
                "decode": {"beam": request.beam, "search": entry.search, "length": request.length},
                # the pass without the mask reads the first window
                "supported_changes": [kind for kind in changes if not number or kind != "mask"],
                "fork": fork_summary(request, condensed, self._base_window(request, number)),
                "windows": ids if count > 1 else [],
            }
            header |= condensed.header(recording, number) | unmasked_window(request)
            stored.insert(0, self.trace_store.put(condensed, header, ids[number]))
        return stored[min(request.window, count - 1)]

    def _base_window(self, request: TraceRequest, number: int) -> StoredTrace | None:
        """The trace of the unchanged model of one window; None if it has no such window, or nothing was changed."""
        if request.base is None:
            return None
        windows = request.base.header.get("windows") or [request.base.header["id"]]
        return self.trace_store.get(windows[number]) if number < len(windows) else None

    def fork(self, trace_id: str, change: Intervention) -> StoredTrace:
        """Trace the same text and model with one intervention more."""
        trace = self.trace_store.get(trace_id)
        header, change = trace.header, validate_intervention(trace, change)
        fork = header.get("fork")
        changes = (*interventions.trace_changes(header), change)
        if len(changes) > MAX_CHANGES:
            raise ApiError(
                422, "bad-request", f"a trace has at most {MAX_CHANGES} changes", "start from the base trace"
            )
        base = self.trace_store.get(fork["base"]) if fork else trace
        number = (header.get("window") or {"number": 0})["number"]
        beam = header["decode"]["beam"]
        return self.trace(TraceRequest(header["model"]["id"], header["text"], beam, changes, base, number))

    def gradients(self, trace_id: str, name: str | None) -> dict[str, Any]:
        """Gradient norms of each token's loss with respect to the states at each token, for the text of a trace."""
        recording = self.trace_store.get(trace_id).recording
        with self.model_of_trace(trace_id, "no-gradients") as (model, header):
            with apply_interventions(model, header["decode"]["beam"], ()):
                teacher_forced = teacher_forced_pass(model, recording, header["text"])
            return teacher_forced.gradients(model.module, name).to_dict()

    def saliency(self, trace_id: str) -> Saliency | PixelSaliency:
        """Saliency of the answer to the text of a trace."""
        recording = self.trace_store.get(trace_id).recording
        with self.model_of_trace(trace_id, "no-saliency") as (model, header):
            if recording.find(PIXELS):
                return image_model(model).pixel_saliency(recorded_pixels(model, recording))
            return model.saliency(header["text"])

    @contextmanager
    def model_of_trace(
        self, trace_id: str, code: str, changed: bool = False
    ) -> Iterator[tuple[regard.Model, Mapping[str, Any]]]:
        """The model of a trace, with the same weights, and the header; a changed trace is refused unless `changed`."""
        header = self.trace_store.get(trace_id).header
        if header.get("fork") and not changed:
            raise ApiError(422, code, "this trace has changes", "go back to the unchanged model")
        entry = self.model_store.entry(header["model"]["id"])
        with self.one_at_a_time():
            model = self.model_store.open(entry)
            if header["model"].get("step") != model.step:
                message = "the model was trained further after this trace was recorded"
                raise ApiError(409, "trained-on", message, "press Run again")
            try:
                yield model, header
            except RegardError as error:
                raise ApiError(422, code, str(error), "choose other states or another model") from None

    @contextmanager
    def one_at_a_time(self) -> Iterator[None]:
        """Wait for the model; too many requests that wait are refused."""
        if not self._waiting.acquire(blocking=False):
            raise ApiError(
                503, "busy", f"{MAX_WAITING} requests are already waiting for a model", "try again in a moment"
            )
        try:
            with self._model_lock:
                yield
        finally:
            self._waiting.release()

    def _trace_example(self) -> None:
        self.example.extract()
        entry = self.model_store.entries()[-1]
        with suppress(ApiError):  # no trace yet, or a damaged one
            if self.trace_store.get(EXAMPLE_ID).header["model"]["id"] == entry.id:
                return
        self.trace(TraceRequest(entry.id, example.TEXT, 4), EXAMPLE_ID)


def model_size(model: regard.Model) -> dict[str, int]:
    """Number of parameters, and their size in bytes."""
    weights = list(model.module.parameters())
    counts = {"parameters": sum(weight.numel() for weight in weights)}
    return counts | {"bytes": sum(weight.numel() * weight.element_size() for weight in weights)}


def run_traced(model: regard.Model, request: TraceRequest) -> tuple[Recording, str, dict[str, Any]]:
    """Recording and answer of one pass, and the parts of the answer."""
    with apply_interventions(model, request.beam, request.changes):
        with model.record(replacements(request.changes)) as recording:
            answer, parts = answer_with_parts(model, request.text, request.pixels, request.length)
        if any(isinstance(change, RemoveCausalMask) for change in request.changes):
            recording = run_unmasked(model, request.text, recording, replacements(request.changes))
    ids = [int(i) for record in recording.find(ANSWER)[:1] for i in record.data[0]]
    forced = last_forced_token(request.changes)
    at = len(forced.prefix) if forced is not None else 0
    if forced is not None and ids[at : at + 1] != [forced.id]:  # such as <EOS> before min_length
        message = f"{forced.label!r} is not possible at this step: the decoding settings forbid it"
        raise ApiError(422, "not-possible", message, "choose another word")
    return recording, answer, parts


def unmasked_window(request: TraceRequest) -> dict[str, Any]:
    """Without the causal mask the first window of a long text is read again: which one that is, for the header."""
    is_unmasked = any(isinstance(change, RemoveCausalMask) for change in request.changes)
    return {"window": request.base.header.get("window")} if is_unmasked and request.base is not None else {}


def fork_summary(request: TraceRequest, condensed: Recording, base: StoredTrace | None) -> dict[str, Any] | None:
    """Base trace, interventions and differences of a changed trace; None for an unchanged one.

    `base` is the same window of the unchanged model's text; None: it has no such window to compare with.
    """
    if request.base is None:
        return None
    header = (base or request.base).header
    return {
        "base": header["id"],
        "answer": header["answer"],
        "log_prob": sum(step["log_prob"] for step in header["steps"]) if base and header["steps"] else None,
        "changes": [config.plain(change) for change in request.changes],
        **(trace_difference(base.recording, condensed) if base else {"differences": [], "compared": 0}),
    }


def validate_intervention(trace: StoredTrace, change: Intervention) -> Intervention:
    """Check an intervention on a trace; a forced token gets its label and prefix."""
    header = trace.header
    window = header.get("window") or {"number": 0, "before": []}
    match change:
        case AblateHead() | SetAttentionRow():
            record = find_tensor(trace.recording, change.tensor)
            if not change.tensor.endswith("weights") or record.axes != interventions.WEIGHTS:
                raise ApiError(422, "bad-request", f"{change.tensor[:80]} has no heads", "choose attention weights")
            heads, queries, keys = record.data.shape[1:]
            _check_index("head", change.head, heads)
            if isinstance(change, SetAttentionRow):
                _check_index("query", change.query, queries)
                scores = trace.recording.find(f"{change.tensor.removesuffix('weights')}scores")
                interventions.check_row(change, keys, scores[0].data[0, change.head, change.query] if scores else None)
                return replace(change, window=window["number"])
        case ForceToken():
            _check_index("step", change.step, len(header["steps"]))
            step = header["steps"][change.step]
            token = next((t for t in (step["chosen"], *step["best"]) if t["id"] == change.id), None)
            if token is None:
                message = f"id: expected one of the {len(step['best'])} best tokens of this step, got {change.id}"
                raise ApiError(422, "bad-request", message, "choose one of the list")
            here = (earlier["chosen"]["id"] for earlier in header["steps"][: change.step])
            return replace(change, label=token["label"], prefix=(*window["before"], *here), window=window["number"])
        case RemovePositions() | RemoveCausalMask() if change.kind not in header.get("supported_changes", ()):
            part = "position encodings" if isinstance(change, RemovePositions) else "causal mask"
            raise ApiError(422, "bad-request", f"this model has no {part}", "choose another change")
    return change


def _check_index(name: str, value: int, size: int) -> None:
    if not 0 <= value < size:
        raise ApiError(422, "bad-request", f"{name}: expected 0 to {size - 1}, got {value}", "choose one of them")
