"""Example inputs of a model: a sentence or a row of its validation samples, or the last rows of its own series."""

from __future__ import annotations

from collections import deque
from itertools import islice
from pathlib import Path
from typing import Any

from starlette.responses import JSONResponse, Response

from regard.data.lines import read_lines
from regard.errors import RegardError
from regard.files import open_regular
from regard.studio import example
from regard.studio.input_limits import FORECAST, MAX_SERIES_CHARACTERS
from regard.studio.model_store import ModelEntry
from regard.studio.progress import read_samples
from regard.studio.request import ApiRequest
from regard.studio.service import Studio
from regard.tasks.forecast.config import ForecastConfig

ROWS, MAX_SERIES_BYTES = 200, 64 << 20
"""rows of an example series, unless the model reads more, and size of the largest file that is read for one"""
MAX_SAMPLE = 200
"""characters of the longest validation sample that becomes an example"""
SENTENCES = {
    "translate": example.TEXT,
    "generate": "The",
    "classify": "A lovely film, with a story that stays with you.",
    "label": "Ada lives in Rome.",
    "fill": "Let's make [MASK] chicken! [SEP] It [MASK] great with orange sauce",
}
"""examples of tasks, for runs without samples"""


def show_example(studio: Studio, request: ApiRequest) -> Response:
    """An input that fits a model."""
    return JSONResponse({"text": example_input(studio.model_store.entry(request.path["model"]))})


def example_input(entry: ModelEntry) -> str | None:
    """A text or a series that fits a model; None if there is none, or if it reads images."""
    if entry.reads_images:
        return None
    if entry.task == FORECAST:
        return example_series(entry.recipe)
    return example_sentence(entry.path) or SENTENCES.get(entry.task or "")


def example_sentence(run: Path) -> str | None:
    """A text of the latest validation samples, the first that is short enough; None if there is none."""
    texts = (row.get("text") or row.get("prompt") for row in read_samples(run))
    fits = (text for text in texts if isinstance(text, str) and 0 < len(text.strip()) <= MAX_SAMPLE)
    return next(fits, None)


def example_series(recipe: dict[str, Any]) -> str | None:
    """Column names and the last rows of the CSV file of a forecast recipe; None if there is no such file."""
    data, task = (recipe.get(name) for name in ("data", "task"))
    if not isinstance(data, dict) or not isinstance(task, dict) or data.get("kind") != "csv":
        return None
    name, window = next(filter(None, map(data.get, ("test", "valid", "train"))), None), task.get("window")
    if not isinstance(name, str):
        return None
    rows = max(ROWS, 2 * (window if type(window) is int else ForecastConfig.window))
    try:
        with open_regular(Path(name)) as file:
            if file.seek(0, 2) > MAX_SERIES_BYTES:
                return None
        lines = (line for line in read_lines(name) if line.strip())
        head = list(islice(lines, 1))
        last = deque(lines, maxlen=rows)
    except (OSError, ValueError, RegardError):
        return None
    while last and sum(len(line) + 1 for line in (*head, *last)) > MAX_SERIES_CHARACTERS:
        last.popleft()
    return "\n".join([*head, *last]) if last else None
