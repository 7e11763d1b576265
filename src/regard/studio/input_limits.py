"""Limits of a model's input: length of a text or of a series, in characters and in the model's own units."""

from __future__ import annotations

import regard
from regard.studio.errors import ApiError
from regard.tasks.forecast.recipe import ForecastModel
from regard.tasks.label.recipe import LabelModel

MAX_CHARACTERS, MAX_SERIES_CHARACTERS = 2000, 40_000
"""maximum length of a text, and of a series as CSV"""
FORECAST, VECTORS, GENERATE = "forecast", "vectors", "generate"
"""the task whose models read a series, the task whose models read no text, and the task of language models"""
SINGLE_PASS_TASKS = ("classify", "label", "fill", FORECAST)
"""tasks that answer without a search"""


def validate_text(text: str, task: str | None = None) -> str:
    """The input text of a model for a task, without surrounding white space.

    >>> validate_text("load.csv", "forecast")
    Traceback (most recent call last):
    regard.studio.errors.ApiError: this model reads a series: the rows of a CSV file, below a row of column names
    """
    if task == VECTORS:
        message = "this model has one vector per word and reads no sentences"
        raise ApiError(422, "no-sentence", message, "open its words: #/embed/ and the id of the model")
    text, limit = text.strip(), MAX_SERIES_CHARACTERS if task == FORECAST else MAX_CHARACTERS
    if not text:
        raise ApiError(422, "no-text", "the text is empty", "type a sentence")
    if len(text) > limit:
        message = f"the text has {len(text):,} characters; the limit is {limit:,}"
        raise ApiError(413, "too-long", message, "shorten it")
    if task == FORECAST and "\n" not in text:  # a single line would be interpreted as a file name
        message = "this model reads a series: the rows of a CSV file, below a row of column names"
        raise ApiError(422, "no-series", message, "choose a CSV file")
    return text


def input_length(model: regard.Model, text: str) -> int:
    """Number of input positions of a model without a tokenizer."""
    match model:
        case LabelModel():
            return len(model.predictor().tokenize(text))
        case ForecastModel():
            return model.recipe.rows
        case _:
            return 1  # a row of numbers
