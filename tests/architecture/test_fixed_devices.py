"""No layer, model, space, loss or search makes a tensor on a fixed device: every tensor names the device it is made on.

A constructor is exempt: its module is moved as a whole. Batches are made on the CPU by `Tokens.pad` and `Tokens.pack`,
and moved in one place. `device="cpu"` is allowed where the reason is written beside it or in the docstring.
"""

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "regard"
PARTS = ("nn", "models", "decode", "spaces.py", "loss.py", "objective.py", "sequence.py")
FILES = [file for part in PARTS for file in sorted((SOURCE / part).glob("*.py")) or [SOURCE / part]]
FACTORIES = {
    "arange", "as_tensor", "empty", "eye", "from_numpy", "full", "linspace", "logspace", "ones", "rand", "randint",
    "randn", "randperm", "scalar_tensor", "tensor", "tril_indices", "triu_indices", "zeros",
}  # fmt: skip
ON_THE_CPU = {
    ("sequence.py", "pad"): "batches are made on the CPU",
    ("sequence.py", "pack"): "batches are made on the CPU",
    ("hypothesis.py", "_rank"): "the steps of a search are collected on the CPU",
    ("hypothesis.py", "_backtrack"): "the steps of a search are collected on the CPU",
    ("constraints.py", "from_lists"): "constraints are given on the CPU, and moved when they are used",
}


def fixed(source: str) -> list[tuple[str, int]]:
    """(function, line) of each call that makes a tensor without naming its device, outside of constructors."""
    found = []

    def visit(node: ast.AST, function: str) -> None:
        if isinstance(node, ast.FunctionDef):
            function = node.name
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in FACTORIES:
            is_torch = isinstance(node.func.value, ast.Name) and node.func.value.id == "torch"
            named = any(keyword.arg == "device" for keyword in node.keywords)
            if is_torch and not named and function != "__init__":
                found.append((function, node.lineno))
        for child in ast.iter_child_nodes(node):
            visit(child, function)

    visit(ast.parse(source), "")
    return found


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_every_new_tensor_names_its_device(path):
    wrong = [f"{function} (line {line})" for function, line in fixed(path.read_text(encoding="utf-8"))
             if (path.name, function) not in ON_THE_CPU]  # fmt: skip
    assert not wrong, f"{path.name}: name the device, or use new_zeros or zeros_like: {', '.join(wrong)}"


@pytest.mark.parametrize(("name", "function"), ON_THE_CPU)
def test_every_exception_is_needed(name, function):
    assert any(function in dict(fixed(path.read_text(encoding="utf-8"))) for path in FILES if path.name == name)


def test_a_tensor_without_a_device_is_found():
    text = "def f(x):\n    y = torch.zeros(3)\n    return y + torch.ones(3, device=x.device) + x.new_zeros(3)\n"
    assert fixed(text) == [("f", 2)]
