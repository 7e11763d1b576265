"""The contract of training, tested on every model of the zoo."""

import os
import signal
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
import torch
import torch.multiprocessing as mp
from torch.utils._pytree import tree_leaves

from regard.distributed import ProcessGroup
from regard.errors import Diverged, Interrupted, ModelError, Terminated
from regard.objective import Batch, NextToken, Objective, StatefulNextToken
from regard.sequence import Tokens
from regard.spaces import Words
from regard.tasks.copying import CopyTask
from regard.tasks.generate.loader import StreamLoader, empty_source
from regard.train import checkpoint
from regard.train.bptt_state import select_rank
from regard.train.config import TrainConfig
from regard.train.events import Skipped, Stepped
from regard.train.optim import SGD
from regard.train.schedule import Constant
from regard.train.trainer import Trainer, train
from regard.train.validation import validation_loss
from regard.train.weights import load_weights
from zoo import ZOO, V, build

FIRST = ("transformer", "gpt", "seq2seq", "rnnlm", "rnnsearch")
EVERY = [name if name in FIRST else pytest.param(name, marks=pytest.mark.slow) for name in ZOO]
"""the whole zoo; the fast suite takes the first of each family"""

HARD = TrainConfig(steps=8, accumulate=2, ema=0.9, validate_every=3, save_every=1, schedule=Constant(lr=1e-2))
"""all that a checkpoint must restore: dropout is on in the zoo's models, accumulation 2, averaged weights"""


def objective(name, smoothing=0.1):
    return Objective(build(name), NextToken(Words(V, smoothing)))


def digest(run):
    return checkpoint.newest(run).checkpoint.digest


@pytest.mark.parametrize("name", EVERY)
def test_same_seed_same_run_and_resume_equals_never_stopped(name, tmp_path):
    for run in ("a", "b"):
        train(objective(name), CopyTask(), HARD, tmp_path / run)
    assert digest(tmp_path / "a") == digest(tmp_path / "b")
    for steps in (1, 2, 5, 7, 8):  # a chain of stops
        train(objective(name), CopyTask(), replace(HARD, steps=steps), tmp_path / "c")
    # the planned number of steps and the last validation differ on the way, the run does not
    expected, found = (checkpoint.newest(tmp_path / r).checkpoint for r in ("a", "c"))
    for group in ("model", "trained", "optimizer"):
        for key, tensor in expected.tensors(group).items():
            assert torch.equal(tensor, found.tensors(group)[key]), f"{group} {key}"
    assert expected.state["position"] == found.state["position"]
    train(objective(name), CopyTask(), replace(HARD, steps=9), tmp_path / "d", seed=2)
    assert digest(tmp_path / "d") != digest(tmp_path / "a")


@pytest.mark.parametrize("name", ZOO)
def test_save_then_load_is_the_same_model(name, tmp_path):
    train(objective(name), CopyTask(), TrainConfig(steps=2), tmp_path)
    one, other = build(name), build(name)
    for model in (one, other):
        load_weights(model, checkpoint.newest(tmp_path).checkpoint.tensors("model"))
    source, target = ZOO[name].source(), Tokens.full(torch.full((3, 4), 5))
    assert torch.equal(one(source, target), other(source, target))
    assert not torch.equal(one(source, target), build(name)(source, target))
    ties = {id(p) for p in build(name).parameters()}
    assert len({id(p) for p in one.parameters()}) == len(ties)


def _deterministic(name):
    """The model without dropout: the draws of two processes differ from those of one."""
    model = build(name)
    for module in model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    return Objective(model, NextToken(Words(V, 0.1)))


SGD_CONFIG = TrainConfig(steps=4, accumulate=2, clip_norm=None, optimizer=SGD(), schedule=Constant(lr=0.1))


def _worker(rank, names, meeting, folder):
    os.environ |= {"RANK": str(rank), "WORLD_SIZE": "2", "REGARD_INIT_METHOD": f"file://{meeting}"}
    torch.set_num_threads(1)
    group = ProcessGroup.init()
    for name in names:
        loader = CopyTask(rows=3, group=group)  # 3 rows: the ranks have 2 and 1
        train(_deterministic(name), loader, SGD_CONFIG, Path(folder) / name, group)
    for steps in (
        *range(1, SGD_CONFIG.steps),
        SGD_CONFIG.steps,
    ):  # stopped after each step: what is carried on is read back
        train(_still_stream(), recited(group), replace(SGD_CONFIG, steps=steps), Path(folder) / "stream", group)
    group.close()


