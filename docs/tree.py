"""Write the import levels and the tree of files into docs/architecture.md.

    python docs/tree.py

The levels are those of tests/architecture/test_imports.py, the descriptions the first lines of the docstrings.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "regard"
PAGE = ROOT / "docs" / "architecture.md"


def read_levels() -> list[list[str]]:
    """Packages and modules of each import level, lowest first, as far as they exist."""
    tree = ast.parse((ROOT / "tests" / "architecture" / "test_imports.py").read_text(encoding="utf-8"))
    assignments = [node for node in tree.body if isinstance(node, ast.Assign)]
    (value,) = (node.value for node in assignments if ast.unparse(node.targets[0]) == "LEVELS")
    levels = [sorted(names) for names in ast.literal_eval(value)]
    return [[name for name in names if (SOURCE / name).is_dir() or is_module(name)] for names in levels]


def is_module(name: str) -> bool:
    """Whether a name is a file of the package's root."""
    return (SOURCE / f"{name}.py").is_file()


def summary(path: Path) -> str:
    """The first line of a module's docstring, or of a recipe's comment, without the period at its end."""
    text = path.read_text(encoding="utf-8")
    first = text if path.suffix == ".toml" else ast.get_docstring(ast.parse(text)) or ""
    return first.partition("\n")[0].removeprefix("# ").removesuffix(".")


def draw_levels() -> str:
    """The levels as a diagram, highest first."""
    rows = [f"{number:2d}  {'  '.join(names)}" for number, names in enumerate(read_levels())]
    return "\n     ↓\n".join(reversed(rows))


def draw_tree() -> str:
    """Every file with what it holds, in the order of the levels."""
    rows: list[tuple[str, str]] = []
    for names in read_levels():
        for name in sorted(names, key=lambda name: (not is_module(name), name)):
            paths = sorted(SOURCE.glob(f"{name}.*") if is_module(name) else (SOURCE / name).rglob("*"))
            paths = [path for path in paths if path.suffix in (".py", ".toml")]
            rows += [(path.relative_to(SOURCE).as_posix(), summary(path)) for path in paths]
    rows = [(name.removesuffix("__init__.py"), text) for name, text in rows]
    width = max(len(name) for name, _ in rows)
    return "\n".join(["src/regard/", *(f"  {name:{width}}  {text}".rstrip() for name, text in rows)])


def render(page: str) -> str:
    """The page with its two generated blocks brought up to date."""
    for heading, block in (("Levels", draw_levels()), ("Tree", draw_tree())):
        pattern = re.compile(rf"(^## {heading}\n.*?^```text\n).*?(^```)", re.M | re.S)
        page, count = pattern.subn(lambda found, block=block: f"{found[1]}{block}\n{found[2]}", page, count=1)
        assert count == 1, f"{PAGE.name}: expected a heading {heading!r} with a block of text below it"
    return page


if __name__ == "__main__":
    PAGE.write_text(render(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
