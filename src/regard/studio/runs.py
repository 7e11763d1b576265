"""What the page asks about trainings: how one goes, what it made of its probe, and what somebody wants of it."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from starlette.responses import JSONResponse, Response, StreamingResponse

from regard.errors import RegardError
from regard.look import Recording
from regard.studio import events_api, progress
from regard.studio.endpoints import numbers
from regard.studio.errors import Refusal
from regard.studio.exports import tensor_of
from regard.studio.request import Asked
from regard.studio.service import Studio
from regard.train import control, probe


def show_progress(studio: Studio, asked: Asked) -> Response:
    """How the training of a model goes, from where somebody last read on."""
    entry = studio.library.entry(asked.path["model"])
    told = progress.metrics(entry.path, asked.query.get("version", ""), asked.whole("since", 0))
    more = {"name": entry.name, "samples": progress.samples(entry.path), "asked": control.pending(entry.path)}
    return JSONResponse(told | more | {"silent": progress.silent(entry.path), "probe": events_api.probes(entry.path)})


def send_events(studio: Studio, asked: Asked) -> Response:
    """The same as it happens, from the last event that somebody has seen, or from a place that an answer named."""
    entry = studio.library.entry(asked.path["model"])
    watch = events_api.Watch(entry.path, asked.after or asked.query.get("place", ""))
    return StreamingResponse(events_api.stream(watch, studio.ending), media_type="text/event-stream")


def ask_run(studio: Studio, asked: Asked) -> Response:
    """Ask a training to save or to stop; whoever trains answers at the next step, by what it writes."""
    entry, wanted = studio.library.entry(asked.path["model"]), asked.given("ask", str)
    request = next((request for request in control.REQUESTS if request == wanted), None)
    if request is None:
        told = f"ask: expected {' or '.join(control.REQUESTS)}, got {wanted[:20]!r}"
        raise Refusal(422, "bad-request", told, "choose one of them")
    if progress.over(entry.path):
        raise Refusal(409, "over", "this training is over", "run the same command again to go on with it")
    control.ask(entry.path, request)
    return JSONResponse({"asked": control.pending(entry.path)}, 202)


def show_probe(studio: Studio, asked: Asked) -> Response:
    """The header of what was seen at a step."""
    return JSONResponse({"id": asked.path["step"], **probed(studio, asked).header()})


def send_probe(studio: Studio, asked: Asked) -> Response:
    """A slice of a tensor of what was seen at a step."""
    return numbers(tensor_of(probed(studio, asked), asked.path["tensor"]), asked.query.get("slice", ""))


def probed(studio: Studio, asked: Asked) -> Recording:
    """What was seen at a step; only steps that are listed are ever looked for."""
    run, text = studio.library.entry(asked.path["model"]).path, asked.path["step"]
    step = int(text) if text.isdecimal() and len(text) < 16 else -1
    if step not in probe.steps(run):
        raise Refusal(404, "unknown-step", "nothing was kept at this step", "choose another step")
    file = probe.place(run, step)
    try:
        return _read(file, file.stat().st_mtime_ns)
    except (RegardError, OSError) as error:
        raise Refusal(410, "damaged-probe", f"it cannot be read: {error}", "choose another step") from None


@lru_cache(maxsize=probe.KEPT)
def _read(file: Path, changed: int) -> Recording:
    return Recording.load(file)
