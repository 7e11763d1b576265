"""Each encoder learns in seconds what its receptive field allows: words, order, or a nonlinear boundary."""

from __future__ import annotations

from abc import ABC, abstractmethod

import pytest
import torch

from regard.models.base import Classifier
from regard.models.convolution import ConvolutionConfig
from regard.models.mlp import MLPConfig
from regard.models.pooling import make_pooling
from regard.models.recurrent import RecurrentConfig
from regard.models.transformer import TransformerConfig
from regard.objective import Batch, Objective, PerSequence
from regard.sequence import SOS, Tokens
from regard.spaces import Classes, Values, Words
from regard.train.config import TrainConfig
from regard.train.schedule import CosineDecay
from regard.train.trainer import train

NOT, GOOD, BAD, PLAIN = 4, 5, 6, (7, 8, 9, 10)
SMALL = TransformerConfig(layers=2, width=32, ffn_width=64, heads=4, dropout=0.0, norm="pre")


class Loader(ABC):
    """Batches by index: sources and their labels."""

    @abstractmethod
    def batch(self, number: int, rows: int = 64) -> Batch:
        """Rows that depend on the index only."""

    def train_batches(self, position):
        number = (position or {"batch": 0})["batch"]
        while True:
            yield self.batch(number), {"batch": number + 1}
            number += 1

    def valid_batches(self):
        yield self.batch(-1)

    def batches_per_epoch(self):
        return 10


class Texts(Loader):
    """Sources of tokens."""

    def __init__(self, starts: bool = False) -> None:
        self.starts = starts

    @abstractmethod
    def row(self, draw: torch.Generator) -> tuple[list[int], int]:
        """A text, and its label."""

    def batch(self, number: int, rows: int = 64) -> Batch:
        draw = torch.Generator().manual_seed(1000 + number)
        texts, labels = zip(*(self.row(draw) for _ in range(rows)), strict=True)
        return Batch(Tokens.pad([[SOS, *text] if self.starts else text for text in texts]), torch.tensor(labels))


def some(draw: torch.Generator, low: int, high: int) -> int:
    return int(torch.randint(low, high, (1,), generator=draw))


class Negated(Texts):
    """Good or bad, unless "not" stands just before: a bag of words is not enough."""

    def row(self, draw):
        text = [PLAIN[some(draw, 0, 4)] for _ in range(some(draw, 2, 7))]
        good, negated = some(draw, 0, 2), some(draw, 0, 2)
        at = some(draw, 0, len(text) + 1)
        text[at:at] = [NOT] * negated + [GOOD if good else BAD]
        if not negated:  # it stands elsewhere, where it means nothing
            text.insert(len(text) if at == 0 else 0, NOT)
        return text, good ^ negated


class First(Texts):
    """The first word decides, however long the text is: a state must carry it to the end."""

    def row(self, draw):
        good = some(draw, 0, 2)
        return [GOOD if good else BAD, *(PLAIN[some(draw, 0, 4)] for _ in range(some(draw, 4, 12)))], good


class Words_(Texts):
    """More good words than bad ones."""

    def row(self, draw):
        good, bad = some(draw, 0, 4), some(draw, 0, 4)
        text = [GOOD] * good + [BAD] * bad + [PLAIN[some(draw, 0, 4)] for _ in range(some(draw, 1, 4))]
        order = torch.randperm(len(text), generator=draw).tolist()
        return [text[i] for i in order], int(good > bad)


LEARNED = {
    "lstm last, first word": (RecurrentConfig(width=32, dropout=0.0, bidirectional=False), "last", First()),
    "lstm last, negation": (RecurrentConfig(width=32, dropout=0.0), "last", Negated()),
    "gru mean, negation": (RecurrentConfig(cell="gru", width=32, dropout=0.0), "mean", Negated()),
    "tanh last, both directions, first word": (RecurrentConfig(cell="tanh", width=32, dropout=0.0), "last", First()),
    "relu max, negation": (RecurrentConfig(cell="relu", width=32, dropout=0.0), "max", Negated()),
    "convolution max, negation": (ConvolutionConfig(layers=1, width=32, dropout=0.0), "max", Negated()),
    "transformer with a start token, negation": (SMALL, "first", Negated(starts=True)),
    "mlp mean, words": (MLPConfig(width=32), "mean", Words_()),
}


def train_classifier(config, pool, loader, space, folder, steps=150):
    torch.manual_seed(1)
    encoder = config.build_encoder(space)
    model = Classifier(encoder, make_pooling(pool, encoder), Classes(2), encoder.width)
    settings = TrainConfig(steps=steps, validate_every=10_000, schedule=CosineDecay(lr=1e-2, warmup=10))
    train(Objective(model, PerSequence(Classes(2))), loader, settings, folder)
    return model.eval()


@torch.no_grad()
def right(model: Classifier, batch: Batch) -> float:
    return float((model.readout(model(batch.source)).argmax(-1) == batch.target).double().mean())


FAST = ("lstm last, negation", "convolution max, negation", "mlp mean, words")


@pytest.mark.parametrize(
    "name", [name if name in FAST else pytest.param(name, marks=pytest.mark.slow) for name in LEARNED]
)
def test_every_encoder_learns_what_its_receptive_field_allows(name, tmp_path):
    config, pool, loader = LEARNED[name]
    model = train_classifier(config, pool, loader, Words(12), tmp_path)
    assert right(model, loader.batch(-5, rows=256)) >= 0.95


def test_bag_of_words_features_do_not_learn_negation(tmp_path):
    """Otherwise the tests above would prove nothing."""
    model = train_classifier(MLPConfig(width=32), "mean", Negated(), Words(12), tmp_path)
    assert right(model, Negated().batch(-5, rows=256)) < 0.7


class Circle(Loader):
    """Points inside a circle or outside: not linearly separable."""

    def batch(self, number, rows=64):
        draw = torch.Generator().manual_seed(1000 + number)
        points = torch.rand(rows, 1, 2, generator=draw) * 4 - 2
        return Batch(Tokens.full(points), (points.norm(dim=-1)[:, 0] < 1.3).long())


def test_an_mlp_learns_what_is_not_linearly_separable(tmp_path):
    model = train_classifier(MLPConfig(layers=2, width=32), "mean", Circle(), Values(2), tmp_path, steps=250)
    assert right(model, Circle().batch(-5, rows=512)) >= 0.95
