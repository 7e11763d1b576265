"""The demo: train a translation model in a few minutes, evaluate it on held-out sentences, and show its attention."""

from __future__ import annotations

import os
import random
import sys
from collections.abc import Callable, Sequence
from importlib.resources import as_file, files
from pathlib import Path

import regard
from regard import metrics
from regard.data.tatoeba import Tatoeba
from regard.device import resolve_device
from regard.errors import NetworkError, kind_of_exit_code
from regard.program import program_name, quote_path
from regard.run import Run, load, record
from regard.run_lock import RunLock
from regard.tasks import Recipe
from regard.tasks.translate.recipe import TranslationModel
from regard.train.parallel import launch

EXAMPLE = "je suis étudiant"
SCORED = 1000
"""held-out sentences that are translated and scored"""
SHOWN = 6
"""of these, how many are printed"""


def run_demo(
    out: Path,
    report: Callable[[str], None],
    fetching: Callable[[int, int], None] | None = None,
    settings: Sequence[str] = (),
) -> None:
    """Download, train, evaluate, translate, draw, and print next steps; running it again resumes where it stopped."""
    begun = (out / "recipe.toml").exists()  # with the data of that time
    if not begun and not any(setting.startswith("data") for setting in settings):
        settings = [*_data_settings(report, fetching), *settings]
    with as_file(files(regard) / "demo.toml") as recipe:
        if begun:
            Run(out).recipe()  # raises if an earlier version of regard wrote it
        device = Recipe.read(out / "recipe.toml" if begun else recipe, settings, started=out).train.device
        command = [sys.executable, "-m", "regard", "train", str(out if begun else recipe), *settings, "--out", str(out)]
        # on a CPU, one process per core is faster than one with several threads
        processes = min(os.cpu_count() or 1, 4) if resolve_device(device).type == "cpu" else 1
        _check_exit_code(launch(processes, command))
    model = load(out, device)
    assert isinstance(model, TranslationModel)  # by the recipe
    _evaluate(model, report)
    _show_attention(model, out, report)
    _report_next(out, report)


def _report_next(out: Path, report: Callable[[str], None]) -> None:
    """Commands that can be pasted into the shell from which the demo was started."""
    program = program_name()
    report("")
    report(" What to try next:")
    report(f'   echo "où est la gare ?" | {program} translate {quote_path(out)} --n-best 3 --scores')
    report(f'   {program} look {quote_path(out)} "il ne fume pas" --layer 0 --head 2')
    report(f"   {program} studio {quote_path(out)}                # the whole model as one picture, in the browser")
    report(f"   {program} new mine --task translate        # a recipe for your own sentence pairs")


def _data_settings(report: Callable[[str], None], fetching: Callable[[int, int], None] | None) -> list[str]:
    """Settings of the data: Tatoeba, or the built-in phrases if there is no network."""
    data = Tatoeba()
    try:
        data.fetch(fetching)
    except NetworkError as error:
        report(f" {error}")
        report(" No network: the demo uses the built-in French-English phrases.")
        return ['data={kind = "phrases"}']
    report(f" data     Tatoeba French-English. {data.credit()}")
    return []


def _check_exit_code(code: int) -> None:
    """End with the exit code of training, which has printed the reason."""
    if code:
        raise kind_of_exit_code(code)(f"training stopped with exit code {code}; run the same command again to resume")


def _evaluate(model: TranslationModel, report: Callable[[str], None]) -> None:
    pairs = [pair for _, part in model.recipe.preparation().part_pairs("test") for pair in part]
    random.Random(1).shuffle(pairs)
    sources, references = zip(*pairs[:SCORED], strict=True)
    outputs = model.translate(sources)
    report("")
    report(f" {len(sources):,} held-out sentences, none of them in training in either language:")
    for score in (metrics.bleu(outputs, references), metrics.chrf(outputs, references)):
        interval = f"{score.low:.1f} to {score.high:.1f}"
        name = {"bleu": "BLEU", "chrf": "chrF"}[score.name]
        report(f"   {name:5} {score.value:5.1f}   (95 %: {interval})   {score.signature}")
    report("")
    for source, output, reference in list(zip(sources, outputs, references, strict=True))[:SHOWN]:
        report(f"   {source}  ->  {output}" + ("" if output == reference else f"   (reference: {reference})"))


def _show_attention(model: TranslationModel, out: Path, report: Callable[[str], None]) -> None:
    with record(model) as trace:
        output = model.translate(EXAMPLE)
    report("")
    report(f"   {EXAMPLE}  ->  {output}")
    report("")
    view = trace.attention()
    print(view.text(), flush=True)
    picture = out / "attention.svg"
    with RunLock(out):
        picture.write_text(view.svg(), encoding="utf-8")
    report(f" the same as a picture: {picture}")
