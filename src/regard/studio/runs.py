"""API endpoints of training runs: metrics, live events, probes, and commands to the trainer."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from starlette.responses import JSONResponse, Response, StreamingResponse

from regard.errors import RegardError
from regard.files import open_regular
from regard.look import Recording
from regard.studio import events_api, progress
from regard.studio.endpoints import tensor_response
from regard.studio.errors import ApiError
from regard.studio.exports import find_tensor
from regard.studio.request import ApiRequest
from regard.studio.service import Studio
from regard.train import control, probe


def show_metrics(studio: Studio, request: ApiRequest) -> Response:
    """Metrics of a run after a given byte, and the state of its training."""
    entry = studio.model_store.entry(request.path["model"])
    metrics = progress.read_metrics(entry.path, request.query.get("version", ""), request.integer("since", 0))
    state = {
        "name": entry.name,
        "samples": progress.read_samples(entry.path),
        "command": control.pending_command(entry.path),
        "idle_seconds": progress.idle_seconds(entry.path),
        "probe": events_api.probe_info(entry.path),
    }
    return JSONResponse(metrics | state)


def stream_events(studio: Studio, request: ApiRequest) -> Response:
    """Live events of a run, from the last received event on, or from a cursor."""
    entry = studio.model_store.entry(request.path["model"])
    watcher = events_api.RunWatcher(entry.path, request.last_event_id or request.query.get("cursor", ""))
    return StreamingResponse(events_api.stream(watcher, studio.closing), media_type="text/event-stream")


def control_run(studio: Studio, request: ApiRequest) -> Response:
    """Send "save" or "stop" to a training; it acts after its current step, and its metrics show that it did."""
    entry, name = studio.model_store.entry(request.path["model"]), request.required("command", str)
    command = next((command for command in control.COMMANDS if command == name), None)
    if command is None:
        message = f"command: expected {' or '.join(control.COMMANDS)}, got {name[:20]!r}"
        raise ApiError(422, "bad-request", message, "choose one of them")
    if progress.has_ended(entry.path):
        raise ApiError(409, "over", "this training has ended", "run the same command again to continue it")
    control.send_command(entry.path, command)
    return JSONResponse({"command": control.pending_command(entry.path)}, 202)


def show_probe(studio: Studio, request: ApiRequest) -> Response:
    """The header of the probe at a step."""
    return JSONResponse({"id": request.path["step"], **load_probe(studio, request).header()})


def send_probe_tensor(studio: Studio, request: ApiRequest) -> Response:
    """A slice of a tensor of the probe at a step."""
    record = find_tensor(load_probe(studio, request), request.path["tensor"])
    return tensor_response(record, request.query.get("slice", ""))


def load_probe(studio: Studio, request: ApiRequest) -> Recording:
    """The recording of the probe at a step; only listed steps become paths."""
    run, text = studio.model_store.entry(request.path["model"]).path, request.path["step"]
    step = int(text) if text.isdecimal() and len(text) < 16 else -1
    if step not in probe.probe_steps(run):
        raise ApiError(404, "unknown-step", "there is no probe at this step", "choose another step")
    file = probe.probe_path(run, step)
    try:
        with open_regular(file):  # a FIFO would never be read
            return _load(file, file.stat().st_mtime_ns)
    except (RegardError, OSError) as error:
        raise ApiError(410, "damaged-probe", f"the probe cannot be read: {error}", "choose another step") from None


@lru_cache(maxsize=probe.MAX_FILES)
def _load(file: Path, modified: int) -> Recording:
    return Recording.load(file)
