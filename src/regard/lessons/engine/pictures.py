"""Values as pictures of characters: heat maps, curves as bars, the tree of a search."""

from __future__ import annotations

import io
import math
from collections.abc import Sequence

import numpy as np
from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from regard.lessons.engine.figures import folded
from regard.lessons.engine.lesson import Value
from regard.look.color_scales import Signed
from regard.look.matrix import Matrix
from regard.look.terminal import SHADES, Colour, heat_map, padded, painted
from regard.look.tokens import cut, isolated, visible

LONGEST = 16
"""columns of a label at most"""
BARS = "▁▂▃▄▅▆▇█"
NUMBERS = 12
"""rows and columns up to which a picture of signed numbers also shows the numbers"""
SPAN = 2.0
"""factor that a logarithmic axis spans at least"""
STRONG = "bold"


def heat_lines(value: Value, width: int, colour: Colour) -> list[Text]:
    """A matrix as a heat map; a large one of signed numbers as a picture of a character each.

    >>> value = Value("A", [[0.25, 0.75]], ("target", "source"), {"target": ["i"], "source": ["a", "b"]}, look="arcs")
    >>> [line.plain for line in heat_lines(value, 40, "none")][2]
    'i  ░░0.25 ██0.75'
    """
    sizes = len(value.data), len(value.data[0])
    rows, columns = (tuple(value.labels.get(a, [str(i + 1) for i in range(n)])) for a, n in zip(value.axes, sizes))
    numbers = np.array(value.data, dtype=np.float64)
    if value.look == "signed" and max(sizes) > NUMBERS:
        return _small(numbers, rows, value, width, colour)
    scale = Signed(float(np.abs(numbers).max())) if value.look == "signed" else None
    matrix = Matrix(numbers, rows, columns, value.sign, value.axes[0], value.axes[1], given=scale)
    lines = [Text.from_ansi(line) for line in heat_map(matrix, width, colour).splitlines()[1:]]
    console = Console(file=io.StringIO(), width=width)
    return [part for line in lines for part in line.wrap(console, width)]


def _small(numbers: np.ndarray, rows: Sequence[str], value: Value, width: int, colour: Colour) -> list[Text]:
    reach = float(np.abs(numbers).max()) or 1.0
    labels = [cut(visible(row), LONGEST) for row in rows]
    margin = max(map(cell_len, labels)) + 1
    most, lines = max(1, width - margin), []
    for label, row in zip(labels, numbers):
        cells = [_pixel(float(number) / reach, colour) for number in row[:most]]
        lines.append(Text.assemble((padded(label, margin, "left"), "dim"), Text.from_ansi("".join(cells))))
    ramp = "".join(_pixel(place / 4 - 1, colour) for place in range(9))
    legend = Text.assemble(f"{-reach:.2f} ", Text.from_ansi(ramp), f" {reach:.2f}")
    told = f"{value.axes[0]} down, {value.axes[1]} across"
    told += f", the first {most} of {numbers.shape[1]}" if numbers.shape[1] > most else ""
    return [*lines, legend, *(Text(line, "dim") for line in folded(told, width))]


def _pixel(place: float, colour: Colour) -> str:
    """From -1 to 1: a colour, or a shade from light to dark."""
    if colour != "none":
        return painted(" ", place, colour, "signed")
    return SHADES[round((place + 1) / 2 * (len(SHADES) - 1))]


