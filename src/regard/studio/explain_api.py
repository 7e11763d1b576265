"""API endpoints of explanations: how a number was computed, and the weights it was computed with.

The pass of a trace is run again on the same weights inside a tape of its operations; the tape is kept for the next
clicks. Operations, order and kernels are those of the recorded pass, so the numbers are the recorded ones.
"""

from __future__ import annotations

import re
import threading
from collections import OrderedDict
from typing import Any

import torch
from starlette.responses import JSONResponse, Response

import regard
from regard.errors import ModelError, RegardError
from regard.look.explain import WEIGHT_AXES, Explainer, OperationTape, begin_tape, named_weights
from regard.look.image_records import PIXELS
from regard.studio import interventions
from regard.studio.errors import ApiError
from regard.studio.exports import find_tensor
from regard.studio.image_input import recorded_pixels
from regard.studio.request import ApiRequest
from regard.studio.service import Studio, TraceRequest, run_traced
from regard.studio.slices import slice_tensor, to_bytes
from regard.studio.trace_store import StoredTrace

IN_MEMORY = 2
"""tapes that are kept, those of the traces explained last"""
CELL = re.compile(r"(?:([a-z_]{1,40}):(\d{1,9}))(?:,|$)")
MAX_WEIGHTS = 1 << 20
"""numbers of a weight per response: 4 MB"""


class ExplainApi:
    """Explanations of the traces of a studio."""

    def __init__(self) -> None:
        self._explainers: OrderedDict[str, Explainer] = OrderedDict()
        self._lock = threading.Lock()

    def explain(self, studio: Studio, request: ApiRequest) -> Response:
        """How a number was computed: ?tensor=NAME&at=head:1,query:0, or ?ref=REF of an operand."""
        trace = studio.trace_store.get(request.path["trace"])
        name, ref = request.query.get("tensor"), request.query.get("ref")
        if (name is None) == (ref is None):
            raise ApiError(422, "bad-request", "expected tensor and at, or ref", "fix the request")
        index = {} if name is None else _parse_index(trace, name, request.query.get("at", ""))
        explainer = self._explainer(studio, trace)
        try:
            with self._lock:
                found = explainer.explain(name, index) if name is not None else explainer.explain_ref(ref or "")
        except ModelError as error:
            raise ApiError(410, "unknown-number", str(error), "click the number in the trace again") from None
        return JSONResponse(found.to_dict())

    def _explainer(self, studio: Studio, trace: StoredTrace) -> Explainer:
        """Of a trace: its tape, made on first use."""
        trace_id = trace.header["id"]
        with self._lock:
            if trace_id in self._explainers:
                self._explainers.move_to_end(trace_id)
                return self._explainers[trace_id]
        with studio.one_at_a_time():
            explainer = record_tape(studio, trace)
        with self._lock:
            self._explainers[trace_id] = explainer
            while len(self._explainers) > IN_MEMORY:
                self._explainers.popitem(last=False)
        return explainer


def record_tape(studio: Studio, trace: StoredTrace) -> Explainer:
    """Run the pass of a trace again, with all of its changes, inside a tape."""
    header = trace.header
    model = _open_model(studio, header["model"]["id"])
    if header["model"].get("step") != model.step:
        message = "the model was trained further after this trace was recorded, so its weights are other ones"
        raise ApiError(409, "trained-on", message, "press Run again")
    changes = tuple(interventions.trace_changes(header))
    pixels = recorded_pixels(model, trace.recording) if trace.recording.find(PIXELS) else None
    request = TraceRequest(header["model"]["id"], header["text"], header["decode"]["beam"], changes, pixels=pixels)
    window = (header.get("window") or {"number": 0})["number"]
    tape = OperationTape()
    begin_tape(tape, model.inference_module)
    try:
        with tape:
            recording, _, _ = run_traced(model, request)
            condensed = recording.condense(window).records
    except RegardError as error:
        raise ApiError(422, "not-explained", str(error), "press Run again") from None
    return Explainer(tape, recording.records, condensed)


def _open_model(studio: Studio, model_id: str) -> regard.Model:
    return studio.model_store.open(studio.model_store.entry(model_id))


def _parse_index(trace: StoredTrace, name: str, text: str) -> dict[str, int]:
    """Index per axis of a number of a tensor."""
    record = find_tensor(trace.recording, name)
    sizes = dict(zip(record.axes[1:], record.data.shape[1:], strict=True))
    index = {axis: int(at) for axis, at in CELL.findall(text)}
    for axis, size in sizes.items():
        at = index.get(axis, 0)
        if not 0 <= at < size:
            raise ApiError(422, "bad-slice", f"{axis}: expected 0 to {size - 1}, got {at}", "choose one of them")
    if unknown := set(index) - set(sizes):
        message = f"there is no axis {sorted(unknown)[0]}"
        raise ApiError(422, "bad-slice", message, f"its axes are {', '.join(sizes) or 'none'}")
    return index


def list_weights(studio: Studio, request: ApiRequest) -> Response:
    """Names and shapes of a model's weights."""
    with studio.one_at_a_time():
        model = _open_model(studio, request.path["model"])
    found: list[dict[str, Any]] = []
    for name, numbers in _weights(model).items():
        axes = WEIGHT_AXES.get(numbers.ndim)
        if axes is not None:
            found.append({"name": name, "axes": list(axes), "shape": list(numbers.shape)})
    return JSONResponse({"weights": found, "step": model.step})


def send_weight(studio: Studio, request: ApiRequest) -> Response:
    """A slice of a weight as raw little-endian bytes; headers hold its axes and shape."""
    with studio.one_at_a_time():
        model = _open_model(studio, request.path["model"])
    name = request.path["weight"]
    numbers = _weights(model).get(name)
    if numbers is None or numbers.ndim not in WEIGHT_AXES:
        raise ApiError(404, "unknown-weight", f"this model has no weight {name[:80]!r}", "choose one of the list")
    part, axes = slice_tensor(numbers, WEIGHT_AXES[numbers.ndim], request.query.get("slice", ""))
    if part.size > MAX_WEIGHTS:
        message = f"{part.size:,} numbers were requested; at most {MAX_WEIGHTS:,} are sent"
        raise ApiError(413, "too-large", message, "request a slice, such as row:0-99")
    headers = {"x-axes": ",".join(axes), "x-shape": ",".join(map(str, part.shape))}
    return Response(to_bytes(part), media_type="application/octet-stream", headers=headers)


def _weights(model: regard.Model) -> dict[str, torch.Tensor]:
    """Floating-point weights by name, as the pass reads them."""
    named = named_weights(model.inference_module)
    return {name: numbers.detach().cpu() for name, _, numbers in named if numbers.is_floating_point()}
