"""regard backtranslate."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from regard.cli.console import Console
from regard.cli.loading import load_model_as, open_run
from regard.cli.options import PATH, json_option, print_json
from regard.config import plain
from regard.errors import ConfigError, Interrupted, Terminated

if TYPE_CHECKING:
    from regard.tasks.translate.backtranslate import BackTranslation


@click.command()
@click.argument("run", type=PATH)
@click.argument("monolingual", type=PATH)
@click.option("-o", "--output", type=PATH, required=True, help="TSV file to write: synthetic source, text.")
@click.option("--beam", type=int, help="Beam size; 1 is greedy search.  [default: the recipe's]")
@click.option("--sample", is_flag=True, help="Sample the translations instead of searching for the best.")
@click.option("--temperature", type=float, help="With --sample: below 1 is more peaked.  [default: 1]")
@click.option("--seed", type=int, help="With --sample: another seed draws other translations.  [default: 0]")
@click.option("--tag", help='Tag that RUN reads before each text, such as "<2en>", if it was trained with tags.')
@click.option("--mark", metavar="TAG", help='Write this tag, such as "<BT>", before each synthetic source.')
@json_option
def backtranslate(
    run: Path,
    monolingual: Path,
    output: Path,
    beam: int | None,
    sample: bool,
    temperature: float | None,
    seed: int | None,
    tag: str | None,
    mark: str | None,
    as_json: bool,
) -> None:
    """Make synthetic sentence pairs from monolingual text (back-translation).

    RUN translates from the language of the text: to train French to English, it translates English to French, and
    MONOLINGUAL is English, one sentence per line. Each pair is a translation and the line itself, so that a tsv corpus
    of the output, as a part of a mix with train_only = true, trains the other direction.

    Lines that are empty or too long give no pair, nor do translations that are empty, unfinished, copies of the text,
    of very different length, or repeat themselves; all are counted. Ctrl-C saves, and the same command goes on: the
    file is the same to the byte. It has its name when it is complete; OUTPUT.json records how it was made.

    \b
    Examples:
      regard backtranslate runs/en-fr news.en -o synthetic.tsv
      regard backtranslate runs/en-fr news.en -o synthetic.tsv --sample --temperature 0.8 --mark "<BT>"
    """
    if not sample and (temperature is not None or seed is not None):
        raise ConfigError("--temperature and --seed need --sample; a beam search draws nothing")
    if sample and beam is not None:
        raise ConfigError("--beam and --sample exclude each other; leave one out")
    open_run(run)
    from regard.tasks.translate.recipe import TranslationModel
    from regard.tasks.translate.synthetic_record import BackTranslationConfig

    drawn = BackTranslationConfig(beam, sample, 1.0 if temperature is None else temperature, seed or 0, tag, mark)
    model = load_model_as(run, TranslationModel)
    if model.origin is not None:  # a pack is extracted elsewhere
        model.origin = replace(model.origin, path=run.as_posix())
    with model.back_translation(monolingual, output, drawn) as job:
        run_job(job)
    print_json(plain(job.record)) if as_json else click.echo(f"{output}: {job.record.summary()}")


def run_job(job: BackTranslation) -> None:
    """Run a back-translation to its end, with progress; Ctrl-C and SIGTERM leave what is done."""
    console, start = Console.of_verb(), job.record
    reporter = console.progress("back-translating", start.total, start.done)
    try:
        for at in job.run():
            reporter.update(at.done)
    except (KeyboardInterrupt, Terminated) as error:
        kind = Terminated if isinstance(error, Terminated) else Interrupted
        done = f"{job.record.done:,} of {start.total:,} lines are done and saved"
        raise kind(f"{kind.__name__.lower()}; {done}; the same command goes on from there") from None
    finally:
        console.close()
