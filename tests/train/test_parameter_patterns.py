"""Frozen parameters and learning rates by group: what is updated, and by how much; checkpoints and resuming."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

from helpers import check_refused
from regard.errors import ConfigError, ModelError
from regard.objective import NextToken, Objective
from regard.spaces import Words
from regard.tasks.copying import CopyTask
from regard.train import checkpoint
from regard.train.config import TrainConfig
from regard.train.events import Event, Listener, Stepped
from regard.train.optim import SGD
from regard.train.parameter_patterns import layer_multipliers
from regard.train.schedule import Constant
from regard.train.trainer import train
from zoo import READING, V, build


def trained(
    run: Path, model: str = "transformer-pre", listeners: Sequence[Listener] = (), **settings: Any
) -> tuple[dict[str, torch.Tensor], Objective]:
    """Initial weights, and the objective after a short training."""
    objective = Objective(build(model), NextToken(Words(V, 0.1)))
    before = {name: p.detach().clone() for name, p in objective.model.named_parameters()}
    config = TrainConfig(**{"steps": 3, "schedule": Constant(lr=0.01)} | settings)
    train(objective, CopyTask(), config, run, listeners=listeners)
    return before, objective


def changed(before: dict[str, torch.Tensor], objective: Objective) -> set[str]:
    return {name for name, p in objective.model.named_parameters() if not torch.equal(p, before[name])}


def test_frozen_parameters_stay_and_have_neither_gradient_nor_optimizer_state(tmp_path: Path) -> None:
    before, objective = trained(tmp_path, freeze=("encoder.*", "*.norm.*"))
    names = set(before)
    frozen = {name for name in names if name.startswith("encoder.") or ".norm." in name}
    assert changed(before, objective) == names - frozen
    assert all(p.grad is None for name, p in objective.model.named_parameters() if name in frozen)
    stored = checkpoint.read(tmp_path / "last").tensors("optimizer")
    numbers = sum(tensor.numel() for name, tensor in stored.items() if name.endswith("exp_avg"))
    trainable = sum(p.numel() for p in objective.model.parameters() if p.requires_grad)
    assert trainable <= numbers < trainable + 16 * len(names)  # each starts on a 64-byte boundary


def test_freezing_one_name_of_a_tied_weight_freezes_the_weight(tmp_path: Path) -> None:
    before, objective = trained(tmp_path, "transformer", freeze=("decoder.readout.weight",))
    assert "encoder.embed.weight" in before and "encoder.embed.weight" not in changed(before, objective)


def test_a_multiplier_scales_the_updates_of_its_group_only(tmp_path: Path) -> None:
    plain = {"steps": 1, "optimizer": SGD(), "clip_norm": 0.0}
    before, one = trained(tmp_path / "one", **plain)
    _, two = trained(tmp_path / "two", **plain, rates={"encoder.*": 0.5, "encoder.norm.*": 0.5})
    for (name, a), b in zip(one.model.named_parameters(), two.model.parameters(), strict=True):
        factor = 0.25 if name.startswith("encoder.norm.") else 0.5 if name.startswith("encoder.") else 1.0
        torch.testing.assert_close(b - before[name], factor * (a - before[name]), rtol=1e-4, atol=1e-7)


def test_layer_decay_lowers_the_rate_from_the_head_down_to_the_embedding(tmp_path: Path) -> None:
    plain = {"steps": 1, "optimizer": SGD(), "clip_norm": 0.0}
    before, one = trained(tmp_path / "one", **plain)
    _, two = trained(tmp_path / "two", **plain, layer_decay=0.5, rates={"decoder.*": 0.5})
    layers = len(one.model.encoder.layers)
    assert layers > 1
    expected = {"embed": 0.5 ** (layers + 1), "norm": 1.0, "readout": 1.0}
    for (name, a), b in zip(one.model.named_parameters(), two.model.parameters(), strict=True):
        part, child, number = name.split(".")[:3]
        factor = expected[child] if child in expected else 0.5 ** (layers - int(number))
        factor *= 0.5 if part == "decoder" else 1.0
        torch.testing.assert_close(b - before[name], factor * (a - before[name]), rtol=1e-4, atol=1e-7)


@pytest.mark.parametrize("name", READING)
def test_layer_decay_reaches_every_encoder_down_to_its_inputs(name: str) -> None:
    encoder = READING[name].build_encoder(Words(V))
    rates = layer_multipliers(encoder, 0.5)
    assert max(rates.values()) == 0.5
    lowest = next(getattr(encoder, "elmo", encoder).embed.parameters())
    assert rates[lowest] == min(rates.values()) == 0.25 ** (len(set(rates.values())) / 2)
    upper = {name.removeprefix("elmo.") for name, p in encoder.named_parameters() if p not in rates}
    assert upper <= {"norm.weight", "norm.bias", "mix.weight", "mix.gamma"} and not (upper and name == "bert")


def test_layer_decay_needs_layers_and_a_share() -> None:
    check_refused(
        ConfigError,
        "train.layer_decay = 0.5: the model has no stack of layers; leave it out",
        lambda: layer_multipliers(torch.nn.Linear(2, 2), 0.5),
    )
    for decay in (0.0, 1.5, float("nan")):
        message = f"layer_decay = {decay} must be above 0 and at most 1 (1: no decay)"
        check_refused(ConfigError, message, lambda decay=decay: TrainConfig(layer_decay=decay))


def test_a_run_with_frozen_parts_and_rates_resumes_bit_for_bit(tmp_path: Path) -> None:
    settings: dict[str, Any] = {
        "steps": 6, "save_every": 1, "validate_every": 6, "ema": 0.9, "freeze": ("encoder.embed.*",),
        "rates": {"encoder.*": 0.1, "decoder.layers.0.*": 0.3}, "layer_decay": 0.9,
    }  # fmt: skip
    trained(tmp_path / "whole", **settings)

    def stop(event: Event) -> None:
        if isinstance(event, Stepped) and event.step == 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        trained(tmp_path / "stopped", listeners=[stop], **settings)
    trained(tmp_path / "stopped", **settings)
    assert checkpoint.read(tmp_path / "stopped/last").digest == checkpoint.read(tmp_path / "whole/last").digest


def test_a_rate_of_one_changes_nothing(tmp_path: Path) -> None:
    trained(tmp_path / "plain")
    trained(tmp_path / "one", rates={"encoder.*": 1.0})
    assert checkpoint.read(tmp_path / "plain/last").digest == checkpoint.read(tmp_path / "one/last").digest


GROUPS = (
    "encoder.embed.*, encoder.layers.*, encoder.norm.*, decoder.embed.*, decoder.readout.*, decoder.layers.*, "
    "decoder.norm.* (such as encoder.embed.weight)"
)


@pytest.mark.parametrize("setting", ["freeze", "rates"])
def test_a_pattern_that_matches_nothing_is_refused_with_the_names_there_are(setting: str, tmp_path: Path) -> None:
    value: Any = ("encodr.*",) if setting == "freeze" else {"encodr.*": 0.1}
    message = f'train.{setting}: "encodr.*" matches no parameter of the model, which has {GROUPS}'
    check_refused(ConfigError, message, lambda: trained(tmp_path, **{setting: value}))


def test_freezing_everything_is_refused(tmp_path: Path) -> None:
    message = 'train.freeze = ["encoder.*", "decoder.*"] matches every parameter, so nothing is trained; leave some out'
    check_refused(ConfigError, message, lambda: trained(tmp_path, freeze=("encoder.*", "decoder.*")))


@pytest.mark.parametrize("rate", [0.0, -1.0, float("inf"), float("nan")])
def test_a_multiplier_must_be_positive(rate: float) -> None:
    message = f'rates."encoder.*" = {rate} must be above 0; train.freeze is for parts that stay'
    check_refused(ConfigError, message, lambda: TrainConfig(rates={"encoder.*": rate}))


def test_the_optimizer_state_of_other_groups_is_refused(tmp_path: Path) -> None:
    trained(tmp_path, rates={"encoder.*": 0.1})
    with pytest.raises(ModelError, match=r"the checkpoint belongs to another model"):
        trained(tmp_path, steps=4)
