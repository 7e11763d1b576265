"""regard look."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import click

from regard.cli.console import Console
from regard.cli.loading import load
from regard.cli.options import json_option, polite, print_json
from regard.errors import ConfigError, DataError, OutputError, RegardError

if TYPE_CHECKING:
    from regard.look import DecayView, GradientsView, Recording
    from regard.tasks import Model

PICTURES = (".svg", ".png", ".json")
"""what every view can be written as"""
WRITTEN = (*PICTURES, ".html", ".safetensors")
"""and what a whole pass can"""
VIEWS = ("attention", "states", "gradients", "saliency")
SHOWN = 200
"""Columns of a text that are said before its picture"""
INITIAL = "initial"
"""What --against calls the models as they were before they were trained; a run of that name is ./initial."""


class View(Protocol):
    """What can be drawn and kept."""

    def svg(self) -> str: ...

    def text(self) -> str: ...

    def to_dict(self) -> dict[str, Any]: ...


@dataclass(frozen=True)
class Wish:
    """What somebody wants to see, as the flags say it.

    >>> Wish("states", unit="3-6").units()
    [3, 4, 5, 6]
    >>> Wish("attention", unit="3").check()
    Traceback (most recent call last):
    regard.errors.ConfigError: --unit belongs to --view states, and the view is attention
    """

    view: str
    layer: int | None = None
    head: int | None = None
    name: str | None = None
    unit: str | None = None
    against: tuple[str, ...] = ()
    output: Path | None = None

    def check(self) -> None:
        """Refuse what does not go together, before any model is loaded."""
        wishes = (
            ("--head", "attention", self.head is not None),
            ("--unit", "states", self.unit is not None),
            ("--against", "gradients", bool(self.against)),
        )
        for flag, view, given in wishes:
            if given and self.view != view:
                raise ConfigError(f"{flag} belongs to --view {view}, and the view is {self.view}")
        for flag, value in (("--layer", self.layer), ("--name", self.name)):
            if value is not None and self.view == "saliency":
                raise ConfigError(f"{flag} belongs to the other views: saliency is that of what was read")
        curves = self.view == "gradients" and bool(self.against)
        endings = PICTURES if curves else (*PICTURES, ".html") if self.view in ("gradients", "saliency") else WRITTEN
        if self.output is not None and self.output.suffix not in endings:
            raise ConfigError(f"-o {self.output}: expected a name that ends in {', '.join(endings)}")
        self.units()

    def units(self) -> list[int] | None:
        """One unit, or a range of them; None: those that move most."""
        if self.unit is None:
            return None
        first, dash, last = self.unit.partition("-")
        if not first.isascii() or not first.isdigit() or (dash and not (last.isascii() and last.isdigit())):
            raise ConfigError(f"--unit {self.unit}: expected a number such as 17, or a range such as 0-15")
        ends = int(first), int(last or first)
        if ends[1] < ends[0]:
            raise ConfigError(f"--unit {self.unit}: the range ends before it begins; try {ends[1]}-{ends[0]}")
        return list(range(ends[0], ends[1] + 1))


@click.command()
@click.argument("run", type=click.Path(path_type=Path))
@click.argument("text")
@click.option("--view", type=click.Choice(VIEWS), default=VIEWS[0], show_default=True, help="What to look at.")
@click.option("--layer", type=int, help="Which layer, from 0 on.  [default: the last; of gradients the lowest]")
@click.option("--head", type=int, help="Of attention: one head, from 0 on.  [default: the mean of all]")
@click.option("--name", help='Which values: a pattern such as "encoder.*", or cell, forget ...')
@click.option(
    "--unit", help="Of states: the text coloured by unit 17, or the units 0-15.  [default: those that move most]"
)
@click.option(
    "--against",
    multiple=True,
    metavar="RUN",
    help="Of gradients: another run, or initial: before training. May be repeated.",
)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    help="A file: .svg, .png or .json of the view; .html or .safetensors of all.",
)
@json_option
@polite()
def look(
    run: Path,
    text: str,
    view: str,
    layer: int | None,
    head: int | None,
    name: str | None,
    unit: str | None,
    against: tuple[str, ...],
    output: Path | None,
    as_json: bool,
) -> None:
    """See what a model held and looked at while it worked on a text.

    \b
    attention   who looked at whom: a row for each word that was said, a column for each that was read
    states      what each unit held after each word: hidden state, cell, gates, or the residual stream
    gradients   how much each word's loss depends on the state at each word; with --against how that fades
                with distance, one curve a model
    saliency    what each word did for the label, the tags or the forecast: gradient times input

    A translator translates the text; a language model reads it as it is. With --against, all models are asked for
    the words of the first one's translation.

    \b
    Examples:
      regard look runs/demo "je suis étudiant" --layer 0 --head 2 -o attention.png
      regard look runs/rnn "To be, or not" --view gradients --against runs/lstm --against initial
    """
    wish = Wish(view, layer, head, name, unit, against, output)
    wish.check()
    if not text.strip():
        raise DataError("the text is empty; there is nothing to look at")
    model = load(run)
    whole = wish.output is not None and wish.output.suffix not in PICTURES
    if wish.view == "gradients" and not whole:
        show(_gradients(run, model, text, wish), wish.output, as_json)
        return
    if wish.view == "saliency" and not whole:
        show(model.saliency(text), wish.output, as_json)
        return
    with model.record() as trace:
        said = model.observe(text)
    if said != text:
        from regard.look.tokens import cut
        from regard.tasks.translate.predict import printable

        Console.of_verb().say(f"{printable(cut(text, SHOWN))} -> {said}")
    if wish.output is None or not whole:
        show(_seen(trace, wish), wish.output, as_json)
    else:
        told = {"text": text, "answer": said, "model": {"id": "", "name": str(run)}}
        _keep(trace, wish.output, wish.view, told | _looked(model, text, wish))


def _seen(trace: Recording, wish: Wish) -> View:
    if wish.view == "attention":
        return trace.attention(wish.name, wish.layer, wish.head)
    units = wish.units()
    states = trace.states(wish.name, wish.layer, units)
    return states.coloured() if units is not None and len(units) == 1 else states


def _gradients(run: Path, model: Model, text: str, wish: Wish) -> GradientsView | DecayView:
    """One model's matrix, or the curves of several over the words that the first one says."""
    if not wish.against:
        return model.reading(text).gradients(model.module, wish.name, wish.layer)
    from regard.compare.table import check_comparable
    from regard.look import DecayView
    from regard.run import run_of
    from regard.tasks.translate.recipe import TranslationModel

    models = {str(run): model} | {path: load(Path(path)) for path in wish.against if path != INITIAL}
    check_comparable({label: (run_of(label), one) for label, one in models.items()})
    said = model.answer(text) if isinstance(model, TranslationModel) else None
    curves = []
    for label, one in models.items():
        # one target for all: losses of different words could not be compared
        reading = one.reading(text, said) if isinstance(one, TranslationModel) else one.reading(text)
        curves.append(reading.gradients(one.module, wish.name, wish.layer).decay(label))
        if INITIAL in wish.against:
            began = reading.gradients(one.initial(), wish.name, wish.layer)
            curves.append(began.decay(f"{label}, {INITIAL}"))
    return DecayView(tuple(curves), wanted=said)


