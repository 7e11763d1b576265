"""regard eval."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from regard.cli.choosing import load
from regard.cli.console import Console
from regard.cli.manners import json_option, polite, print_json
from regard.errors import DataError

if TYPE_CHECKING:
    from regard.run import Model
    from regard.score import Score
    from regard.tasks.translator import Translator

KNOWN = ("bleu", "chrf", "ter", "perplexity")
TITLES = {"bleu": "BLEU", "chrf": "chrF", "ter": "TER", "perplexity": "perplexity"}
CHUNK = 256


@click.command("eval")
@click.argument("run", type=click.Path(path_type=Path))
@click.option("--data", nargs=2, type=click.Path(path_type=Path), metavar="SOURCE TARGET", help="Two files.")
@click.option("--split", type=click.Choice(["test", "valid"]), help="A split of the recipe's data.  [default: test]")
@click.option("--min", "wanted", multiple=True, metavar="SCORE=NUMBER", help="Exit with 6 if a score is worse.")
@click.option("--beam", type=int, help="Hypotheses kept; 1 is greedy.  [default: the recipe's]")
@json_option
@polite()
def evaluate(
    run: Path,
    data: tuple[Path, Path] | None,
    split: str | None,
    wanted: tuple[str, ...],
    beam: int | None,
    as_json: bool,
) -> None:
    """Score a model on sentences it has not seen.

    BLEU, chrF and TER by sacrebleu with signature and 95 % interval, and the perplexity of the references.

    \b
    Examples:
      regard eval runs/demo --min bleu=25
      regard eval runs/demo --data news.fr news.en --json
    """
    from regard.score import check_minimum, parse_minimum

    for text in wanted:
        parse_minimum(text, KNOWN)
    if data and split:
        raise click.UsageError("give either --data or --split, not both")
    model = load(run)
    name, sources, references = asked(model, data, split)
    translator = model.translator(beam)
    outputs = translated(translator, sources)
    scores = [*compared(outputs, references), surprise(translator, sources, references)]
    if as_json:
        print_json({"run": str(run), "data": name, "step": model.step, "scores": [asdict(score) for score in scores]})
    else:
        click.echo(table(run, model.step, name, scores))
    check_minimum(scores, wanted)


def asked(model: Model, data: tuple[Path, Path] | None, split: str | None) -> tuple[str, list[str], list[str]]:
    """What is scored: its name, the sources, the references."""
    from regard.data import read_pairs

    preparation = model.recipe.preparation()
    if data:
        name, pairs = f"{data[0]} {data[1]}", list(read_pairs(*data))
    else:
        split = split or ("test" if "test" in preparation.data.splits() else "valid")
        name, pairs = split, list(preparation.pairs(split))
    if not pairs:
        raise DataError(f"{name}: there is no sentence pair to score")
    sources, references = zip(*pairs, strict=True)
    return name, list(sources), list(references)


def translated(translator: Translator, sources: list[str]) -> list[str]:
    """The best translation of each source, with a bar."""
    outputs: list[str] = []
    console = Console.of_verb()
    try:
        with console.progress("translating", len(sources)) as progress:
            for start in range(0, len(sources), CHUNK):
                found = translator.translate(sources[start : start + CHUNK], first_line=start + 1)
                outputs += [best[0].text for best in found]
                progress.update(len(outputs))
    finally:
        console.close()
    return outputs


def compared(outputs: list[str], references: list[str]) -> list[Score]:
    """BLEU, chrF and TER.

    >>> [score.name for score in compared(["a b c d"], ["a b c d"])]
    ['bleu', 'chrf', 'ter']
    """
    from regard import score

    return [metric(outputs, references) for metric in (score.bleu, score.chrf, score.ter)]


def surprise(translator: Translator, sources: list[str], references: list[str]) -> Score:
    """The perplexity of the references; a source or a reference without words says nothing."""
    from regard.score import perplexity

    pairs = [pair for pair in zip(sources, references, strict=True) if all(side.strip() for side in pair)]
    if not pairs:
        raise DataError("every sentence pair has an empty side; there is nothing to score")
    kept = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    counts = [len(ids) + 1 for ids in translator.vocabularies.target.encode_batch(kept[1])]
    return perplexity([-total for total in translator.score(*kept)], counts)


def table(run: Path, step: int, name: str, scores: list[Score]) -> str:
    """The scores for people; the loss is the logarithm of the perplexity.

    >>> from regard.score import Score
    >>> print(table(Path("runs/a"), 1000, "test", [Score("bleu", 27.3, 26.4, 28.2, "nrefs:1", n=1000)]))
    runs/a at step 1,000 on test, 1,000 sentences
    BLEU         27.30  (95 %: 26.40 to 28.20)    nrefs:1
    """
    import math

    lines = [f"{run} at step {step:,} on {name}, {scores[0].n:,} sentences"]
    for score in scores:
        interval = f"(95 %: {score.low:.2f} to {score.high:.2f})"
        loss = f"loss {math.log(score.value):.3f}, " if score.name == "perplexity" else ""
        lines.append(f"{TITLES[score.name]:<10} {score.value:7.2f}  {interval:<24}  {loss}{score.signature}")
    return "\n".join(lines)
