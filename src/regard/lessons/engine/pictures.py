"""Values drawn with characters: heat maps, curves as bars, search trees."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from rich.cells import cell_len
from rich.text import Text

from regard.lessons.engine.formatting import wrap_lines, wrap_text
from regard.lessons.engine.lesson import Value
from regard.look.color_scales import DivergingScale
from regard.look.matrix import Matrix
from regard.look.terminal import SHADES, ColorDepth, heat_map, pad_cells, paint
from regard.look.tokens import isolate_bidi, make_visible, truncate

MAX_LABEL = 16
"""columns of a label"""
BARS = "▁▂▃▄▅▆▇█"
MAX_NUMBERS = 12
"""rows and columns up to which a heat map of signed numbers also shows the numbers"""
MIN_SPAN = 2.0
"""smallest factor that a logarithmic axis spans, so that a nearly constant curve is drawn level"""
STRONG = "bold"


def picture_lines(value: Value, width: int, color: ColorDepth) -> list[Text] | None:
    """The picture of a value; None: it is shown as numbers."""
    if value.look in ("log", "line"):
        return curve_lines(value, width)
    if value.look == "tree":
        return tree_lines(value, width)
    if value.look == "records":
        return record_lines(value, width)
    if value.look == "listing":
        return listing_lines(value, width)
    return heat_map_lines(value, width, color) if is_heat_map(value) else None


def is_heat_map(value: Value) -> bool:
    """Whether a value is drawn as a heat map: signed numbers, arcs, and weights with labels on both axes."""
    labeled = value.look == "weights" and len(value.axes) == 2 and len(value.labels) == 2
    return labeled or value.look in ("signed", "arcs")


def heat_map_lines(value: Value, width: int, color: ColorDepth) -> list[Text]:
    """A matrix as a heat map; a large one of signed numbers with one character per cell.

    >>> value = Value("A", [[0.25, 0.75]], ("target", "source"), {"target": ["i"], "source": ["a", "b"]}, look="arcs")
    >>> [line.plain for line in heat_map_lines(value, 40, "none")][2]
    'i  ░░0.25 ██0.75'
    """
    sizes = len(value.data), len(value.data[0])
    rows, columns = (tuple(value.labels.get(a, [str(i + 1) for i in range(n)])) for a, n in zip(value.axes, sizes))
    numbers = np.array(value.data, dtype=np.float64)
    if value.look == "signed" and max(sizes) > MAX_NUMBERS:
        return _pixel_lines(numbers, rows, value, width, color)
    scale = DivergingScale(float(np.abs(numbers).max())) if value.look == "signed" else None
    matrix = Matrix(numbers, rows, columns, value.sign, value.axes[0], value.axes[1], color_scale=scale)
    lines = [Text.from_ansi(line) for line in heat_map(matrix, width, color).splitlines()[1:]]
    return wrap_lines(lines, width)


def _pixel_lines(numbers: np.ndarray, rows: Sequence[str], value: Value, width: int, color: ColorDepth) -> list[Text]:
    limit = float(np.abs(numbers).max()) or 1.0
    labels = [truncate(make_visible(row), MAX_LABEL) for row in rows]
    margin = max(map(cell_len, labels)) + 1
    count, lines = max(1, width - margin), []
    for label, row in zip(labels, numbers):
        cells = [_pixel(float(number) / limit, color) for number in row[:count]]
        lines.append(Text.assemble((pad_cells(label, margin, "left"), "dim"), Text.from_ansi("".join(cells))))
    scale = "".join(_pixel(i / 4 - 1, color) for i in range(9))
    legend = Text.assemble(f"{-limit:.2f} ", Text.from_ansi(scale), f" {limit:.2f}")
    axes = f"{value.axes[0]} down, {value.axes[1]} across"
    axes += f", the first {count} of {numbers.shape[1]}" if numbers.shape[1] > count else ""
    return [*lines, legend, *wrap_text(axes, width, "dim")]


def _pixel(number: float, color: ColorDepth) -> str:
    """A color, or a shade from light to dark, for a number from -1 to 1."""
    if color != "none":
        return paint(" ", number, color, "diverging")
    return SHADES[round((number + 1) / 2 * (len(SHADES) - 1))]


def curve_lines(value: Value, width: int) -> list[Text]:
    """Rows of bars on a common axis, each between its first and last number.

    >>> [line.plain.rstrip() for line in curve_lines(Value("g", [1.0, 0.1, 0.01], ("distance",), look="log"), 60)]
    ['1.0e+00 █▅▁ 1.0e-02', 'distance 0 to 2; axis from 1.0e-02 to 1.0e+00']
    >>> [line.plain.rstrip() for line in curve_lines(Value("g", [1.0, 1.001, 0.999], ("distance",), look="log"), 60)]
    ['1.0e+00 ███ 1.0e+00', 'distance 0 to 2; axis from 5.0e-01 to 1.0e+00']
    """
    rows, words = ([value.data], []) if len(value.axes) == 1 else (value.data, value.labels.get(value.axes[0], []))
    labels = [truncate(make_visible(word), min(MAX_LABEL, width - 22)) for word in words]
    margin = max(map(cell_len, labels)) + 2 if labels else 0
    steps, log = len(rows[0]), value.look == "log"
    count = max(3, min(steps, width - margin - 2 * 8))
    low, high = _axis_range([x for row in rows for x in row if x > 0 or not log], log)
    lines = []
    for i, row in enumerate(rows):
        picked = [row[round(k * (steps - 1) / max(count - 1, 1))] for k in range(count)]
        line = Text.assemble((pad_cells(labels[i], margin, "left") if labels else "", "dim"), f"{_format(row[0])} ")
        line.append("".join(_bar(x, low, high, log) for x in picked), STRONG)
        lines.append(line.append(f" {_format(row[-1])}"))
    axis = value.axes[-1]
    ticks = value.labels.get(axis) or [str(i) for i in range(steps)]
    legend = f"{axis} {ticks[0]} to {ticks[-1]}; axis from {_format(low)} to {_format(high)}"
    return [*lines, *wrap_text(legend, width, "dim")]


def _axis_range(numbers: Sequence[float], log: bool) -> tuple[float, float]:
    low, high = min(numbers, default=1.0), max(numbers, default=1.0)
    return min(low, high / MIN_SPAN) if log else low, high


def _format(number: float) -> str:
    return f"{number:.1e}" if number else "0"


def _bar(number: float, low: float, high: float, log: bool) -> str:
    if log and number <= 0:
        return " "
    if high <= low:
        return BARS[-1]
    share = math.log(number / low) / math.log(high / low) if log else (number - low) / (high - low)
    return BARS[round(share * (len(BARS) - 1))]


def tree_lines(value: Value, width: int) -> list[Text]:
    """A search tree with one line per token, indented only where it branches.

    >>> rows = [["", "I", "-0.1", ""], ["0", "am", "-0.3", "the answer"], ["0", "was", "-2.5", "pruned"]]
    >>> [line.plain for line in tree_lines(Value("beam", rows, ("node", "column"), look="tree"), 40)]
    ['I  -0.1', '├─ am  -0.3  the answer', '└─ was  -2.5  pruned']
    """
    children: dict[str, list[int]] = {}
    for i, row in enumerate(value.data):
        children.setdefault(row[0], []).append(i)
    lines: list[Text] = []
    stack = [(i, "", "") for i in reversed(children.get("", []))]
    while stack:
        i, lead, indent = stack.pop()
        _, word, score, outcome = value.data[i]
        note = f"  {score}{f'  {outcome}' if outcome else ''}"
        room = max(width - cell_len(lead) - cell_len(note), 4)
        text = truncate(f"{lead}{truncate(make_visible(word), room)}{note}", width)
        lines.append(Text(isolate_bidi(text), "" if outcome == "pruned" else STRONG))
        below = children.get(str(i), [])
        branches = len(below) > 1 and cell_len(indent) < width // 2
        for child in reversed(below):
            last = child == below[-1]
            deeper = (f"{indent}{'└─ ' if last else '├─ '}", f"{indent}{'   ' if last else '│  '}")
            stack.append((child, *(deeper if branches else (indent, indent))))
    return lines


def record_lines(value: Value, width: int) -> list[Text]:
    """Rows of texts: the label of a row, then each text after the label of its column.

    >>> value = Value("t", [["117 million"]], ("model", "column"), {"model": ["GPT-1"], "column": ["parameters"]})
    >>> [line.plain for line in record_lines(value, 40)]
    ['GPT-1', '  parameters: 117 million']
    """
    lines: list[Text] = []
    for label, row in zip(value.labels[value.axes[0]], value.data):
        lines += wrap_text(label, width, STRONG)
        for name, text in zip(value.labels[value.axes[1]], row):
            parts = wrap_text(f"{name}: {text}", width - 4)
            lines += [Text("  " if i == 0 else "    ").append_text(part) for i, part in enumerate(parts)]
    return lines


def listing_lines(value: Value, width: int) -> list[Text]:
    """Lines of code with their indentation, each with what it does below it.

    >>> rows = [["for x in xs:", "every x"], ["    add(x)", "is added"]]
    >>> [line.plain for line in listing_lines(Value("code", rows, ("line", "column"), look="listing"), 40)]
    ['for x in xs:', '  # every x', '    add(x)', '      # is added']
    """
    lines: list[Text] = []
    for code, meaning in value.data:
        indent = " " * (len(code) - len(code.lstrip()))
        lines += wrap_text(code, width, STRONG)
        parts = wrap_text(f"# {meaning}", max(8, width - len(indent) - 4), "dim")
        lines += [Text(f"{indent}  {'  ' if i else ''}").append_text(part) for i, part in enumerate(parts)]
    return lines