@pytest.fixture(scope="module")
def by_two(tmp_path_factory):
    folder = tmp_path_factory.mktemp("two")
    with tempfile.TemporaryDirectory() as meeting:
        mp.spawn(_worker, (list(ZOO), f"{meeting}/meeting", str(folder)), nprocs=2)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("name", ZOO)
def test_two_processes_equal_one(name, by_two, tmp_path):
    train(_deterministic(name), CopyTask(rows=3), SGD_CONFIG, tmp_path)
    one, two = (checkpoint.newest(r).checkpoint.tensors("model") for r in (tmp_path, by_two / name))
    for key, tensor in one.items():
        torch.testing.assert_close(two[key], tensor, rtol=1e-5, atol=1e-6, msg=lambda m, k=key: f"{k}: {m}")
    with pytest.raises(ModelError, match="was trained by 2 processes, this is 1; resume with --nproc 2"):
        train(_deterministic(name), CopyTask(rows=3), replace(SGD_CONFIG, steps=5), by_two / name)


def test_accumulated_batches_weigh_by_their_predictions(tmp_path):
    """A mean of means over batches of unequal size would be wrong."""
    loader = CopyTask(rows=3, max_length=6)
    batches = [next(loader.train_batches({"batch": i}))[0] for i in range(2)]
    one = Batch(
        Tokens.pad([r[:n] for b in batches for r, n in zip(b.source.data.tolist(), b.source.lengths, strict=True)]),
        Tokens.pad([r[:n] for b in batches for r, n in zip(b.target.data.tolist(), b.target.lengths, strict=True)]),
    )
    grads = []
    for steps in ([(b, {}) for b in batches], [(one, {})]):
        trainer = Trainer(_deterministic("transformer"), loader, SGD_CONFIG, tmp_path, ProcessGroup(), (), None, 1)
        trainer.step(steps)
        grads.append([g.clone() for g in trainer.flat.gradients()])
    for a, b in zip(*grads, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-6)


def _poisoned(model, at):
    seen = []

    def hook(module, args, out):
        seen.append(1)
        return out * float("nan") if len(seen) > at else out

    model.model.decoder.layers[1].cross.register_forward_hook(hook)
    return model


def test_nan_stops_before_the_update_and_names_the_module(tmp_path):
    config = TrainConfig(steps=9, save_every=1)
    with pytest.raises(Diverged) as error:
        train(_poisoned(objective("transformer"), 3), CopyTask(), config, tmp_path)
    saved = checkpoint.newest(tmp_path).checkpoint  # the weights of step 3 are those that gave NaN
    assert str(error.value) == (
        "training diverged at step 4: the loss or the gradient is NaN or infinite (first in decoder.layers.1.cross). "
        f"The last good checkpoint is {saved.path}, step 2; resume from it with a lower train.schedule.lr or "
        "train.clip_norm"
    )
    assert all(t.isfinite().all() for g in saved.groups for t in saved.tensors(g).values())


def test_nan_can_be_skipped(tmp_path):
    events = []
    model = objective("transformer")
    before = [p.clone() for p in model.parameters()]
    config = TrainConfig(steps=2, on_divergence="skip", validate_every=99)
    trainer = Trainer(_poisoned(model, 0), CopyTask(), config, tmp_path, ProcessGroup(), [events.append], None, 1)
    trainer.step([next(CopyTask().train_batches(None))])
    reason = "the loss or the gradient is NaN or infinite (first in decoder.layers.1.cross)"
    assert [e for e in events if isinstance(e, Skipped)] == [Skipped(1, reason)]
    assert all(torch.equal(a, b) for a, b in zip(before, model.parameters(), strict=True))


