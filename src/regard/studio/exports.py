"""A trace, or one tensor of it, as a file that a person can take away."""

from __future__ import annotations

import csv
import io
import itertools
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

import numpy as np

from regard.errors import RegardError
from regard.look import Recording, Saliency, html
from regard.look.png import png
from regard.look.trace_header import sides as sides_of
from regard.studio.errors import Refusal
from regard.studio.slices import cut
from regard.trace import Record

FORMATS = ("html", "json", "csv", "safetensors", "svg", "png")


@dataclass(frozen=True)
class File:
    """Bytes, what they are, and what they should be called.

    >>> File(b"{}", "application/json", "trace.json").name
    'trace.json'
    """

    content: bytes
    kind: str
    name: str


def tensor_of(recording: Recording, name: str) -> Record:
    """The tensor of a name.

    >>> from regard.trace import Trace
    >>> tensor_of(Recording(Trace()), "x")
    Traceback (most recent call last):
    regard.studio.errors.Refusal: this trace has no tensor called 'x'
    """
    found = [record for record in recording.records if record.name == name]
    if not found:
        raise Refusal(404, "unknown-tensor", f"this trace has no tensor called {name[:80]!r}", "pick one of its list")
    return found[0]


def as_csv(record: Record, text: str, words: Mapping[str, list[dict[str, Any]]]) -> File:
    """One line a number: the place on each axis, the word there if it wears one, the number."""
    numbers, axes = cut(record.data[0], record.axes[1:], text)
    sides = {axis: words[name] for axis, name in sides_of(record).items() if name in words}
    out = io.StringIO()
    table = csv.writer(out, lineterminator="\r\n")
    table.writerow([*itertools.chain(*([a, f"{a} token"] if a in sides else [a] for a in axes)), "value"])
    starts = {axis: _start(axis, text) for axis in axes}
    for place in np.ndindex(numbers.shape):
        cells: list[Any] = []
        for axis, i in zip(axes, place, strict=True):
            at = starts[axis] + i
            cells += [at, _unformula(sides[axis][at]["token"])] if axis in sides else [at]
        value = float(numbers[place])
        table.writerow([*cells, "" if np.isnan(value) else repr(value)])
    return File(out.getvalue().encode(), "text/csv; charset=utf-8", f"{record.name}.csv")


def _start(axis: str, text: str) -> int:
    for part in text.split(","):
        name, _, places = part.strip().partition(":")
        if name == axis:
            return int(places.partition("-")[0])
    return 0


def _unformula(token: str) -> str:
    """A spreadsheet would run a cell that begins with one of these."""
    return f"'{token}" if token[:1] in ("=", "+", "-", "@", "\t", "\r") else token


def as_json(header: Mapping[str, Any], recording: Recording, name: str | None, text: str) -> File:
    """The header, and with a name the numbers of that tensor, nested as its axes are."""
    table = dict(header)
    if name is not None:
        record = tensor_of(recording, name)
        numbers, axes = cut(record.data[0], record.axes[1:], text)
        table["values"] = {"name": name, "axes": list(axes), "numbers": _nested(numbers)}
    content = json.dumps(table, ensure_ascii=False, allow_nan=False).encode()
    return File(content, "application/json", f"{name or 'trace'}.json")


def _nested(numbers: np.ndarray) -> Any:
    """JSON has no NaN: a number that is not there is null."""
    if not np.issubdtype(numbers.dtype, np.floating) or np.isfinite(numbers).all():
        return numbers.tolist()
    nested = numbers.astype(object)
    nested[~np.isfinite(numbers)] = None
    return nested.tolist()


def as_html(header: Mapping[str, Any], recording: Recording, opened: Mapping[str, str]) -> File:
    """The page of a trace as one file, open at what is chosen; `header` may have its gradients and its saliency."""
    return File(html.page(header, recording.records, urlencode(opened)).encode(), "text/html", "trace.html")


def as_picture(recording: Recording, name: str | None, head: int | None, kind: str) -> File:
    """One attention as SVG or PNG."""
    try:
        view = recording.attention(name, head=head)
        content = png(view.svg()) if kind == "png" else view.svg().encode()
    except RegardError as error:
        raise Refusal(422, "no-picture", str(error), "choose attention weights, or another format") from None
    return File(content, "image/png" if kind == "png" else "image/svg+xml", f"{view.name}.{kind}")


def as_hung(view: Saliency, kind: str) -> File:
    """What an answer hung on, as SVG, PNG, JSON or CSV.

    >>> as_hung(Saliency("positive", ["so", "great"], np.array([[-0.5, 2.0]])), "csv").content.decode().split()
    ['answer,read,value', ',so,-0.5', ',great,2.0']
    """
    if kind in ("svg", "png"):
        content = png(view.svg()) if kind == "png" else view.svg().encode()
        return File(content, "image/png" if kind == "png" else "image/svg+xml", f"saliency.{kind}")
    if kind == "json":
        return File(json.dumps(view.to_dict(), ensure_ascii=False).encode(), "application/json", "saliency.json")
    if kind != "csv":
        raise Refusal(422, "bad-request", f"format: expected svg, png, json, csv, got {kind[:20]!r}", "choose one")
    out = io.StringIO()
    table = csv.writer(out, lineterminator="\r\n")
    table.writerow([*view.sides, "value"])
    for row, scores in zip(view.rows, view.scores.tolist(), strict=True):
        table.writerows([_unformula(row), _unformula(read), repr(score)] for read, score in zip(view.columns, scores))
    return File(out.getvalue().encode(), "text/csv; charset=utf-8", "saliency.csv")
