"""The page's modules keep the package's taste: short functions, short files, no markup out of text, no strangers."""

import re

import pytest

from regard.look import html
from regard.studio.app import page_files

MODULES = {name: text.decode() for name, text in page_files().items() if name.endswith(".js")}
WORD = r"(?!if\b|for\b|while\b|switch\b|catch\b|return\b)\w+"
BEGINS = re.compile(
    rf"^(?P<margin> *)(?:export )?(?:async )?(?:function \w+|(?:static |get |set |async )*{WORD})\(.*\{{$"
    r"|^(?P<own> *)(?:export )?(?:async )?function \w+\($"
    r"|^(?P<named> *)(?:export )?(?:const|let) \w+ = (?:async )?\(.*=> \{$"
)
MARKUP = re.compile(
    r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|setTimeout\(\s*[\"'`]"
)


def functions(text):
    """(first line, lines) of each function: it ends where a brace stands under its beginning."""
    lines = text.splitlines()
    for i, line in enumerate(lines):
        begins = BEGINS.match(line)
        if begins:
            margin = next(group for group in begins.groups() if group is not None)
            end = next(j for j in range(i + 1, len(lines)) if lines[j].startswith(f"{margin}}}"))
            yield line.strip(), end - i + 1


def test_functions_are_found_at_all():
    found = {name: list(functions(text)) for name, text in MODULES.items()}
    assert len(found["matrix.js"]) > 15 and ("export function matrix(matrix) {", 3) in found["matrix.js"]
    assert list(functions("function long(\n  a,\n) {\n}\n")) == [("function long(", 4)]


@pytest.mark.parametrize("name", sorted(MODULES))
def test_no_function_has_more_than_fifty_lines_and_no_file_more_than_four_hundred(name):
    assert [(line, size) for line, size in functions(MODULES[name]) if size > 50] == []
    assert len(MODULES[name].splitlines()) <= 400


@pytest.mark.parametrize("name", sorted(MODULES))
def test_no_module_makes_markup_or_code_out_of_text(name):
    assert MARKUP.findall(MODULES[name]) == []


@pytest.mark.parametrize("name", sorted(MODULES))
def test_modules_are_typed_and_import_nobody_but_one_another(name):
    text = MODULES[name]
    assert text.startswith("// @ts-check\n")
    others = re.findall(r'^import .*? from "(.*?)";', text, re.MULTILINE | re.DOTALL)
    assert all(re.fullmatch(r"\./\w+\.js", other) and other[2:] in MODULES for other in others)
    assert len(html.IMPORT.findall(text)) == len(others)  # in the form that a single file is made from
    assert "http://" not in text.replace("http://www.w3.org/", "") and "https://" not in text


def test_every_module_is_used():
    used = {other for text in MODULES.values() for _, other in html.IMPORT.findall(text)}
    assert set(MODULES) - {f"{name}.js" for name in used} == {"main.js", "alone.js", "types.js"}