@pytest.mark.parametrize(
    "number, kind, word", [(signal.SIGINT, Interrupted, "interrupted"), (signal.SIGTERM, Terminated, "terminated")]
)
def test_a_signal_saves_and_stops_and_the_run_resumes_bit_for_bit(number, kind, word, tmp_path):
    def send(event):
        if isinstance(event, Stepped) and event.step == 3:
            os.kill(os.getpid(), number)

    config = TrainConfig(steps=6, validate_every=50)
    with pytest.raises(
        kind, match=f"{word} at step 3; the checkpoint is written, run the same command again to resume"
    ):
        train(objective("seq2seq"), CopyTask(), config, tmp_path / "a", listeners=[send])
    train(objective("seq2seq"), CopyTask(), config, tmp_path / "a")
    train(objective("seq2seq"), CopyTask(), config, tmp_path / "b")
    assert digest(tmp_path / "a") == digest(tmp_path / "b")


def test_early_stopping_and_the_plateau_follow_validation(tmp_path):
    scores = iter([3.0, 2.0, 2.5, 2.6, 2.7, 1.0])
    config = TrainConfig(steps=100, validate_every=1, patience=3)
    report = train(objective("seq2seq"), CopyTask(), config, tmp_path, validate=lambda: ({"loss": next(scores)}, ()))
    assert (report.step, report.reason, report.best) == (5, "early", {"loss": 2.0, "step": 2.0})
    assert checkpoint.best(tmp_path).step == 2


def test_a_budget_of_minutes_becomes_steps_once(tmp_path):
    config = TrainConfig(minutes=0.02, validate_every=10_000)
    train(objective("seq2seq"), CopyTask(), config, tmp_path)
    steps = checkpoint.newest(tmp_path).checkpoint.state["steps"]
    assert steps == checkpoint.newest(tmp_path).checkpoint.step > 1
    assert train(objective("seq2seq"), CopyTask(), config, tmp_path).step == steps


@pytest.mark.parametrize("name", EVERY)
def test_the_trainer_trains_it(name, tmp_path):
    events = []
    config = TrainConfig(steps=80, schedule=Constant(lr=1e-2), validate_every=1000)
    train(objective(name, 0.0), CopyTask(rows=32), config, tmp_path, listeners=[events.append])
    losses = [e.loss for e in events if isinstance(e, Stepped)]
    # a language model has no source to copy: it can only learn when sentences end
    factor = 0.8 if ZOO[name].source().data.shape[1] else 0.95
    assert sum(losses[-5:]) < factor * sum(losses[:5]), losses[::10]


# Streams: a batch goes on from the state in which the one before it stopped


TEXT = (torch.arange(150) * 7 % 11 % 4 + 4).numpy().astype("uint16")


def recited(group=None):
    """3 rows of 9 windows per epoch, so that 10 steps of 2 batches end in the third epoch."""
    return StreamLoader(TEXT[:120], TEXT[120:], window=4, rows=3, group=group or ProcessGroup())


def streaming(name="rnnlm"):
    return Objective(build(name), StatefulNextToken(Words(V, 0.1)))


def _still_stream():
    return Objective(_deterministic("rnnlm").model, StatefulNextToken(Words(V, 0.1)))


LONG = replace(HARD, steps=10, validate_every=4)


def test_a_stopped_stateful_run_resumes_bit_for_bit(tmp_path):
    for run in ("a", "b"):
        train(streaming(), recited(), LONG, tmp_path / run)
    assert digest(tmp_path / "a") == digest(tmp_path / "b")
    for steps in range(1, 11):
        train(streaming(), recited(), replace(LONG, steps=steps), tmp_path / "c")
    expected, found = (checkpoint.newest(tmp_path / r).checkpoint for r in ("a", "c"))
    assert set(expected.groups) == {"model", "trained", "optimizer", "hidden_state"}
    for group in expected.groups:
        for key, tensor in expected.tensors(group).items():
            assert torch.equal(tensor, found.tensors(group)[key]), f"{group} {key}"
    assert expected.state["position"] == found.state["position"] == {"epoch": 2, "batch": 2}


def test_resuming_without_the_hidden_state_would_give_another_run(tmp_path, monkeypatch):
    train(streaming(), recited(), LONG, tmp_path / "a")
    train(streaming(), recited(), replace(LONG, steps=5), tmp_path / "b")
    monkeypatch.setattr("regard.train.bptt_state.unpack", lambda tensors, like: None)
    train(streaming(), recited(), LONG, tmp_path / "b")
    assert digest(tmp_path / "a") != digest(tmp_path / "b")


