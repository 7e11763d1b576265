"""regard new and regard config: write, show and explain recipes."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from regard.cli.console import Console
from regard.cli.options import OrderedGroup, json_option, print_json, recipe_arguments
from regard.errors import ConfigError, OutputError
from regard.program import quote_path, runnable
from regard.recipe_tables import task_name
from regard.renamed import renamed_key
from regard.settings_table import recipe_shapes

if TYPE_CHECKING:
    from regard.config import Setting
    from regard.tasks import Recipe, RecipeTemplate


@click.command(short_help="Write a commented recipe.")
@click.argument("name")
@click.option("--task", default="translate", show_default=True, help="The task of the recipe.")
@click.option("--source-lang", help="Translation: source language.  [default: source]")
@click.option("--target-lang", help="Translation: target language.  [default: target]")
def new(name: str, task: str, source_lang: str | None, target_lang: str | None) -> None:
    """Write a recipe with a comment on every line, and print where the data goes.

    The languages are the suffixes of the data files: data/train.de and data/train.en.

    \b
    Examples:
      regard new mine --task translate
      regard new news --source-lang de --target-lang en
    """
    if shapes := recipe_shapes():
        task_name({"task": {"kind": task}}, list(shapes))  # raises if there is no such task
    from regard.tasks import Recipe

    path = Path(name if name.endswith(".toml") else f"{name}.toml")
    languages = (source_lang or "source", target_lang or "target") if source_lang or target_lang else None
    recipe_class = Recipe.class_for({"task": {"kind": task}})
    template = recipe_class.template(languages)
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(commented_toml(recipe_class, template))
    except FileExistsError:
        raise OutputError(f"{path} exists already; nothing was changed, choose another name") from None
    except OSError as error:
        raise OutputError(f"{path}: cannot be written ({error.strerror})") from None
    console = Console.of_verb()
    for hint in template.hints:
        console.print(hint)
    word = quote_path(path)
    following = (f"regard data stats {word}", f"regard train {word} --dry-run", f"regard train {word}")
    console.print(f"next: {'    '.join(map(runnable, following))}")
    click.echo(str(path))


def commented_toml(recipe_class: type[Recipe], template: RecipeTemplate) -> str:
    """A recipe with the documentation of each setting as a comment; a setting at its default is commented out."""
    values = {f"{section}.kind": kind for section, kind in template.kinds.items()} | dict(template.settings)
    values.setdefault("task.kind", recipe_class.kind())
    lines = [f"# {template.title}; `regard config explain KEY` explains a setting, `regard train` reads this file."]
    current = None
    for setting in _template_settings(recipe_class, template.kinds):
        section, _, leaf = setting.key.rpartition(".")
        if section != current:
            current = section
            lines += ["", f"[{section}]"] if section else [""]
        lines.append(_toml_line(setting, leaf, values, template.commented_out))
    return "\n".join(lines) + "\n"


def _template_settings(cls: Any, kinds: Mapping[str, str]) -> list[Setting]:
    """The settings of the given kinds; those outside of a table come first, as TOML requires."""
    from regard import config

    found = [s for s in config.settings(cls) if not s.of or s.of == kinds.get(s.key.rpartition(".")[0])]
    sections = {s.key.rpartition(".")[0]: i for i, s in reversed(list(enumerate(found)))}
    return sorted(found, key=lambda s: (bool(s.key.rpartition(".")[0]), sections[s.key.rpartition(".")[0]]))


def _toml_line(setting: Setting, leaf: str, values: dict[str, Any], commented_out: Sequence[str]) -> str:
    value = values.get(setting.key, setting.default)
    line = f"{leaf} = {_toml(value)}" if value is not None else f"{leaf} ="
    active = leaf == "kind" or (setting.key in values and setting.key not in commented_out)
    return f"{'' if active else '# '}{line}".ljust(34) + (f"  # {setting.doc}" if setting.doc else "")


def _toml(value: Any) -> str:
    import tomli_w

    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_toml, value))}]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_toml(key)} = {_toml(item)}" for key, item in value.items()) + "}"
    return tomli_w.dumps({"x": value}).removeprefix("x = ").strip()


@click.group(cls=OrderedGroup)
def config() -> None:
    """Show recipes, explain settings, print the JSON Schema.

    \b
    Examples:
      regard config show mine.toml train.steps=100
      regard config explain train.clip_norm
    """


@config.command()
@recipe_arguments
@json_option
def show(recipe: Path, settings: tuple[str, ...], as_json: bool) -> None:
    """Print all settings of a recipe, resolved from defaults, preset, file and command line, in this order.

    \b
    Examples:
      regard config show mine.toml model.preset=transformer-tiny
      regard config show runs/demo --json
    """
    from regard.cli.loading import load_recipe
    from regard.config import dump, plain

    chosen, _ = load_recipe(recipe, settings, None)
    print_json(plain(chosen)) if as_json else click.echo(dump(chosen), nl=False)


@config.command()
@click.argument("key")
@json_option
def explain(key: str, as_json: bool) -> None:
    """Explain a setting: its meaning, type, default and choices; of a section, all of its settings.

    \b
    Examples:
      regard config explain train.clip_norm
      regard config explain decode
    """
    from dataclasses import asdict

    from regard.config import plain

    if key == "model.preset":
        return explain_presets(as_json)
    recipes = recipe_shapes() or recipe_classes()
    known = known_settings(recipes)
    found = [(setting, tasks) for setting, tasks in known if f"{setting.key}.".startswith(f"{key}.")]
    if not found:
        raise ConfigError(_unknown_setting(key, [setting.key for setting, _ in known]))
    if as_json:
        rows = [asdict(s) | {"default": plain(s.default), "choices": list(s.choices), "tasks": t} for s, t in found]
        print_json(rows)
        return
    for setting, tasks in found:
        click.echo(explain_setting(setting, () if tasks == list(recipes) else tasks))


def explain_presets(as_json: bool) -> None:
    """Print the presets with their papers and their published numbers of parameters."""
    from regard.models import PRESETS

    if as_json:
        fields = ("provenance", "words", "parameters")
        return print_json([{"name": n} | {field: getattr(p, field) for field in fields} for n, p in PRESETS.items()])
    click.echo("model.preset: a published configuration by name; other settings of [model] override it")
    for name, preset in PRESETS.items():
        source, target = preset.words
        words = f"{target:,}" if source == target else f"{source:,} and {target:,}"
        click.echo(f"  {name:<17} {preset.provenance}")
        click.echo(f"  {'':<17} {preset.parameters:,} parameters with {words} words")


def recipe_classes() -> dict[str, Any]:
    """The recipe classes by task."""
    from regard.tasks import Recipe

    return {recipe_class.kind(): recipe_class for recipe_class in Recipe.classes()}


def known_settings(recipes: Mapping[str, Any]) -> list[tuple[Setting, list[str]]]:
    """Every setting once, with the tasks whose recipes have it in the same form."""
    from regard.config import settings

    found: dict[str, tuple[Setting, list[str]]] = {}
    for task, recipe in recipes.items():
        for setting in settings(recipe):
            found.setdefault(repr(setting), (setting, []))[1].append(task)
    return list(found.values())


def explain_setting(setting: Setting, tasks: Sequence[str] = ()) -> str:
    """A setting in two lines; `tasks` are those that have it, if not all.

    >>> from regard.config import Setting
    >>> print(explain_setting(Setting("train.steps", "a whole number", None, "updates of the weights")))
    train.steps: updates of the weights
      a whole number; not set by default
    """
    from regard.config import plain

    where = ", ".join(filter(None, [setting.of, f"to {' or '.join(tasks)}" if tasks else ""]))
    title = f"{setting.key}{f' ({where})' if where else ''}: {setting.doc}".rstrip(": ")
    default = plain(setting.default)
    return f"{title}\n  {setting.type}; " + ("not set by default" if default is None else f"default {_toml(default)}")


def _unknown_setting(key: str, known: Sequence[str]) -> str:
    if new := renamed_key(key):
        return f'there is no setting "{key}"; it is now {new}'
    names = list(dict.fromkeys(known))
    close = difflib.get_close_matches(key, names, n=3)
    leaf = key.rpartition(".")[2]
    close += [name for name in names if name.rpartition(".")[2] == leaf and name not in close]
    sections = ", ".join(dict.fromkeys(name.partition(".")[0] for name in names))
    guess = f"did you mean {' or '.join(close[:3])}?" if close else f"there are {sections}"
    return f'there is no setting "{key}"; {guess}'


@config.command()
@click.option("--task", help="Recipes of one task only, such as translate.  [default: all]")
def schema(task: str | None) -> None:
    """Print the JSON Schema of recipes, for editors that complete and check TOML.

    \b
    Examples:
      regard config schema > recipe.schema.json
      regard config schema --task translate | python -m json.tool
    """
    from regard.cli.schema import recipe_schema
    from regard.tasks import Recipe

    classes = Recipe.classes() if task is None else (Recipe.class_for({"task": {"kind": task}}),)
    found = [recipe_schema(recipe_class) for recipe_class in classes]
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "a recipe of regard"}
    print_json({**head, **(found[0] if len(found) == 1 else {"anyOf": found})})
