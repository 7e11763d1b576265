"""Text of numbers and words: consistent number formats, table cells, wrapped lines."""

from __future__ import annotations

import io
import math
from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.text import Text

from regard.lessons.engine.lesson import Data, Value
from regard.look.tokens import make_visible

_CONSOLE = Console(file=io.StringIO())


def format_numbers(numbers: Sequence[float]) -> list[str]:
    """Numbers in one format: integers, up to four decimals as needed, or scientific notation.

    Large integers are counts: they are shown in full, with commas.

    >>> format_numbers([1.0, 0.0, -1.0]), format_numbers([0.603, 0.25]), format_numbers([1e-7, 0.75])
    (['1', '0', '-1'], ['0.603', '0.250'], ['1.0e-07', '0.75'])
    """
    sizes = [abs(number) for number in numbers if number]
    if all(number == math.floor(number) for number in numbers) and max(sizes, default=0) < 1e15:
        return [f"{int(number):,}" if max(sizes, default=0) >= 1e7 else f"{int(number)}" for number in numbers]
    if max(sizes) >= 1e5:
        return [f"{number:.1e}" if number else "0" for number in numbers]
    if max(sizes) < 5e-3:
        return [f"{number:.2e}" if number else "0" for number in numbers]
    digits = next((n for n in range(1, 4) if all(round(x, n) == round(x, 4) for x in numbers)), 4)
    return [f"{x:.1e}" if 0 < abs(x) < 5e-4 else f"{x:.{digits}f}" for x in numbers]


def format_cells(items: Sequence[object]) -> list[str]:
    """Table cells: numbers in one format, texts with invisible characters made visible.

    >>> format_cells(["sera,", "a\\tb"]), format_cells([True])
    (['sera,', 'a⇥b'], ['1'])
    """
    if any(isinstance(item, str) for item in items):
        return [make_visible(str(item)) for item in items]
    return format_numbers([float(item) for item in items])  # type: ignore[arg-type]


def format_table(value: Value) -> list[list[str]]:
    """Cells of a vector (one row) or a matrix; along an axis called "column", each column has its own format.

    >>> format_table(Value("beam", [[-0.5, 3], [-0.25, 12]], ("hypothesis", "column")))
    [['-0.50', '3'], ['-0.25', '12']]
    """
    rows = value.data if len(value.axes) == 2 else [value.data]
    if value.axes[-1] == "column":
        return [list(row) for row in zip(*(format_cells(column) for column in zip(*rows)))]
    flat, count = format_cells([cell for row in rows for cell in row]), len(rows[0])
    return [flat[i * count : (i + 1) * count] for i in range(len(rows))]


def format_brief(data: Data) -> str:
    """A value on one line.

    >>> format_brief([1.0, 0.5]), format_brief("am"), format_brief([[1, 0], [0, 1]])
    ('[1.0  0.5]', '"am"', '[[1  0] [0  1]]')
    """
    if not isinstance(data, list):
        return f'"{data}"' if isinstance(data, str) else format_cells([data])[0]
    if data and isinstance(data[0], list):
        return f"[{' '.join(map(format_brief, data))}]"
    return f"[{'  '.join(format_cells(data))}]" if data else "nothing"


def wrap_text(text: str, width: int, style: str = "") -> list[Text]:
    """Lines of at most `width` columns; longer words are split.

    >>> [line.plain.rstrip() for line in wrap_text("to be incomprehensible", 8)]
    ['to be', 'incompre', 'hensible']
    """
    words = " ".join(make_visible(word) if word else "" for word in text.split(" "))
    return wrap_lines([Text(words, style)], width) if text else []


def wrap_lines(lines: Iterable[Text], width: int) -> list[Text]:
    """Lines of at most `width` columns, styles kept."""
    return [part for line in lines for part in line.wrap(_CONSOLE, width)]
