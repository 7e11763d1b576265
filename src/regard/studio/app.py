"""The server: which address is answered by whom, and what becomes of an error."""

from __future__ import annotations

import json
import sys
import traceback
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from importlib.resources import files
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from regard.errors import RegardError
from regard.studio import embeddings_api, endpoints, lessons_api, runs
from regard.studio.errors import Refusal
from regard.studio.guard import Guard
from regard.studio.request import Asked
from regard.studio.service import Studio

BODY = 64 * 1024
"""bytes of the largest request"""
KINDS = {"js": "text/javascript", "css": "text/css", "html": "text/html", "svg": "image/svg+xml"}


Endpoint = Callable[[Studio, Asked], Response]


def build(studio: Studio) -> Starlette:
    """The application."""
    pages, teaching, points = page_files(), lessons_api.Teaching(), embeddings_api.WordPoints()

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
        ("/api/v1/models", "GET", endpoints.list_models),
        ("/api/v1/models/{model}", "GET", endpoints.show_model),
        ("/api/v1/runs/{model}/metrics", "GET", runs.show_progress),
        ("/api/v1/runs/{model}/events", "GET", runs.send_events),
        ("/api/v1/runs/{model}/control", "POST", runs.ask_run),
        ("/api/v1/runs/{model}/probe/{step}", "GET", runs.show_probe),
        ("/api/v1/runs/{model}/probe/{step}/tensors/{tensor}", "GET", runs.send_probe),
        ("/api/v1/lessons", "GET", lessons_api.list_lessons),
        ("/api/v1/lessons/{lesson}", "GET", teaching.show),
        ("/api/v1/lessons/{lesson}", "POST", teaching.show),
        ("/api/v1/embeddings/{model}/neighbors", "GET", points.show_neighbours),
        ("/api/v1/embeddings/{model}/analogy", "GET", points.show_analogy),
        ("/api/v1/embeddings/{model}/map", "GET", points.show_map),
        ("/api/v1/tokenize", "POST", endpoints.tokenize),
        ("/api/v1/example", "POST", endpoints.make_example),
        ("/api/v1/traces", "GET", lambda studio, asked: JSONResponse({"traces": studio.shelf.recent()})),
        ("/api/v1/traces", "POST", endpoints.make_trace),
        ("/api/v1/traces/{trace}", "GET", endpoints.show_trace),
        ("/api/v1/traces/{trace}/fork", "POST", endpoints.fork_trace),
        ("/api/v1/traces/{trace}/gradients", "GET", endpoints.show_gradients),
        ("/api/v1/traces/{trace}/saliency", "GET", endpoints.show_saliency),
        ("/api/v1/traces/{trace}/tensors/{tensor}", "GET", endpoints.send_tensor),
        ("/api/v1/traces/{trace}/export", "GET", endpoints.export),
    ]

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        yield
        await run_in_threadpool(studio.close)
        await run_in_threadpool(teaching.close)

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
            asked = Asked(request.path_params, request.query_params, table, request.headers.get("last-event-id"))
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
