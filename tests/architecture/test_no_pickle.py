"""A model file is data, never a program: no source file can unpickle."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import regard

SOURCES = sorted(Path(regard.__file__).parent.rglob("*.py"))
MODULES = {"pickle", "_pickle", "cPickle", "cloudpickle", "dill", "joblib", "marshal", "shelve", "jsonpickle"}
CALLS = {"torch.load", "torch.save", "torch.hub.load", "torch.package", "torch.jit.load", "torch.serialization"}


def dotted(node: ast.AST) -> str:
    if isinstance(node, ast.Attribute):
        return f"{dotted(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else "?"


def imported(node: ast.AST) -> list[tuple[str, str]]:
    """(name in this file, what it stands for)"""
    if isinstance(node, ast.Import):
        return [(alias.asname or alias.name.split(".")[0], alias.name) for alias in node.names]
    if isinstance(node, ast.ImportFrom) and node.module and not node.level:
        return [(alias.asname or alias.name, f"{node.module}.{alias.name}") for alias in node.names]
    return []


def unsafe(source: str) -> list[str]:
    """The names in a source through which a pickle could be read or written."""
    tree = ast.parse(source)
    names = {short: full for node in ast.walk(tree) for short, full in imported(node)}
    found = [full for full in names.values() if full.split(".")[0] in MODULES]
    found += [full for full in names.values() if any(f"{full}.".startswith(f"{call}.") for call in CALLS)]
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            first, _, rest = dotted(node).partition(".")
            full = f"{names.get(first, first).split('.')[0] if first in names else first}.{rest}"
            found += [full] if full in CALLS else []
        if isinstance(node, ast.keyword) and node.arg == "allow_pickle":
            found += [] if isinstance(node.value, ast.Constant) and node.value.value is False else ["allow_pickle"]
        if isinstance(node, ast.Constant) and node.value in MODULES:
            found.append(str(node.value))
    return found


def test_there_are_source_files_to_check() -> None:
    assert len(SOURCES) > 5


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(SOURCES[0].parent)))
def test_no_source_file_can_unpickle(path: Path) -> None:
    assert unsafe(path.read_text("utf-8")) == []


@pytest.mark.parametrize(
    "source",
    [
        "import pickle",
        "import pickle as p",
        "from pickle import loads",
        "import marshal, json",
        "import joblib.hashing",
        "import torch\ntorch.load('a', weights_only=True)",
        "import torch as t\nt.save({}, 'a')",
        "from torch import load",
        "from torch.serialization import load",
        "import torch\ntorch.hub.load('a', 'b')",
        "import torch\nread = torch.load",
        "import numpy\nnumpy.load('a', allow_pickle=True)",
        "import importlib\nimportlib.import_module('dill')",
    ],
)
def test_each_way_to_unpickle_is_noticed(source: str) -> None:
    assert unsafe(source)


def test_safe_code_is_accepted() -> None:
    source = "import numpy, json, torch\nnumpy.load('a', allow_pickle=False)\njson.load(open('a'))\ntorch.loads = 1"
    assert unsafe(source) == []
