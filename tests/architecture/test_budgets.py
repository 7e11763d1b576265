"""Size budgets of CONTRIBUTING.md: lines of a file and of a function, parameters of a function, flags of a verb.

An exception is written down below with its reason. One that is no longer needed fails, so that the lists only shrink.
"""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import click
import pytest

from regard.cli import cli

SOURCE = Path(__file__).parents[2] / "src" / "regard"
MAX_FILE_LINES = 400
MAX_FUNCTION_LINES = 50
MAX_PARAMETERS = 8
MAX_FLAGS = 8

LONG_FILES: dict[str, str] = {}
LONG_FUNCTIONS = {
    "studio/app.py:build": "a table of routes, one per line",
}
MANY_PARAMETERS = {
    "exchange/onnx.py:recurrent_translations.translate.layer": "torch's exporter takes the parameters of its operator",
    "nn/rnnsearch_loop.py:rnnsearch_loop": "the tensors of one attention layer, as the autograd function takes them",
    "nn/rnnsearch_loop.py:_RNNsearchLoop.forward": "torch.autograd.Function takes tensors one by one",
}
MANY_FLAGS = {
    "regard look": "one flag per kind of value that is looked at, and what is read or generated",
    "regard translate": "input and output, the search, the tag of a model of mixed data, the engine and its precision",
    "regard generate": "the sampling options that users know from other tools, the engine; rarer ones are in [decode]",
}


def functions(tree: ast.AST, prefix: str = "") -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    """Functions and methods of a module with their qualified names."""
    for node in ast.iter_child_nodes(tree):
        name = (
            f"{prefix}{node.name}." if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) else ""
        )
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield name.rstrip("."), node
        yield from functions(node, name or prefix)


def is_verb(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether a function is a verb of the command line, whose flags are counted instead of its parameters."""
    return any("command" in ast.unparse(decorator) for decorator in node.decorator_list)


def parameter_count(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Parameters that a caller gives: all but self, cls and the context of an autograd function."""
    given = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
    return len([name for name in given if name.arg not in ("self", "cls", "ctx")])


def verbs(group: click.Group, prefix: str) -> Iterator[tuple[str, click.Command]]:
    """All verbs of a command line with their full names."""
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from verbs(command, f"{prefix} {name}")
        else:
            yield f"{prefix} {name}", command


@cache
def measure() -> dict[str, dict[str, int]]:
    """What is measured, by budget and by name."""
    found: dict[str, dict[str, int]] = {"file lines": {}, "function lines": {}, "parameters": {}, "flags": {}}
    for path in sorted(SOURCE.rglob("*.py")):
        text, place = path.read_text(encoding="utf-8"), path.relative_to(SOURCE).as_posix()
        found["file lines"][place] = len(text.splitlines())
        for name, node in functions(ast.parse(text)):
            found["function lines"][f"{place}:{name}"] = (node.end_lineno or node.lineno) - node.lineno + 1
            if not is_verb(node):
                found["parameters"][f"{place}:{name}"] = parameter_count(node)
    for name, command in verbs(cli, "regard"):
        flags = [param for param in command.params if isinstance(param, click.Option) and not param.hidden]
        found["flags"][name] = len(flags)
    return found


BUDGETS = [
    ("file lines", MAX_FILE_LINES, LONG_FILES),
    ("function lines", MAX_FUNCTION_LINES, LONG_FUNCTIONS),
    ("parameters", MAX_PARAMETERS, MANY_PARAMETERS),
    ("flags", MAX_FLAGS, MANY_FLAGS),
]


@pytest.mark.parametrize(("budget", "limit", "exceptions"), BUDGETS, ids=[budget[0] for budget in BUDGETS])
def test_nothing_is_larger_than_its_budget(budget, limit, exceptions):
    larger = {name: count for name, count in measure()[budget].items() if count > limit and name not in exceptions}
    assert larger == {}, f"{budget}: at most {limit}; split it, or write the reason into this file"


@pytest.mark.parametrize(("budget", "limit", "exceptions"), BUDGETS, ids=[budget[0] for budget in BUDGETS])
def test_every_exception_is_still_needed(budget, limit, exceptions):
    needless = {name: measure()[budget].get(name) for name in exceptions if measure()[budget].get(name, 0) <= limit}
    assert needless == {}, f"{budget}: within {limit} or gone; take it off the list"


def test_a_function_with_too_many_parameters_would_be_counted():
    source = "class A:\n    def __init__(self, a, b, /, c, *rest, d=1, **more):\n        def inner(x): ...\n"
    counts = {name: parameter_count(node) for name, node in functions(ast.parse(source))}
    assert counts == {"A.__init__": 4, "A.__init__.inner": 1}
