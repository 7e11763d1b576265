"""Attention models learn to reverse a sentence in seconds, and attend to the right words."""

import pytest
import torch

from regard.decode import Beam, align, search
from regard.models.luong import LuongConfig
from regard.models.rnnsearch import RNNsearchConfig
from regard.objective import NextToken, Objective
from regard.sequence import SOS, Tokens
from regard.spaces import Words
from regard.tasks.copying import CopyTask
from regard.train.config import TrainConfig
from regard.train.schedule import CosineDecay
from regard.train.trainer import train

V = 12
FEED = CopyTask(size=V, rows=32, max_length=6, backwards=True)
MODELS = {
    "rnnsearch": RNNsearchConfig(embedding=24, width=32, alignment=32, maxout=24),
    "luong": LuongConfig(layers=1, width=48, dropout=0.0),
}


def train_model(config, folder, steps):
    torch.manual_seed(1)
    model = config.build(Words(V), Words(V))
    settings = TrainConfig(steps=steps, validate_every=10_000, schedule=CosineDecay(lr=6e-3, warmup=10))
    train(Objective(model, NextToken(Words(V))), FEED, settings, folder)
    return model.eval()


@pytest.mark.parametrize(("name", "steps"), [("rnnsearch", 120), pytest.param("luong", 250, marks=pytest.mark.slow)])
def test_reversing_a_sentence_is_learned_and_attention_is_on_the_right_word(name, steps, tmp_path):
    model, right, aligned, total = train_model(MODELS[name], tmp_path, steps), 0, 0, 0
    for batch in FEED.valid_batches():
        B, source, target = len(batch), batch.source, batch.target
        found = search(model, source, Tokens.full(torch.full((B, 1), SOS)), Beam(1), torch.full((B,), 9))
        references = [tuple(row[1:n].tolist()) for row, n in zip(target.data, target.lengths, strict=True)]
        right += sum(h.tokens == w for (h,), w in zip(found, references, strict=True))
        for pairs, length in zip(align(model, source, target), source.lengths.tolist(), strict=True):
            aligned += sum(s == length - 1 - t for s, t in pairs if t < length)
            total += length
    assert right >= 0.9 * 64, right
    assert aligned >= 0.9 * total, aligned / total
