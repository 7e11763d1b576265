"""The server: the page, and what it asks for. Each endpoint is a function of a studio and of what was asked."""

from __future__ import annotations

import json
import sys
import traceback
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from importlib.resources import files
from typing import Any, TypeVar

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Route

from regard.errors import RegardError
from regard.studio import exports, progress
from regard.studio.guard import Guard
from regard.studio.refusal import Refusal
from regard.studio.slices import cut, raw
from regard.studio.work import BEAM, Studio, Wish

BODY = 64 * 1024
"""bytes of the largest request"""
KINDS = {"js": "text/javascript", "css": "text/css", "html": "text/html", "svg": "image/svg+xml"}
T = TypeVar("T")


@dataclass(frozen=True)
class Asked:
    """What a request says: names in its path, its query, and a table if it has a body.

    >>> Asked({}, {}, {"beam": 4}).given("beam", int)
    4
    """

    path: Mapping[str, str]
    query: Mapping[str, str]
    table: Mapping[str, Any]

    def given(self, name: str, kind: type[T]) -> T:
        """A value of the table that must be there."""
        value = self.table.get(name)
        if not isinstance(value, kind) or isinstance(value, bool):
            found = "nothing" if value is None else type(value).__name__
            raise Refusal(422, "bad-request", f"{name}: expected {kind.__name__}, got {found}", "mend the request")
        return value


Endpoint = Callable[[Studio, Asked], Response]


def build(studio: Studio) -> Starlette:
    """The application."""
    pages = page_files()

    def page(studio: Studio, asked: Asked) -> Response:
        name = asked.path.get("name", "index.html")
        if name not in pages:
            raise Refusal(404, "not-found", "there is no such file", "open the start page")
        kind = KINDS[name.rpartition(".")[2]]
        return Response(pages[name], media_type=f"{kind}; charset=utf-8")

    table: list[tuple[str, str, Endpoint]] = [
        ("/", "GET", page),
        ("/page/{name}", "GET", page),
        ("/api/v1/info", "GET", lambda studio, asked: JSONResponse(studio.info())),
        ("/api/v1/models", "GET", list_models),
        ("/api/v1/models/{model}", "GET", show_model),
        ("/api/v1/runs/{model}/metrics", "GET", show_progress),
        ("/api/v1/tokenize", "POST", tokenize),
        ("/api/v1/example", "POST", make_example),
        ("/api/v1/traces", "GET", lambda studio, asked: JSONResponse({"traces": studio.shelf.recent()})),
        ("/api/v1/traces", "POST", make_trace),
        ("/api/v1/traces/{trace}", "GET", show_trace),
        ("/api/v1/traces/{trace}/fork", "POST", fork_trace),
        ("/api/v1/traces/{trace}/gradients", "GET", show_gradients),
        ("/api/v1/traces/{trace}/tensors/{tensor}", "GET", send_tensor),
        ("/api/v1/traces/{trace}/export", "GET", export),
    ]

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        yield
        await run_in_threadpool(studio.close)

    return Starlette(
        routes=[Route(path, _served(studio, endpoint), methods=[method]) for path, method, endpoint in table],
        middleware=[Middleware(Guard)],
        exception_handlers={HTTPException: _unknown},
        lifespan=lifespan,
    )


def page_files() -> dict[str, bytes]:
    """The files of the page by name: what is not in here cannot be asked for.

    >>> "index.html" in page_files()
    True
    """
    folder = files("regard.studio") / "page"
    found = {file.name: file.read_bytes() for file in folder.iterdir() if file.name.rpartition(".")[2] in KINDS}
    modules = sorted(name for name in found if name.endswith(".js"))
    # all at once: else a browser finds each import only after it has read the one that asks for it
    links = "\n".join(f'<link rel="modulepreload" href="/page/{name}">' for name in modules)
    found["index.html"] = found["index.html"].replace(b"<!-- modules -->", links.encode())
    return found


def _served(studio: Studio, endpoint: Endpoint) -> Callable[[Request], Any]:
    async def answer(request: Request) -> Response:
        try:
            table = await _table(request) if request.method == "POST" else {}
            asked = Asked(request.path_params, request.query_params, table)
            return await run_in_threadpool(endpoint, studio, asked)
        except Refusal as refusal:
            return JSONResponse(refusal.table(), refusal.status)
        except RegardError as error:
            return _error(422, type(error).__name__, str(error), "try something else")
        except Exception as error:  # one bad request must not end the others
            traceback.print_exc(file=sys.stderr)
            told = f"this is a bug in regard ({type(error).__name__})"
            return _error(500, "bug", told, "the terminal that runs the studio says where; please report it")

    return answer


