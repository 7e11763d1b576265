"""regard eval."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from regard.cli.console import Console, StageProgress
from regard.cli.loading import load_model, open_run
from regard.cli.options import PATH, json_option, print_json
from regard.cli.score_format import format_score, metric_title
from regard.errors import ConfigError

if TYPE_CHECKING:
    from regard.metrics import Score

NO_TEST_SPLIT = (
    "warning: the data of this run has no test split; these are the scores of the valid split, which chose the best "
    "checkpoint and may flatter it (--split valid leaves this warning out)"
)


@click.command("eval")
@click.argument("run", type=PATH)
@click.argument("more", nargs=-1, metavar="", type=PATH)
@click.option("--data", type=PATH, metavar="FILE...", help="Data files, such as SOURCE TARGET.")
@click.option(
    "--split",
    type=click.Choice(["test", "valid", "unseen", "unseen-pairs"]),
    help="Split of the recipe's data; the last two: of rendered shapes.  [default: test, or valid if there is none]",
)
@click.option("--min", "minimums", multiple=True, metavar="SCORE=NUMBER", help="Exit with code 6 if a score is worse.")
@click.option("--beam", type=int, help="Beam size; 1 is greedy search.  [default: the recipe's]")
@click.option(
    "--stride",
    type=int,
    metavar="N",
    help="Language models: slide the window by N tokens and score only those; the others are context.  "
    "[default: windows side by side]",
)
@click.option(
    "--tag", help='Mixed data: the parts with this tag, such as "<2de>"; with --data, the tag of each source.'
)
@json_option
def evaluate(
    run: Path,
    more: tuple[Path, ...],
    data: Path | None,
    split: str | None,
    minimums: tuple[str, ...],
    beam: int | None,
    stride: int | None,
    tag: str | None,
    as_json: bool,
) -> None:
    """Evaluate a model on held-out data.

    The metrics depend on the task; for translation they are BLEU, chrF and TER (sacrebleu) and the perplexity of the
    references; for language models, perplexity, bits per character and bits per byte. Each is printed with its 95 %
    confidence interval and its signature. A model of mixed data is scored on all parts together, and on each.

    \b
    Examples:
      regard eval runs/demo --min bleu=25
      regard eval runs/demo --data news.fr news.en --json
    """
    if data and split:
        raise click.UsageError("give either --data or --split, not both")
    if more and not data:
        raise click.UsageError(f"unexpected {more[0]}; files to score are given as --data FILE FILE")
    open_run(run)
    from regard.metrics import check_minimum, parse_minimum
    from regard.run import Run
    from regard.tasks import EvalRequest
    from regard.train.checkpoint_store import run_folder

    for text in minimums:
        parse_minimum(text, Run(run_folder(run)).recipe().scores)
    model = load_model(run)
    if tag is not None and model.recipe.kind() != "translate":
        raise ConfigError("--tag: only translation models have tags; leave --tag out")
    with StageProgress(Console.of_verb()) as stages:
        found = model.evaluate(EvalRequest((data, *more) if data else (), split, beam, stride, tag), stages)
    fallback = not data and split is None and found.data == "valid"
    if fallback:
        click.echo(NO_TEST_SPLIT, err=True)
    if as_json:
        scores = [asdict(score) for score in found.scores]
        result = {"run": str(run), "data": found.data, "step": model.step, "fallback": fallback, "scores": scores}
        print_json({**result, "detail": dict(found.detail)} if found.detail else result)
    else:
        table = score_table(run, model.step, found.data, found.scores, found.unit)
        click.echo("\n".join([table, *found.summary_lines]))
    check_minimum(found.scores, minimums)


def score_table(run: Path, step: int, name: str, scores: Sequence[Score], unit: str = "sentences") -> str:
    """Scores as a table; the loss is the logarithm of the perplexity.

    >>> from regard.metrics import Score
    >>> print(score_table(Path("runs/a"), 1000, "test", [Score("bleu", 27.3, 26.4, 28.2, "nrefs:1", n=1000)]))
    runs/a at step 1,000 on test, 1,000 sentences
    BLEU         27.30  (95 %: 26.40 to 28.20)    nrefs:1
    """
    lines = [f"{run} at step {step:,} on {name}, {scores[0].n:,} {unit}"]
    for score in scores:
        value, low, high = (format_score(score.name, number) for number in (score.value, score.low, score.high))
        interval = f"(95 %: {low} to {high})"
        loss = f"loss {math.log(score.value):.3f}, " if score.name == "perplexity" else ""
        lines.append(f"{metric_title(score.name):<10} {value:>7}  {interval:<24}  {loss}{score.signature}")
    return "\n".join(lines)
