"""Standalone HTML page of a trace: the studio's page with its modules, styles and all numbers in one file.

It needs no server and makes no requests, which its Content-Security-Policy enforces. Modules are bundled into one
script in dependency order, because browsers do not load modules from file:// addresses.
"""

from __future__ import annotations

import base64
import hashlib
import json
import posixpath
import re
from collections.abc import Mapping, Sequence
from functools import cache
from html import escape
from importlib.resources import files
from typing import Any

import numpy as np

from regard.look.tokens import make_visible
from regard.trace import Record

ENTRY = "standalone.js"
STYLES = (
    "base.css",
    "screens.css",
    "predictions.css",
    "tasks.css",
    "scene.css",
    "insight.css",
    "tour.css",
    "explain.css",
)
MAX_BYTES = 48 << 20
"""limit of the tensors in a file"""
NOTEBOOK_BYTES = 4 << 20
"""limit in a notebook cell, which is saved with the notebook"""
PRIORITY = (
    "pixels", "rollout", "position_similarity", "filters", "weights", "logits", "ids", "probabilities", "hidden",
    "cell", "gates", "residual", "feature_map", "scores",
)  # fmt: skip
"""kinds of tensors that are included first if not all fit"""
IMPORT = re.compile(r'^import \{([^}]*)\} from "(\.[\w./-]*)\.js";\n', re.MULTILINE)
EXPORT = re.compile(r"^export (?:(async )?(function|class|const) (\w+)|\{\};)", re.MULTILINE)


def page(header: Mapping[str, Any], records: Sequence[Record], start_view: str = "", max_bytes: int = MAX_BYTES) -> str:
    """A trace as one HTML text.

    `header` is that of the condensed `records`, with text, answer and model if known, and with "gradients" (a list of
    GradientsView.to_dict()) and "saliency" if computed; `start_view` is the first view, such as "tab=states". Tensors
    that do not fit are left out and listed.
    """
    names = [tensor["name"] for tensor in header["tensors"]]
    included = select_tensors(records, max_bytes)
    table = {
        **header,
        "tensors": [tensor for tensor in header["tensors"] if tensor["name"] in included],
        "omitted": [name for name in names if name not in included],
    }
    by_name = {record.name: record for record in records}
    numbers = b"".join(tensor_bytes(by_name[tensor["name"]]) for tensor in table["tensors"])
    script, style = bundle(ENTRY), "".join(source(name) for name in STYLES)
    title = escape(make_visible(str(header.get("text") or "a trace")))
    return (
        '<!doctype html>\n<html lang="en" dir="ltr">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{content_policy(script, style)}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{title} – regard</title>\n<style>{style}</style>\n</head>\n<body>\n"
        f'<div id="app" data-open="{escape(start_view)}"></div>\n'
        "<noscript><p>This page needs JavaScript; it makes no requests.</p></noscript>\n"
        f'<script type="application/json" id="trace-header">{embed_json(table)}</script>\n'
        f'<script type="text/plain" id="trace-numbers">{base64.b64encode(numbers).decode()}</script>\n'
        f"<script>{script}</script>\n</body>\n</html>\n"
    )


def iframe(html: str, height: int = 640) -> str:
    """A page in a sandboxed frame, such as in a notebook: its script cannot reach the page around it."""
    style = f"width:100%;height:{height}px;border:1px solid #8a94a0;border-radius:8px"
    return f'<iframe sandbox="allow-scripts" style="{style}" srcdoc="{escape(html)}" title="A trace"></iframe>'


def select_tensors(records: Sequence[Record], max_bytes: int) -> set[str]:
    """Names of the tensors that fit into a file, by the priority of their kinds."""
    kinds = {kind: rank for rank, kind in enumerate(PRIORITY)}
    selected: set[str] = set()
    for record in sorted(records, key=lambda r: kinds.get(r.name.rpartition(".")[2], len(PRIORITY))):
        size = 4 * record.data[0].numel()
        if size <= max_bytes:
            selected.add(record.name)
            max_bytes -= size
    return selected


def tensor_bytes(record: Record) -> bytes:
    """Numbers of the first sentence as little-endian float32 or int32."""
    numbers = record.data[0].detach().cpu()
    kind = "<f4" if numbers.is_floating_point() else "<i4"
    return np.ascontiguousarray(numbers.float() if kind == "<f4" else numbers, dtype=kind).tobytes()


def embed_json(table: Mapping[str, Any]) -> str:
    """JSON that is safe inside a <script> element.

    >>> embed_json({"text": "</script><!--"})
    '{"text": "\\\\u003c/script\\\\u003e\\\\u003c!--"}'
    """
    text = json.dumps(table, ensure_ascii=False, allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e")


def content_policy(script: str, style: str) -> str:
    """Content-Security-Policy: this script, this style, and no requests."""
    hashes = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in (script, style)]
    # sizes and colors of elements are set through the DOM, which no policy forbids
    rules = ["default-src 'none'", f"script-src 'sha256-{hashes[0]}'", f"style-src 'sha256-{hashes[1]}'"]
    return "; ".join([*rules, "img-src data: blob:", "base-uri 'none'", "form-action 'none'"])


@cache
def source(name: str) -> str:
    """Content of a file of the page."""
    return (files("regard.look") / "page" / name).read_text(encoding="utf-8")


@cache
def bundle(entry: str) -> str:
    """A module and its dependencies as one script: each module becomes a function that returns its exports."""
    done: dict[str, str] = {}

    def add(name: str, waiting: tuple[str, ...]) -> None:
        if name in done:
            return
        if name in waiting:
            raise ValueError(f"circular import of modules: {' -> '.join([*waiting, name])}")
        text = source(f"{name}.js")
        for _, other in IMPORT.findall(text):
            add(resolve(name, other), (*waiting, name))
        done[name] = module(name, text)

    add(entry.removesuffix(".js"), ())
    script = "".join(done.values())
    if "</script" in script.lower() or "<!--" in script:
        raise ValueError("a module contains text that would end the <script> element")
    return f'"use strict";\n{script}'


def module(name: str, text: str) -> str:
    """A module as a function that returns its exports."""
    exported = [found[3] for found in EXPORT.finditer(text) if found[3]]
    body = IMPORT.sub(lambda m: f"const {{{m[1].replace(' as ', ': ')}}} = {variable(resolve(name, m[2]))};\n", text)
    body = EXPORT.sub(lambda m: f"{m[1] or ''}{m[2]} {m[3]}" if m[3] else "", body)
    if re.search(r"^(import|export)\b(?!\()", body, re.MULTILINE):
        raise ValueError(f"{name}.js imports or exports in a way that cannot be bundled")
    return f"const {variable(name)} = (() => {{\n{body.rstrip()}\nreturn {{ {', '.join(exported)} }};\n}})();\n"


def resolve(name: str, imported: str) -> str:
    """Path of the module that a relative import names."""
    return posixpath.normpath(posixpath.join(posixpath.dirname(name), imported))


def variable(name: str) -> str:
    """Variable of a module inside the bundle."""
    return "$" + name.replace("/", "$").replace("-", "_")
