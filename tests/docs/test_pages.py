"""Every code block and every command of the pages is run, in the order in which a reader meets it."""

import ast
import os
import re
import shlex
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import click
import pytest

from regard.cli import cli
from regard.cli.look import VIEWS
from regard.lessons.catalogue import CONTENTS
from regard.tasks import Recipe

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


def concordance() -> list[str]:
    """The rows of the page, without its head."""
    page = (ROOT / "docs" / "concordance.md").read_text(encoding="utf-8")
    return [row for row in page.splitlines() if row.startswith("| ")][1:]


def amiss(row: str) -> list[str]:
    """What a row of the concordance names that does not exist: a verb, a view, a recipe, a lesson or a test."""
    item, command, lessons, test = (cell.strip() for cell in row.strip("|").split("|"))
    told = [shlex.split(quoted) for quoted in re.findall("`([^`]*)`", f"{command} {lessons}")]
    wrong = [] if item else ["a row without an item"]
    for program, first, *rest in told:
        if program == "regard":
            verb = cli.commands.get(first)
            wrong += [] if verb else [f"verb {first}"]
            known = verb.commands if isinstance(verb, click.Group) else rest
            wrong += [f"verb {first} {name}" for name in rest[:1] if name not in known]
            views = [after for word, after in pairwise(rest) if word == "--view"]
            wrong += [f"view {view}" for view in views if view not in VIEWS]
            wrong += [name for name in rest if name.endswith(".toml") and not (ROOT / name).is_file()]
        elif program != "python" or not (ROOT / first).is_file():
            wrong.append(first)
    taught = [words[2] for words in told if words[:2] == ["regard", "lesson"] and len(words) == 3]
    wrong += [f"lesson {name}" for name in taught if name not in CONTENTS]
    if lessons and lessons != ", ".join(f"`regard lesson {name}`" for name in taught):
        wrong.append(f"{lessons}: expected `regard lesson NAME`, several with commas between them")
    return wrong if (ROOT / test).is_file() and Path(test).name.startswith("test_") else [*wrong, test]


def test_what_the_concordance_names_exists():
    rows = concordance()
    assert len(rows) > 60
    assert {row: amiss(row) for row in rows if amiss(row)} == {}


@pytest.mark.parametrize(
    ("row", "found"),
    [
        ("| Flying | `regard fly` | | tests/docs/test_pages.py |", ["verb fly"]),
        ("| Flying | `regard data fly` | | tests/docs/test_pages.py |", ["verb data fly"]),
        ("| Flying | `regard train recipes/fly.toml` | | tests/docs/test_pages.py |", ["recipes/fly.toml"]),
        ("| Flying | `regard look --view sky` | | tests/docs/test_pages.py |", ["view sky"]),
        ("| Flying | `python benchmarks/fly.py` | | tests/docs/test_pages.py |", ["benchmarks/fly.py"]),
        ("| Flying | | `regard lesson rnn`, `regard lesson wings` | tests/docs/test_pages.py |", ["lesson wings"]),
        ("| Flying | | | tests/docs/test_wings.py |", ["tests/docs/test_wings.py"]),
        ("| Flying | | | README.md |", ["README.md"]),
    ],
)
def test_a_row_that_names_what_is_not_there_is_found_out(row, found):
    assert amiss(row) == found


def test_a_lesson_is_named_by_its_name_alone():
    assert amiss("| RNN | | `regard lesson` | tests/docs/test_pages.py |")
    assert amiss("| RNN | | rnn | tests/docs/test_pages.py |")


def test_no_lesson_is_left_out_of_the_concordance():
    told = set(re.findall("`regard lesson ([^`]*)`", "\n".join(concordance())))
    assert told == set(CONTENTS)


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


def test_every_recipe_for_one_model_can_be_read_and_is_where_its_job_is(monkeypatch):
    monkeypatch.setenv("REGARD_DATA", "data")
    recipes = [path for path in sorted((ROOT / "recipes").rglob("*.toml")) if path.parent.name != "compare"]
    assert {path: Recipe.read(path).kind() for path in recipes} == {path: path.parent.name for path in recipes}


def test_every_name_that_users_import_has_an_example():
    import regard

    for name in set(regard.__all__) - {"load"}:  # load is Model.load
        assert ">>>" in getattr(regard, name).__doc__, name
