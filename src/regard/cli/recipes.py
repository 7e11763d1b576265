"""regard new and regard config: recipes written, shown and explained."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from regard.cli.console import Console
from regard.cli.manners import Verbs, json_option, polite, print_json
from regard.errors import ConfigError, OutputError

if TYPE_CHECKING:
    from regard.config import Setting

STARTING: dict[str, Any] = {
    "model.layers": 3,
    "model.width": 256,
    "model.inner": 1024,
    "model.heads": 4,
    "train.epochs": 20.0,
    "train.schedule.warmup": 1000,
}
"""Where a new recipe leaves the defaults, which are those of papers with eight GPUs."""


@click.command(short_help="Write a commented recipe.")
@click.argument("name")
@click.option("--task", type=click.Choice(["translate"]), default="translate", show_default=True, help="What is asked.")
@click.option("--source-lang", default="source", show_default=True, help="The language that is read.")
@click.option("--target-lang", default="target", show_default=True, help="The language that is written.")
@polite()
def new(name: str, task: str, source_lang: str, target_lang: str) -> None:
    """Write a recipe in which every line is explained, and say where the data goes.

    The languages end the names of the files: data/train.de and data/train.en.

    \b
    Examples:
      regard new mine --task translate
      regard new news --source-lang de --target-lang en
    """
    path = Path(name if name.endswith(".toml") else f"{name}.toml")
    folder = Path("data")
    text = commented(folder, source_lang, target_lang)
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise OutputError(f"{path} exists already; nothing was changed, choose another name") from None
    except OSError as error:
        raise OutputError(f"{path}: cannot be written ({error.strerror})") from None
    say = Console.of_verb().say
    say(f"line i of {folder}/train.{target_lang} is the translation of line i of {folder}/train.{source_lang}")
    say(f"next: regard data stats {path}    regard train {path} --dry-run    regard train {path}")
    click.echo(str(path))


def commented(folder: Path, source: str, target: str) -> str:
    """A recipe with the documentation of each setting beside it; a setting at its default is commented out.

    >>> print(*commented(Path("data"), "de", "en").splitlines()[5:7], sep="\\n")
    kind = "files"                      # two aligned files for each split
    train = ["data/train.de", "data/train.en"]  # the source file and the target file to learn from
    """
    from regard.run import Recipe

    kinds = {"data": "files", "model": "transformer", "train.optimizer": "adam", "train.schedule": "inverse-sqrt"}
    files = {
        f"data.{split}": [f"{folder.as_posix()}/{split}.{language}" for language in (source, target)]
        for split in ("train", "valid", "test")
    }
    given = {f"{section}.kind": kind for section, kind in kinds.items()} | files | STARTING
    lines = [f"# {source} to {target}; `regard config explain KEY` tells more, `regard train` reads this."]
    section = None
    for setting in _chosen(Recipe, kinds):
        at, _, leaf = setting.key.rpartition(".")
        if at != section:
            section = at
            lines += ["", f"[{at}]"] if at else [""]
        lines.append(_line(setting, leaf, given))
    return "\n".join(lines) + "\n"


def _chosen(cls: Any, kinds: dict[str, str]) -> list[Setting]:
    """The settings of the kinds that were picked, plain ones before tables as TOML wants them."""
    from regard import config

    found = [s for s in config.settings(cls) if not s.of or s.of == kinds.get(s.key.rpartition(".")[0])]
    sections = {s.key.rpartition(".")[0]: i for i, s in reversed(list(enumerate(found)))}
    return sorted(found, key=lambda s: (bool(s.key.rpartition(".")[0]), sections[s.key.rpartition(".")[0]]))


def _line(setting: Setting, leaf: str, given: dict[str, Any]) -> str:
    value = given.get(setting.key, setting.default)
    shown = f"{leaf} = {_toml(value)}" if value is not None else f"{leaf} ="
    later = setting.key in ("data.valid", "data.test")  # named for whoever has such files
    hidden = "" if leaf == "kind" or (setting.key in given and not later) else "# "
    return f"{hidden}{shown}".ljust(34) + (f"  # {setting.doc}" if setting.doc else "")


def _toml(value: Any) -> str:
    import tomli_w

    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_toml, value))}]"
    return tomli_w.dumps({"x": value}).removeprefix("x = ").strip()


@click.group(cls=Verbs)
def config() -> None:
    """Show, explain and describe recipes.

    \b
    Examples:
      regard config show mine.toml train.steps=100
      regard config explain train.clip
    """


@config.command()
@click.argument("recipe", type=click.Path(path_type=Path))
@click.argument("settings", nargs=-1, metavar="[KEY=VALUE]...")
@json_option
@polite()
def show(recipe: Path, settings: tuple[str, ...], as_json: bool) -> None:
    """Every setting as a run would have it: defaults, preset, file, then command line.

    \b
    Examples:
      regard config show mine.toml model.preset=transformer-tiny
      regard config show runs/demo --json
    """
    from regard.cli.choosing import chosen_recipe
    from regard.config import dump, plain

    chosen, _ = chosen_recipe(recipe, settings, None)
    print_json(plain(chosen)) if as_json else click.echo(dump(chosen), nl=False)


@config.command()
@click.argument("key")
@json_option
@polite()
def explain(key: str, as_json: bool) -> None:
    """What a setting means, its type, its default and its choices; a section lists all of its settings.

    \b
    Examples:
      regard config explain train.clip
      regard config explain decode
    """
    from dataclasses import asdict

    from regard.config import plain, settings
    from regard.run import Recipe

    known = list(settings(Recipe))
    found = [setting for setting in known if f"{setting.key}.".startswith(f"{key}.")]
    if not found:
        raise ConfigError(_unknown(key, [setting.key for setting in known]))
    if as_json:
        print_json([asdict(s) | {"default": plain(s.default), "choices": list(s.choices)} for s in found])
        return
    click.echo("\n".join(line for setting in found for line in explained(setting)))


def explained(setting: Setting) -> Iterator[str]:
    """A setting in a line or two.

    >>> from regard.config import Setting
    >>> print(*explained(Setting("train.steps", "a whole number", None, "updates of the weights")), sep="\\n")
    train.steps: updates of the weights
      a whole number; not set by default
    """
    from regard.config import plain

    where = f" ({setting.of})" if setting.of else ""
    yield f"{setting.key}{where}: {setting.doc}".rstrip(": ")
    default = plain(setting.default)
    yield f"  {setting.type}; " + ("not set by default" if default is None else f"default {_toml(default)}")


def _unknown(key: str, known: Sequence[str]) -> str:
    names = list(dict.fromkeys(known))
    close = difflib.get_close_matches(key, names, n=3)
    leaf = key.rpartition(".")[2]
    close += [name for name in names if name.rpartition(".")[2] == leaf and name not in close]
    sections = ", ".join(dict.fromkeys(name.partition(".")[0] for name in names))
    guess = f"did you mean {' or '.join(close[:3])}?" if close else f"there are {sections}"
    return f'there is no setting "{key}"; {guess}'


@config.command()
@polite()
def schema() -> None:
    """The JSON Schema of a recipe, for editors that complete and check TOML.

    \b
    Examples:
      regard config schema > recipe.schema.json
      regard config schema | python -m json.tool
    """
    from regard.cli.schema import table
    from regard.models import PRESETS
    from regard.run import Recipe

    found = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "a recipe of regard", **table(Recipe)}
    preset = {"enum": list(PRESETS), "description": "a published shape under its name; other settings go on top"}
    for option in found["properties"]["model"]["anyOf"]:
        option["properties"]["preset"] = preset
    print_json(found)
