"""No run of ten or more lines stands twice in the package, even with other names, unless a reason is written below.

Lines are compared by their shape: every name is one name, every literal one literal of its kind. Blank lines, comments,
docstrings, imports and lone brackets do not count; neither does a run inside one statement, such as a table of words.
"""

import ast
import io
import keyword
import re
import token
import tokenize
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "regard"
MIN_LINES = 10
MIN_SHAPES = 6
"""Different lines in a run; a list of calls has fewer, and is no logic that could be shared."""
MIN_LOGIC = 3
"""Lines in a run that do something; fields and the heads of functions and classes only declare."""

REASONS: dict[tuple[str, str], str] = {}
"""(`file:definition`, `file:definition`) in alphabetical order -> why the run stands twice."""

SKIPPED = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}


@dataclass(frozen=True)
class Line:
    """One line that counts: where it stands, its shape, the simple statement and the definition it belongs to."""

    number: int
    shape: str
    statement: int
    declares: bool
    definition: str


@dataclass(frozen=True)
class Duplicate:
    """A run of lines that stands in two places."""

    first: str
    second: str
    lines: int
    where: str

    @property
    def key(self) -> tuple[str, str]:
        return min(self.first, self.second), max(self.first, self.second)


def shapes(text: str) -> dict[int, str]:
    """The shape of each line: names, numbers and strings without what distinguishes them.

    >>> shapes("total = 1 + size")
    {1: 'N = 0 + N'}
    """
    lines: dict[int, list[str]] = defaultdict(list)
    depth = 0  # since Python 3.12 an f-string is many tokens, and is one here
    for item in tokenize.generate_tokens(io.StringIO(text).readline):
        kind = token.tok_name[item.type]
        if kind == "FSTRING_START":
            depth += 1
            if depth == 1:
                lines[item.start[0]].append("S")
        elif kind == "FSTRING_END":
            depth -= 1
        elif depth or item.type in SKIPPED:
            continue
        elif kind == "NAME":
            lines[item.start[0]].append(item.string if keyword.iskeyword(item.string) else "N")
        else:
            lines[item.start[0]].append({"STRING": "S", "NUMBER": "0"}.get(kind, item.string))
    return {number: " ".join(tokens) for number, tokens in lines.items()}


def first_line(node: ast.AST) -> int:
    """The line where a statement begins, its decorators included."""
    if isinstance(node, ast.match_case):
        return node.pattern.lineno
    return min(item.lineno for item in [node, *getattr(node, "decorator_list", [])])


DEFINITIONS = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass(frozen=True)
class Span:
    """The lines of a simple statement, or of the head of a compound one."""

    lines: range
    node: ast.AST
    definition: str

    @property
    def counts(self) -> bool:
        text = isinstance(self.node, ast.Expr) and isinstance(self.node.value, ast.Constant)
        return not text and not isinstance(self.node, ast.Import | ast.ImportFrom)

    @property
    def declares(self) -> bool:
        return isinstance(self.node, (*DEFINITIONS, ast.AnnAssign))


def spans(tree: ast.AST, name: str = "") -> Iterator[Span]:
    """The statements and heads of a module, in order."""
    for node in ast.iter_child_nodes(tree):
        if not isinstance(node, ast.stmt | ast.excepthandler | ast.match_case):
            continue
        first, body = first_line(node), getattr(node, "body", None) or getattr(node, "cases", None)
        inner = f"{name}.{node.name}".lstrip(".") if isinstance(node, DEFINITIONS) else name
        if body:
            yield Span(range(first, max(first_line(body[0]), first + 1)), node, inner)
            yield from spans(node, inner)
        else:
            yield Span(range(first, (node.end_lineno or first) + 1), node, inner)


def counted_lines(text: str) -> list[Line]:
    """The lines of a module that count, in order."""
    found, lines = [], shapes(text)
    for index, span in enumerate(spans(ast.parse(text))):
        for number in span.lines:
            shape = lines.pop(number, "") if span.counts else ""
            if re.search("[A-Za-z0]", shape):
                found.append(Line(number, shape, index, span.declares, span.definition))
    return found


