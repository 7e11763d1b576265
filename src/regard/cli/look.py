"""regard look."""

from __future__ import annotations

import json
from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from regard.cli.console import Console, StageProgress
from regard.cli.line_io import write_errors
from regard.cli.loading import load_model
from regard.cli.options import PATH, json_option, print_json
from regard.errors import ConfigError, DataError, RegardError

if TYPE_CHECKING:
    from regard.look import DecayView, GradientsView, Recording
    from regard.look.view import View
    from regard.tasks import Model

VIEW_FORMATS = (".svg", ".png", ".json")
"""file formats of a view"""
TRACE_FORMATS = (*VIEW_FORMATS, ".html", ".safetensors")
"""file formats of a whole forward pass"""
TEXT_VIEWS = ("attention", "roles", "states", "lens", "candidates", "mix")
"""views of recorded values, also of a generated text"""
IMAGE_VIEWS = ("filters", "maps", "batchnorm", "patches", "positions", "rollout")
"""views of recorded values of a model that reads images"""
OUTPUT_VIEWS = ("attribution", "importance", "integrated", "patch")
"""views of one output, by passes over the same input with changes (regard.look.insights)"""
RECORDED = (*TEXT_VIEWS, *IMAGE_VIEWS)
VIEWS = (*TEXT_VIEWS, "gradients", "saliency", *OUTPUT_VIEWS, *IMAGE_VIEWS)
TEXT_WIDTH = 200
"""columns of the screen for the text above its view"""
INITIAL = "initial"
"""The name that --against gives to the untrained models; a run of that name is ./initial."""
AGAINST_HELP = "Gradients: another run, or initial for untrained models; may be repeated. Patch: another text."
VIEW_HELP = "What to show.  [default: attention; of a convolutional network maps]"
OUTPUT_HELP = "File to write: .svg, .png or .json of the view; .html or .safetensors of the whole pass."

HELP = """
Show attention weights, hidden states, predictions, gradients or feature maps of a model on a text or an image.

\b
attention   attention weights: one row per output token, one column per input token
roles       statistics of each attention head: weight on the previous token, on duplicates, induction, alignment
states      activations of each unit at each token: hidden state, cell, gates, or the residual stream
lens        logit lens: the most probable token or label if each layer were the last one
candidates  the most probable tokens at each position, and the rank of the actual one
mix         weights of the layers of an ELMo, and what each layer contributes to each word
gradients   gradient of each token's loss with respect to the state at each token; with --against how it
            decays with distance, one curve per model
saliency    attribution of the label, the tags or the forecast to the words, rows or pixels: gradient x input

\b
of one output, a token or a label (--unit 2 is the third one):
attribution direct logit attribution: what each layer and head adds to its logit
importance  change of its log-probability without each attention head, the largest first
integrated  integrated gradients and gradient x input of its log-probability, for each token that was read
patch       change of its log-probability by each layer and position taken from another text of the same
            number of tokens, which --against gives

\b
of a model that reads images:
attention   attention of a Vision Transformer over the image, each head; with --name as a matrix
filters     filters of the first layer
maps        feature maps of a layer; --name convolution, norm or residual for other values of a layer
batchnorm   statistics of a batch normalization: running, and of this image
patches     patches of a Vision Transformer
positions   cosine similarity of its position embeddings
rollout     attention rollout through all layers or those up to --layer, over the image, or over a text as a matrix
            (--name encoder or decoder)

A translation model translates the text; a language model reads it as it is; a captioning model takes the path of
an image, and its attention is drawn over the image, one copy per word. With --against, the target of all models is
the translation of the first one.

\b
Examples:
  regard look runs/demo "je suis étudiant" --layer 0 --head 2 -o attention.png
  regard look runs/rnn "To be, or not" --view gradients --against runs/lstm --against initial
  regard look runs/mnist-cnn photo.png --view maps --layer 1 -o maps.svg
"""


