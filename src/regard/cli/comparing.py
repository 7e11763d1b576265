"""regard compare."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from regard.cli.console import Console, Stages
from regard.cli.manners import json_option, manners, polite, print_json
from regard.errors import ConfigError, DataError, Diverged, Interrupted, OutputError, RegardError, Terminated

if TYPE_CHECKING:
    from regard.compare import Beside, Table
    from regard.jobs import Recipe

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
    "--out", type=click.Path(path_type=Path), help="Where a family is trained.  [default: runs/NAME-OF-RECIPE]"
)
@click.option("--nproc", type=click.IntRange(1), default=1, help="Processes that train one model together.")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="With a text: a file, .svg or .json.")
@json_option
@polite()
def compare(what: tuple[str, ...], out: Path | None, nproc: int, output: Path | None, as_json: bool) -> None:
    """Train a family of models on the same data and budget, or compare models that are trained.

    A RECIPE with a [family.NAME] for each model is trained member by member; the same command again goes on. Then one
    table: score with interval, parameters, training time, speed, significance against the best, and the score by
    length. With RUNs, the same table of them; with a TEXT, what each of them makes of it and where it looks.

    \b
    Examples:
      regard compare recipes/compare/fr-en.toml train.minutes=10
      regard compare runs/gru runs/transformer -- "je suis étudiant"
    """
    texts = click.get_current_context().meta[TEXTS]
    if output is not None and (not texts or output.suffix not in (".svg", ".json")):
        raise ConfigError(f"-o {output}: a text after -- can be drawn into a file that ends in .svg or .json")
    if texts:
        if not all(text.strip() for text in texts):
            raise DataError("the text is empty; there is nothing to compare")
        return beside([Path(name) for name in what], texts, output, as_json)
    first = Path(what[0])
    if is_family(first):
        table = trained(first, what[1:], out, nproc)
    else:
        table = listed([Path(name) for name in what])
    if as_json:
        return print_json(table.to_dict())
    click.echo(table.text())
    if table.curves:
        click.echo(f"\n{table.curves.text()}")


def is_family(path: Path) -> bool:
    """Whether a path names a compare recipe, or the folder of a family that was begun.

    >>> is_family(Path("a.toml")), is_family(Path("runs/a"))
    (True, False)
    """
    return (path / "compare.toml").exists() if path.is_dir() else path.suffix == ".toml"


def trained(source: Path, settings: tuple[str, ...], out: Path | None, nproc: int = 1) -> Table:
    """Train a family, or go on with it, and compare its members."""
    from regard.compare import Comparison, lined_up

    path = source / "compare.toml" if source.is_dir() else source
    folder = out or (source if source.is_dir() else Path("runs") / source.stem)
    comparison = Comparison.read(path, settings)
    console = Console.of_verb()
    with Stages(console) as stages:
        comparison.members[0].recipe.fetch(stages.bytes)
        failures = comparison.train(folder, teacher(stages, nproc), stages)
        for name, why in failures.items():
            console.say(f" {name}: {why}")
        table = lined_up({member.name: folder / member.name for member in comparison.members}, failures, stages)
    for file in table.save(folder):
        console.say(f" -> {file}")
    return table


def teacher(stages: Stages, nproc: int) -> Callable[[Recipe, Path], None]:
    """What trains one member, with a bar, as `regard train` does."""
    from regard.cli.training import carry_out
    from regard.train.parallel import launch

    def train(recipe: Recipe, path: Path) -> None:
        stages.console.close()
        stages.console.say(f"\n {path.name}")
        if nproc == 1:
            carry_out(recipe, path, fresh=False)
            return
        quiet = ["-q"] if manners().quiet else []
        follow(path, launch(nproc, [sys.executable, "-c", ASIDE, "train", str(path), *quiet]))

    return train


def follow(path: Path, code: int) -> None:
    """End as the processes ended that trained a member; they have said why.

    >>> follow(Path("runs/a"), 0)
    """
    kinds: dict[int, type[RegardError]] = {5: Diverged, 130: Interrupted, 143: Terminated}
    why = {5: "loss became NaN", 130: "interrupted", 143: "terminated"}.get(code, f"stopped with exit code {code}")
    if code:
        raise kinds.get(code, RegardError)(f"{path}: {why}; see {path / 'log.txt'}, or run the same command again")


def listed(paths: list[Path]) -> Table:
    """Compare runs that are there."""
    from regard.compare import lined_up

    with Stages(Console.of_verb()) as stages:
        return lined_up(named(paths), {}, stages)


def named(paths: list[Path]) -> dict[str, Path]:
    """Runs by short names that differ.

    >>> named([Path("runs/a"), Path("other/a")])
    {'runs/a': PosixPath('runs/a'), 'other/a': PosixPath('other/a')}
    """
    if len(paths) < 2:
        raise ConfigError(f"a comparison needs at least two models; {len(paths)} was given")
    short = [path.name for path in paths]
    return {path.name if short.count(path.name) == 1 else str(path): path for path in paths}


def beside(paths: list[Path], texts: list[str], output: Path | None, as_json: bool) -> None:
    """What each model makes of each text."""
    from regard.compare import side_by_side
    from regard.compare.beside import picture

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
        for i, one in enumerate(found):
            if i % len(paths) == 0:
                click.echo(("\n" if i else "") + one.text)
            click.echo(f"\n{one.shown()}", color=True)
