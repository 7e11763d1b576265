"""Training of all models of a comparison, one after the other, on data that is prepared once."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from hashlib import blake2b
from pathlib import Path

import tomli_w

from regard import config
from regard.compare.recipe import PREPARED, Comparison, FamilyMember
from regard.errors import ConfigError, Diverged
from regard.files import parse_json, read_bounded, write_text_atomically
from regard.manifest import MAX_KEPT
from regard.progress import Progress, no_progress
from regard.run import Run
from regard.run_lock import RunLock
from regard.tasks import Recipe
from regard.train import checkpoint_store
from regard.train.config import MAY_CHANGE, refused_changes
from regard.train.events import MetricsFile

OUTCOME = "outcome.json"
"""file of a run: the recipe by which training ended, and why if it diverged"""
TrainMember = Callable[[Recipe, Path], object]


def train_family(
    comparison: Comparison, out: Path, train: TrainMember | None = None, progress: Progress = no_progress
) -> dict[str, str]:
    """Train every member in `out/NAME`; returns the names of those that diverged, with the reason.

    Data is prepared once, and every model is built once before the first one is trained. Finished members are skipped,
    so the same call resumes. `train` trains one member, by default `train_quietly`.
    """
    with RunLock(out):
        return _train_members(comparison, out, train or train_quietly, progress)


def _train_members(comparison: Comparison, out: Path, train: TrainMember, progress: Progress) -> dict[str, str]:
    _check_same_recipes(comparison.members, out, may=("model.",) if comparison.budget.parameters else ())
    for member in comparison.members:
        Run(out / member.name).check_init(member.recipe)  # before the others are trained
    prepared = Run(out / PREPARED)
    prepared.prepare(comparison.members[0].recipe, progress)
    members = comparison.sized_members(prepared.path)
    _check_same_recipes(members, out)
    write_text_atomically(out / "compare.toml", tomli_w.dumps(comparison.table))
    for member in members:
        _train_member(member, prepared, out / member.name, train)
    outcomes = {member.name: read_outcome(out / member.name, member.recipe) for member in members}
    return {name: why for name, why in outcomes.items() if why}


def _check_same_recipes(members: Sequence[FamilyMember], out: Path, may: tuple[str, ...] = ()) -> None:
    """Refuse to resume members that were started by other recipes; settings that start with one of `may` may differ."""
    changed = {}
    for member in members:
        path = out / member.name
        if (path / "recipe.toml").exists() and checkpoint_store.checkpoints(path):
            differing = config.differences(Run(path).recipe(), member.recipe)
            changed[path] = refused_changes(path, differing, may)
    wrong = {str(path): lines for path, lines in changed.items() if lines}
    if wrong:
        lines = dict.fromkeys(line for lines in wrong.values() for line in lines)
        names = ", ".join(wrong)
        raise ConfigError(
            f"{names}: started with another recipe: {'; '.join(lines)}. Use --out for a new family, or remove "
            f"{out if len(wrong) == len(changed) else names} to train again (a resumed run may change "
            f"{', '.join(sorted(MAY_CHANGE))} and decode)"
        )


def _train_member(member: FamilyMember, prepared: Run, path: Path, train: TrainMember) -> None:
    """Train one member unless that is done; one that diverges is recorded, and the others are trained."""
    Run(path).begin(member.recipe)  # a changed recipe is refused even if training is finished
    if read_outcome(path, member.recipe) is not None:
        return
    prepared.share_prepared(Run(path), member.recipe)
    why = ""
    try:
        train(member.recipe, path)
    except Diverged as error:
        why = str(error)
    content = {"recipe": recipe_digest(member.recipe), "diverged": why}
    with RunLock(path):
        write_text_atomically(path / OUTCOME, json.dumps(content, ensure_ascii=False, indent=1) + "\n")


def train_quietly(recipe: Recipe, path: Path) -> None:
    """Train one member without output, and write its metrics."""
    Run(path).train(recipe, listeners=[MetricsFile(path)])


def read_outcome(run: Path, recipe: Recipe) -> str | None:
    """Outcome of training by this recipe: "" if it succeeded, else why it diverged; None: it has not ended yet."""
    try:
        found = parse_json(read_bounded(run / OUTCOME, MAX_KEPT))
        return str(found["diverged"]) if found["recipe"] == recipe_digest(recipe) else None
    except (OSError, ValueError, KeyError, TypeError):  # missing or damaged: train, which ends at once if it was done
        return None


def recipe_digest(recipe: Recipe) -> str:
    """Hash of all settings of a recipe."""
    return blake2b(config.dump(recipe).encode(), digest_size=16).hexdigest()
