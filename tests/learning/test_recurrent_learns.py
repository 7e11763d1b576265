"""Each cell learns a small task in seconds, by the one trainer, and each way to give a condition is of use."""

import math

import pytest
import torch

from regard.decode import Beam, search
from regard.models.convolution import ConvolutionConfig
from regard.models.encoder_decoder import MixedConfig
from regard.models.luong import LuongConfig
from regard.models.rnnlm import RNNLMConfig
from regard.models.seq2seq import Seq2SeqConfig
from regard.models.transformer import TransformerConfig
from regard.objective import Batch, Continue, Objective
from regard.sequence import SOS, Tokens
from regard.spaces import Gaussian, Values, Words
from regard.tasks.copying import Copying
from regard.train.config import TrainConfig
from regard.train.schedule import Constant
from regard.train.trainer import train

WIDTH = 32
SMALL = TransformerConfig(layers=1, width=WIDTH, inner=64, heads=4, dropout=0.0, tie="target")
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
        MixedConfig(encoder=ConvolutionConfig(layers=2, width=WIDTH), decoder=LuongConfig(layers=1, width=WIDTH)),
        True,
    ),
    "transformer and gru": (
        MixedConfig(encoder=SMALL, decoder=Seq2SeqConfig(layers=1, width=WIDTH, cell="gru")),
        False,
    ),
}


@pytest.mark.parametrize("name", ["gru", *(pytest.param(n, marks=pytest.mark.slow) for n in FAMILY if n != "gru")])
def test_short_sentences_are_said_again_or_backwards(name, tmp_path):
    config, backwards = FAMILY[name]
    torch.manual_seed(1)
    model = config.build(Words(8), Words(8))
    feed = Copying(rows=48, longest=3, backwards=backwards)
    settings = TrainConfig(steps=150, schedule=Constant(lr=1e-2), every=1000, clip=1.0)
    train(Objective(model, Continue(Words(8))), feed, settings, tmp_path)
    batch = feed.batch(-5)
    found = search(model.eval(), batch.source, Tokens.full(torch.full((48, 1), SOS)), Beam(1), torch.full((48,), 5))
    wanted = [tuple(row[1:n]) for row, n in zip(batch.target.data.tolist(), batch.target.lengths.tolist(), strict=True)]
    right = sum(h.tokens == w for (h,), w in zip(found, wanted, strict=True))
    assert right >= 40, f"{right} of 48"


class Waves:
    """Sine waves with a frequency and a phase of their own, and a little noise."""

    def __init__(self, condition=False):
        self.condition = condition

    def batch(self, number, rows=32, length=24):
        draw = torch.Generator().manual_seed(1000 + number)
        pace = torch.rand(rows, 1, generator=draw) * 0.4 + 0.3
        phase = torch.rand(rows, 1, generator=draw) * 2 * math.pi
        noise = 0.05 * torch.randn(rows, length, generator=draw)
        values = torch.sin(pace * torch.arange(length) + phase) + noise
        source = Tokens.of([[]] * rows)
        if self.condition:  # what the series cannot tell from its first value: the vector of pace and phase
            source = Tokens.full(torch.cat([pace, phase.sin(), phase.cos()], 1)[:, None])
        return Batch(source, Tokens.full(values[..., None]))

    def stream(self, position):
        number = (position or {"batch": 0})["batch"]
        while True:
            yield self.batch(number), {"batch": number + 1}
            number += 1

    def valid(self):
        yield self.batch(-1)

    def epoch(self):
        return 10


def taught(model, feed, space, tmp_path, steps):
    settings = TrainConfig(steps=steps, schedule=Constant(lr=1e-2), every=10_000)
    train(Objective(model, Continue(space)), feed, settings, tmp_path)
    return model.eval()


@torch.no_grad()
def _predicted(model, batch):
    read, wanted, _ = batch.target.shifted()
    return model.readout(model(batch.source, read)), wanted


@pytest.mark.slow
def test_a_gaussian_model_foretells_waves_and_knows_how_sure_it_is(tmp_path):
    torch.manual_seed(1)
    space = Gaussian(1)
    lm = RNNLMConfig(cell="gru", layers=1, width=WIDTH, dropout=0.0).build(space, space)
    out, wanted = _predicted(taught(lm, Waves(), space, tmp_path, 300), Waves().batch(-7))
    mean, log = out[:, 8:].chunk(2, -1)
    error = (mean - wanted[:, 8:]).square().mean().sqrt().item()
    last = (wanted[:, 8:] - wanted[:, 7:-1]).square().mean().sqrt().item()
    assert error < 0.35 * last  # far better than "as it is now, so it will be"
    assert 0.5 < log.exp().mean().item() / error < 2.0  # its doubt is as large as its error


@pytest.mark.slow
@pytest.mark.parametrize("condition", ["start", "every"])
def test_a_condition_tells_what_the_beginning_cannot(condition, tmp_path):
    errors = {}
    for given in ("none", condition):
        torch.manual_seed(1)
        lm = RNNLMConfig(cell="gru", layers=1, width=WIDTH, dropout=0.0, condition=given).build(Values(3), Values(1))
        feed = Waves(condition=given != "none")
        out, wanted = _predicted(taught(lm, feed, Values(1), tmp_path / given, 150), feed.batch(-7))
        errors[given] = (out[:, 0] - wanted[:, 0]).square().mean().item()
    assert errors[condition] < 0.5 * errors["none"]
