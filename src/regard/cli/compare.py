"""regard compare."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from regard.cli.console import Console, StageProgress
from regard.cli.line_io import write_errors
from regard.cli.loading import chosen_device, set_threads
from regard.cli.options import PATH, global_options, json_option, print_json
from regard.errors import ConfigError, DataError, Diverged, ModelError, kind_of_exit_code
from regard.program import quote_path

if TYPE_CHECKING:
    from regard.compare import ComparisonTable, ModelAnswer
    from regard.tasks import Recipe

TEXTS = "regard.compare.texts"
TRAIN_ON_STDERR = "import sys; sys.stdout = sys.stderr; from regard.cli import main; main()"
"""`regard` with its output on stderr: stdout is for the table"""


class TextsCommand(click.Command):
    """A command that takes texts after --, separate from the arguments before it."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        at = args.index("--") if "--" in args else len(args)
        ctx.meta[TEXTS] = args[at + 1 :]
        return super().parse_args(ctx, args[:at])


@click.command(cls=TextsCommand, short_help="Train a family of models, or compare trained ones.")
@click.argument("what", nargs=-1, required=True, metavar="RECIPE [KEY=VALUE]... | RUN RUN... [-- TEXT...]")
@click.option(
    "--out", type=PATH, help="Folder of a family's runs, or for the table of runs.  [default: runs/NAME-OF-RECIPE]"
)
@click.option("--nproc", type=click.IntRange(1), default=1, help="Number of data-parallel processes per model.")
@click.option("-o", "--output", type=PATH, help="With a text: file to write, .svg or .json.")
@json_option
def compare(what: tuple[str, ...], out: Path | None, nproc: int, output: Path | None, as_json: bool) -> None:
    """Train a family of models on the same data with the same budget, or compare trained models.

    A RECIPE has a [family.NAME] section per model; the models are trained one after the other, and the same command
    resumes. The result is a table: score with confidence interval, parameters, training time, speed, significance
    against the best model, and score by length. With RUNs it is the same table of trained models; with a TEXT, the
    output and the attention of each model.

    \b
    Examples:
      regard compare recipes/compare/fr-en.toml train.minutes=10
      regard compare runs/gru runs/transformer -- "je suis étudiant"
    """
    texts = click.get_current_context().meta[TEXTS]
    if output is not None and (not texts or output.suffix not in (".svg", ".json")):
        raise ConfigError(
            f"-o {output}: the answers to a text after -- can be written to a file that ends in .svg or .json; "
            "a table is saved with --out FOLDER"
        )
    settings = tuple(name for name in what if "=" in name and not Path(name).exists())
    paths = [Path(name) for name in what if name not in settings]
    families = [path for path in paths if is_family(path)]
    if settings and not families:
        raise ConfigError(
            f"{settings[0]}: a setting applies to the recipe of a family, and none is given; a text goes after --"
        )
    if texts:
        if not all(text.strip() for text in texts):
            raise DataError("the text is empty; there is nothing to compare")
        if out is not None and not families:
            raise ConfigError(f"--out {out}: the answers to a text are saved with -o FILE")
        return show_answers(trained_runs(paths, settings, out), texts, output, as_json)
    if paths == families and len(paths) == 1:
        table = compare_family(paths[0], settings, out, nproc)
    else:
        table = compare_trained(trained_runs(paths, settings, None), out)
    if as_json:
        print_json(table.to_dict())
    else:
        click.echo("\n\n".join([table.text(), *([table.curves.text()] if table.curves else [])]))
    if table.best is None:
        raise Diverged(f"no model has a score: all {len(table.rows)} diverged")


def is_family(path: Path) -> bool:
    """Whether a path is a compare recipe, or the folder of a family whose training was started."""
    return (path / "compare.toml").exists() if path.is_dir() else path.suffix == ".toml"


def family_paths(source: Path, out: Path | None) -> tuple[Path, Path]:
    """The recipe of a family and the folder of its runs."""
    if source.is_dir():
        return source / "compare.toml", out or source
    return source, out or Path("runs") / source.stem


def compare_family(source: Path, settings: tuple[str, ...], out: Path | None, nproc: int = 1) -> ComparisonTable:
    """Train a family, or resume its training, and compare its models."""
    from regard.compare import Comparison, compare_runs, train_family

    path, folder = family_paths(source, out)
    comparison = Comparison.read(path, (*settings, *global_options().training_settings()))
    with StageProgress(Console.of_verb()) as stages:
        comparison.members[0].recipe.fetch(stages.download)
        failures = train_family(comparison, folder, member_trainer(stages, nproc), stages)
        runs = {member.name: folder / member.name for member in comparison.members}
        set_threads()  # training has set its own
        table = compare_runs(runs, failures, stages, chosen_device())
    return save_table(table, folder)