def test_each_epoch_starts_with_a_fresh_state(tmp_path):
    trainer = Trainer(streaming(), recited(), LONG, tmp_path, ProcessGroup(), (), None, 1)
    trainer.hidden_state = trainer.hidden_state_after(None).map(lambda t: t * float("nan"))
    trainer.step(
        [next(recited().train_batches({"epoch": 1, "batch": 0}))]
    )  # otherwise the trainer would report a NaN loss
    assert all(t.isfinite().all() for t in tree_leaves(trainer.hidden_state) if torch.is_tensor(t))


def test_a_nan_hidden_state_is_detected_and_a_skipped_step_keeps_it(tmp_path):
    events, stream = [], recited().train_batches(None)
    trainer = Trainer(
        streaming(), recited(), replace(LONG, on_divergence="skip"), tmp_path, ProcessGroup(), [events.append], None, 1
    )
    trainer.step([next(stream), next(stream)])
    good = trainer.hidden_state
    trainer.hidden_state = bad = good.map(lambda t: t * float("nan") if t.is_floating_point() else t)
    trainer.step([next(stream), next(stream)])
    assert trainer.hidden_state is bad
    assert ["(first in decoder." in e.reason for e in events if isinstance(e, Skipped)] == [True]
    trainer.hidden_state = good
    trainer.step([next(stream), next(stream)])
    assert [e.step for e in events if isinstance(e, Stepped)] == [1, 3]


def _killed(folder):
    torch.set_num_threads(1)

    def die(event):
        if isinstance(event, Stepped) and event.step == 7:
            os.kill(os.getpid(), signal.SIGKILL)

    train(streaming(), recited(), replace(LONG, save_every=3), Path(folder), listeners=[die])


@pytest.mark.slow
def test_a_killed_stateful_run_resumes_bit_for_bit(tmp_path):
    config, threads = replace(LONG, save_every=3), torch.get_num_threads()
    process = mp.get_context("spawn").Process(target=_killed, args=(str(tmp_path / "killed"),))
    process.start()
    process.join(120)
    assert process.exitcode == -signal.SIGKILL
    assert checkpoint.newest(tmp_path / "killed").checkpoint.step == 6
    try:
        torch.set_num_threads(1)
        train(streaming(), recited(), config, tmp_path / "killed")
        train(streaming(), recited(), config, tmp_path / "whole")
    finally:
        torch.set_num_threads(threads)
    assert digest(tmp_path / "killed") == digest(tmp_path / "whole")


@pytest.mark.slow
def test_two_processes_have_the_hidden_states_of_one(by_two, tmp_path):
    train(_still_stream(), recited(), SGD_CONFIG, tmp_path)
    one, two = (checkpoint.newest(r).checkpoint for r in (tmp_path, by_two / "stream"))
    for key, tensor in one.tensors("model").items():
        torch.testing.assert_close(two.tensors("model")[key], tensor, rtol=1e-5, atol=1e-6)
    whole, parts = (select_rank(found.tensors("hidden_state"), 0) for found in (one, two))
    other = select_rank(two.tensors("hidden_state"), 1)
    for name, tensor in whole.items():
        if name != "plain":  # rows 0 and 2 are the first rank's, row 1 is the second's
            torch.testing.assert_close(parts[name], tensor[::2], rtol=1e-4, atol=1e-5)
            torch.testing.assert_close(other[name], tensor[1::2], rtol=1e-4, atol=1e-5)


def test_validation_is_stateful_too_and_starts_with_a_fresh_state(tmp_path):
    model, loader = streaming().eval(), recited()
    whole = Tokens.full(torch.from_numpy(TEXT[120:].astype("int64"))[None])
    found = validation_loss(model, replace(loader, rows=1), ProcessGroup())["loss"]
    with torch.no_grad():
        loss, _ = model(Batch(empty_source(1), whole))
    assert found == pytest.approx(float(loss.totals["next"]) / 29, rel=1e-5)
