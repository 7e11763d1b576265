"""regard eval."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from regard.cli.console import Console, Stages
from regard.cli.loading import load
from regard.cli.options import json_option, polite, print_json
from regard.cli.score_format import title

if TYPE_CHECKING:
    from regard.metrics import Score


@click.command("eval")
@click.argument("run", type=click.Path(path_type=Path))
@click.argument("more", nargs=-1, metavar="", type=click.Path(path_type=Path))
@click.option("--data", type=click.Path(path_type=Path), metavar="FILE...", help="Files, such as SOURCE TARGET.")
@click.option("--split", type=click.Choice(["test", "valid"]), help="A split of the recipe's data.  [default: test]")
@click.option("--min", "wanted", multiple=True, metavar="SCORE=NUMBER", help="Exit with 6 if a score is worse.")
@click.option("--beam", type=int, help="Hypotheses kept; 1 is greedy.  [default: the recipe's]")
@json_option
@polite()
def evaluate(
    run: Path,
    more: tuple[Path, ...],
    data: Path | None,
    split: str | None,
    wanted: tuple[str, ...],
    beam: int | None,
    as_json: bool,
) -> None:
    """Score a model on data it has not seen.

    Which scores depends on its task; a translator's are BLEU, chrF and TER by sacrebleu, and the perplexity of the
    references. Each comes with its signature and its 95 % interval.

    \b
    Examples:
      regard eval runs/demo --min bleu=25
      regard eval runs/demo --data news.fr news.en --json
    """
    from regard.metrics import check_minimum, parse_minimum
    from regard.run import Run, run_of
    from regard.tasks import Asked

    if data and split:
        raise click.UsageError("give either --data or --split, not both")
    if more and not data:
        raise click.UsageError(f"unexpected {more[0]}; files to score are given as --data FILE FILE")
    for text in wanted:
        parse_minimum(text, Run(run_of(run)).recipe().scores)
    model = load(run)
    with Stages(Console.of_verb()) as stages:
        found = model.evaluate(Asked((data, *more) if data else (), split, beam), stages)
    if as_json:
        scores = [asdict(score) for score in found.scores]
        told = {"run": str(run), "data": found.data, "step": model.step, "scores": scores}
        print_json({**told, "detail": dict(found.detail)} if found.detail else told)
    else:
        click.echo("\n".join([table(run, model.step, found.data, found.scores, found.unit), *found.told]))
    check_minimum(found.scores, wanted)


def table(run: Path, step: int, name: str, scores: Sequence[Score], unit: str = "sentences") -> str:
    """The scores for people; the loss is the logarithm of the perplexity.

    >>> from regard.metrics import Score
    >>> print(table(Path("runs/a"), 1000, "test", [Score("bleu", 27.3, 26.4, 28.2, "nrefs:1", n=1000)]))
    runs/a at step 1,000 on test, 1,000 sentences
    BLEU         27.30  (95 %: 26.40 to 28.20)    nrefs:1
    """
    lines = [f"{run} at step {step:,} on {name}, {scores[0].n:,} {unit}"]
    for score in scores:
        interval = f"(95 %: {score.low:.2f} to {score.high:.2f})"
        loss = f"loss {math.log(score.value):.3f}, " if score.name == "perplexity" else ""
        lines.append(f"{title(score.name):<10} {score.value:7.2f}  {interval:<24}  {loss}{score.signature}")
    return "\n".join(lines)