def _looked(model: Model, text: str, wish: Wish) -> dict[str, Any]:
    """What a page without a model cannot ask for any more; what was asked for must be there, the rest may be."""
    found: dict[str, Any] = {}
    for name, look in (
        ("gradients", lambda: [model.reading(text).gradients(model.module, wish.name, wish.layer).to_dict()]),
        ("saliency", lambda: model.saliency(text).to_dict()),
    ):
        with nullcontext() if name == wish.view else suppress(RegardError):
            found[name] = look()
    return found


def show(view: View, output: Path | None, as_json: bool) -> None:
    """A view in the terminal, as JSON, or in a file."""
    if output is None:
        print_json(view.to_dict()) if as_json else click.echo(view.text(), color=True)
        return
    if output.suffix == ".png":
        from regard.look.png import png

        drawn = png(view.svg())
    else:
        drawn = (view.svg() if output.suffix == ".svg" else json.dumps(view.to_dict(), ensure_ascii=False)).encode()
    _write(output, lambda: output.write_bytes(drawn))


def _keep(trace: Recording, output: Path, view: str, told: dict[str, Any]) -> None:
    """All that was seen, as a page or as tensors."""
    if output.suffix == ".safetensors":
        _write(output, lambda: trace.save(output))
    else:
        whole = trace.html(told, f"tab={view}").encode()
        _write(output, lambda: output.write_bytes(whole))


def _write(output: Path, act: Callable[[], object]) -> None:
    try:
        act()
    except OSError as error:
        raise OutputError(f"{output}: cannot be written ({error.strerror})") from None
    click.echo(str(output))
