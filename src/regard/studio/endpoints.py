"""API endpoints of models and traces: functions of a studio and a request."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from starlette.responses import FileResponse, JSONResponse, Response

from regard.run_summary import json_safe
from regard.studio import exports, interventions, slices
from regard.studio.errors import ApiError
from regard.studio.image_input import image_name, parse_image
from regard.studio.request import ApiRequest
from regard.studio.service import MAX_BEAM, Studio, TraceRequest
from regard.studio.slices import slice_tensor, to_bytes
from regard.studio.trace_store import StoredTrace
from regard.trace import Record


def list_models(studio: Studio, request: ApiRequest) -> Response:
    """All models, the built-in example last."""
    store = studio.model_store
    models = [entry.to_dict() | {"loaded": store.is_open(entry)} for entry in store.entries()]
    return JSONResponse({"models": models})


def show_model(studio: Studio, request: ApiRequest) -> Response:
    """One model with its recipe."""
    entry = studio.model_store.entry(request.path["model"])
    return JSONResponse(entry.to_dict() | {"recipe": json_safe(entry.recipe)})


def load_model(studio: Studio, request: ApiRequest) -> Response:
    """Load a model, so that the next pass does not wait for it."""
    studio.load(request.path["model"])
    return JSONResponse({"loaded": True})


def tokenize(studio: Studio, request: ApiRequest) -> Response:
    """Tokens of a text under a model's tokenizer."""
    return JSONResponse(studio.tokenize(request.required("model", str), request.required("text", str)))


def make_trace(studio: Studio, request: ApiRequest) -> Response:
    """Run a model on a text; returns the header of the trace."""
    decode = request.body.get("decode") or {}
    if not isinstance(decode, dict) or set(decode) - {"beam"}:
        raise ApiError(422, "bad-request", "decode: expected an object with beam", "fix the request")
    beam = decode.get("beam")
    if beam is not None and (type(beam) is not int or not 1 <= beam <= MAX_BEAM):
        message = f"beam: expected a whole number from 1 to {MAX_BEAM}"
        raise ApiError(422, "bad-request", message, "choose a smaller beam")
    image = parse_image(request.body["image"]) if "image" in request.body else None
    text = request.required("text", str) if image is None else image_name(request.body, image)
    trace = studio.trace(TraceRequest(request.required("model", str), text, beam, image=image))
    return header_response(trace, 201)


def fork_trace(studio: Studio, request: ApiRequest) -> Response:
    """The same pass with one intervention more."""
    change = interventions.parse_intervention(request.required("change", dict))
    return header_response(studio.fork(request.path["trace"], change), 201)


def show_gradients(studio: Studio, request: ApiRequest) -> Response:
    """Gradient norms |dL_t/dh_s| of the text of a trace."""
    return JSONResponse(studio.gradients(request.path["trace"], request.query.get("name")))


def show_saliency(studio: Studio, request: ApiRequest) -> Response:
    """Saliency of the answer of a trace."""
    return JSONResponse(studio.saliency(request.path["trace"]).to_dict())


def show_trace(studio: Studio, request: ApiRequest) -> Response:
    """The header of a trace."""
    return header_response(studio.trace_store.get(request.path["trace"]), 200)


def header_response(trace: StoredTrace, status: int) -> Response:
    """The header of a trace, and how many numbers of a tensor are sent at once."""
    return JSONResponse({**trace.header, "most_numbers": slices.MAX_NUMBERS}, status)


def send_tensor(studio: Studio, request: ApiRequest) -> Response:
    """A slice of a tensor of a trace."""
    recording = studio.trace_store.get(request.path["trace"]).recording
    return tensor_response(exports.find_tensor(recording, request.path["tensor"]), request.query.get("slice", ""))


def tensor_response(record: Record, slice_text: str) -> Response:
    """A slice of a tensor as raw little-endian bytes; headers hold its axes and shape."""
    numbers, axes = slice_tensor(record.data[0], record.axes[1:], slice_text)
    headers = {"x-axes": ",".join(axes), "x-shape": ",".join(map(str, numbers.shape))}
    return Response(to_bytes(numbers), media_type="application/octet-stream", headers=headers)


def export(studio: Studio, request: ApiRequest) -> Response:
    """A trace, or one tensor of it, as a file."""
    query, trace_id = request.query, request.path["trace"]
    kind, name, slice_text = query.get("format", ""), query.get("tensor"), query.get("slice", "")
    trace = studio.trace_store.get(trace_id)
    if query.get("view") == "saliency":
        return download_response(exports.saliency_file(studio.saliency(trace_id), kind))
    if kind == "safetensors":
        path = studio.trace_store.path(trace_id)
        return FileResponse(path, filename="trace.safetensors", media_type="application/octet-stream")
    if kind == "json":
        file = exports.json_file(trace.header, trace.recording, name, slice_text)
    elif kind == "csv":
        if name is None:
            raise ApiError(422, "bad-request", "csv holds one tensor, and none was named", "add &tensor=NAME")
        record = exports.find_tensor(trace.recording, name)
        file = exports.csv_file(record, slice_text, trace.header["sequences"])
    elif kind in ("svg", "png"):
        head = query.get("head")
        head_index = int(head) if head is not None and head.isdecimal() and len(head) < 10 else None
        file = exports.picture_file(trace.recording, name, head_index, kind)
    elif kind == "html":
        view = {key: query[key] for key in ("tab", "tensor", "head") if key in query}
        file = exports.html_file({**trace.header, **standalone_extras(studio, trace_id, name)}, trace.recording, view)
    else:
        message = f"format: expected {', '.join(exports.FORMATS)}, got {kind[:20]!r}"
        raise ApiError(422, "bad-request", message, "choose one of them")
    return download_response(file)


def download_response(file: exports.ExportFile) -> Response:
    """A download with a file name that every system accepts.

    >>> download_response(exports.ExportFile(b"", "text/csv", "a/b.csv")).headers["content-disposition"]
    'attachment; filename="a_b.csv"'
    """
    name = "".join(char if char.isalnum() or char in ".-_" else "_" for char in file.name)
    headers = {"content-disposition": f'attachment; filename="{name}"'}
    return Response(file.content, media_type=file.media_type, headers=headers)


def standalone_extras(studio: Studio, trace_id: str, name: str | None) -> dict[str, Any]:
    """What a page without a server cannot request: gradients at the default states and at the selected ones, and
    saliency, as far as the trace has them."""
    extras: dict[str, Any] = {"gradients": []}
    for states in dict.fromkeys((None, name)):
        with suppress(ApiError):
            extras["gradients"].append(studio.gradients(trace_id, states))
    with suppress(ApiError):
        extras["saliency"] = studio.saliency(trace_id).to_dict()
    return extras
