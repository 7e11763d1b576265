"""Compare recipe: one recipe for several models that share data, tokenizer, task and budget."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from regard import config
from regard.compare.match_parameters import count_parameters, match_parameters
from regard.errors import ConfigError
from regard.models import preset_tables
from regard.recipe_tables import expand_paths, with_preset, without_budget
from regard.tasks import Recipe

PREPARED = "prepared"
"""folder of the shared prepared data, beside the runs"""
BUDGET = ("steps", "epochs", "minutes")


@dataclass(frozen=True)
class Budget:
    """The [budget] section: limits for all models besides the steps, epochs or minutes of [train]."""

    parameters: int | None = None
    """parameters of each model: its widths are scaled until it has about as many; not set: widths stay as given"""
    tolerance: float = 0.05
    """allowed deviation from `parameters`, as a share"""

    def __post_init__(self) -> None:
        if self.parameters is not None and self.parameters < 1:
            raise ConfigError(f"parameters = {self.parameters} must be at least 1")
        if not 0 < self.tolerance < 1:
            raise ConfigError(f"tolerance = {self.tolerance} must be above 0 and below 1")


@dataclass(frozen=True)
class FamilyMember:
    """One model of a comparison."""

    name: str
    recipe: Recipe


@dataclass(frozen=True)
class Comparison:
    """A compare recipe: the sections of an ordinary recipe without [model], and one [family.NAME] per model.

    >>> family = ["family.a={kind = 'seq2seq', width = 8}", "family.b={preset = 'transformer-tiny'}"]
    >>> [member.name for member in Comparison.read(None, ["data.kind=phrases", *family]).members]
    ['a', 'b']
    """

    members: tuple[FamilyMember, ...]
    budget: Budget = Budget()
    table: config.Table = field(default_factory=dict)
    """the tables of the file, with settings applied"""

    @classmethod
    def read(cls, path: Path | None, settings: Sequence[str] = ()) -> Comparison:
        """Read a compare recipe from a TOML file and apply `settings`."""
        table = config.override(without_budget(config.read(path), settings) if path else {}, settings)
        shared = {key: value for key, value in table.items() if key not in ("family", "budget")}
        if "model" in shared:
            raise ConfigError("a compare recipe has no [model]: each model is a [family.NAME]")
        family = table.get("family", {})
        if not isinstance(family, dict) or len(family) < 2:
            names = f"{len(family)}: {', '.join(family)}" if family else "none"
            raise ConfigError(f"a comparison needs at least two models, one [family.NAME] each; there is {names}")
        shared |= {key: expand_paths(shared[key]) for key in ("data", "text") if key in shared}
        family = expand_paths(family)
        if any(isinstance(own, dict) and "init" in own for own in family.values()):
            shared.setdefault("text", {})  # all members share data and tokenizer: rows of the sources are mapped to it
        members = tuple(FamilyMember(name, _member_recipe(name, shared, own)) for name, own in family.items())
        return cls(members, config.parse(Budget, table.get("budget", {}), "budget"), table)

    def sized_members(self, run: Path) -> list[FamilyMember]:
        """The members with widths matched to the budget's parameters, if it sets any; each model is built once.

        `run` holds prepared data. Building finds mistakes now rather than after hours of training the others.
        """
        found = []
        for member in self.members:
            try:
                recipe = member.recipe
                if self.budget.parameters is not None:
                    recipe = match_parameters(recipe, run, self.budget.parameters, self.budget.tolerance)
                count_parameters(recipe, run)
                found.append(replace(member, recipe=recipe))
            except ConfigError as error:
                raise ConfigError(f"family.{member.name}: {error}") from None
        return found


def _member_recipe(name: str, shared: config.Table, own: Any) -> Recipe:
    if not re.fullmatch(r"[\w-]+", name) or name == PREPARED:
        raise ConfigError(f'family: "{name}" cannot be the name of a folder; use letters, digits, - and _')
    if not isinstance(own, dict):
        raise ConfigError(f"family.{name}: expected a table, got {own!r}")
    model = {key: value for key, value in own.items() if key != "train"}
    train = own.get("train", {})
    budget = [key for key in BUDGET if isinstance(train, dict) and key in train]
    if budget:
        raise ConfigError(f"family.{name}.train.{budget[0]}: the budget is the same for all; give it in [train]")
    train = merge_tables(shared.get("train", {}), train)
    try:
        return Recipe.parse({**shared, "train": train, "model": with_preset(model, preset_tables())})
    except config.UnknownSetting as error:
        key = error.key.removeprefix("model.")
        raise ConfigError(f'family.{name}: unknown setting "{key}"{error.guess.replace("model.", "")}') from None
    except ConfigError as error:
        raise ConfigError(f"family.{name}: {error}") from None


def merge_tables(under: Any, over: Any) -> Any:
    """Nested tables with others on top; a table of another kind replaces the whole.

    >>> merge_tables({"schedule": {"kind": "cosine", "lr": 1.0}, "ema": 0.9}, {"schedule": {"kind": "constant"}})
    {'schedule': {'kind': 'constant'}, 'ema': 0.9}
    """
    if not isinstance(under, dict) or not isinstance(over, dict):
        return over
    if over.get("kind", under.get("kind")) != under.get("kind"):
        return over
    return {**under, **{key: merge_tables(under.get(key), value) for key, value in over.items()}}
