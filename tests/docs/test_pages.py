"""Every code block and every command of the pages is run, in the order in which a reader meets it."""

import ast
import io
import os
import re
import runpy
import shlex
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import click
import pytest

from regard.cli import cli, invoke
from regard.cli.look import VIEWS
from regard.lessons.catalogue import LESSONS
from regard.tasks import Recipe

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.M | re.S)
FILE = re.compile(r"# ([\w-]+(?:/[\w-]+)+\.(?:py|toml))\n")
"""The first line of a block that is a file."""
COMMAND = re.compile(r"(?:(?P<print>echo|printf) (?P<text>'[^']*'|\"[^\"]*\") \| )?regard (?P<arguments>[^|<>&;*$`]*)")
"""A command that needs no shell, with what is piped into it."""
BY_MAKE = {"make demo", "make test", "make check", "make bench"}
"""Run by hand and by CI, which is one of them: a test cannot run itself."""


def shell(commands: str, activated: bool = True) -> None:
    """Run lines as a reader would, in one shell; `activated`: with this interpreter's `regard` on the path."""
    own = str(Path(sys.executable).parent)
    others = [folder for folder in os.environ["PATH"].split(os.pathsep) if folder != own]
    environment = {**os.environ, "PATH": os.pathsep.join([own, *others] if activated else others)}
    script = f"set -e\n{commands}"
    done = subprocess.run(script, shell=True, env=environment, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, f"{commands}\n{done.stdout}\n{done.stderr}"


def in_process(found: re.Match[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Run a command in this process, which saves the seconds of importing torch."""
    (text,) = shlex.split(found["text"] or "''")
    piped = {"echo": f"{text}\n", "printf": text.replace(r"\n", "\n").replace(r"\t", "\t"), None: ""}[found["print"]]
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(piped.encode()), encoding="utf-8"))
    assert invoke(shlex.split(found["arguments"])) == 0, found[0]


def install(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Install a package that a page builds, offline, into a folder of its own on the path."""
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation", "--no-index"]
    done = subprocess.run([*pip, "--target", "site", package], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    site = str(Path("site").resolve())
    monkeypatch.syspath_prepend(site)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, [site, os.environ.get("PYTHONPATH")])))
    monkeypatch.setattr(cli, "commands", dict(cli.commands))  # its commands are added to these


def run_console(page: Path, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run the commands of a console block: those of the front page in a shell, as its reader has one."""
    lines = (line.removeprefix("$ ").split("  #")[0].strip() for line in text.splitlines() if line.startswith("$ "))
    commands = [command for command in lines if command not in BY_MAKE]
    if page.name == "README.md":
        return shell("\n".join([". .venv/bin/activate", *commands]), activated=False)
    for command in commands:
        if command.startswith("pip install ./"):
            install(command.split()[-1], monkeypatch)
        elif found := COMMAND.fullmatch(command):
            in_process(found, monkeypatch)
        else:
            shell(command)


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_block_and_command_of_a_page_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("NO_COLOR", "1")
    names = {"__name__": "page"}
    (tmp_path / "recipes").symlink_to(ROOT / "recipes")
    (tmp_path / ".venv").symlink_to(sys.prefix)  # as `make demo` leaves it
    for kind, text in BLOCK.findall(page.read_text(encoding="utf-8")):
        if file := FILE.match(text):  # a file of a package that the page builds
            (tmp_path / file[1]).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / file[1]).write_text(text, encoding="utf-8")
        elif kind == "python":
            exec(compile(text, f"{page.name}", "exec", dont_inherit=True), names)
        elif kind == "console":
            run_console(page, text, monkeypatch)
        else:
            assert kind in ("toml", "text", "sh"), f"{page.name}: a block of {kind} is not run by a test"


def test_the_front_page_activates_its_environment_before_it_calls_the_program():
    consoles = [text for kind, text in BLOCK.findall(PAGES[0].read_text(encoding="utf-8")) if kind == "console"]
    commands = [line for text in consoles for line in text.splitlines()]
    called = next(i for i, line in enumerate(commands) if line.startswith("$ regard"))
    assert commands.index("$ . .venv/bin/activate") < called


def test_the_tree_of_the_architecture_page_lists_every_file_and_no_other():
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    listed = set(re.findall(r"^  +(\S+\.(?:py|toml)) ", page, re.M))
    source = ROOT / "src" / "regard"
    files = {p.relative_to(source).as_posix() for p in source.rglob("*") if p.suffix in (".py", ".toml")}
    assert listed == {name for name in files if not name.endswith("__init__.py")}


def test_levels_and_tree_of_the_architecture_page_are_up_to_date():
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    assert runpy.run_path(str(ROOT / "docs" / "tree.py"))["render"](page) == page, "run: python docs/tree.py"


def test_the_table_of_settings_is_up_to_date():
    script = runpy.run_path(str(ROOT / "docs" / "settings.py"))
    assert script["TABLE"].read_text(encoding="utf-8") == script["render"](), "run: python docs/settings.py"


def test_every_local_link_of_a_page_leads_to_a_file():
    broken = []
    for page in [*PAGES, *ROOT.glob("*.md")]:
        for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8")):
            path = link.partition("#")[0]
            if "://" not in link and path and not (page.parent / path).is_file():
                broken.append(f"{page.name}: {link}")
    assert broken == []


def test_the_front_page_is_short():
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 130


def concordance() -> list[str]:
    """Rows of the table of docs/concordance.md, without its header."""
    page = (ROOT / "docs" / "concordance.md").read_text(encoding="utf-8")
    return [row for row in page.splitlines() if row.startswith("| ")][1:]


def missing(row: str) -> list[str]:
    """Verbs, views, recipes, lessons and tests that a row of the concordance names and that do not exist."""
    item, command, lessons, test = (cell.strip() for cell in row.strip("|").split("|"))
    commands = [shlex.split(quoted) for quoted in re.findall("`([^`]*)`", f"{command} {lessons}")]
    wrong = [] if item else ["a row without an item"]
    for program, first, *rest in commands:
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
    taught = [words[2] for words in commands if words[:2] == ["regard", "lesson"] and len(words) == 3]
    wrong += [f"lesson {name}" for name in taught if name not in LESSONS]
    if lessons and lessons != ", ".join(f"`regard lesson {name}`" for name in taught):
        wrong.append(f"{lessons}: expected `regard lesson NAME`, several with commas between them")
    return wrong if (ROOT / test).is_file() and Path(test).name.startswith("test_") else [*wrong, test]


def test_everything_that_the_concordance_names_exists():
    rows = concordance()
    assert len(rows) > 60
    assert {row: missing(row) for row in rows if missing(row)} == {}


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
def test_a_row_that_names_something_missing_is_reported(row, found):
    assert missing(row) == found


def test_a_lesson_is_named_by_its_name_alone():
    assert missing("| RNN | | `regard lesson` | tests/docs/test_pages.py |")
    assert missing("| RNN | | rnn | tests/docs/test_pages.py |")


def test_no_lesson_is_left_out_of_the_concordance():
    assert set(re.findall("`regard lesson ([^`]*)`", "\n".join(concordance()))) == set(LESSONS)


def test_every_public_name_has_a_docstring():
    undocumented = []
    for path in sorted((ROOT / "src" / "regard").rglob("*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            public = isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_")
            if public and not ast.get_docstring(node):
                undocumented.append(f"{path.name}: {node.name}")
    assert undocumented == []


def test_the_first_line_of_a_recipe_has_its_command():
    recipes = sorted((ROOT / "recipes").rglob("*.toml"))
    assert recipes
    for recipe in recipes:
        first = recipe.read_text(encoding="utf-8").splitlines()[0]
        verb = "compare" if recipe.parent.name == "compare" else "train"
        assert first.startswith("# ") and f"regard {verb} {recipe.relative_to(ROOT)}" in first


def test_every_recipe_for_one_model_can_be_read_and_is_in_the_folder_of_its_task(monkeypatch):
    monkeypatch.setenv("REGARD_DATA", "data")
    recipes = [path for path in sorted((ROOT / "recipes").rglob("*.toml")) if path.parent.name != "compare"]
    assert {path: Recipe.read(path).kind() for path in recipes} == {path: path.parent.name for path in recipes}


def test_every_public_name_is_used_in_the_example_of_the_api_page():
    import regard

    page = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    example = "".join(text for kind, text in BLOCK.findall(page) if kind == "python")
    assert [name for name in regard.__all__ if f"regard.{name}" not in example] == []


@pytest.mark.parametrize(
    "name", ["README.md", "docs/contract.md", "docs/look.md", "docs/studio.md", "src/regard/look/page/screens/home.js"]
)
def test_the_promise_about_numbers_is_that_of_the_recorded_pass(name):
    text = " ".join((ROOT / name).read_text(encoding="utf-8").split())
    assert re.search(r"of the recorded pass, from which the answer (shown )?comes", text)
    assert not re.search(r"(one|number) (that )?the model used", text)
