"""What a table leaves out is as in the default of whoever asks for it, not of the class alone."""

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
    ("table", "wanted"),
    [
        ({}, Train(99, Fast(warmup=7))),
        ({"train": {}}, Train(99, Fast(warmup=7))),
        ({"train": {"steps": 1}}, Train(1, Fast(warmup=7))),
        ({"train": {"schedule": {"rate": 2.0}}}, Train(99, Fast(rate=2.0, warmup=7))),
        ({"train": {"schedule": {"kind": "slow"}}}, Train(99, Slow())),
        ({"train": {"schedule": {"kind": "fast"}}}, Train(99, Fast(warmup=7))),
    ],
)
def test_what_is_left_out_is_as_in_the_default(table: config.Table, wanted: Train) -> None:
    assert config.parse(Job, table).train == wanted


def test_what_is_shown_as_the_default_is_the_default() -> None:
    shown = {(setting.key, setting.of): setting.default for setting in config.settings(Job)}
    assert shown["train.steps", ""] == 99
    assert shown["train.schedule.warmup", "fast"] == 7
    assert shown["train.schedule.rate", "slow"] == 0.1


def test_a_wrong_key_beside_defaults_is_still_told() -> None:
    with pytest.raises(ConfigError, match=r'unknown setting "train\.step"; did you mean train\.steps \(now 99\)\?'):
        config.parse(Job, {"train": {"step": 3}})


def test_a_language_model_that_names_one_setting_keeps_the_job_s_defaults() -> None:
    settings = ["task.kind=generate", "data.kind=text", "data.train=a.txt", "model.kind=rnnlm"]
    recipe = Recipe.read(None, [*settings, "train.steps=7", "text.lowercase=true"])
    assert (recipe.train.steps, recipe.train.smoothing) == (7, 0.0)
    assert (recipe.text.kind, recipe.text.normal, recipe.text.lowercase) == ("char", "none", True)  # type: ignore[attr-defined]
    assert Recipe.parse(config.plain(recipe)) == recipe
