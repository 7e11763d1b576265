"""A family: one recipe for several models, which share data, tokens, task and budget and differ in what learns."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from pathlib import Path
from typing import Any

import tomli_w

from regard import config
from regard.compare.match_parameters import counted, resized
from regard.errors import ConfigError, Diverged
from regard.files import write_text_atomically
from regard.objective import Tell, silent
from regard.run import Run
from regard.tasks import Recipe
from regard.tasks.base import expanded, with_preset, without_budget
from regard.train import checkpoint_store
from regard.train.config import MAY_CHANGE
from regard.train.events import MetricsFile

PREPARED = "prepared"
"""the folder beside the members' runs in which the data lies that they share"""
OUTCOME = "outcome.json"
"""in a run: that training has ended, by which recipe, and why if it did not end well"""
BUDGET = ("steps", "epochs", "minutes")


@dataclass(frozen=True)
class Budget:
    """What is the same for all members besides the time, the steps or the epochs that [train] gives them.

    >>> Budget(parameters=1_000_000).tolerance
    0.05
    """

    parameters: int | None = None
    """weights of each model: widths are searched so that all have about as many; not set: widths stay as they are"""
    tolerance: float = 0.05
    """share of these that a model may have more or fewer"""

    def __post_init__(self) -> None:
        if self.parameters is not None and self.parameters < 1:
            raise ConfigError(f"parameters = {self.parameters} must be at least 1")
        if not 0 < self.tolerance < 1:
            raise ConfigError(f"tolerance = {self.tolerance} must be above 0 and below 1")


@dataclass(frozen=True)
class Member:
    """One model of a family.

    >>> Member("gru", Recipe.read(None, ["data.kind=phrases", "model.kind=seq2seq"])).name
    'gru'
    """

    name: str
    recipe: Recipe


@dataclass(frozen=True)
class Comparison:
    """A compare recipe: the sections of an ordinary one but for [model], and a [family.NAME] for each member.

    >>> family = ["family.a={kind = 'seq2seq', width = 8}", "family.b={preset = 'transformer-tiny'}"]
    >>> [member.name for member in Comparison.read(None, ["data.kind=phrases", *family]).members]
    ['a', 'b']
    """

    members: tuple[Member, ...]
    budget: Budget = Budget()
    table: config.Table = field(default_factory=dict)
    """what was read"""

    @classmethod
    def read(cls, path: Path | None, settings: Sequence[str] = ()) -> Comparison:
        """A compare recipe from a TOML file with settings on top."""
        table = config.override(without_budget(config.read(path), settings) if path else {}, settings)
        shared = {key: value for key, value in table.items() if key not in ("family", "budget")}
        if "model" in shared:
            raise ConfigError("a compare recipe has no [model]: each model is a [family.NAME]")
        family = table.get("family", {})
        if not isinstance(family, dict) or len(family) < 2:
            names = f"{len(family)}: {', '.join(family)}" if family else "none"
            raise ConfigError(f"a comparison needs at least two models, one [family.NAME] each; there is {names}")
        if "data" in shared:
            shared["data"] = expanded(shared["data"])
        members = tuple(Member(name, _recipe(name, shared, own)) for name, own in family.items())
        return cls(members, config.parse(Budget, table.get("budget", {}), "budget"), table)

    def train(
        self,
        out: Path,
        train: Callable[[Recipe, Path], object] | None = None,
        tell: Tell = silent,
    ) -> dict[str, str]:
        """Train every member in `out/NAME`, one after the other; those that diverged, with why.

        Data is prepared once, and every model is built once before the first one is trained. A member that is finished
        is left alone, so the same call goes on where it stopped. `train` is what trains one; unless given, `taught`.
        """
        self.check_same(self.members, out, but=("model.",) if self.budget.parameters else ())
        prepared = Run(out / PREPARED)
        prepared.prepare(self.members[0].recipe, tell)
        settled = self.settled(prepared.path)
        self.check_same(settled, out)
        write_text_atomically(out / "compare.toml", tomli_w.dumps(self.table))
        for member in settled:
            self.train_one(member, prepared, out / member.name, train or taught)
        ends = {member.name: outcome(out / member.name, member.recipe) for member in settled}
        return {name: why for name, why in ends.items() if why}

    def check_same(self, members: Sequence[Member], out: Path, but: tuple[str, ...] = ()) -> None:
        """Refuse to go on with members that were begun by other recipes; settings that begin like `but` may differ."""
        may, changed = (*(f"{name} " for name in MAY_CHANGE), "decode.", *but), {}
        for member in members:
            path = out / member.name
            if (path / "recipe.toml").exists() and checkpoint_store.checkpoints(path):
                differing = config.differences(Run(path).recipe(), member.recipe)
                changed[path] = [line for line in differing if not line.startswith(may)]
        wrong = {str(path): lines for path, lines in changed.items() if lines}
        if wrong:
            lines = dict.fromkeys(line for lines in wrong.values() for line in lines)
            those = ", ".join(wrong)
            raise ConfigError(
                f"{those}: started with another recipe: {'; '.join(lines)}. Use --out for a new family, or remove "
                f"{out if len(wrong) == len(changed) else those} to train anew (what goes on may change "
                f"{', '.join(sorted(MAY_CHANGE))} and decode)"
            )

    def train_one(self, member: Member, prepared: Run, path: Path, train: Callable[[Recipe, Path], object]) -> None:
        """Train one member unless that is done; one that diverges is marked, and the others go on."""
        Run(path).begin(member.recipe)  # a changed recipe is told, also of one that is finished
        if outcome(path, member.recipe) is not None:
            return
        prepared.lend(Run(path), member.recipe)
        why = ""
        try:
            train(member.recipe, path)
        except Diverged as error:
            why = str(error)
        content = {"recipe": digest(member.recipe), "diverged": why}
        write_text_atomically(path / OUTCOME, json.dumps(content, ensure_ascii=False, indent=1) + "\n")

    def settled(self, run: Path) -> list[Member]:
        """The members, each of which can be built: with widths as they are, or such that each has about as many
        parameters as the budget says. `run` holds prepared data.
        """
        found = []
        for member in self.members:
            try:
                found.append(replace(member, recipe=self._settled(member.recipe, run)))
            except ConfigError as error:
                raise ConfigError(f"family.{member.name}: {error}") from None
        return found

    def _settled(self, recipe: Recipe, run: Path) -> Recipe:
        if self.budget.parameters is not None:
            recipe = resized(recipe, run, self.budget.parameters, self.budget.tolerance)
        counted(recipe, run)  # parts that do not fit together are told now, not after hours
        return recipe