def curves(value: Value, width: int) -> list[Text]:
    """Rows of bars on one axis, with the first and the last number of each; "log": by powers of ten.

    A logarithmic axis spans a factor of 2 at least, so that what hardly moves is drawn level.

    >>> [line.plain.rstrip() for line in curves(Value("g", [1.0, 0.1, 0.01], ("distance",), look="log"), 60)]
    ['1.0e+00 █▅▁ 1.0e-02', 'distance 0 to 2; axis from 1.0e-02 to 1.0e+00']
    >>> [line.plain.rstrip() for line in curves(Value("g", [1.0, 1.001, 0.999], ("distance",), look="log"), 60)]
    ['1.0e+00 ███ 1.0e+00', 'distance 0 to 2; axis from 5.0e-01 to 1.0e+00']
    >>> [line.plain.rstrip() for line in curves(Value("g", [1.0, 0.5, 0.0], ("step",), look="line"), 60)]
    ['1.0e+00 █▅▁ 0', 'step 0 to 2; axis from 0 to 1.0e+00']
    """
    rows = value.data if len(value.axes) == 2 else [value.data]
    labels = (
        [cut(visible(word), min(LONGEST, width - 22)) for word in value.labels.get(value.axes[0], [])]
        if len(value.axes) == 2
        else []
    )
    margin = max(map(cell_len, labels)) + 2 if labels else 0
    steps, powers = len(rows[0]), value.look == "log"
    room = max(3, min(steps, width - margin - 2 * 8))
    drawn = [x for row in rows for x in row if x > 0 or not powers]
    low, high = _ends(drawn, powers)
    lines = []
    for i, row in enumerate(rows):
        picked = [row[round(k * (steps - 1) / max(room - 1, 1))] for k in range(room)]
        line = Text.assemble((padded(labels[i], margin, "left") if labels else "", "dim"))
        line.append(f"{_power(row[0])} ")
        line.append("".join(_bar(x, low, high, powers) for x in picked), STRONG)
        line.append(f" {_power(row[-1])}")
        lines.append(line)
    axis = value.axes[-1]
    along = value.labels.get(axis) or [str(i) for i in range(steps)]
    for part in folded(f"{axis} {along[0]} to {along[-1]}; axis from {_power(low)} to {_power(high)}", width):
        lines.append(Text(part, "dim"))
    return lines


def _ends(drawn: Sequence[float], powers: bool) -> tuple[float, float]:
    """Where an axis begins and ends."""
    low, high = min(drawn, default=1.0), max(drawn, default=1.0)
    return min(low, high / SPAN) if powers else low, high


def _power(number: float) -> str:
    return f"{number:.1e}" if number else "0"


def _bar(number: float, low: float, high: float, powers: bool) -> str:
    if powers and number <= 0:
        return " "
    if high <= low:
        return BARS[-1]
    share = math.log(number / low) / math.log(high / low) if powers else (number - low) / (high - low)
    return BARS[round(share * (len(BARS) - 1))]


def tree(value: Value, width: int) -> list[Text]:
    """The tree of a search, a line for each word; it branches to the right only where two ways part.

    A row of it says: the row that it goes on from (empty: none), the word, its log-probability, what became of it.

    >>> rows = [["", "I", "-0.1", ""], ["0", "am", "-0.3", "the answer"], ["0", "was", "-2.5", "left behind"]]
    >>> [line.plain for line in tree(Value("beam", rows, ("node", "told"), look="tree"), 40)]
    ['I  -0.1', '├─ am  -0.3  the answer', '└─ was  -2.5  left behind']
    """
    children: dict[str, list[int]] = {}
    for i, row in enumerate(value.data):
        children.setdefault(row[0], []).append(i)
    lines: list[Text] = []
    waiting = [(i, "", "") for i in reversed(children.get("", []))]
    while waiting:
        i, lead, indent = waiting.pop()
        _, word, score, fate = value.data[i]
        told = f"  {score}{f'  {fate}' if fate else ''}"
        room = max(width - cell_len(lead) - cell_len(told), 4)
        text = cut(f"{lead}{cut(visible(word), room)}{told}", width)
        lines.append(Text(isolated(text), "" if "behind" in fate else STRONG))
        below = children.get(str(i), [])
        parted = len(below) > 1 and cell_len(indent) < width // 2
        for child in reversed(below):
            last = child == below[-1]
            deeper = (f"{indent}{'└─ ' if last else '├─ '}", f"{indent}{'   ' if last else '│  '}")
            waiting.append((child, *(deeper if parted else (indent, indent))))
    return lines
