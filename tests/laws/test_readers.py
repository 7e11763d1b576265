"""The contract of classifiers and taggers, tested on every encoder of the zoo."""

from __future__ import annotations

import os
import tempfile
from dataclasses import replace
from itertools import cycle
from pathlib import Path

import pytest
import torch
import torch.multiprocessing as mp
from torch import nn

from regard.distributed import ProcessGroup
from regard.loss import chunked_loss
from regard.models.base import Classifier
from regard.nn.inference import optimize_for_inference
from regard.objective import Batch, Objective, PerSequence, PerToken
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
from zoo import READERS, READING, C, V, reader, single_row, text

close = {"atol": 1e-5, "rtol": 1e-5}
FIRST = ("lstm last", "convolution max", "transformer first", "mlp mean", "gru-deep each")
POOL_OF = dict(zip(READING, cycle(("last", "max", "mean", "first"))))
EVERY = [
    name if name in FIRST else pytest.param(name, marks=pytest.mark.slow)
    for name in READERS
    if name in FIRST or name.split()[1] in ("each", "vectors", POOL_OF[name.split()[0]])
]
"""for tests that train: every encoder as tagger and with one pool (pools have no weights); a few in the fast suite"""


@pytest.fixture(params=READERS)
def model(request):
    return reader(request.param)


def answers(model, source: Tokens) -> list[torch.Tensor]:
    """The features of each row: one vector, or one per real position."""
    found = model(source)
    if isinstance(model, Classifier):
        return list(found[:, None])
    return [row[:length] for row, length in zip(found, source.lengths.tolist(), strict=True)]


@torch.no_grad()
def test_padding_and_other_rows_change_nothing(model):
    batched = answers(model, text())
    for i in range(3):
        torch.testing.assert_close(answers(model, single_row(text(), i))[0], batched[i], **close)


@torch.no_grad()
def test_padding_is_never_seen(model):
    quiet = replace(text(), data=torch.cat([text().data, torch.zeros(3, 2, dtype=torch.long)], 1))
    noisy = replace(quiet, data=torch.where(quiet.mask, quiet.data, 5))
    for a, b in zip(answers(model, quiet), answers(model, noisy), strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=0)


@torch.no_grad()
def test_an_empty_source_gives_finite_numbers_independent_of_the_batch(model):
    batched = answers(model, Tokens.pad([[4, 5], [], [6]]))
    assert all(row.isfinite().all() for row in batched)
    torch.testing.assert_close(answers(model, Tokens.pad([[], []]))[0], batched[1], **close)


@torch.no_grad()
def test_the_first_and_last_word_change_the_output(model):
    plain, other = (answers(model, Tokens.pad([row]))[0] for row in ([4, 5, 6, 7, 5], [7, 5, 6, 7, 6]))
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
def test_an_optimized_model_gives_the_same_answers(model):
    for a, b in zip(answers(optimize_for_inference(model), text()), answers(model, text()), strict=True):
        torch.testing.assert_close(a, b, **close)


@torch.no_grad()
def test_an_encoder_declares_the_widths_of_its_states_and_final_states(model):
    memory = model.encoder(text())
    assert model.encoder.width == memory.states.data.shape[2] == model.readout.in_features
    assert model.encoder.final == tuple(tuple(part.shape[1] for part in layer) for layer in memory.final)


def make_batch(model) -> Batch:
    """A text with a class, or with a tag per token."""
    if isinstance(model, Classifier):
        return Batch(text(), torch.tensor([0, 2, 1]))
    return Batch(text(), Tokens.pad([[0, 1, 2, 0, 1], [2, 1, 0], [1]]))


def objective(name: str) -> Objective:
    model = reader(name)
    return Objective(model, PerSequence(Classes(C)) if isinstance(model, Classifier) else PerToken(Classes(C)))


@pytest.mark.parametrize("name", READERS)
def test_every_parameter_learns(name):
    """But the forward layer starts from a zero state, so its recurrent weights have no gradient at position 0."""
    both = objective(name).train()
    torch.manual_seed(0)
    loss, _ = both(make_batch(both.model))
    loss.mean(both.task.counts(make_batch(both.model))).backward()
    dead = [n for n, p in both.named_parameters() if p.grad is None or p.grad.abs().max() == 0]
    assert all(name.endswith(" first") and n.endswith("weight_hh_l0") and ".backward_layer." not in n for n in dead), (
        dead
    )