def taught(recipe: Recipe, path: Path) -> None:
    """Train one member in silence, and keep its metrics.

    >>> import tempfile
    >>> settings = ["data.kind=phrases", "data.count=300", "model.kind=seq2seq", "model.layers=1", "model.width=8"]
    >>> with tempfile.TemporaryDirectory() as run:
    ...     taught(Recipe.read(None, [*settings, "train.steps=1"]), Path(run))
    ...     (Path(run) / "metrics.jsonl").exists()
    True
    """
    Run(path).train(recipe, listeners=[MetricsFile(path)])


def outcome(run: Path, recipe: Recipe) -> str | None:
    """How training by this recipe ended: "" if well, else why it diverged; None: it has not ended yet.

    >>> outcome(Path("runs/none"), Recipe.read(None, ["data.kind=phrases", "model.kind=seq2seq"])) is None
    True
    """
    path = run / OUTCOME
    found = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    return found["diverged"] if found.get("recipe") == digest(recipe) else None


def digest(recipe: Recipe) -> str:
    """One hash of all settings.

    >>> len(digest(Recipe.read(None, ["data.kind=phrases", "model.kind=seq2seq"])))
    32
    """
    return blake2b(config.dump(recipe).encode(), digest_size=16).hexdigest()


def _recipe(name: str, shared: config.Table, own: Any) -> Recipe:
    if not re.fullmatch(r"[\w-]+", name) or name == PREPARED:
        raise ConfigError(f'family: "{name}" cannot be the name of a folder; use letters, digits, - and _')
    if not isinstance(own, dict):
        raise ConfigError(f"family.{name}: expected a table, got {own!r}")
    model = {key: value for key, value in own.items() if key != "train"}
    given = own.get("train", {})
    budget = [key for key in BUDGET if isinstance(given, dict) and key in given]
    if budget:
        raise ConfigError(f"family.{name}.train.{budget[0]}: the budget is the same for all; give it in [train]")
    try:
        return Recipe.parse({**shared, "train": merged(shared.get("train", {}), given), "model": with_preset(model)})
    except config.UnknownSetting as error:
        key = error.key.removeprefix("model.")
        raise ConfigError(f'family.{name}: unknown setting "{key}"{error.guess.replace("model.", "")}') from None
    except ConfigError as error:
        raise ConfigError(f"family.{name}: {error}") from None


def merged(under: Any, over: Any) -> Any:
    """Tables with others on top; one of another kind replaces the whole.

    >>> merged({"schedule": {"kind": "cosine", "lr": 1.0}, "clip": 1.0}, {"schedule": {"kind": "constant", "lr": 2.0}})
    {'schedule': {'kind': 'constant', 'lr': 2.0}, 'clip': 1.0}
    """
    if not isinstance(under, dict) or not isinstance(over, dict):
        return over
    if over.get("kind", under.get("kind")) != under.get("kind"):
        return over
    return {**under, **{key: merged(under.get(key), value) for key, value in over.items()}}
