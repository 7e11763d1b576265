"""Import levels: imports go down only, and there is no cycle."""

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "regard"
LEVELS = [
    {
        "errors",
        "renamed",
        "config",
        "files",
        "manifest",
        "packs",
        "run_lock",
        "progress",
        "plurals",
        "program",
        "plugins",
        "recipe_tables",
        "settings_table",
        "interrupts",
        "device",
        "rank_watch",
        "distributed",
        "sequence",
        "trace",
        "origins",
    },
    {"spaces", "loss", "objective", "nn", "text", "data"},
    {"models", "decode", "metrics", "cost"},
    {"train", "look"},
    {"tasks"},
    {"engines"},
    {"run", "run_data", "run_summary", "model_card"},
    {"compare", "exchange", "lessons", "line"},
    {"demo", "studio", "cli", "__main__"},
]
LEVEL = {name: i for i, names in enumerate(LEVELS) for name in names}
FILES = sorted(SOURCE.rglob("*.py"))


def part(path: Path) -> str:
    """The first name under regard: a package or a file."""
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def imports(path: Path) -> set[str]:
    """Dotted names under regard that a file imports, also inside functions."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path.name}: write the import out in full"
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return {name.removeprefix("regard.") for name in found if name.startswith("regard.")}


def module(name: str) -> str | None:
    """The module that an imported dotted name lives in."""
    parts = name.split(".")
    for n in range(len(parts), 0, -1):
        path = SOURCE.joinpath(*parts[:n])
        if path.with_suffix(".py").exists() or (path / "__init__.py").exists():
            return ".".join(parts[:n])
    return None


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_imports_go_down_only(path):
    mine = part(path)
    if mine == "__init__":
        return  # the public face may see everything
    assert mine in LEVEL, f"{mine} has no level: add it to the tree"
    for name in imports(path):
        other = name.split(".")[0]
        if other not in LEVEL:
            continue  # a name of regard/__init__.py, such as the version
        allowed = (
            LEVEL[other] < LEVEL[mine]
            or other == mine
            or (LEVEL[other] == LEVEL[mine] and mine in BESIDE.get(other, ()))
        )
        assert allowed, f"{path.relative_to(SOURCE)} imports {name}, which is not below it"


BESIDE = {
    "errors": {
        "config",
        "device",
        "files",
        "manifest",
        "packs",
        "plugins",
        "rank_watch",
        "recipe_tables",
        "run_lock",
        "settings_table",
    },
    "plugins": {"config", "settings_table"},
    "manifest": {"packs", "recipe_tables"},
    "progress": {"packs"},
    "program": {"manifest", "run_lock"},
    "recipe_tables": {"settings_table"},
    "files": {"config", "manifest", "packs", "run_lock"},
    "interrupts": {"rank_watch"},
    "rank_watch": {"distributed"},
    "renamed": {"config"},
    "config": {"manifest", "recipe_tables", "settings_table"},
    "run_data": {"run"},
    "sequence": {"trace"},
    "spaces": {"objective"},
    "loss": {"objective", "spaces"},
    "look": {"train"},
    "model_card": {"run"},
    "models": {"cost", "decode"},
    "line": {"lessons"},
    "demo": {"cli"},
    "studio": {"cli"},
    "cli": {"__main__"},
}
"""allowed imports within a level: {imported: importers}"""


def test_decode_sees_only_the_base_of_models():
    for path in FILES:
        if part(path) == "decode":
            assert {m for m in imports(path) if m.startswith("models")} <= {
                m for m in imports(path) if m.startswith("models.base")
            }, path


def test_look_and_studio_never_import_models():
    for path in FILES:
        if part(path) in ("look", "studio"):
            assert not [m for m in imports(path) if m.startswith("models")], path


def test_there_is_no_cycle():
    graph = {}
    for path in FILES:
        own = ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")
        graph[own] = {m for m in map(module, imports(path)) if m and m != own}
    done, walking = set(), []

    def visit(name):
        assert name not in walking, " -> ".join([*walking[walking.index(name) :], name])
        if name in done:
            return
        walking.append(name)
        for other in sorted(graph.get(name, ())):
            visit(other)
        walking.pop()
        done.add(name)

    for name in graph:
        visit(name)
