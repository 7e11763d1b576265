"""The demo: a translator from nothing in a few minutes, scored on sentences it has never seen, and looked into."""

from __future__ import annotations

import os
import random
import sys
from collections.abc import Callable, Sequence
from importlib.resources import as_file, files
from pathlib import Path
from typing import Protocol

import regard
from regard import metrics
from regard.data.tatoeba import Tatoeba
from regard.errors import Interrupted, NetworkError, RegardError, Terminated
from regard.run import load, record
from regard.tasks.translate.recipe import TranslationModel
from regard.train.parallel import launch

FAMOUS = "je suis étudiant"
SCORED = 1000
"""held-out sentences that are translated and scored"""
SHOWN = 6


class Voice(Protocol):
    """Where the demo says what it does."""

    def say(self, text: str) -> None: ...


def run_demo(
    out: Path,
    console: Voice,
    fetching: Callable[[int, int], None] | None = None,
    settings: Sequence[str] = (),
) -> None:
    """Fetch, train, score, translate, draw, and say what to try next; running it again goes on where it stopped."""
    begun = (out / "recipe.toml").exists()  # with whatever data there was then
    if not begun and not any(setting.startswith("data") for setting in settings):
        settings = [*_data(console, fetching), *settings]
    with as_file(files(regard) / "demo.toml") as recipe:
        cores = os.cpu_count() or 1
        command = [sys.executable, "-m", "regard", "train", str(out if begun else recipe), *settings, "--out", str(out)]
        _follow(launch(min(cores, 4), command))
    model = load(out)
    assert isinstance(model, TranslationModel)  # it is what the recipe asks for
    _score(model, console)
    _look(model, out, console)
    console.say("")
    console.say(" What to try next:")
    console.say(f'   echo "où est la gare ?" | regard translate {out} --nbest 3 --scores')
    console.say(f'   regard look {out} "il ne fume pas" --layer 0 --head 2')
    console.say("   regard new mine --task translate        a recipe for your own sentence pairs")


def _data(console: Voice, fetching: Callable[[int, int], None] | None) -> list[str]:
    """Settings for the data: the embedded corpus, or the built-in generator where there is no network."""
    data = Tatoeba()
    try:
        data.fetch(fetching)
    except NetworkError as error:
        console.say(f" {error}")
        console.say(" No network: the demo goes on with the built-in French-English phrases.")
        return ['data={kind = "phrases"}']
    console.say(f" data     Tatoeba French-English. {data.attribution()}")
    return []


def _follow(code: int) -> None:
    """End as training ended; it has said why."""
    if code:
        kind: type[RegardError] = {130: Interrupted, 143: Terminated}.get(code, RegardError)
        raise kind(f"training stopped with exit code {code}; run the same command again to go on")


def _score(model: TranslationModel, console: Voice) -> None:
    pairs = list(model.recipe.data.pairs("test"))
    random.Random(1).shuffle(pairs)
    sources, references = zip(*pairs[:SCORED], strict=True)
    outputs = model.translate(sources)
    console.say("")
    console.say(f" {len(sources):,} held-out sentences, none of them in training in either language:")
    for measured in (metrics.bleu(outputs, references), metrics.chrf(outputs, references)):
        interval = f"{measured.low:.1f} to {measured.high:.1f}"
        name = {"bleu": "BLEU", "chrf": "chrF"}[measured.name]
        console.say(f"   {name:5} {measured.value:5.1f}   (95 %: {interval})   {measured.signature}")
    console.say("")
    for source, output, reference in list(zip(sources, outputs, references, strict=True))[:SHOWN]:
        console.say(f"   {source}  ->  {output}" + ("" if output == reference else f"   (reference: {reference})"))


def _look(model: TranslationModel, out: Path, console: Voice) -> None:
    with record(model) as trace:
        output = model.translate(FAMOUS)
    console.say("")
    console.say(f"   {FAMOUS}  ->  {output}")
    console.say("")
    view = trace.attention()
    print(view.text(), flush=True)
    picture = out / "attention.svg"
    picture.write_text(view.svg(), encoding="utf-8")
    console.say(f" the same as a picture: {picture}")