@pytest.mark.parametrize("name", READERS)
def test_the_loss_is_the_mean_nll_of_all_targets(name):
    both = objective(name).double()
    batch = make_batch(both.model)
    out = torch.cat([both.model.readout(row) for row in answers(both.model, batch.source)])
    expected = batch.target if torch.is_tensor(batch.target) else batch.target.data[batch.target.mask]
    loss, _ = both(batch)
    counts = both.task.counts(batch)
    torch.testing.assert_close(
        loss.mean(counts).double(), nn.functional.cross_entropy(out, expected), atol=1e-6, rtol=1e-6
    )
    chunked = chunked_loss(
        both.model.readout, Classes(C).loss, torch.cat(answers(both.model, batch.source)), expected, 2
    )
    torch.testing.assert_close(chunked.double(), nn.functional.cross_entropy(out, expected, reduction="sum"))


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
    """Texts whose class is that of their first word; per token, the class of the word."""

    def __init__(self, whole: bool, rows: int = 16, group: ProcessGroup | None = None) -> None:
        self.whole, self.rows, self.group = whole, rows, group or ProcessGroup()

    def batch(self, number: int) -> Batch:
        draw = torch.Generator().manual_seed(1000 + number)
        rows = [
            torch.randint(4, V, (int(torch.randint(1, 6, (1,), generator=draw)),), generator=draw).tolist()
            for _ in range(self.rows)
        ][self.group.rank :: self.group.size]
        if self.whole:
            return Batch(Tokens.pad(rows), torch.tensor([(row[0] - 4) % C for row in rows]))
        return Batch(Tokens.pad(rows), Tokens.pad([[(word - 4) % C for word in row] for row in rows]))

    def train_batches(self, position):
        number = (position or {"batch": 0})["batch"]
        while True:
            yield self.batch(number), {"batch": number + 1}
            number += 1

    def valid_batches(self):
        yield self.batch(-1)

    def batches_per_epoch(self):
        return 5


def loader(name: str, rows: int = 16, group: ProcessGroup | None = None) -> Firsts:
    return Firsts(isinstance(reader(name), Classifier), rows, group)


HARD = TrainConfig(steps=6, accumulate=2, ema=0.9, validate_every=3, save_every=1, schedule=Constant(lr=1e-2))


@pytest.mark.parametrize("name", EVERY)
def test_same_seed_same_run_and_resume_equals_never_stopped(name, tmp_path):
    for run in ("a", "b"):
        train(objective(name), loader(name), HARD, tmp_path / run)
    expected, again = (checkpoint.newest(tmp_path / r).checkpoint for r in ("a", "b"))
    assert expected.digest == again.digest
    for steps in (1, 4, 6):  # a chain of stops
        train(objective(name), loader(name), replace(HARD, steps=steps), tmp_path / "c")
    found = checkpoint.newest(tmp_path / "c").checkpoint
    for group in ("model", "trained", "optimizer"):
        for key, tensor in expected.tensors(group).items():
            assert torch.equal(tensor, found.tensors(group)[key]), f"{group} {key}"


@pytest.mark.parametrize("name", EVERY)
def test_save_then_load_is_the_same_model(name, tmp_path):
    train(objective(name), loader(name), TrainConfig(steps=2), tmp_path)
    one, other = reader(name), reader(name)
    for model in (one, other):
        load_weights(model, checkpoint.newest(tmp_path).checkpoint.tensors("model"))
    assert torch.equal(one(text()), other(text()))
    assert not torch.equal(one(text()), reader(name)(text()))


@pytest.mark.parametrize("name", EVERY)
def test_the_trainer_trains_it(name, tmp_path):
    events = []
    config = TrainConfig(steps=60, schedule=Constant(lr=1e-2), validate_every=1000)
    train(objective(name), loader(name, 32), config, tmp_path, listeners=[events.append])
    losses = [event.loss for event in events if isinstance(event, Stepped)]
    # the last position depends on the first word only if it is the first
    least = 0.97 if name == "mlp last" else 0.9
    assert sum(losses[-20:]) / 20 < least * sum(losses[:5]) / 5, losses[::10]


def _deterministic(name):
    """Without dropout: the draws of two processes differ from those of one."""
    both = objective(name)
    for module in both.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0
    return both


SGD_CONFIG = TrainConfig(steps=3, accumulate=2, clip_norm=None, optimizer=SGD(), schedule=Constant(lr=0.1))


def _worker(rank, names, meeting, folder):
    os.environ |= {"RANK": str(rank), "WORLD_SIZE": "2", "REGARD_INIT_METHOD": f"file://{meeting}"}
    torch.set_num_threads(1)
    group = ProcessGroup.init()
    for name in names:
        train(
            _deterministic(name), loader(name, 3, group), SGD_CONFIG, Path(folder) / name, group
        )  # the ranks have 2 rows and 1
    group.close()


@pytest.fixture(scope="module")
def by_two(tmp_path_factory):
    folder = tmp_path_factory.mktemp("two")
    with tempfile.TemporaryDirectory() as meeting:
        mp.spawn(_worker, (list(READERS), f"{meeting}/meeting", str(folder)), nprocs=2)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("name", READERS)
def test_two_processes_equal_one(name, by_two, tmp_path):
    train(_deterministic(name), loader(name, 3), SGD_CONFIG, tmp_path)
    one, two = (checkpoint.newest(r).checkpoint.tensors("model") for r in (tmp_path, by_two / name))
    for key, tensor in one.items():
        torch.testing.assert_close(two[key], tensor, rtol=1e-5, atol=1e-6, msg=lambda m, k=key: f"{k}: {m}")
