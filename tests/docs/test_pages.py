"""Every code block and every command of the pages is run, in the order in which a reader meets it."""

import ast
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.M | re.S)
BY_MAKE = {"make demo", "make test", "make check", "make bench"}
"""Run by hand and by CI, which is one of them: a test cannot run itself."""


def shell(command: str, folder: Path) -> subprocess.CompletedProcess:
    """Run a line as a reader would, with this interpreter's `regard` first on the path."""
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    environment |= {"OMP_NUM_THREADS": "1", "NO_COLOR": "1"}
    return subprocess.run(command, shell=True, cwd=folder, env=environment, capture_output=True, text=True, timeout=600)


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_what_a_page_tells_to_run_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "page"}
    (tmp_path / "recipes").symlink_to(ROOT / "recipes")
    for kind, text in BLOCK.findall(page.read_text(encoding="utf-8")):
        if kind == "python":
            exec(compile(text, f"{page.name}", "exec", dont_inherit=True), names)
        elif kind == "console":
            for line in text.splitlines():
                if line.startswith("$ ") and line[2:].split("  #")[0].strip() not in BY_MAKE:
                    done = shell(line[2:], tmp_path)
                    assert done.returncode == 0, f"{line}\n{done.stdout}\n{done.stderr}"
        else:
            assert kind in ("toml", "text"), f"{page.name}: a block of {kind} is not run by anybody"


def test_the_tree_in_the_readme_lists_every_file_and_no_other():
    told = set(re.findall(r"^  +(\S+\.(?:py|toml)) ", (ROOT / "README.md").read_text(encoding="utf-8"), re.M))
    source = ROOT / "src" / "regard"
    there = {p.relative_to(source).as_posix() for p in source.rglob("*") if p.suffix in (".py", ".toml")}
    there = {name for name in there if not name.endswith("__init__.py")}
    assert told == there


def test_what_the_concordance_names_exists():
    from regard.cli import cli

    page = (ROOT / "docs" / "concordance.md").read_text(encoding="utf-8")
    rows = [row for row in page.splitlines() if row.startswith("| ")]
    for row in rows[1:]:
        _, command, test = (cell.strip() for cell in row.strip("|").split("|"))
        if command:
            assert shlex.split(command.strip("`"))[1] in cli.commands, row
        assert (ROOT / test).is_file(), row


def test_every_public_name_is_documented():
    silent = []
    for path in sorted((ROOT / "src" / "regard").rglob("*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and not node.name.startswith("_"):
                told = ast.get_docstring(node) or ""
                if not told:
                    silent.append(f"{path.name}: {node.name}")
    assert silent == []


def test_a_recipe_says_on_top_how_it_is_run():
    recipes = sorted((ROOT / "recipes").rglob("*.toml"))
    assert recipes
    for recipe in recipes:
        first = recipe.read_text(encoding="utf-8").splitlines()[0]
        verb = "compare" if recipe.parent.name == "compare" else "train"
        assert first.startswith("# ") and f"regard {verb} {recipe.relative_to(ROOT)}" in first


def test_every_name_that_users_import_has_an_example():
    import regard

    for name in set(regard.__all__) - {"load"}:  # load is Model.load
        assert ">>>" in getattr(regard, name).__doc__, name
