"""MODEL_CARD.md of a run: the model, its training data with license, its validation metrics, and how to use it."""

from __future__ import annotations

from pathlib import Path

import regard
from regard.files import write_text_atomically
from regard.metrics.score import format_value
from regard.tasks import Recipe
from regard.tasks.init_weights import InitReport
from regard.train.state import TrainReport

CARD_FILE = "MODEL_CARD.md"
CARD = """# {name}

A {kind} model, {made} with regard {version} to {task}.

- data: {data}
{lineage}- training: {step:,} updates, seed {seed}; all settings are in recipe.toml
- best validation: {best}

Use it:

```console
{usage}
{scores}
```

Trained on the data above only. It may fail on other data, and its probabilities are not calibrated.
"""


def format_lineage(init: InitReport | None) -> str:
    """Lines of the card about the models that a fine-tuned one started from, the nearest first; "" for other models."""
    if init is None:
        return ""
    chain = [
        f"{origin.path} ({origin.model}, trained to {origin.task}), step {origin.step:,}, digest {origin.digest}"
        for origin in (init.origin, *init.ancestors)
    ]
    lines = [f"- fine-tuned from {'; which itself was fine-tuned from '.join(chain)}"]
    lines += [f"- not in that model, started from initial weights: {init.fresh_names()}"] if init.fresh else []
    lines += [f"- of that model not used: {init.unused_names()}"] if init.unused else []
    return "".join(f"{line}\n" for line in lines)


def render_model_card(run: Path, recipe: Recipe, report: TrainReport) -> str:
    """The model card of a trained run."""
    metrics = [f"{name} {format_value(value, 3)}" for name, value in report.best.items() if name != "step"]
    return CARD.format(
        name=run.resolve().name,
        kind=recipe.model.kind,
        made="imported" if report.reason == "imported" else "trained",
        version=regard.__version__,
        task=recipe.kind(),
        data=recipe.data_credit(),
        lineage=format_lineage(InitReport.load(run)),
        step=report.step,
        seed=recipe.seed,
        best=f"{', '.join(metrics)} at step {report.best['step']:.0f}" if report.best else "none",
        usage=recipe.usage(run),
        scores=recipe.eval_usage(run),
    )


def write_model_card(run: Path, recipe: Recipe, report: TrainReport, place: Path | None = None) -> None:
    """Write the model card of a trained run; `place` is where it will be, if that is not where it is written."""
    write_text_atomically(run / CARD_FILE, render_model_card(place or run, recipe, report))
