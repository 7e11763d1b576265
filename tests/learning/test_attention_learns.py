"""Models that look back at their source learn to say a sentence backwards in seconds, and look where they should."""

import pytest
import torch

from regard.decode import Beam, align, search
from regard.models.luong import LuongConfig
from regard.models.rnnsearch import RNNsearchConfig
from regard.objective import Continue, Objective
from regard.sequence import SOS, Tokens
from regard.spaces import Words
from regard.tasks.copying import Copying
from regard.train.config import TrainConfig
from regard.train.schedule import Cosine
from regard.train.trainer import train

V = 12
FEED = Copying(size=V, rows=32, longest=6, backwards=True)
MODELS = {
    "rnnsearch": RNNsearchConfig(embedding=24, width=32, alignment=32, maxout=24),
    "luong": LuongConfig(layers=1, width=48, dropout=0.0),
}


def taught(config, folder, steps):
    torch.manual_seed(1)
    model = config.build(Words(V), Words(V))
    settings = TrainConfig(steps=steps, every=10_000, schedule=Cosine(lr=6e-3, warmup=10))
    train(Objective(model, Continue(Words(V))), FEED, settings, folder)
    return model.eval()


@pytest.mark.parametrize(("name", "steps"), [("rnnsearch", 120), pytest.param("luong", 250, marks=pytest.mark.slow)])
def test_a_sentence_is_said_backwards_and_each_word_looks_at_its_own(name, steps, tmp_path):
    model, right, looked, said = taught(MODELS[name], tmp_path, steps), 0, 0, 0
    for batch in FEED.valid():
        B, source, target = len(batch), batch.source, batch.target
        found = search(model, source, Tokens.full(torch.full((B, 1), SOS)), Beam(1), torch.full((B,), 9))
        wanted = [tuple(row[1:n].tolist()) for row, n in zip(target.data, target.lengths, strict=True)]
        right += sum(h.tokens == w for (h,), w in zip(found, wanted, strict=True))
        for pairs, length in zip(align(model, source, target), source.lengths.tolist(), strict=True):
            looked += sum(s == length - 1 - t for s, t in pairs if t < length)
            said += length
    assert right >= 0.9 * 64, right
    assert looked >= 0.9 * said, looked / said
