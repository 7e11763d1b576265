"""regard new and regard config: recipes written, shown and explained."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from regard.cli.console import Console
from regard.cli.options import Verbs, json_option, polite, print_json
from regard.errors import ConfigError, OutputError

if TYPE_CHECKING:
    from regard.config import Setting
    from regard.tasks import Recipe, Starter


@click.command(short_help="Write a commented recipe.")
@click.argument("name")
@click.option("--task", default="translate", show_default=True, help="What is asked, such as translate.")
@click.option("--source-lang", help="Translation: the language that is read.  [default: source]")
@click.option("--target-lang", help="Translation: the language that is written.  [default: target]")
@polite()
def new(name: str, task: str, source_lang: str | None, target_lang: str | None) -> None:
    """Write a recipe in which every line is explained, and say where the data goes.

    The languages end the names of the files: data/train.de and data/train.en.

    \b
    Examples:
      regard new mine --task translate
      regard new news --source-lang de --target-lang en
    """
    from regard.tasks import Recipe

    path = Path(name if name.endswith(".toml") else f"{name}.toml")
    languages = (source_lang or "source", target_lang or "target") if source_lang or target_lang else None
    job = Recipe.named({"task": {"kind": task}})
    starter = job.starter(languages)
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(commented(job, starter))
    except FileExistsError:
        raise OutputError(f"{path} exists already; nothing was changed, choose another name") from None
    except OSError as error:
        raise OutputError(f"{path}: cannot be written ({error.strerror})") from None
    say = Console.of_verb().say
    for hint in starter.hints:
        say(hint)
    say(f"next: regard data stats {path}    regard train {path} --dry-run    regard train {path}")
    click.echo(str(path))


def commented(job: type[Recipe], starter: Starter) -> str:
    """A recipe with the documentation of each setting beside it; a setting at its default is commented out.

    >>> from regard.tasks import TranslateRecipe
    >>> print(*commented(TranslateRecipe, TranslateRecipe.starter(("de", "en"))).splitlines()[5:7], sep="\\n")
    kind = "files"                      # two aligned files for each split
    train = ["data/train.de", "data/train.en"]  # the source file and the target file to learn from
    """
    given = {f"{section}.kind": kind for section, kind in starter.kinds.items()} | dict(starter.given)
    given.setdefault("task.kind", job.kind())
    lines = [f"# {starter.title}; `regard config explain KEY` tells more, `regard train` reads this."]
    section = None
    for setting in _chosen(job, starter.kinds):
        at, _, leaf = setting.key.rpartition(".")
        if at != section:
            section = at
            lines += ["", f"[{at}]"] if at else [""]
        lines.append(_line(setting, leaf, given, starter.later))
    return "\n".join(lines) + "\n"


def _chosen(cls: Any, kinds: Mapping[str, str]) -> list[Setting]:
    """The settings of the kinds that were picked, plain ones before tables as TOML wants them."""
    from regard import config

    found = [s for s in config.settings(cls) if not s.of or s.of == kinds.get(s.key.rpartition(".")[0])]
    sections = {s.key.rpartition(".")[0]: i for i, s in reversed(list(enumerate(found)))}
    return sorted(found, key=lambda s: (bool(s.key.rpartition(".")[0]), sections[s.key.rpartition(".")[0]]))


def _line(setting: Setting, leaf: str, given: dict[str, Any], later: Sequence[str]) -> str:
    value = given.get(setting.key, setting.default)
    shown = f"{leaf} = {_toml(value)}" if value is not None else f"{leaf} ="
    hidden = "" if leaf == "kind" or (setting.key in given and setting.key not in later) else "# "
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
    from regard.cli.loading import chosen_recipe
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

    from regard.config import plain
    from regard.tasks import Recipe

    if key == "model.preset":
        explain_presets(as_json)
        return
    known = known_settings(Recipe.jobs)
    found = [(setting, tasks) for setting, tasks in known if f"{setting.key}.".startswith(f"{key}.")]
    if not found:
        raise ConfigError(_unknown(key, [setting.key for setting, _ in known]))
    if as_json:
        rows = [asdict(s) | {"default": plain(s.default), "choices": list(s.choices), "tasks": t} for s, t in found]
        print_json(rows)
        return
    everybody = [job.kind() for job in Recipe.jobs]
    told = (explained(setting, () if tasks == everybody else tasks) for setting, tasks in found)
    click.echo("\n".join(line for lines in told for line in lines))


def explain_presets(as_json: bool) -> None:
    """The published shapes, where they come from, and how many parameters they have there."""
    from regard.models import PRESETS

    if as_json:
        print_json(
            [
                {"name": name, "provenance": preset.provenance, "words": preset.words, "parameters": preset.parameters}
                for name, preset in PRESETS.items()
            ]
        )
        return
    click.echo("model.preset: a published shape under its name; other settings of [model] go on top")
    for name, preset in PRESETS.items():
        read, said = preset.words
        words = f"{said:,}" if read == said else f"{read:,} and {said:,}"
        click.echo(f"  {name:<17} {preset.provenance}")
        click.echo(f"  {'':<17} {preset.parameters:,} parameters with {words} words")


def known_settings(jobs: Sequence[type[Recipe]]) -> list[tuple[Setting, list[str]]]:
    """Every setting of any job once, with the tasks whose recipes have it just so.

    >>> from regard.tasks import TranslateRecipe
    >>> next((s.default, tasks) for s, tasks in known_settings([TranslateRecipe]) if s.key == "seed")
    (1, ['translate'])
    """
    from regard.config import settings

    found: dict[str, tuple[Setting, list[str]]] = {}
    for job in jobs:
        for setting in settings(job):
            found.setdefault(repr(setting), (setting, []))[1].append(job.kind())
    return list(found.values())


def explained(setting: Setting, tasks: Sequence[str] = ()) -> Iterator[str]:
    """A setting in a line or two; `tasks` are those that it is for, if not for all.

    >>> from regard.config import Setting
    >>> print(*explained(Setting("train.steps", "a whole number", None, "updates of the weights")), sep="\\n")
    train.steps: updates of the weights
      a whole number; not set by default
    """
    from regard.config import plain

    where = ", ".join(filter(None, [setting.of, f"to {' or '.join(tasks)}" if tasks else ""]))
    yield f"{setting.key}{f' ({where})' if where else ''}: {setting.doc}".rstrip(": ")
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
@click.option("--task", help="The recipes of one task, such as translate.  [default: all]")
@polite()
def schema(task: str | None) -> None:
    """The JSON Schema of a recipe, for editors that complete and check TOML.

    \b
    Examples:
      regard config schema > recipe.schema.json
      regard config schema --task translate | python -m json.tool
    """
    from regard.cli.schema import of_recipe
    from regard.tasks import Recipe

    jobs = Recipe.jobs if task is None else (Recipe.named({"task": {"kind": task}}),)
    found = [of_recipe(job) for job in jobs]
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "a recipe of regard"}
    print_json({**head, **(found[0] if len(found) == 1 else {"anyOf": found})})
