"""Exports: a trace, one of its tensors, or its saliency, as a file."""

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
from regard.look import PixelSaliency, Recording, Saliency, html
from regard.look.png import png
from regard.look.trace_header import axis_sides
from regard.studio.errors import ApiError
from regard.studio.slices import slice_tensor
from regard.trace import Record

FORMATS = ("html", "json", "csv", "safetensors", "svg", "png")


@dataclass(frozen=True)
class ExportFile:
    """Content, media type and name of a file."""

    content: bytes
    media_type: str
    name: str


def find_tensor(recording: Recording, name: str) -> Record:
    """The tensor with a name."""
    found = [record for record in recording.records if record.name == name]
    if not found:
        raise ApiError(404, "unknown-tensor", f"this trace has no tensor {name[:80]!r}", "choose one of the list")
    return found[0]


def csv_file(record: Record, slice_text: str, sequences: Mapping[str, list[dict[str, Any]]]) -> ExportFile:
    """One line per number: the index and, if there is one, the token on each axis, and the number."""
    numbers, axes = slice_tensor(record.data[0], record.axes[1:], slice_text)
    tokens = {axis: sequences[name] for axis, name in axis_sides(record).items() if name in sequences}
    out = io.StringIO()
    table = csv.writer(out, lineterminator="\r\n")
    table.writerow([*itertools.chain(*([a, f"{a} token"] if a in tokens else [a] for a in axes)), "value"])
    starts = {axis: _start(axis, slice_text) for axis in axes}
    for index in np.ndindex(numbers.shape):
        cells: list[Any] = []
        for axis, i in zip(axes, index, strict=True):
            at = starts[axis] + i
            cells += [at, _escape_formula(tokens[axis][at]["token"])] if axis in tokens else [at]
        value = float(numbers[index])
        table.writerow([*cells, "" if np.isnan(value) else repr(value)])
    return ExportFile(out.getvalue().encode(), "text/csv; charset=utf-8", f"{record.name}.csv")


def _start(axis: str, slice_text: str) -> int:
    for part in slice_text.split(","):
        name, _, indices = part.strip().partition(":")
        if name == axis:
            return int(indices.partition("-")[0])
    return 0


def _escape_formula(token: str) -> str:
    """Quote a token that a spreadsheet would interpret as a formula."""
    return f"'{token}" if token[:1] in ("=", "+", "-", "@", "\t", "\r") else token


def json_file(header: Mapping[str, Any], recording: Recording, name: str | None, slice_text: str) -> ExportFile:
    """The header and, with a name, the numbers of that tensor as nested lists."""
    table = dict(header)
    if name is not None:
        record = find_tensor(recording, name)
        numbers, axes = slice_tensor(record.data[0], record.axes[1:], slice_text)
        table["values"] = {"name": name, "axes": list(axes), "numbers": _to_lists(numbers)}
    content = json.dumps(table, ensure_ascii=False, allow_nan=False).encode()
    return ExportFile(content, "application/json", f"{name or 'trace'}.json")


def _to_lists(numbers: np.ndarray) -> Any:
    """Nested lists; NaN and infinities, which JSON lacks, become None."""
    if not np.issubdtype(numbers.dtype, np.floating) or np.isfinite(numbers).all():
        return numbers.tolist()
    nested = numbers.astype(object)
    nested[~np.isfinite(numbers)] = None
    return nested.tolist()


def html_file(header: Mapping[str, Any], recording: Recording, view: Mapping[str, str]) -> ExportFile:
    """The page of a trace as one file that opens at a view; `header` may include gradients and saliency."""
    return ExportFile(html.page(header, recording.records, urlencode(view)).encode(), "text/html", "trace.html")


def picture_file(recording: Recording, name: str | None, head: int | None, kind: str) -> ExportFile:
    """Attention weights as SVG or PNG."""
    try:
        view = recording.attention(name, head=head)
        content = png(view.svg()) if kind == "png" else view.svg().encode()
    except RegardError as error:
        raise ApiError(422, "no-picture", str(error), "choose attention weights, or another format") from None
    return ExportFile(content, "image/png" if kind == "png" else "image/svg+xml", f"{view.name}.{kind}")


def saliency_file(view: Saliency | PixelSaliency, kind: str) -> ExportFile:
    """Saliency of an answer as SVG, PNG, JSON or CSV."""
    if kind in ("svg", "png"):
        content = png(view.svg()) if kind == "png" else view.svg().encode()
        return ExportFile(content, "image/png" if kind == "png" else "image/svg+xml", f"saliency.{kind}")
    if kind == "json":
        return ExportFile(json.dumps(view.to_dict(), ensure_ascii=False).encode(), "application/json", "saliency.json")
    if kind != "csv":
        raise ApiError(422, "bad-request", f"format: expected svg, png, json, csv, got {kind[:20]!r}", "choose one")
    out = io.StringIO()
    table = csv.writer(out, lineterminator="\r\n")
    if isinstance(view, PixelSaliency):
        table.writerows([_escape_formula(str(output)), *cells] for output, *cells in view.table())
        return ExportFile(out.getvalue().encode(), "text/csv; charset=utf-8", "saliency.csv")
    table.writerow([*view.sides, "value"])
    for row, scores in zip(view.rows, view.scores.tolist(), strict=True):
        table.writerows(
            [_escape_formula(row), _escape_formula(read), repr(score)] for read, score in zip(view.columns, scores)
        )
    return ExportFile(out.getvalue().encode(), "text/csv; charset=utf-8", "saliency.csv")