@dataclass(frozen=True)
class ViewOptions:
    """What to look at: the options of the command line."""

    view: str
    layer: int | None = None
    head: int | None = None
    name: str | None = None
    unit: str | None = None
    against: tuple[str, ...] = ()
    generate: int | None = None
    output: Path | None = None
    is_default: bool = False
    """whether no view was named: then a convolutional network shows its feature maps"""

    def check(self) -> None:
        """Refuse options that exclude each other, before a model is loaded."""
        flags = (
            ("--head", ("attention",), self.head is not None),
            ("--unit", ("states", "maps", "batchnorm", *OUTPUT_VIEWS), self.unit is not None),
            ("--against", ("gradients", "patch"), bool(self.against)),
        )
        if self.generate is not None and self.view not in TEXT_VIEWS:
            raise ConfigError(f"--generate does not apply to --view {self.view}; leave it out")
        for flag, views, given in flags:
            if given and self.view not in views:
                known = " or ".join(filter(None, (", ".join(views[:-1]), views[-1])))
                raise ConfigError(f"{flag} belongs to --view {known}, and the view is {self.view}")
        whole = ("roles", "saliency", "candidates", "mix", "filters", "patches", "positions", *OUTPUT_VIEWS)
        for flag, value, without in (
            ("--layer", self.layer, whole),
            ("--name", self.name, (*whole, "lens")),
        ):
            if value is not None and self.view in without:
                raise ConfigError(f"{flag} does not apply to --view {self.view}; leave it out")
        if self.view == "patch" and len(self.against) != 1:
            raise ConfigError('--view patch needs another text of the same number of tokens: --against "..."')
        curves = self.view == "gradients" and bool(self.against)
        page = (*VIEW_FORMATS, ".html")
        formats = VIEW_FORMATS if curves else page if self.view in ("gradients", "saliency") else TRACE_FORMATS
        formats = VIEW_FORMATS if self.view in OUTPUT_VIEWS else formats
        if self.output is not None and self.output.suffix not in formats:
            raise ConfigError(f"-o {self.output}: expected a name that ends in {', '.join(formats)}")
        self.units()

    def units(self) -> list[int] | None:
        """One unit, or a range of them; None: those that change most."""
        if self.unit is None:
            return None
        first, dash, last = self.unit.partition("-")
        if not first.isascii() or not first.isdigit() or (dash and not (last.isascii() and last.isdigit())):
            raise ConfigError(f"--unit {self.unit}: expected a number such as 17, or a range such as 0-15")
        ends = int(first), int(last or first)
        if ends[1] < ends[0]:
            raise ConfigError(f"--unit {self.unit}: the range ends before it starts; try {ends[1]}-{ends[0]}")
        return list(range(ends[0], ends[1] + 1))


@click.command(help=HELP, short_help="Show attention, states, predictions, gradients or feature maps of a model.")
@click.argument("run", type=PATH)
@click.argument("text", metavar="TEXT|IMAGE")
@click.option("--view", type=click.Choice(VIEWS), help=VIEW_HELP)
@click.option(
    "--layer", type=int, help="Layer, from 0.  [default: the last; of gradients, maps and batchnorm the first]"
)
@click.option("--head", type=int, help="Attention: one head, from 0.  [default: the mean of all]")
@click.option("--name", help='Which values: a pattern such as "encoder.*", or cell, forget ...')
@click.option(
    "--unit",
    help="States: the text colored by unit 17, or units 0-15; channels of maps; number of the explained output, "
    "from 0.  [default: those that vary most; the first output]",
)
@click.option("--against", multiple=True, metavar="RUN|TEXT", help=AGAINST_HELP)
@click.option(
    "--generate", type=int, metavar="N", help="A language model: continue the text by N tokens, and record that."
)
@click.option("-o", "--output", type=PATH, help=OUTPUT_HELP)
@json_option
def look(run: Path, text: str, as_json: bool, **what: Any) -> None:
    """Show what a model computes on a text or an image."""
    options = ViewOptions(**what | {"view": what["view"] or VIEWS[0]}, is_default=what["view"] is None)
    options.check()
    if not text.strip():
        raise DataError("the text is empty; there is nothing to look at")
    model = load_model(run)
    whole_pass = options.output is not None and options.output.suffix not in VIEW_FORMATS
    if options.view in RECORDED or whole_pass:
        show_pass(run, model, text, options, as_json)
    elif options.view in OUTPUT_VIEWS:
        show_view(_output_view(model, text, options), options.output, as_json)
    else:
        found = model.saliency(text) if options.view == "saliency" else _gradients(run, model, text, options)
        show_view(found, options.output, as_json)


def show_pass(run: Path, model: Model, text: str, options: ViewOptions, as_json: bool) -> None:
    """Record a forward pass; show a view of it, or save all of it as a page or as tensors."""
    from regard.data.lines import printable
    from regard.look.tokens import truncate

    with model.record() as trace:
        answer = model.run_for_trace(text) if options.generate is None else _generate(model, text, options.generate)
    if answer != text:
        Console.of_verb().print(f"{printable(truncate(text, TEXT_WIDTH))} -> {answer}")
    if warning := model.input_warning(text):
        Console.of_verb().print(f"warning: {printable(text)}: {warning}")
    if options.is_default and trace.has_maps:
        options = replace(options, view="maps")
    output = options.output
    if output is None or output.suffix in VIEW_FORMATS:
        show_view(_recorded_view(trace, options), output, as_json)
    elif output.suffix == ".safetensors":
        with write_errors(output):
            trace.save(output)
        click.echo(str(output))
    else:
        about = {"text": text, "answer": answer, "model": {"id": "", "name": str(run)}}
        tab = "image" if options.view in IMAGE_VIEWS else options.view
        page = trace.html(about | _compute_views(model, text, options), f"tab={tab}")
        _write(output, page.encode())