def varies(run: list[Line]) -> bool:
    """Whether a run is more than one table: of several statements, and of lines that differ."""
    return len({line.statement for line in run}) > 2 and len({line.shape for line in run}) >= MIN_SHAPES


def shared_windows(modules: dict[str, list[Line]], least: int) -> dict[tuple[str, str, int], set[int]]:
    """Where runs of exactly so many lines are alike: (first file, second file, distance) -> starts in the first."""
    windows: dict[tuple[str, ...], list[tuple[str, int]]] = defaultdict(list)
    for name, lines in modules.items():
        for start in range(len(lines) - least + 1):
            run = lines[start : start + least]
            if varies(run):
                windows[tuple(line.shape for line in run)].append((name, start))
    diagonals: dict[tuple[str, str, int], set[int]] = defaultdict(set)
    for places in windows.values():
        for (first, i), (second, j) in combinations(places, 2):
            if first != second or j - i >= least:
                diagonals[first, second, j - i].add(i)
    return diagonals


def duplicates(files: dict[str, str], least: int = MIN_LINES) -> list[Duplicate]:
    """Runs of at least so many lines that stand twice, longest first; each is reported once, at its full length."""
    modules = {name: counted_lines(text) for name, text in files.items()}
    found = []
    for (first, second, distance), starts in shared_windows(modules, least).items():
        for start in sorted(start for start in starts if start - 1 not in starts):
            end = next(end for end in range(start, start + len(starts) + 1) if end + 1 not in starts)
            one = modules[first][start : end + least]
            other = modules[second][start + distance : end + least + distance]
            where = f"{first}:{one[0].number}-{one[-1].number} ~ {second}:{other[0].number}-{other[-1].number}"
            keys = f"{first}:{one[0].definition}", f"{second}:{other[0].definition}"
            if sum(not line.declares for line in one) >= MIN_LOGIC:
                found.append(Duplicate(*keys, len(one), where))
    return sorted(found, key=lambda duplicate: (-duplicate.lines, duplicate.where))


@pytest.fixture(scope="module")
def found() -> list[Duplicate]:
    paths = sorted(SOURCE.rglob("*.py"))
    return duplicates({path.relative_to(SOURCE).as_posix(): path.read_text(encoding="utf-8") for path in paths})


def test_no_run_of_lines_stands_twice_without_a_reason(found):
    rows = [f"{item.lines} lines: {item.where}  {item.key}" for item in found if item.key not in REASONS]
    assert not rows, "\n" + "\n".join(rows)


def test_every_reason_is_still_needed(found):
    assert set(REASONS) - {item.key for item in found} == set()


BODY = """
def total(rows, limit=10):
    '''Sums.'''
    result = []
    for row in rows:
        if row.size > limit:
            raise ValueError(f"row {row} is too long")
        with open(row.path) as stream:
            text = stream.read()
        result.append(len(text))
        if not text:
            continue
        while result and result[-1] == 0:
            result.pop()
    return sum(result)
"""
OTHER = (
    BODY.replace("result", "counts").replace("row", "item").replace("Sums.", "Other.\n\n    Words.").replace("10", "12")
)


def test_a_copy_with_other_names_comments_and_blank_lines_is_found():
    other = "import os\n\n" + OTHER.replace("    return", "\n    # why\n    return")
    (item,) = duplicates({"a.py": BODY, "b.py": other})
    assert (item.key, item.lines) == (("a.py:total", "b.py:total"), 13)


def test_a_copy_within_one_file_is_found():
    assert [item.lines for item in duplicates({"a.py": BODY + OTHER})] == [13]


def test_a_shorter_run_and_other_logic_are_let_through():
    assert duplicates({"a.py": BODY, "b.py": "\n".join(OTHER.splitlines()[:9])}) == []
    assert duplicates({"a.py": BODY, "b.py": OTHER.replace("if not text", "if text")}) == []


def test_tables_and_fields_are_let_through():
    table = "WORDS = {\n" + "\n".join(f'    "{n}": ({n}, [{n}]),' for n in range(20)) + "\n}\n"
    fields = "class A:\n" + "\n".join(f"    field_{n}: int = {n}" for n in range(20)) + "\n"
    assert duplicates({"a.py": table + fields, "b.py": table + fields}) == []
