"""Structure of the page's modules: size limits, no markup from text, imports only from lower folders."""

import re

import pytest

from regard.look import html
from regard.studio.app import page_files

MODULES = {name: text.decode() for name, text in page_files().items() if name.endswith(".js")}
LEVELS = {"core": 0, "trace": 1, "widgets": 2, "scene": 3, "tour": 4, "tabs": 5, "screens": 6, "lessons": 6, "": 7}
WORD = r"(?!if\b|for\b|while\b|switch\b|catch\b|return\b)\w+"
FUNCTION_START = re.compile(
    rf"^(?P<margin> *)(?:export )?(?:async )?(?:function \w+|(?:static |get |set |async )*{WORD})\(.*\{{$"
    r"|^(?P<own> *)(?:export )?(?:async )?function \w+\($"
    r"|^(?P<named> *)(?:export )?(?:const|let) \w+ = (?:async )?\(.*=> \{$"
)
MARKUP = re.compile(
    r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|setTimeout\(\s*[\"'`]"
)


def functions(text):
    """(first line, lines) of each function: it ends at the next closing brace with the same indentation."""
    lines = text.splitlines()
    for i, line in enumerate(lines):
        start = FUNCTION_START.match(line)
        if start:
            margin = next(group for group in start.groups() if group is not None)
            end = next(j for j in range(i + 1, len(lines)) if lines[j].startswith(f"{margin}}}"))
            yield line.strip(), end - i + 1


def imports_of(name):
    """The modules that a module imports."""
    return [html.resolve(name, other) for _, other in html.IMPORT.findall(MODULES[name])]


def test_functions_are_found():
    found = list(functions(MODULES["widgets/matrix.js"]))
    assert len(found) > 15 and ("export function matrix(matrix) {", 3) in found
    assert list(functions("function long(\n  a,\n) {\n}\n")) == [("function long(", 4)]


@pytest.mark.parametrize("name", sorted(MODULES))
def test_no_function_has_more_than_fifty_lines_and_no_file_more_than_four_hundred(name):
    assert [(line, size) for line, size in functions(MODULES[name]) if size > 50] == []
    assert len(MODULES[name].splitlines()) <= 400


@pytest.mark.parametrize("name", sorted(MODULES))
def test_no_module_turns_text_into_markup_or_code(name):
    assert MARKUP.findall(MODULES[name]) == []


@pytest.mark.parametrize("name", sorted(MODULES))
def test_modules_are_type_checked_and_import_only_each_other(name):
    text = MODULES[name]
    assert text.startswith("// @ts-check\n")
    others = re.findall(r'^import .*? from "(.*?)";', text, re.MULTILINE | re.DOTALL)
    assert all(other.startswith(("./", "../")) and html.resolve(name, other) in MODULES for other in others)
    assert len(html.IMPORT.findall(text)) == len(others)  # in the form that look/html.py can bundle
    assert "http://" not in text.replace("http://www.w3.org/", "") and "https://" not in text


def test_every_module_is_used():
    used = {f"{other}.js" for name in MODULES for other in imports_of(name)}
    assert set(MODULES) - used == {"main.js", "standalone.js", "core/types.js"}


@pytest.mark.parametrize("name", sorted(MODULES))
def test_a_folder_imports_only_from_itself_and_from_lower_folders(name):
    level = LEVELS[name.rpartition("/")[0]]
    assert [other for other in imports_of(name) if LEVELS[other.rpartition("/")[0]] > level] == []
    assert re.fullmatch(r"([a-z]+/)?[a-z]+(-[a-z]+)*\.js", name)
