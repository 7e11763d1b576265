"""regard line."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import click

from regard.cli.options import PATH, json_option, print_json
from regard.errors import ConfigError


@click.command(short_help="The line of systems, 1943 to 2023, and what was new.")
@click.argument("name", required=False)
@click.option("-o", "--output", type=PATH, help="Write the timeline as SVG.")
@json_option
def line(name: str | None, output: Path | None, as_json: bool) -> None:
    """Show the line of systems from the artificial neuron (1943) to GPT-3 and the Vision Transformer (2020).

    Without NAME: every system by year, with what was new, the file that implements it, and what was measured. With
    NAME: paper, what was new against its predecessor, file and number of lines, recipe, result and lesson.

    \b
    Examples:
      regard line rnnsearch
      regard line -o line.svg
    """
    from regard.line.table import find_entry, line_table, load_line
    from regard.line.text import entry_lines, overview_lines

    if output is not None:
        if name is not None or as_json:
            raise ConfigError("-o draws the whole line; it takes neither a NAME nor --json")
        if output.suffix != ".svg":
            raise ConfigError(f"-o {output}: expected a name that ends in .svg")
        return _write_picture(output)
    found = None if name is None else find_entry(name)
    if as_json:
        table = line_table()
        print_json(table if found is None else next(row for row in table["entries"] if row["id"] == found.id))
        return
    width, bold = shutil.get_terminal_size().columns, sys.stdout.isatty() and not os.environ.get("NO_COLOR")
    if found is not None:
        title, *lines = entry_lines(found, load_line(), width)
        lines = [click.style(title, bold=bold), *lines]
    else:
        lines = overview_lines(load_line(), width)
    for text in lines:
        click.echo(text, color=bold)


def _write_picture(path: Path) -> None:
    from regard.files import write_text_atomically
    from regard.line.table import load_line
    from regard.line.timeline import draw_timeline

    write_text_atomically(path, draw_timeline(load_line()) + "\n")
