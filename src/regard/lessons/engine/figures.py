"""Numbers and words as a reader sees them: numbers of a table in one form, texts folded into lines."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rich.cells import cell_len, chop_cells

from regard.lessons.engine.lesson import Data, Value
from regard.look.tokens import visible


def figures(numbers: Sequence[float]) -> list[str]:
    """Numbers in one form: whole ones as they are, others with as many of four digits as they need, or by powers.

    >>> figures([1.0, 0.0, -1.0]), figures([0.603, 0.25]), figures([1e-7, 0.75]), figures([0.000699])
    (['1', '0', '-1'], ['0.603', '0.250'], ['1.0e-07', '0.75'], ['6.99e-04'])
    """
    sizes = [abs(number) for number in numbers if number]
    if all(number == math.floor(number) for number in numbers) and max(sizes, default=0) < 1e7:
        return [f"{int(number)}" for number in numbers]
    if max(sizes) >= 1e5:
        return [f"{number:.1e}" if number else "0" for number in numbers]
    if max(sizes) < 5e-3:
        return [f"{number:.2e}" if number else "0" for number in numbers]
    digits = next((n for n in range(1, 4) if all(round(x, n) == round(x, 4) for x in numbers)), 4)
    return [f"{x:.1e}" if 0 < abs(x) < 5e-4 else f"{x:.{digits}f}" for x in numbers]


def written(items: Sequence[object]) -> list[str]:
    """The cells of a table: numbers in one form, texts as they can be seen.

    >>> written(["sera,", "a\\tb"]), written([True])
    (['sera,', 'a⇥b'], ['1'])
    """
    if any(isinstance(item, str) for item in items):
        return [visible(str(item)) for item in items]
    return figures([float(item) for item in items])  # type: ignore[arg-type]


def table(value: Value) -> list[list[str]]:
    """The cells of a vector (one row) or a matrix; columns that are about different things have each their own form.

    >>> table(Value("kept", [[-0.5, 3], [-0.25, 12]], ("sentence", "column"), {"column": ["log p", "length"]}))
    [['-0.50', '3'], ['-0.25', '12']]
    """
    rows = value.data if len(value.axes) == 2 else [value.data]
    if value.axes[-1] == "column":
        return [list(row) for row in zip(*(written(column) for column in zip(*rows)))]
    flat, count = written([cell for row in rows for cell in row]), len(rows[0])
    return [flat[i * count : (i + 1) * count] for i in range(len(rows))]


def brief(data: Data) -> str:
    """A value in one line.

    >>> brief([1.0, 0.5]), brief("am"), brief([[1, 0], [0, 1]])
    ('[1.0  0.5]', '"am"', '[[1  0] [0  1]]')
    """
    if not isinstance(data, list):
        return f'"{data}"' if isinstance(data, str) else written([data])[0]
    if data and isinstance(data[0], list):
        return f"[{' '.join(map(brief, data))}]"
    return f"[{'  '.join(written(data))}]" if data else "nothing"


def folded(text: str, width: int) -> list[str]:
    """Lines of words; a word that is too long is cut into pieces. Of nothing there are none.

    >>> folded("to be or not", 6), folded("incomprehensible", 8), folded("", 8)
    (['to be', 'or not'], ['incompre', 'hensible'], [])
    """
    lines: list[str] = []
    for word in text.split(" "):
        for piece in chop_cells(visible(word), width) if word else [""]:
            if lines and cell_len(lines[-1]) + 1 + cell_len(piece) <= width:
                lines[-1] += f" {piece}"
            else:
                lines.append(piece)
    return lines if text else []
