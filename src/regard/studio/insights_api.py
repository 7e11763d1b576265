"""API endpoint of insight tools: passes of a model with changes, as lines of JSON with progress and then the result.

A line is {"done", "total"}, {"result"} or {"error"}. The model is held for all passes of a tool, as for a trace.
"""

from __future__ import annotations

import dataclasses
import itertools
import json
import time
from collections.abc import Generator
from typing import Any

import anyio
import torch
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

import regard
from regard.look import Recording, insights
from regard.look.image_records import PIXELS
from regard.look.patching import patching_steps
from regard.look.replay import Replay
from regard.look.view import View
from regard.studio.errors import ApiError
from regard.studio.image_input import image_model, recorded_pixels
from regard.studio.input_limits import validate_text
from regard.studio.interventions import apply_to_module, replay_replacements, trace_changes
from regard.studio.request import ApiRequest
from regard.studio.service import Studio
from regard.tasks.replay import replay, replay_of_text

CODE, PATCH = "no-insight", "patch"
CLOSE = 1e-3
"""largest difference of a replayed logit, as a share of the largest logit"""
PROGRESS_SECONDS = 0.1
"""time between two lines of progress"""


def stream_insight(studio: Studio, request: ApiRequest) -> Response:
    """A tool on one output of a trace; an error before the first line has its own HTTP status."""
    tool, at = request.path["tool"], request.integer("at", 0)
    if tool not in (*insights.TOOLS, PATCH):
        known = ", ".join((*insights.TOOLS, PATCH))
        raise ApiError(404, "unknown-tool", f"tool: expected {known}, got {tool[:20]!r}", "choose one of them")
    lines = insight_lines(studio, request.path["trace"], tool, at, request.query.get("text", ""))
    first = next(lines)
    return NDJSONResponse(first, lines)


class NDJSONResponse(StreamingResponse):
    """Newline-delimited JSON from a generator, which is closed when the response ends, also if the reader leaves.

    Otherwise a generator that is suspended in the middle would hold the model until it is garbage collected.
    """

    def __init__(self, first: bytes, lines: Generator[bytes]) -> None:
        super().__init__(itertools.chain([first], lines), media_type="application/x-ndjson")
        self._lines = lines

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:  # no thread is inside of the generator now: a cancelled step is waited for
            with anyio.CancelScope(shield=True):
                await run_in_threadpool(self._lines.close)


def insight_lines(studio: Studio, trace_id: str, tool: str, at: int, text: str = "") -> Generator[bytes]:
    """Progress and result of a tool; an error after the first line becomes the last one."""
    started, last, result = False, 0.0, b""
    try:
        with (
            studio.model_of_trace(trace_id, CODE, changed=True) as (model, header),
            apply_to_module(model.module, trace_changes(header)),
        ):
            recording = studio.trace_store.get(trace_id).recording
            found = trace_replay(model, recording, header)
            if header.get("fork"):
                check_replay(found, recording)
            steps = _patching(model, found, at, text, header) if tool == PATCH else insights.TOOLS[tool](found, at)
            for step in steps:
                if isinstance(step, View):
                    result = _line({"result": insights.to_dict(step, found)})
                elif time.monotonic() - last > PROGRESS_SECONDS:
                    started, last = True, time.monotonic()
                    yield _line({"done": step[0], "total": step[1]})
        yield result  # the model is free: a slow reader holds up nothing
    except ApiError as error:
        if not started:
            raise
        yield _line(error.to_dict())


def _patching(model: regard.Model, found: Replay, at: int, text: str, header: Any) -> insights.Steps:
    """Patching from the pass of another text."""
    text = validate_text(text, header["kind"])
    return patching_steps(found, replay_of_text(found, model, lambda: model.predict_text(text)), at)


def trace_replay(model: regard.Model, recording: Recording, header: Any) -> Replay:
    """The replay of a trace: of its text or its image, and of its answer, with the same changes."""
    if (header.get("window") or {"number": 0})["number"]:
        message = "this is a later window of a long text, and these tools read the first one"
        raise ApiError(422, CODE, message, "choose the first window")

    def predict() -> object:
        if recording.find(PIXELS):
            return image_model(model).predict_pixels(recorded_pixels(model, recording))
        return model.predict_text(header["text"])

    changes = trace_changes(header)
    found = replay(model, recording, predict)
    if not replay_replacements(changes, recording):
        return found
    return dataclasses.replace(found, changes=lambda: replay_replacements(changes, recording))


def check_replay(found: Replay, recording: Recording) -> None:
    """Refuse a changed trace whose recorded logits a pass over its answer does not give."""
    expected = recording.find("logits")[0].data[0].float()
    expected = expected.reshape(-1, expected.shape[-1])
    _, logits = found.record()
    count = min(len(expected), len(logits))
    bound = CLOSE * max(1.0, float(expected.abs().max()))
    if not torch.allclose(logits[:count].cpu().float(), expected[:count], rtol=0, atol=bound):
        message = "a pass over the answer of this changed trace does not give the logits that were recorded"
        raise ApiError(422, CODE, message, "go back to the unchanged model")


def _line(table: dict[str, Any]) -> bytes:
    return json.dumps(table, ensure_ascii=False).encode() + b"\n"
