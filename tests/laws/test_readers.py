"""Laws of every model that answers about a source, for the whole or at each place, stated once."""

from __future__ import annotations

import os
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
import torch
import torch.multiprocessing as mp
from torch import nn

from regard.distributed import World
from regard.loss import projected
from regard.models.base import Classifier
from regard.nn.inference import prepare
from regard.objective import Batch, Each, Objective, Whole
from regard.sequence import Tokens
from regard.spaces import Classes
from regard.trace import record
from regard.train import checkpoint
from regard.train.config import TrainConfig
from regard.train.events import Stepped
from regard.train.optim import SGD
from regard.train.schedule import Constant
from regard.train.trainer import train
from regard.train.weights import load_weights
from zoo import READERS, C, V, alone, reader, text

close = {"atol": 1e-5, "rtol": 1e-5}
FIRST = ("lstm last", "convolution max", "transformer first", "mlp mean", "gru-deep each")
EVERY = [name if name in FIRST else pytest.param(name, marks=pytest.mark.slow) for name in READERS]
"""All of them; the fast suite takes the first of each family through what takes long."""


@pytest.fixture(params=READERS)
def model(request):
    return reader(request.param)


def answers(model, source: Tokens) -> list[torch.Tensor]:
    """Of each row the features that answer: one vector, or one a real place."""
    found = model(source)
    if isinstance(model, Classifier):
        return list(found[:, None])
    return [row[:length] for row, length in zip(found, source.lengths.tolist(), strict=True)]


@torch.no_grad()
def test_padding_and_neighbours_change_nothing(model):
    together = answers(model, text())
    for i in range(3):
        torch.testing.assert_close(answers(model, alone(text(), i))[0], together[i], **close)


@torch.no_grad()
def test_what_stands_in_padding_is_never_seen(model):
    quiet = replace(text(), data=torch.cat([text().data, torch.zeros(3, 2, dtype=torch.long)], 1))
    noisy = replace(quiet, data=torch.where(quiet.mask, quiet.data, 5))
    for a, b in zip(answers(model, quiet), answers(model, noisy), strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=0)


@torch.no_grad()
def test_an_empty_source_gives_numbers_and_the_same_ones_whoever_stands_beside_it(model):
    together = answers(model, Tokens.of([[4, 5], [], [6]]))
    assert all(row.isfinite().all() for row in together)
    torch.testing.assert_close(answers(model, Tokens.of([[], []]))[0], together[1], **close)


@torch.no_grad()
def test_another_first_and_last_word_is_another_answer(model):
    plain, other = (answers(model, Tokens.of([row]))[0] for row in ([4, 5, 6, 7, 5], [7, 5, 6, 7, 6]))
    assert not torch.allclose(plain, other)


@torch.no_grad()
def test_recording_changes_nothing_and_weights_sum_to_one(model):
    plain = answers(model, text())
    with record(model, replace={"*": lambda t: t.clone()}) as trace:
        watched = answers(model, text())
    for a, b in zip(plain, watched, strict=True):
        torch.testing.assert_close(a, b, **close)
    assert trace.records
    for r in trace.find("*.weights"):
        torch.testing.assert_close(r.data.sum(-1), torch.ones(r.data.shape[:-1]))


@torch.no_grad()
def test_what_is_made_ready_for_use_answers_the_same(model):
    for a, b in zip(answers(prepare(model), text()), answers(model, text()), strict=True):
        torch.testing.assert_close(a, b, **close)


@torch.no_grad()
def test_an_encoder_says_how_wide_its_states_are_and_what_it_hands_on(model):
    memory = model.encoder(text())
    assert model.encoder.width == memory.states.data.shape[2] == model.readout.in_features
    assert model.encoder.final == tuple(tuple(part.shape[1] for part in layer) for layer in memory.final)


def asked(model) -> Batch:
    """A text for a classifier, or with a tag for each of its places."""
    if isinstance(model, Classifier):
        return Batch(text(), torch.tensor([0, 2, 1]))
    return Batch(text(), Tokens.of([[0, 1, 2, 0, 1], [2, 1, 0], [1]]))


def objective(name: str) -> Objective:
    model = reader(name)
    return Objective(model, Whole(Classes(C)) if isinstance(model, Classifier) else Each(Classes(C)))


@pytest.mark.parametrize("name", READERS)
def test_every_parameter_learns(name):
    """But the way onwards comes to the first place from zeros, so what it makes of a state has no gradient there."""
    both = objective(name).train()
    torch.manual_seed(0)
    loss, _ = both(asked(both.model))
    loss.over(both.task.counts(asked(both.model))).backward()
    dead = [n for n, p in both.named_parameters() if p.grad is None or p.grad.abs().max() == 0]
    assert all(name.endswith(" first") and n.endswith("weight_hh_l0") and ".back." not in n for n in dead), dead


@pytest.mark.parametrize("name", READERS)
def test_the_loss_is_the_mean_surprise_of_all_that_is_asked(name):
    both = objective(name).double()
    batch = asked(both.model)
    out = torch.cat([both.model.readout(row) for row in answers(both.model, batch.source)])
    wanted = batch.target if torch.is_tensor(batch.target) else batch.target.data[batch.target.mask]
    loss, _ = both(batch)
    counts = both.task.counts(batch)
    torch.testing.assert_close(
        loss.over(counts).double(), nn.functional.cross_entropy(out, wanted), atol=1e-6, rtol=1e-6
    )
    chunked = projected(both.model.readout, Classes(C).loss, torch.cat(answers(both.model, batch.source)), wanted, 2)
    torch.testing.assert_close(chunked.double(), nn.functional.cross_entropy(out, wanted, reduction="sum"))


