"""API endpoint of the line of systems, each with the studio's models of its kind."""

from __future__ import annotations

from starlette.responses import JSONResponse, Response

from regard.line.table import LineEntry, line_table, load_line
from regard.studio.model_store import ModelEntry
from regard.studio.request import ApiRequest
from regard.studio.service import Studio


def show_line(studio: Studio, request: ApiRequest) -> Response:
    """The content of line.json; each system also has the usable models of its kind, as ids and names."""
    table, models = line_table(), [model for model in studio.model_store.entries() if model.usable]
    entries = [
        {**row, "models": [{"id": model.id, "name": model.name} for model in models if is_of_system(model, entry)]}
        for row, entry in zip(table["entries"], load_line().entries, strict=True)
    ]
    return JSONResponse({**table, "entries": entries})


def is_of_system(model: ModelEntry, entry: LineEntry) -> bool:
    """Whether the recipe of a model names the model of a system."""
    table = model.recipe.get("model")
    return isinstance(table, dict) and entry.matches(table)
