"""What the page asks about models and traces: each endpoint is a function of a studio and of what was asked."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

from starlette.responses import FileResponse, JSONResponse, Response

from regard.studio import exports, interventions
from regard.studio.errors import Refusal
from regard.studio.request import Asked
from regard.studio.service import BEAM, Studio, Wish
from regard.studio.slices import cut, raw
from regard.trace import Record


def list_models(studio: Studio, asked: Asked) -> Response:
    """All models, and how far the example is."""
    models = [entry.table() for entry in studio.library.entries()]
    return JSONResponse({"models": models, "example": studio.example.table()})


def show_model(studio: Studio, asked: Asked) -> Response:
    """One model with its recipe."""
    entry = studio.library.entry(asked.path["model"])
    return JSONResponse(entry.table() | {"recipe": json.loads(json.dumps(entry.recipe, default=str))})


def tokenize(studio: Studio, asked: Asked) -> Response:
    """A text as a model cuts it."""
    return JSONResponse(studio.tokenize(asked.given("model", str), asked.given("text", str)))


def make_example(studio: Studio, asked: Asked) -> Response:
    """Begin to make the built-in example."""
    studio.example.make()
    return JSONResponse(studio.example.table(), 202)


def make_trace(studio: Studio, asked: Asked) -> Response:
    """Give a text to a model; its header when it is done."""
    decode = asked.table.get("decode") or {}
    if not isinstance(decode, dict) or set(decode) - {"beam"}:
        raise Refusal(422, "bad-request", "decode: expected an object with beam", "mend the request")
    beam = decode.get("beam")
    if beam is not None and (type(beam) is not int or not 1 <= beam <= BEAM):
        raise Refusal(422, "bad-request", f"beam: expected a whole number from 1 to {BEAM}", "choose a smaller beam")
    kept = studio.trace(Wish(asked.given("model", str), asked.given("text", str), beam))
    return JSONResponse(dict(kept.header), 201)


def fork_trace(studio: Studio, asked: Asked) -> Response:
    """The same pass with something changed."""
    change = interventions.read(asked.given("change", dict))
    return JSONResponse(dict(studio.fork(asked.path["trace"], change).header), 201)


def show_gradients(studio: Studio, asked: Asked) -> Response:
    """|dL_t/dh_s| of the text that a trace is of."""
    return JSONResponse(studio.gradients(asked.path["trace"], asked.query.get("name")))


def show_saliency(studio: Studio, asked: Asked) -> Response:
    """What the answer of a trace hung on."""
    return JSONResponse(studio.saliency(asked.path["trace"]).to_dict())


def show_trace(studio: Studio, asked: Asked) -> Response:
    """The header of a trace."""
    return JSONResponse(dict(studio.shelf.get(asked.path["trace"]).header))


def send_tensor(studio: Studio, asked: Asked) -> Response:
    """A slice of a tensor."""
    kept = studio.shelf.get(asked.path["trace"])
    return numbers(exports.tensor_of(kept.recording, asked.path["tensor"]), asked.query.get("slice", ""))


def numbers(record: Record, part: str) -> Response:
    """A slice of a tensor as raw little-endian bytes; the axes it has left and its shape are in headers.

    >>> import torch
    >>> numbers(Record("w", ("batch", "key"), torch.ones(1, 3), {}, {}), "key:0-1").headers["x-shape"]
    '2'
    """
    found, axes = cut(record.data[0], record.axes[1:], part)
    told = {"x-axes": ",".join(axes), "x-shape": ",".join(map(str, found.shape))}
    return Response(raw(found), media_type="application/octet-stream", headers=told)


def export(studio: Studio, asked: Asked) -> Response:
    """A trace, or one tensor of it, as a file."""
    kind, name, text = asked.query.get("format", ""), asked.query.get("tensor"), asked.query.get("slice", "")
    number = asked.path["trace"]
    kept = studio.shelf.get(number)
    if asked.query.get("view") == "saliency":
        return sent(exports.as_hung(studio.saliency(number), kind))
    if kind == "safetensors":
        return FileResponse(
            studio.shelf.path(number), filename="trace.safetensors", media_type="application/octet-stream"
        )
    if kind == "json":
        file = exports.as_json(kept.header, kept.recording, name, text)
    elif kind == "csv":
        if name is None:
            raise Refusal(422, "bad-request", "csv holds one tensor; none was named", "add &tensor=NAME")
        file = exports.as_csv(exports.tensor_of(kept.recording, name), text, kept.header["sequences"])
    elif kind in ("svg", "png"):
        head = asked.query.get("head")
        chosen = int(head) if head is not None and head.isdecimal() and len(head) < 10 else None
        file = exports.as_picture(kept.recording, name, chosen, kind)
    elif kind == "html":
        opened = {key: asked.query[key] for key in ("tab", "tensor", "head") if key in asked.query}
        file = exports.as_html({**kept.header, **looked(studio, number, name)}, kept.recording, opened)
    else:
        told = f"format: expected {', '.join(exports.FORMATS)}, got {kind[:20]!r}"
        raise Refusal(422, "bad-request", told, "choose one of them")
    return sent(file)


def sent(file: exports.File) -> Response:
    """A file to be kept, under a name that any system takes.

    >>> sent(exports.File(b"", "text/csv", "a/b.csv")).headers["content-disposition"]
    'attachment; filename="a_b.csv"'
    """
    quoted = "".join(char if char.isalnum() or char in ".-_" else "_" for char in file.name)
    return Response(
        file.content, media_type=file.kind, headers={"content-disposition": f'attachment; filename="{quoted}"'}
    )


def looked(studio: Studio, number: str, name: str | None) -> dict[str, Any]:
    """What a page without a server cannot ask for any more: the gradients at the usual states and at those that are
    chosen, and what the answer hung on; whatever this trace has of it."""
    found: dict[str, Any] = {"gradients": []}
    for wanted in dict.fromkeys((None, name)):
        with suppress(Refusal):
            found["gradients"].append(studio.gradients(number, wanted))
    with suppress(Refusal):
        found["saliency"] = studio.saliency(number).to_dict()
    return found
