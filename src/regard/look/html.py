"""A trace as one HTML file: the studio's page with its modules, its colours and all numbers inside.

It works from a disk with no server and asks nobody for anything; its own Content-Security-Policy says so. Modules are
joined into one script, in the order in which they need one another: from a disk a browser loads no second module.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from functools import cache
from html import escape
from importlib.resources import files
from typing import Any

import numpy as np

from regard.look.tokens import visible
from regard.trace import Record

ENTRY = "alone.js"
STYLES = ("base.css", "screens.css")
ROOM = 48 << 20
"""bytes of numbers that a file holds at most"""
SMALL = 4 << 20
"""and those of a notebook's cell, which are kept with the notebook"""
FIRST = ("weights", "logits", "hidden", "cell", "gates", "residual", "scores")
"""kinds of tensors that are kept first where not all fit"""
IMPORT = re.compile(r'^import \{([^}]*)\} from "\./(\w+)\.js";\n', re.MULTILINE)
EXPORT = re.compile(r"^export (?:(async )?(function|class|const) (\w+)|\{\};)", re.MULTILINE)


def page(header: Mapping[str, Any], records: Sequence[Record], opened: str = "", room: int = ROOM) -> str:
    """A trace as a whole HTML text. `header` is that of the condensed `records`, with text, answer and model if they
    are known, and with "gradients" (a list of GradientsView.to_dict()) and "saliency" if they were looked at; `opened`
    says what is shown first, such as "tab=states"; tensors that do not fit are left out, and named.

    >>> 'content="default-src' in page({"tensors": [], "text": "</script>"}, [])
    True
    """
    names = [tensor["name"] for tensor in header["tensors"]]
    kept = fitting(records, room)
    table = {
        **header,
        "tensors": [tensor for tensor in header["tensors"] if tensor["name"] in kept],
        "left": [name for name in names if name not in kept],
    }
    by_name = {record.name: record for record in records}
    numbers = b"".join(raw(by_name[tensor["name"]]) for tensor in table["tensors"])
    script, style = bundle(ENTRY), "".join(source(name) for name in STYLES)
    title = escape(visible(str(header.get("text") or "a trace")))
    return (
        '<!doctype html>\n<html lang="en" dir="ltr">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy(script, style)}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{title} – regard</title>\n<style>{style}</style>\n</head>\n<body>\n"
        f'<div id="app" data-open="{escape(opened)}"></div>\n'
        "<noscript><p>This page draws with JavaScript; it asks nobody for anything.</p></noscript>\n"
        f'<script type="application/json" id="trace-header">{embedded(table)}</script>\n'
        f'<script type="text/plain" id="trace-numbers">{base64.b64encode(numbers).decode()}</script>\n'
        f"<script>{script}</script>\n</body>\n</html>\n"
    )


def framed(html: str, height: int = 640) -> str:
    """A page as a frame inside another, such as a notebook: it can run its own script and reach nothing around it.

    >>> framed("<p>").split(" srcdoc")[0]
    '<iframe sandbox="allow-scripts" style="width:100%;height:640px;border:1px solid #8a94a0;border-radius:8px"'
    """
    style = f"width:100%;height:{height}px;border:1px solid #8a94a0;border-radius:8px"
    return f'<iframe sandbox="allow-scripts" style="{style}" srcdoc="{escape(html)}" title="A trace"></iframe>'


def fitting(records: Sequence[Record], room: int) -> set[str]:
    """The names of the tensors that fit into a file, the telling kinds first.

    >>> import torch
    >>> seen = [Record(name, ("batch", "key"), torch.ones(1, 3), {}, {}) for name in ("a.keys", "a.weights")]
    >>> fitting(seen, room=16)
    {'a.weights'}
    """
    kinds = {kind: rank for rank, kind in enumerate(FIRST)}
    kept: set[str] = set()
    for record in sorted(records, key=lambda r: kinds.get(r.name.rpartition(".")[2], len(FIRST))):
        size = 4 * record.data[0].numel()
        if size <= room:
            kept.add(record.name)
            room -= size
    return kept


def raw(record: Record) -> bytes:
    """The numbers of the first sentence, little-endian: floats of 32 bits, or whole numbers of 32 bits.

    >>> import torch
    >>> raw(Record("w", ("batch", "key"), torch.tensor([[1.0]]), {}, {}))
    b'\\x00\\x00\\x80?'
    """
    numbers = record.data[0].detach().cpu()
    kind = "<f4" if numbers.is_floating_point() else "<i4"
    return np.ascontiguousarray(numbers.float() if kind == "<f4" else numbers, dtype=kind).tobytes()


def embedded(table: Mapping[str, Any]) -> str:
    """JSON that cannot end the element it stands in.

    >>> embedded({"text": "</script><!--"})
    '{"text": "\\\\u003c/script\\\\u003e\\\\u003c!--"}'
    """
    text = json.dumps(table, ensure_ascii=False, allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e")


def policy(script: str, style: str) -> str:
    """What a browser may do with the file: run this script, use this style, and nothing from anywhere.

    >>> policy("", "").split("; ")[0]
    "default-src 'none'"
    """
    hashes = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in (script, style)]
    # what is drawn sets the size and the colour of its elements through the DOM, which no policy forbids
    rules = ["default-src 'none'", f"script-src 'sha256-{hashes[0]}'", f"style-src 'sha256-{hashes[1]}'"]
    return "; ".join([*rules, "img-src data: blob:", "base-uri 'none'", "form-action 'none'"])


@cache
def source(name: str) -> str:
    """A file of the page.

    >>> source("alone.js").splitlines()[0]
    '// @ts-check'
    """
    return (files("regard.studio") / "page" / name).read_text(encoding="utf-8")


@cache
def bundle(entry: str) -> str:
    """A module and all that it needs as one script: each module is a function that gives away what it exports.

    >>> "const $dom = (() => {" in bundle(ENTRY)
    True
    """
    done: dict[str, str] = {}

    def add(name: str, waiting: tuple[str, ...]) -> None:
        if name in done:
            return
        if name in waiting:
            raise ValueError(f"modules need one another in a circle: {' -> '.join([*waiting, name])}")
        text = source(f"{name}.js")
        for _, other in IMPORT.findall(text):
            add(other, (*waiting, name))
        done[name] = module(name, text)

    add(entry.removesuffix(".js"), ())
    joined = "".join(done.values())
    if "</script" in joined.lower() or "<!--" in joined:
        raise ValueError("a module holds what would end the script it is put into")
    return f'"use strict";\n{joined}'


def module(name: str, text: str) -> str:
    """A module as a function.

    >>> print(module("b", 'import { x, y as z } from "./a.js";\\nexport const one = x + z;\\n'), end="")
    const $b = (() => {
    const { x, y: z } = $a;
    const one = x + z;
    return { one };
    })();
    """
    exported = [found[3] for found in EXPORT.finditer(text) if found[3]]
    body = IMPORT.sub(lambda m: f"const {{{m[1].replace(' as ', ': ')}}} = ${m[2]};\n", text)
    body = EXPORT.sub(lambda m: f"{m[1] or ''}{m[2]} {m[3]}" if m[3] else "", body)
    if re.search(r"^(import|export)\b(?!\()", body, re.MULTILINE):
        raise ValueError(f"{name}.js imports or exports in a way that cannot be joined")
    return f"const ${name} = (() => {{\n{body.rstrip()}\nreturn {{ {', '.join(exported)} }};\n}})();\n"
