"""Each cell learns a small task in seconds, and each kind of condition helps."""

import math

import pytest
import torch

from regard.decode import Beam, search
from regard.models.convolution import ConvolutionConfig
from regard.models.encoder_decoder import EncoderDecoderConfig
from regard.models.luong import LuongConfig
from regard.models.rnnlm import RNNLMConfig
from regard.models.seq2seq import Seq2SeqConfig
from regard.models.transformer import TransformerConfig
from regard.objective import Batch, NextToken, Objective
from regard.sequence import SOS, Tokens
from regard.spaces import Gaussian, Values, Words
from regard.tasks.copying import CopyTask
from regard.train.config import TrainConfig
from regard.train.schedule import Constant
from regard.train.trainer import train

WIDTH = 32
SMALL = TransformerConfig(layers=1, width=WIDTH, ffn_width=64, heads=4, dropout=0.0, tie="target")
FAMILY = {
    "tanh": (Seq2SeqConfig(layers=1, width=WIDTH, cell="tanh"), False),
    "relu": (Seq2SeqConfig(layers=1, width=WIDTH, cell="relu", context="every"), False),
    "lstm": (Seq2SeqConfig(layers=2, width=WIDTH, forget_bias=1.0), False),
    "gru": (Seq2SeqConfig(layers=1, width=WIDTH, cell="gru", reverse=False), True),
    "gru, both ways, every": (
        Seq2SeqConfig(layers=1, width=WIDTH, cell="gru", bidirectional=True, context="every"),
        True,
    ),
    "convolution and Luong": (
        EncoderDecoderConfig(
            encoder=ConvolutionConfig(layers=2, width=WIDTH), decoder=LuongConfig(layers=1, width=WIDTH)
        ),
        True,
    ),
    "transformer and gru": (
        EncoderDecoderConfig(encoder=SMALL, decoder=Seq2SeqConfig(layers=1, width=WIDTH, cell="gru")),
        False,
    ),
}


@pytest.mark.parametrize("name", ["gru", *(pytest.param(n, marks=pytest.mark.slow) for n in FAMILY if n != "gru")])
def test_copying_and_reversing_short_sentences_is_learned(name, tmp_path):
    config, backwards = FAMILY[name]
    torch.manual_seed(1)
    model = config.build(Words(8), Words(8))
    loader = CopyTask(rows=48, max_length=3, backwards=backwards)
    settings = TrainConfig(steps=150, schedule=Constant(lr=1e-2), validate_every=1000, clip_norm=1.0)
    train(Objective(model, NextToken(Words(8))), loader, settings, tmp_path)
    batch = loader.batch(-5)
    found = search(model.eval(), batch.source, Tokens.full(torch.full((48, 1), SOS)), Beam(1), torch.full((48,), 5))
    targets = [
        tuple(row[1:n]) for row, n in zip(batch.target.data.tolist(), batch.target.lengths.tolist(), strict=True)
    ]
    right = sum(h.tokens == w for (h,), w in zip(found, targets, strict=True))
    assert right >= 40, f"{right} of 48"


class Waves:
    """Sine waves of random frequency and phase, with a little noise."""

    def __init__(self, condition=False):
        self.condition = condition

    def batch(self, number, rows=32, length=24):
        draw = torch.Generator().manual_seed(1000 + number)
        pace = torch.rand(rows, 1, generator=draw) * 0.4 + 0.3
        phase = torch.rand(rows, 1, generator=draw) * 2 * math.pi
        noise = 0.05 * torch.randn(rows, length, generator=draw)
        values = torch.sin(pace * torch.arange(length) + phase) + noise
        source = Tokens.pad([[]] * rows)
        if self.condition:  # not known from the first value: the vector of frequency and phase
            source = Tokens.full(torch.cat([pace, phase.sin(), phase.cos()], 1)[:, None])
        return Batch(source, Tokens.full(values[..., None]))

    def train_batches(self, position):
        number = (position or {"batch": 0})["batch"]
        while True:
            yield self.batch(number), {"batch": number + 1}
            number += 1

    def valid_batches(self):
        yield self.batch(-1)

    def batches_per_epoch(self):
        return 10


def train_model(model, loader, space, tmp_path, steps):
    settings = TrainConfig(steps=steps, schedule=Constant(lr=1e-2), validate_every=10_000)
    train(Objective(model, NextToken(space)), loader, settings, tmp_path)
    return model.eval()


@torch.no_grad()
def _predicted(model, batch):
    read, targets, _ = batch.target.shift()
    return model.readout(model(batch.source, read)), targets


@pytest.mark.slow
def test_a_gaussian_model_forecasts_waves_with_calibrated_intervals(tmp_path):
    torch.manual_seed(1)
    space = Gaussian(1)
    lm = RNNLMConfig(cell="gru", layers=1, width=WIDTH, dropout=0.0).build(space, space)
    out, targets = _predicted(train_model(lm, Waves(), space, tmp_path, 300), Waves().batch(-7))
    mean, log = out[:, 8:].chunk(2, -1)
    error = (mean - targets[:, 8:]).square().mean().sqrt().item()
    last = (targets[:, 8:] - targets[:, 7:-1]).square().mean().sqrt().item()
    assert error < 0.35 * last  # far better than "as it is now, so it will be"
    assert 0.5 < log.exp().mean().item() / error < 2.0  # its predicted deviation is as large as its error


@pytest.mark.slow
@pytest.mark.parametrize("condition", ["start", "every"])
def test_a_condition_improves_the_forecast(condition, tmp_path):
    errors = {}
    for condition_kind in ("none", condition):
        torch.manual_seed(1)
        lm = RNNLMConfig(cell="gru", layers=1, width=WIDTH, dropout=0.0, condition=condition_kind).build(
            Values(3), Values(1)
        )
        loader = Waves(condition=condition_kind != "none")
        out, targets = _predicted(train_model(lm, loader, Values(1), tmp_path / condition_kind, 150), loader.batch(-7))
        errors[condition_kind] = (out[:, 0] - targets[:, 0]).square().mean().item()
    assert errors[condition] < 0.5 * errors["none"]
