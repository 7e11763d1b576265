"""Write src/regard/line/line.json, which `regard line` and the studio show, and docs/line.svg.

    python docs/line.py

docs/line.toml has what cannot be derived. The rest comes from the docstrings (paper, what was new), the files (number
of lines, kind of the model), the headers of the recipes (command, result) and LOG.md (results without a recipe).
"""

from __future__ import annotations

import ast
import json
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "regard"
TABLE, PICTURE = SOURCE / "line" / "line.json", ROOT / "docs" / "line.svg"
Table = Mapping[str, Any]
NUMBER = r"\d[\d,.]*(?:e-?\d+)?(?<![.,])"
LONG_ENOUGH = 80
"""characters of what was new after which no further sentence is taken"""


def read_source() -> dict[str, Any]:
    """What docs/line.toml says."""
    return tomllib.loads((ROOT / "docs" / "line.toml").read_text(encoding="utf-8"))


def join_lines(text: str) -> str:
    """A text with single spaces instead of line breaks."""
    return " ".join(text.split())


def docstring(file: str) -> str:
    """The docstring of a module of the package, on one line."""
    return join_lines(ast.get_docstring(ast.parse((SOURCE / file).read_text(encoding="utf-8"))) or "")


def line_count(file: str) -> int:
    """Lines of a file of the package."""
    return len((SOURCE / file).read_text(encoding="utf-8").splitlines())


def title(system: Table, text: str) -> str:
    """The title of the paper: what the docstring quotes after the citation, unless the table has it in full."""
    header = (ROOT / "recipes" / system["recipe"]).read_text(encoding="utf-8") if "recipe" in system else ""
    if system["cites"] not in text and system["cites"] not in join_lines(header):
        raise ValueError(f"{system['file']}: neither its docstring nor the recipe cites {system['cites']}")
    if "title" in system:
        return str(system["title"])
    found = re.match(r'[^".;]*"([^"]+)"', text[text.index(system["cites"]) + len(system["cites"]) :])
    if found is None or found[1].endswith("..."):
        raise ValueError(f"{system['file']}: its docstring does not quote the title of {system['cites']} in full")
    return found[1]


def novelty(system: Table, text: str) -> tuple[str, str]:
    """What the system is compared with, and what was new: what the docstring says after "New against ...:"."""
    if "new" in system:
        return str(system["against"]), str(system["new"])
    found = re.search(r"New(?: against ([^:]+))?: (.+)", text)
    if found is None:
        raise ValueError(f"{system['file']}: its docstring does not say what was new (New against ...: ...)")
    first, *more = re.split(r"(?<=\.) (?=[A-Z])", found[2])
    for sentence in more:
        if len(first) >= LONG_ENOUGH or sentence.startswith("Different"):
            break
        first += f" {sentence}"
    return found[1] or "", first


def model_kind(file: str) -> str | None:
    """The `kind` by which a recipe names the model of a file; None if no recipe can."""
    found = re.search(r'^    kind: Literal\["([\w-]+)"\]', (SOURCE / file).read_text(encoding="utf-8"), re.M)
    return found[1] if found else None


def recipe_header(recipe: str) -> tuple[str, str]:
    """The command of a recipe and its result, from the comments on top."""
    path = ROOT / "recipes" / recipe
    lines = path.read_text(encoding="utf-8").splitlines()
    command, results = lines[0].removeprefix("# "), [line for line in lines if line.startswith("# Result: ")]
    if f"recipes/{recipe}" not in command or len(results) != 1:
        raise ValueError(f'recipes/{recipe}: expected its command in the first line and one line "# Result: ..."')
    return command, results[0].removeprefix("# Result: ")


def log_date(passage: str) -> str:
    """The date of a passage of LOG.md."""
    for section in re.split(r"^## ", (ROOT / "LOG.md").read_text(encoding="utf-8"), flags=re.M)[1:]:
        if passage in join_lines(section):
            return section.split()[0]
    raise ValueError(f"LOG.md has no passage {passage!r}")


def measurement(system: Table) -> dict[str, Any]:
    """Recipe, command and result of a system, or the passage of LOG.md; empty if nothing was measured."""
    if "recipe" in system:
        command, result = recipe_header(system["recipe"])
        return {"recipe": f"recipes/{system['recipe']}", "command": command, "result": result}
    if "log" in system:
        result = str(system.get("result", system["log"]))
        if unknown := set(re.findall(NUMBER, result)) - set(re.findall(NUMBER, system["log"])):
            raise ValueError(f"{system['id']}: {unknown} of its result is not in the passage of LOG.md")
        return {"result": result, "logged": log_date(system["log"])}
    return {}


def entry(system: Table) -> dict[str, Any]:
    """An entry of the line, with everything that is derived."""
    text = docstring(system["file"])
    against, new = novelty(system, text)
    kind, settings = model_kind(system.get("model_file", system["file"])), system.get("settings", {})
    kinds = system.get("kinds", [kind] if kind else [])
    return {
        **{name: system[name] for name in ("id", "name", "year", "part", "idea")},
        "paper": f'{system["cites"]}, "{title(system, text)}"',
        "against": against,
        "new": new[0].upper() + new[1:],
        "after": system.get("after", []),
        "file": f"src/regard/{system['file']}",
        "lines": line_count(system["file"]),
        "lesson": system.get("lesson"),
        "kinds": [] if settings is False else kinds,
        "settings": settings or {},
        **dict.fromkeys(("recipe", "command", "result", "logged")),
        **measurement(system),
    }


def derive() -> dict[str, Any]:
    """The content of line.json."""
    source = read_source()
    order = [(system["year"], i) for i, system in enumerate(source["system"])]
    systems = [source["system"][i] for _, i in sorted(order)]
    defaults = {"until": None, "lesson": None, "undisclosed": False}
    return {
        "parts": source["parts"],
        "entries": [entry(system) for system in systems],
        "events": [{**defaults, **event} for event in source["event"]],
    }


def render() -> tuple[str, str]:
    """The table and the picture as they should be."""
    from regard.line.table import Line
    from regard.line.timeline import draw_timeline

    table = derive()
    text = json.dumps(table, indent=1, ensure_ascii=False) + "\n"
    return text, draw_timeline(Line.from_table(table)) + "\n"


if __name__ == "__main__":
    for path, content in zip((TABLE, PICTURE), render(), strict=True):
        path.write_text(content, encoding="utf-8")
