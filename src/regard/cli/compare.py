"""regard compare."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from regard.cli.console import Console, Stages
from regard.cli.options import json_option, manners, polite, print_json
from regard.errors import (
    ConfigError,
    DataError,
    Diverged,
    Interrupted,
    ModelError,
    OutputError,
    RegardError,
    Terminated,
)

if TYPE_CHECKING:
    from regard.compare import Beside, Table
    from regard.tasks import Recipe

TEXTS = "regard.compare.texts"
ASIDE = "import sys; sys.stdout = sys.stderr; from regard.cli import main; main()"
"""`regard`, with all that it says on stderr: stdout is for the table"""


class WithTexts(click.Command):
    """A command that takes texts after --, apart from what stands before it.

    >>> WithTexts("compare").name
    'compare'
    """

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        at = args.index("--") if "--" in args else len(args)
        ctx.meta[TEXTS] = args[at + 1 :]
        return super().parse_args(ctx, args[:at])


@click.command(cls=WithTexts, short_help="Train a family of models, or compare trained ones.")
@click.argument("what", nargs=-1, required=True, metavar="RECIPE [KEY=VALUE]... | RUN RUN... [-- TEXT...]")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    help="Where a family is trained, or the table of runs is saved.  [default: runs/NAME-OF-RECIPE]",
)
@click.option("--nproc", type=click.IntRange(1), default=1, help="Processes that train one model together.")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="With a text: a file, .svg or .json.")
@json_option
@polite()
def compare(what: tuple[str, ...], out: Path | None, nproc: int, output: Path | None, as_json: bool) -> None:
    """Train a family of models on the same data and budget, or compare models that are trained.

    A RECIPE with a [family.NAME] for each model is trained member by member; the same command again goes on. Then one
    table: score with interval, parameters, training time, speed, significance against the best, and the score by
    length. With RUNs, the same table of them; with a TEXT, what each of them, or of a family, makes of it and where it
    looks.

    \b
    Examples:
      regard compare recipes/compare/fr-en.toml train.minutes=10
      regard compare runs/gru runs/transformer -- "je suis étudiant"
    """
    texts = click.get_current_context().meta[TEXTS]
    if output is not None and (not texts or output.suffix not in (".svg", ".json")):
        raise ConfigError(
            f"-o {output}: a text after -- can be drawn into a file that ends in .svg or .json; a table is saved "
            "with --out FOLDER"
        )
    settings = tuple(name for name in what if "=" in name and not Path(name).exists())
    paths = [Path(name) for name in what if name not in settings]
    families = [path for path in paths if is_family(path)]
    if settings and not families:
        raise ConfigError(
            f"{settings[0]}: a setting is for the recipe of a family, and none is given; a text goes after --"
        )
    if texts:
        if not all(text.strip() for text in texts):
            raise DataError("the text is empty; there is nothing to compare")
        if out is not None and not families:
            raise ConfigError(f"--out {out}: what models make of a text is saved with -o FILE")
        return beside(members(paths, settings, out), texts, output, as_json)
    if paths == families and len(paths) == 1:
        table = trained(paths[0], settings, out, nproc)
    else:
        table = listed(members(paths, settings, None), out)
    if as_json:
        print_json(table.to_dict())
    else:
        click.echo("\n\n".join([table.text(), *([table.curves.text()] if table.curves else [])]))
    if table.best is None:
        raise Diverged(f"no model has a score: all {len(table.rows)} diverged")


def is_family(path: Path) -> bool:
    """Whether a path names a compare recipe, or the folder of a family that was begun.

    >>> is_family(Path("a.toml")), is_family(Path("runs/a"))
    (True, False)
    """
    return (path / "compare.toml").exists() if path.is_dir() else path.suffix == ".toml"


def family_of(source: Path, out: Path | None) -> tuple[Path, Path]:
    """Where the recipe of a family is, and in which folder its members are.

    >>> family_of(Path("recipes/fr-en.toml"), None)
    (PosixPath('recipes/fr-en.toml'), PosixPath('runs/fr-en'))
    """
    if source.is_dir():
        return source / "compare.toml", out or source
    return source, out or Path("runs") / source.stem


def trained(source: Path, settings: tuple[str, ...], out: Path | None, nproc: int = 1) -> Table:
    """Train a family, or go on with it, and compare its members."""
    from regard.compare import Comparison, lined_up

    path, folder = family_of(source, out)
    comparison = Comparison.read(path, settings)
    with Stages(Console.of_verb()) as stages:
        comparison.members[0].recipe.fetch(stages.bytes)
        failures = comparison.train(folder, teacher(stages, nproc), stages)
        table = lined_up({member.name: folder / member.name for member in comparison.members}, failures, stages)
    return saved(table, folder)


def saved(table: Table, folder: Path) -> Table:
    """The table, written into a folder."""
    for file in table.save(folder):
        Console.of_verb().say(f" -> {file}")
    return table


def teacher(stages: Stages, nproc: int) -> Callable[[Recipe, Path], None]:
    """What trains one member, with a bar, as `regard train` does."""
    from regard.cli.train import carry_out
    from regard.train.parallel import launch

    def train(recipe: Recipe, path: Path) -> None:
        stages.console.close()
        stages.console.say(f"\n {path.name}")
        try:
            if nproc == 1:
                carry_out(recipe, path, fresh=False)
            else:
                quiet = ["-q"] if manners().quiet else []
                follow(path, launch(nproc, [sys.executable, "-c", ASIDE, "train", str(path), *quiet]))
        except Diverged as error:
            stages.console.say(f" {path.name} has no score: {error}")
            raise

    return train


def follow(path: Path, code: int) -> None:
    """End as the processes ended that trained a member; they have said why.

    >>> follow(Path("runs/a"), 0)
    """
    kinds: dict[int, type[RegardError]] = {5: Diverged, 130: Interrupted, 143: Terminated}
    why = {5: "loss became NaN", 130: "interrupted", 143: "terminated"}.get(code, f"stopped with exit code {code}")
    if code:
        raise kinds.get(code, RegardError)(f"{path}: {why}; see {path / 'log.txt'}, or run the same command again")


def listed(paths: list[Path], out: Path | None) -> Table:
    """Compare runs that are there; save the table if a folder is given."""
    from regard.compare import lined_up

    with Stages(Console.of_verb()) as stages:
        table = lined_up(named(paths), tell=stages)
    return saved(table, out) if out else table


def members(paths: list[Path], settings: tuple[str, ...], out: Path | None) -> list[Path]:
    """Runs, with each family that is named replaced by those of its members that have learnt something."""
    from regard.compare import Comparison
    from regard.train.checkpoint_store import checkpoints

    found: list[Path] = []
    for path in paths:
        if not is_family(path):
            if not path.exists():
                raise ModelError(f"{path} is not a run: there is no such directory; a text goes after --")
            found.append(path)
            continue
        recipe, folder = family_of(path, out)
        runs = [folder / member.name for member in Comparison.read(recipe, settings).members]
        there = [run for run in runs if checkpoints(run)]
        if not there:
            raise ModelError(f"{folder} has no trained model; train them first: regard compare {path}")
        for run in runs:
            if run not in there:
                Console.of_verb().say(f" {run} is left out: it has no checkpoint")
        found += there
    return found


def named(paths: list[Path]) -> dict[str, Path]:
    """Runs by short names that differ.

    >>> named([Path("runs/a"), Path("other/a")])
    {'runs/a': PosixPath('runs/a'), 'other/a': PosixPath('other/a')}
    """
    if len(paths) < 2:
        raise ConfigError(f"a comparison needs at least two models; {len(paths)} was given")
    for i, path in enumerate(paths):
        if path.resolve() in [other.resolve() for other in paths[:i]]:
            raise ConfigError(f"{path} is given twice; a model is compared with others")
    short = [path.name for path in paths]
    return {path.name if short.count(path.name) == 1 else str(path): path for path in paths}


def beside(paths: list[Path], texts: list[str], output: Path | None, as_json: bool) -> None:
    """What each model makes of each text."""
    from regard.compare import side_by_side
    from regard.compare.side_by_side import page, picture

    found: list[Beside] = side_by_side(named(paths), texts)
    rows = [one.to_dict() for one in found]
    if output is not None:
        drawn = picture(found) if output.suffix == ".svg" else json.dumps(rows, ensure_ascii=False)
        try:
            output.write_text(drawn, encoding="utf-8")
        except OSError as error:
            raise OutputError(f"{output}: cannot be written ({error.strerror})") from None
        click.echo(str(output))
    elif as_json:
        print_json(rows)
    else:
        click.echo(page(found), color=True)
