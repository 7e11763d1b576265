"""Web application: the table of HTTP routes, the files of the page, and error responses."""

from __future__ import annotations

import json
import sys
import traceback
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from regard.errors import RegardError
from regard.studio import (
    embeddings_api,
    endpoints,
    explain_api,
    input_examples,
    insights_api,
    lessons_api,
    line_api,
    runs,
)
from regard.studio.errors import ApiError
from regard.studio.guard import Guard
from regard.studio.image_input import MAX_IMAGE_BYTES
from regard.studio.request import ApiRequest
from regard.studio.service import Studio

MAX_BODY = 64 * 1024
"""maximum size of a request's body in bytes"""
LARGE_BODIES = {"/api/v1/traces": MAX_IMAGE_BYTES * 4 // 3 + MAX_BODY}
"""maximum size where a request may hold an image, as base64"""
MEDIA_TYPES = {"js": "text/javascript", "css": "text/css", "html": "text/html", "svg": "image/svg+xml"}


Endpoint = Callable[[Studio, ApiRequest], Response]


def build(studio: Studio) -> Starlette:
    """The ASGI application."""
    pages, lessons, embeddings = page_files(), lessons_api.LessonsApi(), embeddings_api.EmbeddingsApi()
    explanations = explain_api.ExplainApi()

    def page(studio: Studio, request: ApiRequest) -> Response:
        name = request.path.get("name", "index.html")
        if name not in pages:
            raise ApiError(404, "not-found", "no such file", "open the start page")
        media_type = MEDIA_TYPES[name.rpartition(".")[2]]
        return Response(pages[name], media_type=f"{media_type}; charset=utf-8")

    routes: list[tuple[str, str, Endpoint]] = [
        ("/", "GET", page),
        ("/page/{name:path}", "GET", page),
        ("/api/v1/info", "GET", lambda studio, request: JSONResponse(studio.info())),
        ("/api/v1/models", "GET", endpoints.list_models),
        ("/api/v1/models/{model}", "GET", endpoints.show_model),
        ("/api/v1/models/{model}/example", "GET", input_examples.show_example),
        ("/api/v1/models/{model}/load", "POST", endpoints.load_model),
        ("/api/v1/models/{model}/weights", "GET", explain_api.list_weights),
        ("/api/v1/models/{model}/weights/{weight}", "GET", explain_api.send_weight),
        ("/api/v1/runs/{model}/metrics", "GET", runs.show_metrics),
        ("/api/v1/runs/{model}/events", "GET", runs.stream_events),
        ("/api/v1/runs/{model}/control", "POST", runs.control_run),
        ("/api/v1/runs/{model}/probe/{step}", "GET", runs.show_probe),
        ("/api/v1/runs/{model}/probe/{step}/tensors/{tensor}", "GET", runs.send_probe_tensor),
        ("/api/v1/line", "GET", line_api.show_line),
        ("/api/v1/lessons", "GET", lessons_api.list_lessons),
        ("/api/v1/lessons/{lesson}", "GET", lessons.show),
        ("/api/v1/lessons/{lesson}", "POST", lessons.train_and_show),
        ("/api/v1/lessons/{lesson}/exercises", "POST", lessons.check_answer),
        ("/api/v1/embeddings/{model}/neighbors", "GET", embeddings.show_neighbors),
        ("/api/v1/embeddings/{model}/analogy", "GET", embeddings.show_analogy),
        ("/api/v1/embeddings/{model}/map", "GET", embeddings.show_map),
        ("/api/v1/tokenize", "POST", endpoints.tokenize),
        ("/api/v1/traces", "GET", lambda studio, request: JSONResponse({"traces": studio.trace_store.recent()})),
        ("/api/v1/traces", "POST", endpoints.make_trace),
        ("/api/v1/traces/{trace}", "GET", endpoints.show_trace),
        ("/api/v1/traces/{trace}/fork", "POST", endpoints.fork_trace),
        ("/api/v1/traces/{trace}/gradients", "GET", endpoints.show_gradients),
        ("/api/v1/traces/{trace}/saliency", "GET", endpoints.show_saliency),
        ("/api/v1/traces/{trace}/insight/{tool}", "GET", insights_api.stream_insight),
        ("/api/v1/traces/{trace}/tensors/{tensor}", "GET", endpoints.send_tensor),
        ("/api/v1/traces/{trace}/export", "GET", endpoints.export),
        ("/api/v1/traces/{trace}/explain", "GET", explanations.explain),
    ]

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        yield
        await run_in_threadpool(lessons.close)

    return Starlette(
        routes=[
            Route(path, _make_handler(studio, endpoint, LARGE_BODIES.get(path, MAX_BODY)), methods=[method])
            for path, method, endpoint in routes
        ],
        middleware=[Middleware(Guard)],
        exception_handlers={HTTPException: _http_error},
        lifespan=lifespan,
    )


def page_files() -> dict[str, bytes]:
    """The files of the page by path; no other files are served."""
    found = dict(_files(files("regard.look") / "page"))
    modules = sorted(name for name in found if name.endswith(".js"))
    # preload all modules: otherwise a browser discovers each import only after it has read the importing module
    links = "\n".join(f'<link rel="modulepreload" href="/page/{name}">' for name in modules)
    found["index.html"] = found["index.html"].replace(b"<!-- modules -->", links.encode())
    return found


def _files(folder: Traversable, prefix: str = "") -> Iterator[tuple[str, bytes]]:
    for entry in folder.iterdir():
        if entry.is_dir():
            yield from _files(entry, f"{prefix}{entry.name}/")
        elif entry.name.rpartition(".")[2] in MEDIA_TYPES:
            yield prefix + entry.name, entry.read_bytes()


def _make_handler(studio: Studio, endpoint: Endpoint, limit: int) -> Callable[[Request], Any]:
    async def handle(request: Request) -> Response:
        try:
            body = await _read_body(request, limit) if request.method == "POST" else {}
            parsed = ApiRequest(request.path_params, request.query_params, body, request.headers.get("last-event-id"))
            return await run_in_threadpool(endpoint, studio, parsed)
        except ClientDisconnect:  # half a request
            return Response(status_code=400)
        except ApiError as error:
            return JSONResponse(error.to_dict(), error.status)
        except RegardError as error:
            return _error(422, type(error).__name__, str(error), "try something else")
        except Exception as error:  # one bad request must not end the others
            traceback.print_exc(file=sys.stderr)
            message = f"this is a bug in regard ({type(error).__name__})"
            return _error(500, "bug", message, "the terminal of the studio shows the traceback; please report it")

    return handle


async def _read_body(request: Request, limit: int) -> dict[str, Any]:
    if request.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
        raise ApiError(415, "not-json", "expected JSON", "send content-type: application/json")
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > limit:
            hint = "shorten the text" if limit == MAX_BODY else "choose a smaller image, or shorten the text"
            raise ApiError(413, "too-large", f"a request has at most {limit:,} bytes", hint)
    try:
        table = json.loads(body)
    except (ValueError, RecursionError):
        raise ApiError(400, "not-json", "the request is not JSON", "send an object as UTF-8 JSON") from None
    if not isinstance(table, dict):
        raise ApiError(400, "not-json", "expected a JSON object", "send an object")
    return table


def _error(status: int, code: str, message: str, hint: str) -> JSONResponse:
    return JSONResponse(ApiError(status, code, message, hint).to_dict(), status)


async def _http_error(request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 500
    messages = {404: "no such address", 405: "this address does not support that method"}
    return _error(status, "not-found", messages.get(status, "the request was refused"), "open the start page")