def save_table(table: ComparisonTable, folder: Path) -> ComparisonTable:
    """Save the table in a folder and return it."""
    for file in table.save(folder):
        Console.of_verb().print(f" -> {file}")
    return table


def member_trainer(stages: StageProgress, nproc: int) -> Callable[[Recipe, Path], None]:
    """A function that trains one model of a family with a progress bar, as `regard train` does."""
    from regard.cli.train import train_run
    from regard.train.parallel import launch

    def train(recipe: Recipe, path: Path) -> None:
        stages.console.close()
        stages.console.print(f"\n {path.name}")
        try:
            if nproc == 1:
                train_run(recipe, path, fresh=False)
            else:
                flags = global_options().output_flags()
                command = [sys.executable, "-c", TRAIN_ON_STDERR, "train", str(path), *flags]
                raise_for_exit_code(path, launch(nproc, command))
        except Diverged as error:
            stages.console.print(f" {path.name} has no score: {error}")
            raise

    return train


def raise_for_exit_code(path: Path, code: int) -> None:
    """Raise the error that training in other processes ended with; they have printed why."""
    why = {5: "training diverged", 130: "interrupted", 143: "terminated"}.get(code, f"stopped with exit code {code}")
    if code:
        raise kind_of_exit_code(code)(f"{path}: {why}; see {path / 'log.txt'}, or run the same command again")


def compare_trained(paths: list[Path], out: Path | None) -> ComparisonTable:
    """Compare trained runs; save the table if a folder is given."""
    from regard.compare import compare_runs

    set_threads()
    with StageProgress(Console.of_verb()) as stages:
        table = compare_runs(name_runs(paths), progress=stages, device=chosen_device())
    return save_table(table, out) if out else table


def trained_runs(paths: list[Path], settings: tuple[str, ...], out: Path | None) -> list[Path]:
    """The runs that paths name; a family stands for those of its runs that have a checkpoint."""
    from regard.compare import Comparison
    from regard.train.checkpoint_store import checkpoints

    found: list[Path] = []
    for path in paths:
        if not is_family(path):
            if not path.exists():
                raise ModelError(f"{path} is not a run: there is no such directory; a text goes after --")
            found.append(path)
            continue
        recipe, folder = family_paths(path, out)
        runs = [folder / member.name for member in Comparison.read(recipe, settings).members]
        trained = [run for run in runs if checkpoints(run)]
        if not trained:
            raise ModelError(f"{folder} has no trained model; train them first: regard compare {quote_path(path)}")
        for run in runs:
            if run not in trained:
                Console.of_verb().print(f" {run} is left out: it has no checkpoint")
        found += trained
    return found


def name_runs(paths: list[Path]) -> dict[str, Path]:
    """Runs by short, unique names.

    >>> name_runs([Path("runs/a"), Path("other/a")])
    {'runs/a': PosixPath('runs/a'), 'other/a': PosixPath('other/a')}
    """
    if len(paths) < 2:
        raise ConfigError(f"a comparison needs at least two models; {len(paths)} was given")
    for i, path in enumerate(paths):
        if path.resolve() in [other.resolve() for other in paths[:i]]:
            raise ConfigError(f"{path} is given twice; a model is compared with others")
    short = [path.name for path in paths]
    return {path.name if short.count(path.name) == 1 else str(path): path for path in paths}


def show_answers(paths: list[Path], texts: list[str], output: Path | None, as_json: bool) -> None:
    """Show the answers of all models to each text, side by side."""
    from regard.compare import side_by_side
    from regard.compare.side_by_side import render_svg, render_text

    set_threads()
    found: list[ModelAnswer] = side_by_side(name_runs(paths), texts, chosen_device())
    rows = [one.to_dict() for one in found]
    if output is not None:
        content = render_svg(found) if output.suffix == ".svg" else json.dumps(rows, ensure_ascii=False)
        with write_errors(output):
            output.write_text(content, encoding="utf-8")
        click.echo(str(output))
    elif as_json:
        print_json(rows)
    else:
        click.echo(render_text(found), color=True)