@pytest.mark.parametrize("name", READERS)
def test_every_model_runs_on_the_meta_device(name):
    with torch.device("meta"):
        model, source = reader(name), Tokens.full(torch.zeros(3, 5, dtype=torch.long))
        features = model(source)
    assert model.readout(features).is_meta
    assert model.readout(features).shape == ((3, C) if isinstance(model, Classifier) else (3, 5, C))


@pytest.mark.parametrize("name", READERS)
def test_same_seed_same_model(name):
    one, other = reader(name), reader(name)
    assert all(torch.equal(a, b) for a, b in zip(one.parameters(), other.parameters(), strict=True))


# Training: which word comes first, or which word this is


class Firsts:
    """Texts whose answer is their first word's class; at each place, the class of the word that stands there."""

    def __init__(self, whole: bool, rows: int = 16, world: World | None = None) -> None:
        self.whole, self.rows, self.world = whole, rows, world or World()

    def batch(self, number: int) -> Batch:
        draw = torch.Generator().manual_seed(1000 + number)
        rows = [
            torch.randint(4, V, (int(torch.randint(1, 6, (1,), generator=draw)),), generator=draw).tolist()
            for _ in range(self.rows)
        ][self.world.rank :: self.world.size]
        if self.whole:
            return Batch(Tokens.of(rows), torch.tensor([(row[0] - 4) % C for row in rows]))
        return Batch(Tokens.of(rows), Tokens.of([[(word - 4) % C for word in row] for row in rows]))

    def stream(self, position):
        number = (position or {"batch": 0})["batch"]
        while True:
            yield self.batch(number), {"batch": number + 1}
            number += 1

    def valid(self):
        yield self.batch(-1)

    def epoch(self):
        return 5


def feed(name: str, rows: int = 16, world: World | None = None) -> Firsts:
    return Firsts(isinstance(reader(name), Classifier), rows, world)


HARD = TrainConfig(steps=6, accumulate=2, ema=0.9, every=3, save=1, schedule=Constant(lr=1e-2))


@pytest.mark.parametrize("name", EVERY)
def test_same_seed_same_run_and_resume_equals_never_stopped(name, tmp_path):
    for run in ("a", "b"):
        train(objective(name), feed(name), HARD, tmp_path / run)
    wanted, again = (checkpoint.newest(tmp_path / r).checkpoint for r in ("a", "b"))
    assert wanted.digest == again.digest
    for steps in (1, 4, 6):  # a chain of stops
        train(objective(name), feed(name), replace(HARD, steps=steps), tmp_path / "c")
    found = checkpoint.newest(tmp_path / "c").checkpoint
    for group in ("model", "trained", "optimizer"):
        for key, tensor in wanted.tensors(group).items():
            assert torch.equal(tensor, found.tensors(group)[key]), f"{group} {key}"


@pytest.mark.parametrize("name", EVERY)
def test_save_then_load_is_the_same_model(name, tmp_path):
    train(objective(name), feed(name), TrainConfig(steps=2), tmp_path)
    one, other = reader(name), reader(name)
    for model in (one, other):
        load_weights(model, checkpoint.newest(tmp_path).checkpoint.tensors("model"))
    assert torch.equal(one(text()), other(text()))
    assert not torch.equal(one(text()), reader(name)(text()))


@pytest.mark.parametrize("name", EVERY)
def test_the_one_trainer_teaches_it(name, tmp_path):
    events = []
    config = TrainConfig(steps=60, schedule=Constant(lr=1e-2), every=1000)
    train(objective(name), feed(name, 32), config, tmp_path, listeners=[events.append])
    losses = [event.loss for event in events if isinstance(event, Stepped)]
    # the last place alone tells of the first word only where the two are one
    least = 0.97 if name == "mlp last" else 0.9
    assert sum(losses[-20:]) / 20 < least * sum(losses[:5]) / 5, losses[::10]


def _still(name):
    """Without dropout: what two processes draw differs from what one draws."""
    both = objective(name)
    for module in both.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0
    return both


STILL = TrainConfig(steps=3, accumulate=2, clip=None, optimizer=SGD(), schedule=Constant(lr=0.1))


def _worker(rank, names, meeting, folder):
    os.environ |= {"RANK": str(rank), "WORLD_SIZE": "2", "REGARD_MEETING": f"file://{meeting}"}
    torch.set_num_threads(1)
    world = World.join()
    for name in names:
        train(_still(name), feed(name, 3, world), STILL, Path(folder) / name, world)  # the ranks have 2 rows and 1
    world.leave()


@pytest.fixture(scope="module")
def by_two(tmp_path_factory):
    folder = tmp_path_factory.mktemp("two")
    with tempfile.TemporaryDirectory() as meeting:
        mp.spawn(_worker, (list(READERS), f"{meeting}/meeting", str(folder)), nprocs=2)
    return folder


@pytest.mark.slow
@pytest.mark.xdist_group("two-readers")
@pytest.mark.parametrize("name", READERS)
def test_two_processes_equal_one(name, by_two, tmp_path):
    train(_still(name), feed(name, 3), STILL, tmp_path)
    one, two = (checkpoint.newest(r).checkpoint.tensors("model") for r in (tmp_path, by_two / name))
    for key, tensor in one.items():
        torch.testing.assert_close(two[key], tensor, rtol=1e-5, atol=1e-6, msg=lambda m, k=key: f"{k}: {m}")
