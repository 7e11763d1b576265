"""regard cost: parameters, FLOPs, memory and time of a preset or a recipe."""

from __future__ import annotations

import math
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import click

from regard.cli.console import Console, StageProgress, format_duration
from regard.cli.loading import import_torch, load_recipe
from regard.cli.options import global_options, json_option, print_json
from regard.errors import ConfigError, InputError
from regard.recipe_tables import unknown_preset
from regard.settings_table import preset_names

if TYPE_CHECKING:
    from regard.cost import MachineSpeed, ModelCost

DEFAULT_TOKENS = 1e9
YEAR = 365.25 * 24 * 3600


@click.command(short_help="FLOPs, memory and time of a preset or a recipe.")
@click.argument("model", metavar="PRESET|RECIPE")
@click.argument("settings", nargs=-1, metavar="[KEY=VALUE]...")
@click.option("--tokens", metavar="N", help="Tokens of training, such as 300e9.  [default: the recipe's, else 1e9]")
@json_option
def cost(model: str, settings: tuple[str, ...], tokens: str | None, as_json: bool) -> None:
    """Print what a model costs: parameters, FLOPs, memory, and time on this machine.

    PRESET is a published size (`regard config explain model.preset` lists them), RECIPE a TOML file or a run. Nothing
    is trained, and a model of any size is counted without allocating its weights.

    Compute: training takes 6 FLOPs per parameter and token (forward 2: a multiplication and an addition; backward
    twice as many), use takes 2. A petaflop/s-day is 1e15 x 86,400 = 8.64e19 FLOPs. GPT-3 on 300e9 tokens: 3,638, quoted
    as 3,640.

    Memory in float32: for training weights, gradients, the optimizer's state (Adam: two moments) and the activations of
    one batch (of a preset: one sequence of its whole context); for use weights and the KV cache of one sequence at full
    context.

    Time: FLOPs divided by the speed of a matrix product that is timed for a second. It is a lower bound: no training
    reaches that speed in all of its operations.

    \b
    Examples:
      regard cost gpt-3 --tokens 300e9
      regard cost mine.toml model.layers=12 --json
    """
    count = None if tokens is None else parse_tokens(tokens)
    if model in preset_names():
        if settings:
            raise ConfigError(f"{settings[0]}: settings change a recipe, and {model} is a preset; write a recipe first")
        title, found = cost_of_preset(model, count)
    else:
        title, found = cost_of_recipe(model, settings, count)
    import torch

    from regard import cost as arithmetic

    if threads := global_options().threads:
        torch.set_num_threads(threads)
    speed = arithmetic.measure_speed()
    if as_json:
        print_json({"name": model, "description": title, **arithmetic.as_json(found, speed)})
    else:
        click.echo("\n".join([f"{model}: {title}", *cost_lines(found, speed)]))


def parse_tokens(text: str) -> float:
    """The number that --tokens gives.

    >>> parse_tokens("300e9")
    300000000000.0
    """
    try:
        count = float(text)
    except ValueError:
        count = math.nan
    if not 1 <= count < math.inf:
        raise ConfigError(f"--tokens {text}: expected a number of at least 1, such as 300e9")
    return count


def cost_of_preset(name: str, tokens: float | None) -> tuple[str, ModelCost]:
    """Description and cost of a preset."""
    import_torch()
    from regard.cost import preset_cost
    from regard.models.presets import PRESETS

    preset = PRESETS[name]
    words = " and ".join(f"{size:,}" for size in dict.fromkeys(preset.words))
    found = preset_cost(preset, DEFAULT_TOKENS if tokens is None else tokens)
    return f"{preset.config.summary}, {words} words ({preset.provenance})", found


def cost_of_recipe(name: str, settings: tuple[str, ...], tokens: float | None) -> tuple[str, ModelCost]:
    """Description and cost of a recipe or of a run; its data is prepared in a temporary folder if need be."""
    source = Path(name)
    if not source.exists():
        if source.suffix == ".toml" or len(source.parts) > 1:
            raise InputError(f"{name}: there is no such recipe or run, and no preset of this name")
        raise ConfigError(f"{name}: there is no recipe or run at this path, and {unknown_preset(name, preset_names())}")
    recipe, path = load_recipe(source, settings, None)
    from regard.cost import recipe_cost
    from regard.run import Run

    with tempfile.TemporaryDirectory() as folder:
        run = Run(path)
        with StageProgress(Console.of_verb()) as stages:
            recipe.fetch(stages.download)
            if not run.is_prepared(recipe):
                run = Run(Path(folder))
                run.prepare(recipe, stages)
        return f"{recipe.model.summary}; {recipe.summary(run.path)}", recipe_cost(recipe, run.path, tokens)


def cost_lines(found: ModelCost, speed: MachineSpeed) -> list[str]:
    """The table of a cost."""
    training, use, (rows, length) = found.training_memory, found.inference_memory, found.batch
    seconds, per_token = (flops / speed.flops_per_second for flops in (found.training_flops, found.flops_per_token))
    table = [
        ("parameters", f"{found.parameters:,}", ""),
        ("tokens of training", f"{found.tokens:,.0f}", ""),
        ("FLOPs of training", f"{found.training_flops:.3e}", "6 x parameters x tokens"),
        ("petaflop/s-days", format_number(found.petaflop_s_days), "FLOPs / 8.64e19"),
        ("FLOPs of use", f"{found.flops_per_token:.3e}", "2 x parameters, per token"),
        ("memory for training", format_bytes(training.total), "float32"),
        ("  weights", format_bytes(training.weights), ""),
        ("  gradients", format_bytes(training.gradients), ""),
        ("  optimizer", format_bytes(training.optimizer), "Adam: two moments per parameter"),
        ("  activations", format_bytes(training.activations), f"peak of a batch of {rows:,} x {length:,} positions"),
        ("memory for use", format_bytes(use.total), "float32"),
        ("  weights", format_bytes(use.weights), ""),
        ("  KV cache", format_bytes(use.kv_cache), f"or hidden state: one sequence of {found.context:,} positions"),
        ("speed here", f"{speed.flops_per_second / 1e9:,.1f} GFLOP/s", speed.describe()),
        ("time of training", f"> {format_time(seconds)}", "lower bound: all of it at this speed"),
        ("time of use", f"> {format_time(per_token)}", "per token, lower bound"),
    ]
    return [f" {name:<20} {value:>20}   {note}".rstrip() for name, value, note in table]


def format_number(value: float) -> str:
    """A number with about four digits.

    >>> format_number(3637.59), format_number(0.00864)
    ('3,638', '0.00864')
    """
    return f"{value:,.0f}" if value >= 1000 else f"{value:.4g}"


def format_bytes(count: float) -> str:
    """Bytes in MiB or GiB.

    >>> format_bytes(3 << 30), format_bytes(5 << 19)
    ('3.0 GiB', '2.5 MiB')
    """
    return f"{count / (1 << 30):,.1f} GiB" if count >= 1 << 30 else f"{count / (1 << 20):,.1f} MiB"


def format_time(seconds: float) -> str:
    """A duration from microseconds to years.

    >>> format_time(2e-4), format_time(30), format_time(86400 * 10), format_time(3e11)
    ('0.2 ms', '30 s', '10 days', '9,506 years')
    """
    if seconds < 1:
        return f"{seconds * 1000:.3g} ms"
    if seconds < 2 * 86400:
        return format_duration(seconds)
    return f"{seconds / 86400:,.0f} days" if seconds < 2 * YEAR else f"{seconds / YEAR:,.0f} years"
