"""regard look."""

from __future__ import annotations

import json
from pathlib import Path

import click

from regard.cli.choosing import load
from regard.cli.console import Console
from regard.cli.manners import json_option, polite, print_json
from regard.errors import ConfigError, DataError, OutputError

WRITTEN = (".svg", ".json", ".safetensors")


@click.command()
@click.argument("run", type=click.Path(path_type=Path))
@click.argument("text")
@click.option("--layer", type=int, help="Which layer, from 0 on.  [default: the last]")
@click.option("--head", type=int, help="One head, from 0 on.  [default: the mean of all]")
@click.option("--name", help='Which attention, such as "encoder.*".  [default: the decoder\'s at the source]')
@click.option("-o", "--output", type=click.Path(path_type=Path), help="A file: .svg, .json, or .safetensors for all.")
@json_option
@polite()
def look(
    run: Path, text: str, layer: int | None, head: int | None, name: str | None, output: Path | None, as_json: bool
) -> None:
    """See which words a model looked at while it translated a text.

    A heat map in the terminal: a row for each word that was said, a column for each that was read.

    \b
    Examples:
      regard look runs/demo "je suis étudiant"
      regard look runs/demo "je suis étudiant" --layer 0 --head 2 -o attention.svg
    """
    if output is not None and output.suffix not in WRITTEN:
        raise ConfigError(f"-o {output}: expected a name that ends in {', '.join(WRITTEN)}")
    if not text.strip():
        raise DataError("the text is empty; there is nothing to look at")
    import regard

    model = load(run)
    with regard.record(model) as trace:
        said = model.translate(text)
    view = trace.attention(name, layer, head)
    console = Console.of_verb()
    console.say(f"{text} -> {said}")
    if output is None:
        print_json(view.to_dict()) if as_json else click.echo(view.text(), color=True)
        return
    try:
        if output.suffix == ".safetensors":
            trace.save(output)
        else:
            drawn = view.svg() if output.suffix == ".svg" else json.dumps(view.to_dict(), ensure_ascii=False)
            output.write_text(drawn, encoding="utf-8")
    except OSError as error:
        raise OutputError(f"{output}: cannot be written ({error.strerror})") from None
    click.echo(str(output))
