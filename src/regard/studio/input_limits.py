"""What may be given to a model: a text, or the rows of a series; and how long that is in the model's own measure."""

from __future__ import annotations

import regard
from regard.studio.errors import Refusal
from regard.tasks.forecast.recipe import ForecastModel
from regard.tasks.label.recipe import LabelModel

CHARACTERS, SERIES = 2000, 40_000
"""the longest text, and the longest series as CSV, in characters"""
SERIAL = "forecast"
"""the job that reads a series"""
WORDS = "vectors"
"""the job that reads no text: it has a vector for each word, and the page shows them as points"""
AT_ONCE = ("classify", "label", SERIAL)
"""jobs that say their answer at once, without a search: what it hung on can be told"""


def checked(text: str, kind: str | None = None) -> str:
    """A text that may be given to a model that was trained for a job.

    >>> checked("  je suis ")
    'je suis'
    >>> checked("load.csv", "forecast")
    Traceback (most recent call last):
    regard.studio.errors.Refusal: this model reads a series: the rows of a CSV file under the names of their columns
    """
    if kind == WORDS:
        told = "this model has a vector for each word, and reads no sentence"
        raise Refusal(422, "no-sentence", told, "open its words: #/embed/ and the number of the model")
    text, most = text.strip(), SERIES if kind == SERIAL else CHARACTERS
    if not text:
        raise Refusal(422, "no-text", "the text is empty", "type a sentence")
    if len(text) > most:
        raise Refusal(
            413, "too-long", f"the text has {len(text):,} characters; at most {most:,} are read", "shorten it"
        )
    if kind == SERIAL and "\n" not in text:  # one line would be taken for the name of a file
        told = "this model reads a series: the rows of a CSV file under the names of their columns"
        raise Refusal(422, "no-series", told, "choose a CSV file")
    return text


def places(model: regard.Model, text: str) -> int:
    """How many places of a text a model without a tokenizer reads."""
    match model:
        case LabelModel():
            return len(model.labeller().places(text))
        case ForecastModel():
            return model.recipe.rows
        case _:
            return 1  # a row of numbers
