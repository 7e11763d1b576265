"""MODEL_CARD.md: what a model is, what it learnt from and on whose terms, how good it is, how to use it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from regard.tasks import Recipe
    from regard.train.trainer import Report

CARD = """# {name}

A {kind} that was trained with regard {version} to {task}.

- data: {data}
- training: {step:,} updates, seed {seed}; every setting is in recipe.toml
- best validation: {best}

Use it:

```console
{usage}
regard eval {path}
```

It knows the kind of data it was trained on and no other; it may be wrong without a sign of doubt.
"""


def write_card(run: Path, recipe: Recipe, report: Report) -> None:
    """Write the card of a run that has been trained."""
    import regard
    from regard.files import write_text_atomically

    scores = [f"{name} {value:.3f}" for name, value in report.best.items() if name != "step"]
    text = CARD.format(
        name=run.resolve().name,
        kind=recipe.model.kind,
        version=regard.__version__,
        task=recipe.kind(),
        data=recipe.origin(),
        step=report.step,
        seed=recipe.seed,
        best=f"{', '.join(scores)} at step {report.best['step']:.0f}" if report.best else "none",
        usage=recipe.usage(run),
        path=run,
    )
    write_text_atomically(run / "MODEL_CARD.md", text)