async def _table(request: Request) -> dict[str, Any]:
    if request.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
        raise Refusal(415, "not-json", "expected JSON", "send content-type: application/json")
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > BODY:
            raise Refusal(413, "too-large", f"a request has at most {BODY:,} bytes", "shorten the text")
    try:
        table = json.loads(body)
    except (ValueError, RecursionError):
        raise Refusal(400, "not-json", "the request is not JSON", "send an object as UTF-8 JSON") from None
    if not isinstance(table, dict):
        raise Refusal(400, "not-json", "expected a JSON object", "send an object")
    return table


def _error(status: int, code: str, message: str, hint: str) -> JSONResponse:
    return JSONResponse(Refusal(status, code, message, hint).table(), status)


async def _unknown(request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 500
    words = {404: "there is nothing at this address", 405: "this address does not take that method"}
    return _error(status, "not-found", words.get(status, "the request was refused"), "open the start page")


def list_models(studio: Studio, asked: Asked) -> Response:
    """All models, and how far the example is."""
    models = [entry.table() for entry in studio.library.entries()]
    return JSONResponse({"models": models, "example": studio.example.table()})


def show_model(studio: Studio, asked: Asked) -> Response:
    """One model with its recipe."""
    entry = studio.library.entry(asked.path["model"])
    return JSONResponse(entry.table() | {"recipe": json.loads(json.dumps(entry.recipe, default=str))})


def show_progress(studio: Studio, asked: Asked) -> Response:
    """How the training of a model goes, from where somebody last read on."""
    entry, since = studio.library.entry(asked.path["model"]), asked.query.get("since", "0")
    if not since.isdecimal() or len(since) > 15:
        raise Refusal(422, "bad-request", "since: expected a whole number", "leave it out to have all")
    told = progress.metrics(entry.path, asked.query.get("version", ""), int(since))
    return JSONResponse(told | {"name": entry.name, "samples": progress.samples(entry.path)})


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
    """The same pass with a head switched off."""
    off = asked.given("ablate", dict)
    name, head = off.get("tensor"), off.get("head")
    if not isinstance(name, str) or type(head) is not int:
        raise Refusal(422, "bad-request", "ablate: expected an object with tensor and head", "mend the request")
    return JSONResponse(dict(studio.fork(asked.path["trace"], name, head).header), 201)


def show_gradients(studio: Studio, asked: Asked) -> Response:
    """|dL_t/dh_s| of the text that a trace is of."""
    found = studio.gradients(asked.path["trace"], asked.query.get("name"))
    found["decay"] = {name: value for name, value in found["decay"].items() if value == value}  # a NaN is no JSON
    return JSONResponse(found)


def show_trace(studio: Studio, asked: Asked) -> Response:
    """The header of a trace."""
    return JSONResponse(dict(studio.shelf.get(asked.path["trace"]).header))


def send_tensor(studio: Studio, asked: Asked) -> Response:
    """A slice of a tensor as raw little-endian bytes; its shape is in a header."""
    record = exports.tensor_of(studio.shelf.get(asked.path["trace"]).recording, asked.path["tensor"])
    numbers, axes = cut(record.data[0], record.axes[1:], asked.query.get("slice", ""))
    told = {"x-axes": ",".join(axes), "x-shape": ",".join(map(str, numbers.shape))}
    return Response(raw(numbers), media_type="application/octet-stream", headers=told)


def export(studio: Studio, asked: Asked) -> Response:
    """A trace, or one tensor of it, as a file."""
    kind, name, text = asked.query.get("format", ""), asked.query.get("tensor"), asked.query.get("slice", "")
    number = asked.path["trace"]
    kept = studio.shelf.get(number)
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
    elif kind == "svg":
        head = asked.query.get("head")
        file = exports.as_svg(kept.recording, name, int(head) if head is not None and head.isdecimal() else None)
    else:
        told = f"format: expected {', '.join(exports.FORMATS)}, got {kind[:20]!r}"
        raise Refusal(422, "bad-request", told, "choose one of them")
    quoted = "".join(char if char.isalnum() or char in ".-_" else "_" for char in file.name)
    kept_as = {"content-disposition": f'attachment; filename="{quoted}"'}
    return Response(file.content, media_type=file.kind, headers=kept_as)
