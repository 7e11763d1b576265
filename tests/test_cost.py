"""Cost of models: FLOPs and memory by their shapes, compared with formulas and with real tensors."""

from dataclasses import replace
from functools import cache
from types import SimpleNamespace

import pytest
import torch
from torch import nn

from regard.cost import ModelCost, activation_bytes, measure_speed, preset_cost
from regard.models.presets import PRESETS

QUICK = [name for name in PRESETS if PRESETS[name].config.kind in ("gpt", "llama", "bert", "transformer")]
QUICK.remove("gpt-3")  # an alias


@cache
def cost_of(name: str) -> ModelCost:
    return preset_cost(PRESETS[name], tokens=300e9)


def test_gpt_3_takes_3638_petaflop_s_days():
    cost = cost_of("gpt-3-175b")
    assert cost.parameters == 174_604_259_328
    assert cost.training_flops == 6 * 174_604_259_328 * 300e9
    assert round(cost.petaflop_s_days) == 3638
    assert cost.flops_per_token == 2 * 174_604_259_328


def test_weights_gradients_and_adam_take_16_bytes_per_parameter():
    memory = cost_of("gpt-2-xl").training_memory
    assert memory.weights + memory.gradients + memory.optimizer == 16 * 1_557_611_200
    assert memory.total == 16 * 1_557_611_200 + memory.activations


@pytest.mark.parametrize(("name", "layers", "kv_width"), [("gpt-3-175b", 96, 12_288), ("llama-3-8b", 32, 8 * 128)])
def test_the_kv_cache_has_two_vectors_per_layer_and_position(name, layers, kv_width):
    cost = cost_of(name)
    assert cost.inference_memory.kv_cache == 2 * layers * kv_width * cost.context * 4


@pytest.mark.parametrize("name", QUICK)
def test_every_attention_preset_has_a_cost(name):
    cost = cost_of(name)
    assert cost.parameters == PRESETS[name].parameters
    assert 0 < cost.training_memory.activations < 1e13
    assert bool(cost.inference_memory.kv_cache) == (PRESETS[name].config.kind != "bert")


def test_activations_of_gpt_grow_with_the_context_but_not_with_its_square():
    def activations(context: int) -> int:
        preset = PRESETS["gpt-2"]
        config = replace(preset.config, layers=2, max_positions=context)
        return preset_cost(replace(preset, config=config), tokens=1).training_memory.activations

    base, double = activations(8192), activations(16_384)
    assert 1.4 < double / base < 2.1  # fused attention stores no scores, which would make it 4


def test_activations_are_those_that_are_alive_at_once():
    with torch.device("meta"):
        layers, x = nn.Sequential(*(nn.Linear(100, 100, bias=False) for _ in range(10))), torch.ones(1, 100)
    found = activation_bytes(layers, lambda: layers(x).sum())
    assert 10 * 400 + 40_000 < found < 16 * 400 + 40_000  # ten outputs, and one gradient of a weight at a time


def test_the_speed_is_that_of_the_fastest_product_and_no_product_begins_after_the_time(monkeypatch):
    clock = iter([0.0, 0.3, 1.0, 1.1, 2.0, 2.2, 3.0])  # products of 0.3, 0.1 and 0.2 seconds
    monkeypatch.setattr("regard.cost.time", SimpleNamespace(perf_counter=clock.__next__))
    speed = measure_speed(seconds=0.5, size=256)
    assert speed.repetitions == 3 and speed.seconds == pytest.approx(0.6)
    assert speed.flops_per_second == pytest.approx(2 * 256**3 / 0.1)
    assert "256 x 256" in speed.describe()
