"""regard data: what a recipe's data is, and getting it ready."""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from regard.cli.console import Console, Stages
from regard.cli.manners import Verbs, json_option, polite, print_json

if TYPE_CHECKING:
    from regard.data import Shards
    from regard.run import Recipe, Run


@click.group(cls=Verbs)
def data() -> None:
    """Read, clean, split and count the data of a recipe.

    \b
    Examples:
      regard data stats mine.toml
      regard data prepare mine.toml
    """


@data.command()
@click.argument("recipe", type=click.Path(path_type=Path))
@click.argument("settings", nargs=-1, metavar="[KEY=VALUE]...")
@click.option("--out", type=click.Path(path_type=Path), help="The run directory.  [default: runs/NAME-OF-RECIPE]")
@polite()
def prepare(recipe: Path, settings: tuple[str, ...], out: Path | None) -> None:
    """Fetch, clean and split the data, train the tokenizer, write what training reads.

    `regard train` does this by itself; done before, training starts at once.

    \b
    Examples:
      regard data prepare mine.toml
      regard data prepare mine.toml text.size=4000 --out runs/small
    """
    from regard.cli.choosing import chosen_recipe, fetch
    from regard.run import Run

    chosen, path = chosen_recipe(recipe, settings, out)
    run = Run(path)
    with Stages(Console.of_verb()) as stages:
        fetch(chosen, stages)
        run.begin(chosen)
        run.prepare(chosen, stages)
    Console.of_verb().say("\n".join(told(counted(run, chosen))))
    click.echo(str(path))


@data.command()
@click.argument("recipe", type=click.Path(path_type=Path))
@click.argument("settings", nargs=-1, metavar="[KEY=VALUE]...")
@json_option
@polite()
def stats(recipe: Path, settings: tuple[str, ...], as_json: bool) -> None:
    """Pairs, what was dropped why, lengths, tokens, and how much of a batch is padding.

    \b
    Examples:
      regard data stats mine.toml
      regard data stats mine.toml filter.ratio=2 --json
    """
    from regard.cli.choosing import chosen_recipe, fetch
    from regard.run import Run

    chosen, path = chosen_recipe(recipe, settings, None)
    with tempfile.TemporaryDirectory() as folder, Stages(Console.of_verb()) as stages:
        fetch(chosen, stages)
        run = Run(path)
        if not run.prepared(chosen):
            run = Run(Path(folder))
            run.prepare(chosen, stages)
        stages.console.close()
        found = counted(run, chosen)
    print_json(found) if as_json else click.echo("\n".join(told(found)))


def counted(run: Run, recipe: Recipe) -> dict[str, Any]:
    """What preparation found, as plain data."""
    import json

    counts = json.loads((run.path / "data" / "counts.json").read_text(encoding="utf-8"))
    feed = run.feed(recipe)
    found: dict[str, Any] = {"vocabulary": {"kind": recipe.text.kind, "shared": feed.vocabularies.joint}}
    found["vocabulary"] |= {side: getattr(feed.vocabularies, side).size for side in ("source", "target")}
    for split, shards in (("train", feed.train), ("valid", feed.held_out)):
        read = counts[split].pop("read")
        dropped = {reason: count for reason, count in counts[split].items() if count}
        sides = {side: lengths(shards, side) for side in ("source", "target")}
        batches = list(feed.plan(shards).epoch(0))
        found[split] = {"read": read, "kept": len(shards), "dropped": dropped, **sides, "batches": len(batches)}
        found[split]["padding"] = padding(shards, batches)
    return found


def lengths(shards: Shards, side: str) -> dict[str, float]:
    """Tokens of one side: all, and of a sentence the mean, the 99th of 100 and the most."""
    import numpy as np

    found = shards.lengths(side)[np.arange(len(shards))]
    mean, late, most = float(found.mean()), int(np.quantile(found, 0.99)), int(found.max())
    return {"tokens": int(found.sum()), "mean": round(mean, 2), "p99": late, "most": most}


def padding(shards: Shards, batches: list[Any]) -> dict[str, float]:
    """The share of positions that hold no word, on each side."""
    found = {}
    for side in ("source", "target"):
        sizes = Counter[str]()
        for rows in batches:
            given = shards.lengths(side)[rows] + 1
            sizes["all"] += int(given.max()) * len(rows)
            sizes["words"] += int(given.sum())
        found[side] = round(1 - sizes["words"] / sizes["all"], 4)
    return found


def told(found: dict[str, Any]) -> list[str]:
    """The same for people."""
    words = found["vocabulary"]
    sizes = f"{words['source']:,} shared" if words["shared"] else f"{words['source']:,} and {words['target']:,}"
    lines = [f"vocabulary  {words['kind']} {sizes}"]
    for split in ("train", "valid"):
        part = found[split]
        dropped = ", ".join(f"{count:,} {reason}" for reason, count in part["dropped"].items()) or "none"
        lines.append(f"{split:<10}  {part['kept']:,} of {part['read']:,} pairs; dropped: {dropped}")
        for side in ("source", "target"):
            row = part[side]
            lines.append(
                f"  {side:<8}  {row['tokens']:,} tokens, {row['mean']} a sentence, 99 % have at most {row['p99']}, "
                f"the longest {row['most']}; padding {100 * part['padding'][side]:.1f} % of {part['batches']:,} batches"
            )
    return lines