def _generate(model: Model, text: str, length: int) -> str:
    """Generate a continuation, token by token, as far as the model's context allows."""
    from regard.tasks.generate.model import GenerationModel

    if not isinstance(model, GenerationModel):
        raise ConfigError(f"--generate is for language models, and this model was trained to {model.recipe.kind()}")
    answer, recorded = model.generate_for_trace(text, length)
    if recorded < length:
        note = f"{recorded} of {length} tokens were generated: then the model's context is full"
        Console.of_verb().print(f"note: {note}; to go on, give the text with its continuation, without its beginning")
    return answer


def _recorded_view(trace: Recording, options: ViewOptions) -> View:
    from regard.look.image_overlay import find_image

    if options.view == "rollout" and find_image(trace.records) is None:
        return trace.text_rollout(options.layer, options.name)
    if options.view in IMAGE_VIEWS or (options.view == "attention" and trace.has_patches and not options.name):
        return _image_view(trace, options)
    if options.view == "attention":
        return trace.attention_view(options.name, options.layer, options.head)
    if options.view == "roles":
        return trace.head_roles()
    if options.view == "lens":
        return trace.lens(options.layer)
    if options.view == "candidates":
        return trace.candidates()
    if options.view == "mix":
        return trace.layer_mix()
    units = options.units()
    states = trace.states(options.name, options.layer, units)
    return states.highlight() if units is not None and len(units) == 1 else states


def _image_view(trace: Recording, options: ViewOptions) -> View:
    match options.view:
        case "filters":
            return trace.filters()
        case "maps":
            return trace.maps(options.name, options.layer, options.units())
        case "batchnorm":
            return trace.batch_norm(options.name, options.layer, options.units())
        case "patches":
            return trace.patches()
        case "positions":
            return trace.position_similarity()
        case "rollout":
            return trace.rollout(options.layer)
        case _:
            return trace.image_attention(options.layer, options.head)


def _gradients(run: Path, model: Model, text: str, options: ViewOptions) -> GradientsView | DecayView:
    """The matrix of one model, or the decay curves of several over the same target."""
    if not options.against:
        return model.teacher_forced(text).gradients(model.module, options.name, options.layer)
    from regard.compare.table import check_comparable
    from regard.look import DecayView
    from regard.tasks.translate.recipe import TranslationModel
    from regard.train.checkpoint_store import run_folder

    models = {str(run): model} | {path: load_model(Path(path)) for path in options.against if path != INITIAL}
    check_comparable({label: (run_folder(label), one) for label, one in models.items()})
    target = model.predict_text(text) if isinstance(model, TranslationModel) else None
    curves = []
    for label, one in models.items():
        # the same target for all: losses of different words are not comparable
        forced = one.teacher_forced(text, target) if isinstance(one, TranslationModel) else one.teacher_forced(text)
        curves.append(forced.gradients(one.module, options.name, options.layer).decay(label))
        if INITIAL in options.against:
            initial = forced.gradients(one.untrained_module(), options.name, options.layer)
            curves.append(initial.decay(f"{label}, {INITIAL}"))
    return DecayView(tuple(curves), target=target)


def _output_view(model: Model, text: str, options: ViewOptions) -> View:
    """A view of one output, with the progress of its passes."""
    from regard.look.insights import finish, run_tool
    from regard.look.patching import patching_steps

    replay, at = model.replay(text), (options.units() or [0])[0]
    if replay.note:
        Console.of_verb().print(f"note: {replay.note}")
    with StageProgress(Console.of_verb()) as progress:
        if options.view == "patch":
            other = model.replay_of_text(replay, options.against[0])
            return finish(patching_steps(replay, other, at), options.view, progress)
        return run_tool(options.view, replay, at, progress)


def _compute_views(model: Model, text: str, options: ViewOptions) -> dict[str, Any]:
    """Views that a saved page cannot compute without the model; only the chosen view must succeed."""
    found: dict[str, Any] = {}
    with nullcontext() if options.view == "gradients" else suppress(RegardError):
        gradients = model.teacher_forced(text).gradients(model.module, options.name, options.layer)
        found["gradients"] = [gradients.to_dict()]
    with nullcontext() if options.view == "saliency" else suppress(RegardError):
        found["saliency"] = model.saliency(text).to_dict()
    return found


def show_view(view: View, output: Path | None, as_json: bool) -> None:
    """Show a view in the terminal, as JSON, or write it to a file."""
    if output is None:
        print_json(view.to_dict()) if as_json else click.echo(view.text(), color=True)
        return
    if output.suffix == ".png":
        from regard.look.png import png

        content = png(view.svg())
    else:
        content = (view.svg() if output.suffix == ".svg" else json.dumps(view.to_dict(), ensure_ascii=False)).encode()
    _write(output, content)


def _write(output: Path, content: bytes) -> None:
    with write_errors(output):
        output.write_bytes(content)
    click.echo(str(output))
