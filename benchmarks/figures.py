"""Figures of the source tree, by AST: files, lines, functions, names, packages per task, import cycles.

    python benchmarks/figures.py [ROOT ...]

Each ROOT is a checkout; default is this one. Two of them print side by side, such as a worktree of an older commit.
"""

from __future__ import annotations

import ast
import statistics
import sys
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "architecture"))
from test_unique_names import is_bare

Modules = dict[Path, tuple[ast.Module, int]]
TASKS = ("translate", "generate", "classify", "label", "forecast", "vectors")


def parse_modules(root: Path) -> Modules:
    """Each module under src/regard with its tree and number of lines."""
    source = root / "src" / "regard"
    texts = {path.relative_to(source): path.read_text(encoding="utf-8") for path in sorted(source.rglob("*.py"))}
    return {path: (ast.parse(text), text.count("\n")) for path, text in texts.items()}


def imports(tree: ast.Module) -> set[str]:
    """Dotted names under regard that a module imports, lazy imports included."""
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "regard":
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names if alias.name.startswith("regard.")}
    return names


def import_graph(modules: Modules) -> dict[str, set[str]]:
    """Each module's imports, by dotted names."""
    dotted = {".".join(("regard", *path.with_suffix("").parts)).removesuffix(".__init__"): path for path in modules}
    graph: dict[str, set[str]] = {name: set() for name in dotted}
    for name, path in dotted.items():
        for target in imports(modules[path][0]):
            while target not in dotted and "." in target:
                target = target.rpartition(".")[0]
            if target in dotted and target not in (name, "regard"):
                graph[name].add(target)
    return graph


def reachable(graph: dict[str, set[str]], start: str) -> set[str]:
    """Modules that `start` imports, directly or not; itself only where there is a cycle."""
    seen: set[str] = set()
    stack = list(graph[start])
    while stack:
        name = stack.pop()
        if name not in seen:
            seen.add(name)
            stack += graph[name]
    return seen


def packages_of_tasks(modules: Modules) -> dict[str, set[str]]:
    """Packages with modules that one task alone needs: reached from its recipe and verb, and from no other task's.

    Layers and models (nn, models) are not counted: they are parts for any task.
    """
    graph = import_graph(modules)
    graph.pop("regard.tasks", None), graph.pop("regard.jobs", None)  # the union of all recipes
    graph = {name: targets & graph.keys() for name, targets in graph.items()}
    entries = {}
    for path, (tree, _) in modules.items():
        classes = {node.name for node in tree.body if isinstance(node, ast.ClassDef)}
        for task in TASKS:
            if f"{task.capitalize()}Recipe" in classes:
                entries[task] = ".".join(("regard", *path.with_suffix("").parts))
    reach = {task: {entry, *reachable(graph, entry)} for task, entry in entries.items()}
    packages = {}
    for task in TASKS:
        others = set().union(*(found for other, found in reach.items() if other != task))
        parts = [name.split(".")[1:] for name in reach[task] - others]
        own = {"/".join(part[:2]) if part[0] == "tasks" and len(part) > 2 else part[0] for part in parts}
        packages[task] = own - {"nn", "models"} | {"cli"}
    return packages


def measure(root: Path) -> dict[str, str]:
    """All figures of one checkout."""
    modules = parse_modules(root)
    functions = [
        node
        for tree, _ in modules.values()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    lengths = sorted(((node.end_lineno or 0) - node.lineno + 1, node.name) for node in functions)
    classes = Counter(
        node.name
        for tree, _ in modules.values()
        for node in tree.body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    graph, packages = import_graph(modules), packages_of_tasks(modules)
    return {
        "files": f"{len(modules):,}",
        "lines": f"{sum(lines for _, lines in modules.values()):,}",
        "longest file": f"{max(lines for _, lines in modules.values())}",
        "functions": f"{len(functions):,}",
        "median function": f"{statistics.median(length for length, _ in lengths):.0f}",
        "longest function": f"{lengths[-1][0]} ({lengths[-1][1]})",
        "class names with two meanings": f"{sum(count > 1 for count in classes.values())}",
        "bare participles as function names": f"{sum(is_bare(node.name) for node in functions)}",
        "modules in import cycles": f"{sum(name in reachable(graph, name) for name in graph)}",
        "packages a task lives in": ", ".join(f"{task} {len(found)}" for task, found in packages.items()),
    }


if __name__ == "__main__":
    roots = [Path(name) for name in sys.argv[1:]] or [Path(__file__).parents[1]]
    tables = [measure(root) for root in roots]
    for key in tables[0]:
        print(f"{key:36}", "   |   ".join(table[key] for table in tables))
