"""Settings that a table omits are as in the default of the recipe, not of the class alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import pytest

from regard import config
from regard.errors import ConfigError
from regard.tasks import Recipe


@dataclass(frozen=True)
class Fast:
    kind: Literal["fast"] = "fast"
    rate: float = 1.0
    warmup: int = 5


@dataclass(frozen=True)
class Slow:
    kind: Literal["slow"] = "slow"
    rate: float = 0.1


@dataclass(frozen=True)
class Train:
    steps: int = 10
    schedule: Fast | Slow = Slow()


@dataclass(frozen=True)
class Job:
    train: Train = Train(steps=99, schedule=Fast(warmup=7))


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        ({}, Train(99, Fast(warmup=7))),
        ({"train": {}}, Train(99, Fast(warmup=7))),
        ({"train": {"steps": 1}}, Train(1, Fast(warmup=7))),
        ({"train": {"schedule": {"rate": 2.0}}}, Train(99, Fast(rate=2.0, warmup=7))),
        ({"train": {"schedule": {"kind": "slow"}}}, Train(99, Slow())),
        ({"train": {"schedule": {"kind": "fast"}}}, Train(99, Fast(warmup=7))),
    ],
)
def test_omitted_settings_are_as_in_the_default(table: config.Table, expected: Train) -> None:
    assert config.parse(Job, table).train == expected


def test_the_documented_default_is_the_default() -> None:
    defaults = {(setting.key, setting.of): setting.default for setting in config.settings(Job)}
    assert defaults["train.steps", ""] == 99
    assert defaults["train.schedule.warmup", "fast"] == 7
    assert defaults["train.schedule.rate", "slow"] == 0.1


def test_an_unknown_key_beside_defaults_is_reported() -> None:
    with pytest.raises(ConfigError, match=r'unknown setting "train\.step"; did you mean train\.steps \(now 99\)\?'):
        config.parse(Job, {"train": {"step": 3}})


def test_a_language_model_recipe_with_one_setting_keeps_the_task_s_defaults() -> None:
    settings = ["task.kind=generate", "data.kind=text", "data.train=a.txt", "model.kind=rnnlm"]
    recipe = Recipe.read(None, [*settings, "train.steps=7", "text.lowercase=true"])
    assert (recipe.train.steps, recipe.train.label_smoothing) == (7, 0.0)
    assert (recipe.text.kind, recipe.text.normalization, recipe.text.lowercase) == ("char", "none", True)  # type: ignore[attr-defined]
    assert Recipe.parse(config.plain(recipe)) == recipe
