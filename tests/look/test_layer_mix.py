"""The mix of an ELMo's layers as a view: the recorded numbers, text, SVG, JSON, and models without one."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from helpers import refusal
from readers import NAMES
from regard.cli import invoke
from regard.errors import ModelError
from regard.look import Recording
from regard.models.elmo import ELMoConfig
from regard.models.elmo_recurrent import ELMoRecurrentConfig
from regard.run import Run
from regard.sequence import Tokens
from regard.spaces import SpelledWords
from regard.tasks import Recipe
from regard.trace import record, trace_context

WORDS = ("<PAD>", "<UNK>", "<SOS>", "<EOS>", "the", "river", "bank")
SMALL = ELMoConfig(width=8, cells=8, characters=5, filters=(4, 6), highways=1)


@pytest.mark.parametrize("config", [SMALL, ELMoRecurrentConfig(elmo=SMALL, width=6)])
def test_contributions_are_the_recorded_weights_times_the_lengths_of_the_recorded_layers(config: ELMoConfig) -> None:
    encoder = config.build_encoder(SpelledWords(len(WORDS), vocabulary=WORDS)).eval()
    mix = getattr(encoder, "elmo", encoder).mix
    with torch.no_grad():
        mix.weight.copy_(torch.tensor([0.5, -1.0, 1.5]))
    model = nn.ModuleDict({"encoder": encoder})
    with record(model) as trace, trace_context(source=[list(WORDS[4:])]), torch.no_grad():
        memory = encoder(Tokens.pad([[4, 5, 6]]))
    view = Recording(trace).layer_mix()
    weights = mix.weight.detach().softmax(0).double()
    lengths = torch.stack([layer[0].double().norm(dim=-1) for layer in memory.layers[:3]])
    np.testing.assert_allclose(view.contributions, (weights[:, None] * lengths).numpy(), rtol=1e-6)
    assert view.tokens == ["the", "river", "bank"] and view.weights.sum() == pytest.approx(1)
    assert view.layers[0] == f"word {float(weights[0]):.3f}"
    assert "layer 2 0.690" in view.text(80, "none") and "bank" in view.svg()
    assert json.loads(json.dumps(view.to_dict()))["tokens"] == ["the", "river", "bank"]


def test_a_pass_without_a_mix_is_refused() -> None:
    with record(nn.Identity()) as trace:
        pass
    found = refusal(ModelError, lambda: Recording(trace).layer_mix())
    assert found == "no mix of layers was recorded; it is for a tagger or classifier that reads by an elmo"


def test_the_command_draws_the_mix_of_a_tagger(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.conll").write_text(NAMES, encoding="utf-8")
    data = f"data={{kind='conll', train='{tmp_path}/a.conll', valid_share=0.2}}"
    shape = ["model.width=8", "model.cells=8", "model.characters=5", "model.filters=[4,6]", "model.highways=1"]
    settings = ["task.kind=label", data, "model.kind=elmo", *shape, "train.steps=2", "train.batch_tokens=64"]
    Run(tmp_path / "run").train(Recipe.read(None, settings))
    run, svg = str(tmp_path / "run"), tmp_path / "mix.svg"
    assert invoke(["look", run, "the bank opens", "--view", "mix"]) == 0
    assert "layer mix: weight of each layer times the length of its vector" in capsys.readouterr().out
    assert invoke(["look", run, "the bank opens", "--view", "mix", "-o", str(svg)]) == 0
    assert "opens" in svg.read_text(encoding="utf-8")
    assert invoke(["look", run, "the bank opens", "--view", "mix", "--layer", "1"]) == 2
    assert "--layer does not apply to --view mix; leave it out" in capsys.readouterr().err
