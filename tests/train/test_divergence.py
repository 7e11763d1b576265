"""The divergence rule on series of losses and norms, and what a run does when it diverges: stop, skip, roll back."""

from __future__ import annotations

import math
import os
import random
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.multiprocessing as mp

from regard.distributed import ProcessGroup
from regard.errors import ConfigError, DataError, Diverged, Interrupted
from regard.objective import NextToken, Objective, StatefulNextToken
from regard.run import Recipe, Run
from regard.spaces import Angles, Classes, Gaussian, Laplace, PointL1, Values, Words
from regard.tasks.copying import CopyTask
from regard.tasks.generate.loader import StreamLoader
from regard.train import checkpoint
from regard.train.config import TrainConfig
from regard.train.control import send_command
from regard.train.divergence import DivergenceRule, DivergenceState, has_diverged, mark_diverged
from regard.train.events import Ended, Event, MetricsFile, RolledBack, Skipped, Stepped, Validated
from regard.train.schedule import Constant
from regard.train.trainer import train
from zoo import V, build

RULE = DivergenceRule()


def stop_step(series: Iterable[tuple[float, float]], rule: DivergenceRule = RULE, clip: float | None = 1.0) -> int:
    """The step at which training would stop; 0 if it would not."""
    state = DivergenceState()
    for step, (loss, norm) in enumerate(series, 1):
        fault = rule.observe(state, step, loss, norm, clip)
        if fault is not None and fault.diverged:
            return step
    return 0


def falling(steps: int, first: float, last: float, noise: float = 0.1) -> list[tuple[float, float]]:
    """A healthy series: the loss falls from `first` to `last`, the gradient norm varies around 1."""
    draw = random.Random(1)
    shape = [last + (first - last) * math.exp(-5 * i / steps) for i in range(steps)]
    return [(loss * math.exp(draw.gauss(0, noise)), math.exp(draw.gauss(0, 0.5))) for loss in shape]


# The rule


@pytest.mark.parametrize("first, last", [(8.7, 1.5), (0.69, 0.01), (33.0, -40.0), (0.001, -6.0), (1000.0, 2.0)])
def test_a_falling_loss_is_no_fault(first: float, last: float) -> None:
    assert stop_step(falling(2000, first, last)) == 0


def test_single_spikes_of_loss_and_norm_do_not_stop_a_run() -> None:
    series = falling(2000, 8.7, 1.5)
    for step in range(50, 2000, 25):
        series[step] = (1e6, 1e9)
    assert stop_step(series) == 0


def test_half_of_the_last_twenty_steps_above_the_limit_stop_a_run() -> None:
    series = falling(500, 8.7, 1.5)
    burst = [(1e6, 1.0)] * 9
    assert stop_step([*series, *burst, *series[-20:], *burst, *series[-20:]]) == 0
    assert stop_step([*series, *burst, (1e6, 1.0)]) == 510
    every_other = [(1e6, 1.0), (2.0, 1.0)] * 20
    assert stop_step([*series, *every_other]) == 519


def test_an_explosion_in_the_first_steps_is_found_within_twelve() -> None:
    assert stop_step([(8.7, 2.0)] + [(447_620.0, 1.0)] * 50) == 11
    assert stop_step([(-5.0, 2.0)] + [(60.0, 1.0)] * 50) == 11
    assert stop_step([(-5.0, 2.0)] + [(44.0, 1.0)] * 50) == 0


def test_a_loss_that_jumps_and_falls_again_is_no_divergence() -> None:
    """The first steps of a forecaster that starts from a linear regression (tests/cli/test_cli_forecast.py)."""
    losses = [294.5, 100400.0, 68680.0, 34520.0, 18640.0, 12130.0, 13180.0, 13340.0, 9553.0, 7509.0, 3918.0, 4026.0]
    losses += [5347.0, 5422.0, 4439.0, 2444.0, 2006.0, 2278.0, 2296.0, 2633.0, 1432.0, 1861.0, 1503.0, 1160.0, 693.4]
    assert stop_step([(loss, 1e5) for loss in losses]) == 0
    assert stop_step([(loss, 1e5) for loss in losses[:11]] + [(3918.0, 1e5)] * 50) == 23  # it stays where it is


def test_a_density_that_finds_its_scale_in_the_first_twenty_steps_is_no_divergence() -> None:
    """A forecaster with a Gaussian head on a series without noise, at a rate of 0.003."""
    losses = [16.1, 534.0, 558.8, 739.6, 1002.0, 929.7, 701.9, 427.7, 468.6, 593.9, 335.3, 169.7, 245.3, 267.2, 161.5]
    losses += [153.3, 221.2, 141.9, 112.5, 102.0, 111.4, 65.1, 61.4, 65.8, 62.7]
    assert stop_step([(loss, 10.0) for loss in losses]) == 0
    assert stop_step([(16.1, 10.0)] * 20 + [(loss, 10.0) for loss in losses]) == 31  # later it is one


def test_only_a_loss_of_at_most_the_first_makes_earlier_weights_good() -> None:
    state = DivergenceState()
    for step, loss in enumerate([8.0, 7.0, 30.0, 8.0, 40.0, 50.0, 60.0, 1e6], 1):
        RULE.observe(state, step, loss, 1.0, 1.0)
        if step % 2 == 0:
            state.mark_checkpoint(step)
    # step 8 is the first fault; the loss of step 4 was computed by the weights of step 3
    assert (state.last_good_step, state.rollback_step) == (3, 2)


def test_a_loss_that_falls_slowly_is_found_and_the_good_checkpoint_is_from_before_it_rose() -> None:
    state, series = DivergenceState(), [(8.7, 1.0)] * 30 + [(1e15 * 0.75**i, 1.0) for i in range(200)]
    for step, (loss, norm) in enumerate(series, 1):
        fault = RULE.observe(state, step, loss, norm, 1.0)
        if step in (20, 25, 60, 70):  # checkpoints: two before it rose, two among bad steps
            state.mark_checkpoint(step)
        if fault is not None and fault.diverged:
            break
    assert (step, state.last_good_step, state.rollback_step) == (111, 29, 25)


def test_a_loss_that_grows_by_a_tenth_per_step_is_found() -> None:
    assert 0 < stop_step([(8.7 * 1.1**i, 1.0) for i in range(100)]) < 50


def test_the_norm_is_compared_with_its_running_mean_and_never_with_less_than_the_clipping() -> None:
    quiet = [(2.0, 1e-6)] * 300
    assert stop_step([*quiet, *[(2.0, 900.0)] * 50]) == 0
    assert stop_step([*quiet, *[(2.0, 1100.0)] * 50]) == 310
    assert stop_step([*quiet, *[(2.0, 1100.0)] * 50], clip=None) == 310
    assert stop_step([*quiet, *[(2.0, 1100.0)] * 50], clip=5.0) == 0
    slowly = [(2.0, 1.01**i) for i in range(2000)]  # a scale that shrinks for long: from 1 to 4e8
    assert stop_step(slowly) == 0


@pytest.mark.parametrize("bad", [(math.nan, 1.0), (2.0, math.nan), (math.inf, 1.0), (2.0, math.inf)])
def test_a_number_that_is_not_finite_stops_at_once(bad: tuple[float, float]) -> None:
    assert stop_step([(8.0, 1.0), (7.0, 1.0), bad]) == 3


def test_a_factor_of_0_turns_a_limit_off() -> None:
    exploded = [(2.0, 1.0), *[(1e9, 1e9)] * 50]
    assert stop_step(exploded, replace(RULE, loss_factor=0.0)) == 11  # by the norm
    assert stop_step(exploded, replace(RULE, loss_factor=0.0, norm_factor=0.0)) == 0
    assert stop_step([*exploded, (math.nan, 1.0)], replace(RULE, loss_factor=0.0, norm_factor=0.0)) == 52


def test_the_memory_of_the_rule_survives_json_and_is_bounded() -> None:
    state, other = DivergenceState(), DivergenceState()
    for step, (loss, norm) in enumerate([(8.7, 3.3), *[(1e6, 1e9), (2.0, 0.7)] * 4, *[(1.9, 1e-9)] * 300], 1):
        assert RULE.observe(state, step, loss, norm, 1.0) == RULE.observe(other, step, loss, norm, 1.0)
        stored = asdict(other)
        assert all(math.isfinite(value) for value in stored.values() if isinstance(value, float))
        other = DivergenceState(**stored)
    assert (state, len(state.faults)) == (other, 0)


@pytest.mark.parametrize(
    "setting, message",
    [
        ("steps=0", "steps = 0 must be at least 1"),
        ("lr_factor=0", "lr_factor = 0.0 must be above 0 and at most 1"),
        ("loss_factor=-1", "loss_factor = -1.0, norm_factor = 1000.0 and rollbacks = 3 must be at least 0"),
    ],
)
def test_settings_outside_their_range_are_refused(setting: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Recipe.read(None, ["data.kind=phrases", "model.kind=seq2seq", f"train.divergence.{setting}"])
    assert str(caught.value) == f"train.divergence: {message}"


SPACES = [Words(50), Classes(2), Values(3), PointL1(3), Gaussian(3), Laplace(3)]


def head_losses(space: Any, scale: float) -> list[tuple[float, float]]:
    """Loss and gradient norm of a head whose weights have this scale, on batches of four predictions."""
    torch.manual_seed(1)
    head, found = space.head(8), []
    for step in range(40):
        if step:  # the first loss is that of the untrained head
            torch.nn.init.normal_(head.weight, std=scale)
        target = torch.randint(1, space.size, (4,)) if isinstance(space, Classes) else torch.randn(4, 3)
        head.zero_grad()
        loss = space.loss(head(torch.randn(4, 8)), target) / 4
        loss.backward()
        found.append((float(loss.detach()), float(head.weight.grad.norm())))
    return found


@pytest.mark.parametrize("space", SPACES, ids=lambda space: type(space).__name__)
def test_weights_of_1000_are_found_in_every_output_space_and_weights_of_1_are_no_fault(space: Any) -> None:
    assert stop_step(head_losses(space, 0.3)) == 0
    assert 0 < stop_step(head_losses(space, 1000.0)) <= 20


def test_the_loss_of_angles_is_bounded_and_cannot_show_a_divergence() -> None:
    assert max(loss for loss, _ in head_losses(Angles(3), 1000.0)) <= 6.0


# Runs


def objective() -> Objective:
    return Objective(build("seq2seq"), NextToken(Words(V, 0.1)))


STABLE = TrainConfig(steps=12, save_every=2, validate_every=6, schedule=Constant(lr=1e-2))
SHORT = replace(STABLE, divergence=DivergenceRule(steps=2))


def explode(model: Objective, step: int, factor: float = 1e4) -> list[Callable[[Event], None]]:
    """Listeners that multiply the weights after the update of a step, as too high a learning rate would: once."""
    left = [step]

    def listener(event: Event) -> None:
        if isinstance(event, Stepped) and [event.step] == left:
            left.clear()
            with torch.no_grad():
                for parameter in model.parameters():
                    parameter.mul_(factor)

    return [listener]


def test_a_run_stops_before_the_update_and_its_last_good_checkpoint_is_kept(tmp_path: Path) -> None:
    events: list[Event] = []
    model = objective()
    train(objective(), CopyTask(), replace(SHORT, steps=4), tmp_path / "good")
    with pytest.raises(Diverged) as caught:
        train(model, CopyTask(), SHORT, tmp_path / "run", listeners=[*explode(model, 6), events.append])
    good, expected = newest(tmp_path / "run"), newest(tmp_path / "good")
    reached = [event for event in events if isinstance(event, Stepped)][-1]
    assert reached.step == 7  # 7 and 8 were too large, and 8 was not applied
    assert str(caught.value).startswith("training diverged at step 8: the loss is ")
    assert str(caught.value).endswith(
        f". The last good checkpoint is {good.path}, step 4; resume from it with a lower train.schedule.lr or "
        "train.clip_norm"
    )
    assert isinstance(events[-1], Ended) and events[-1].reason == "diverged"
    # the checkpoint of step 6 was written after the bad update: no recent loss showed it
    assert good.step == 4 and (tmp_path / "run/checkpoints/00000006").is_dir()
    for name, tensor in expected.tensors("model").items():
        assert torch.equal(tensor, good.tensors("model")[name])
    train(objective(), CopyTask(), SHORT, tmp_path / "run")
    train(objective(), CopyTask(), SHORT, tmp_path / "whole")
    assert newest(tmp_path / "run").digest == newest(tmp_path / "whole").digest


def test_a_best_validation_after_the_bad_update_is_the_best_of_the_run_no_more(tmp_path: Path) -> None:
    events: list[Event] = []
    model = objective()
    with pytest.raises(Diverged):  # step 6 is validated for the first time, with weights that no loss has shown yet
        train(model, CopyTask(), SHORT, tmp_path / "a", listeners=[*explode(model, 6), events.append])
    assert [event.best for event in events if isinstance(event, Validated)] == [True]
    assert checkpoint.best(tmp_path / "a") is None and events[-1] == Ended(8, "diverged", {})

    for keep, expected in ((9, 2), (2, None)):  # the best one before is kept, or was pruned
        model, run = objective(), tmp_path / f"{keep}"
        accuracies = iter([0.5, 0.4, 0.9, 0.3, 0.2])
        config = replace(SHORT, save_every=1, validate_every=2, best_metric="accuracy", keep_checkpoints=keep)
        with pytest.raises(Diverged):
            train(model, CopyTask(), config, run, listeners=explode(model, 6), validate=lambda: score(accuracies))  # noqa: B023
        best = checkpoint.best(run)
        assert (newest(run).step, best and best.step) == (5, expected)
        report = train(objective(), CopyTask(), replace(config, steps=7), run, validate=lambda: score(accuracies))  # noqa: B023
        assert report.best == ({"accuracy": 0.5, "step": 2.0} if expected else {"accuracy": 0.3, "step": 6.0})


def score(accuracies: Iterator[float]) -> Any:
    return {"accuracy": next(accuracies)}, ()


def test_a_validation_in_the_middle_of_an_explosion_is_not_the_best(tmp_path: Path) -> None:
    events: list[Event] = []
    model = objective()
    config = replace(STABLE, divergence=DivergenceRule(steps=5))
    with pytest.raises(Diverged, match="training diverged at step 9"):
        train(model, CopyTask(), config, tmp_path, listeners=[*explode(model, 4), events.append])
    assert [(event.step, event.best) for event in events if isinstance(event, Validated)] == [(6, False)]
    assert checkpoint.best(tmp_path) is None and newest(tmp_path).step == 2


def test_a_single_spike_does_not_keep_a_validation_from_being_the_best(tmp_path: Path) -> None:
    report = train(poison(objective(), [5], 1e9), CopyTask(), replace(STABLE, clip_norm=1e-3), tmp_path)
    assert report.best["step"] == 12.0 and newest(tmp_path).state["divergence"]["faults"] == [5]


def test_checkpoints_of_an_earlier_divergence_are_not_good(tmp_path: Path) -> None:
    model = objective()
    with pytest.raises(Diverged):
        train(model, CopyTask(), SHORT, tmp_path, listeners=explode(model, 6))
    assert newest(tmp_path).step == 4 and (tmp_path / "checkpoints/00000006").is_dir()
    model = objective()
    with pytest.raises(Diverged, match="00000004, step 4; resume"):  # it saves nothing before it diverges again
        config = replace(SHORT, save_every=99, validate_every=99)
        train(model, CopyTask(), config, tmp_path, listeners=explode(model, 8))


def newest(run: Path) -> checkpoint.Checkpoint:
    found = checkpoint.newest(run).checkpoint
    assert found is not None
    return found


def poison(model: Objective, numbers: Sequence[int], factor: float = math.nan) -> Objective:
    """The model with outputs that are multiplied by a factor in some of its training passes, counted from 1."""
    passes = [0]

    def hook(module: torch.nn.Module, args: Any, out: Any) -> Any:
        if not model.training or not torch.is_grad_enabled():
            return out
        passes[0] += 1
        return out * factor if passes[0] in numbers else out

    model.model.readout.register_forward_pre_hook(lambda module, args: tuple(hook(module, (), x) for x in args))
    return model


def test_skipping_leaves_out_single_steps_and_stops_when_they_last(tmp_path: Path) -> None:
    events: list[Event] = []
    config = replace(STABLE, on_divergence="skip")
    report = train(poison(objective(), [3, 7], 1e9), CopyTask(), config, tmp_path / "a", listeners=[events.append])
    assert report.step == 12
    assert [e.step for e in events if isinstance(e, Skipped)] == [3, 7]
    assert [e.step for e in events if isinstance(e, Stepped)] == [1, 2, 4, 5, 6, 8, 9, 10, 11, 12]
    with pytest.raises(Diverged, match="training diverged at step 5: the loss or the gradient is NaN or infinite"):
        train(poison(objective(), range(4, 99)), CopyTask(), replace(SHORT, on_divergence="skip"), tmp_path / "b")


ROLLBACK = replace(SHORT, steps=14, on_divergence="rollback")


def test_a_rollback_goes_on_from_the_good_checkpoint_after_the_batches_that_diverged(tmp_path: Path) -> None:
    events: list[Event] = []
    model = objective()
    listeners = [*explode(model, 6), events.append, MetricsFile(tmp_path, every=1)]
    report = train(model, CopyTask(), ROLLBACK, tmp_path, listeners=listeners)
    assert (report.step, report.reason) == (14, "done")
    (back,) = [event for event in events if isinstance(event, RolledBack)]
    assert (back.step, back.diverged_at, back.lr_factor) == (4, 8, 0.5)
    steps = [(event.step, event.rate) for event in events if isinstance(event, Stepped)]
    assert steps == [*[(i, 1e-2) for i in range(1, 8)], *[(i, 5e-3) for i in range(5, 15)]]
    saved = newest(tmp_path)
    assert saved.state["position"] == {"batch": 18}  # 4 of the batches were left out
    assert saved.state["divergence"]["rollbacks"] == 1
    rows = (tmp_path / "metrics.jsonl").read_text().splitlines()
    assert sum('"stepped"' in row for row in rows) == 14  # no step is there twice


def test_a_run_that_diverges_at_once_starts_again_from_its_initial_weights(tmp_path: Path) -> None:
    events: list[Event] = []
    config = replace(ROLLBACK, schedule=Constant(lr=1e4), divergence=DivergenceRule(steps=2, lr_factor=1e-6))
    assert train(objective(), CopyTask(), config, tmp_path, listeners=[events.append]).step == 14
    assert [event.step for event in events if isinstance(event, RolledBack)] == [0]


def test_a_run_stops_after_the_most_rollbacks(tmp_path: Path) -> None:
    events: list[Event] = []
    config = replace(ROLLBACK, schedule=Constant(lr=1e4), divergence=DivergenceRule(steps=2, rollbacks=2))
    with pytest.raises(Diverged, match=f"good checkpoint is {tmp_path}/checkpoints/00000000-3, step 0; resume from it"):
        train(objective(), CopyTask(), config, tmp_path, listeners=[events.append])
    assert [event.lr_factor for event in events if isinstance(event, RolledBack)] == [0.5, 0.25]


UNSTABLE = TrainConfig(
    steps=40, save_every=5, validate_every=20, schedule=Constant(lr=30.0), clip_norm=None, on_divergence="rollback",
    divergence=DivergenceRule(steps=2, loss_factor=1.0, lr_factor=0.1, rollbacks=4),
)  # fmt: skip
"""a run that diverges by itself, more than once, before its learning rate is low enough"""


def stop_at(run: Path, step: int) -> Callable[[Event], None]:
    def listener(event: Event) -> None:
        if isinstance(event, Stepped) and event.step == step:
            send_command(run, "stop")

    return listener


def parts(kind: str, group: ProcessGroup = ProcessGroup()) -> tuple[Objective, Any]:  # noqa: B008
    """A model and a loader; those of a stream have a hidden state that goes from batch to batch."""
    if kind == "batches":
        return objective(), CopyTask(group=group)
    text = (torch.arange(150) * 7 % 11 % 4 + 4).numpy().astype("uint16")
    loader = StreamLoader(text[:120], text[120:], window=4, rows=4, group=group)
    return Objective(build("rnnlm"), StatefulNextToken(Words(V, 0.1))), loader


@pytest.mark.parametrize("kind", ["batches", "stream"])
def test_a_run_that_is_stopped_before_and_after_rollbacks_equals_one_that_never_was(kind: str, tmp_path: Path) -> None:
    events: list[Event] = []
    train(*parts(kind), UNSTABLE, tmp_path / "whole", listeners=[events.append])
    rollbacks = [(event.step, event.diverged_at) for event in events if isinstance(event, RolledBack)]
    assert 0 < len(rollbacks) <= 4
    stops = 0
    for step in (1, 2, 3, 4, 6, 8, 11, 13, 17, 29):
        with suppress(Interrupted):
            train(*parts(kind), UNSTABLE, tmp_path / "run", listeners=[stop_at(tmp_path / "run", step)])
            continue
        stops += 1
    train(*parts(kind), UNSTABLE, tmp_path / "run")
    assert stops > 4
    whole, stopped = newest(tmp_path / "whole"), newest(tmp_path / "run")
    assert whole.state == stopped.state
    assert whole.digest == stopped.digest


def run_rank(rank: int, meeting: str, folder: str) -> None:
    os.environ |= {"RANK": str(rank), "WORLD_SIZE": "2", "REGARD_INIT_METHOD": f"file://{meeting}"}
    torch.set_num_threads(1)
    group, events = ProcessGroup.init(), []
    for kind in ("batches", "stream"):
        for steps in (7, 40):  # stopped once
            train(*parts(kind, group), replace(UNSTABLE, steps=steps), Path(folder) / kind, group, [events.append])
    config = replace(UNSTABLE, on_divergence="stop")
    try:
        train(*parts("batches", group), config, Path(folder) / "stop", group)
    except Diverged as error:
        (Path(folder) / f"message{rank}").write_text(str(error))
    found = [(event.step, event.diverged_at) for event in events if isinstance(event, RolledBack)]
    (Path(folder) / f"rollbacks{rank}").write_text(f"{len(found)}")
    group.close()


@pytest.mark.slow
def test_two_ranks_decide_the_same(tmp_path: Path) -> None:
    with tempfile.TemporaryDirectory() as meeting:
        mp.spawn(run_rank, (f"{meeting}/meeting", str(tmp_path)), nprocs=2)
    messages = [(tmp_path / f"message{rank}").read_text() for rank in range(2)]
    assert messages[0] == messages[1] and messages[0].startswith("training diverged at step ")
    assert int((tmp_path / "rollbacks0").read_text()) >= 2
    for kind in ("batches", "stream"):
        assert newest(tmp_path / kind).step == 40
        assert newest(tmp_path / kind).state["divergence"]["rollbacks"] > 0


SETTINGS = [
    "data.kind=phrases", "data.count=300", "text.vocab_size=200", "model.kind=seq2seq", "model.layers=1",
    "model.width=8", "train.steps=60", "train.save_every=5", "train.validate_every=60", "train.batch_tokens=256",
    "train.schedule.kind=constant", "train.divergence.loss_factor=0.5", "train.divergence.steps=2",
    "task.bleu_sentences=2",
]  # fmt: skip


def test_a_diverged_run_resumes_with_a_lower_rate_and_no_other_run_may_change_it(tmp_path: Path) -> None:
    run = Run(tmp_path / "run")
    wild, tame = ([*SETTINGS, f"train.schedule.lr={lr}"] for lr in ("1000", "1e-3"))
    with pytest.raises(Diverged):
        run.train(Recipe.read(None, [*wild, "train.schedule.warmup=3000"]))
    good = newest(run.path)
    assert has_diverged(run.path) and 0 < good.step < 40
    with pytest.raises(
        ConfigError, match=r"model.width was 8, is 16\. .* may change train.best_metric, train.clip_norm,"
    ):
        run.train(Recipe.read(None, [*tame, "model.width=16"]))
    assert run.train(Recipe.read(None, tame)).step == 60
    assert not has_diverged(run.path)
    with pytest.raises(ConfigError, match=r"train.schedule.lr was 0.001, is 0.002\. Use --out for a new run"):
        run.train(Recipe.read(None, [*tame, "train.schedule.lr=2e-3"]))


# Divergence that a validation shows first

AT_VALIDATION = "at the validation the weights or the loss are NaN or infinite"


def damage(model: Objective, step: int) -> list[Callable[[Event], None]]:
    """Listeners that make the weights infinite after the update of a step, as a rate of 1e37 would: once."""
    return explode(model, step, math.inf)


@pytest.mark.parametrize("mode", ["stop", "skip"])
def test_weights_that_a_validation_finds_infinite_end_a_run_at_its_last_good_checkpoint(
    mode: Any, tmp_path: Path
) -> None:
    events: list[Event] = []
    model = objective()
    with pytest.raises(Diverged) as caught:
        config = replace(SHORT, on_divergence=mode)
        train(model, CopyTask(), config, tmp_path, listeners=[*damage(model, 6), events.append])
    good = newest(tmp_path)
    assert str(caught.value) == (
        f"training diverged at step 6: {AT_VALIDATION}. The last good checkpoint is {good.path}, step 4; resume from "
        "it with a lower train.schedule.lr or train.clip_norm"
    )
    assert good.step == 4 and has_diverged(tmp_path) and not (tmp_path / "checkpoints/00000006").exists()
    assert isinstance(events[-1], Ended) and not any(isinstance(event, Validated) for event in events)


@pytest.mark.parametrize("step", [6, 14], ids=["in the middle", "at the last step"])
def test_weights_that_a_validation_finds_infinite_are_rolled_back(step: int, tmp_path: Path) -> None:
    events: list[Event] = []
    model = objective()
    report = train(model, CopyTask(), ROLLBACK, tmp_path, listeners=[*damage(model, step), events.append])
    assert (report.step, report.reason) == (14, "done")
    (back,) = [event for event in events if isinstance(event, RolledBack)]
    assert (back.step, back.diverged_at, back.reason) == (step - 2, step, AT_VALIDATION)
    assert newest(tmp_path).state["divergence"]["rollbacks"] == 1


def test_only_finite_numbers_are_the_best_of_a_run(tmp_path: Path) -> None:
    found = iter([(2.0, math.nan), (1.0, 5.0), (3.0, math.nan)])
    events: list[Event] = []

    def validate() -> Any:
        loss, accuracy = next(found)
        return {"loss": loss, "accuracy": accuracy, "other": math.inf}, ()

    config = replace(STABLE, steps=6, validate_every=2, best_metric="accuracy")
    report = train(objective(), CopyTask(), config, tmp_path, listeners=[events.append], validate=validate)
    assert report.best == {"loss": 1.0, "accuracy": 5.0, "step": 4.0}
    assert [event.best for event in events if isinstance(event, Validated)] == [False, True, False]
    assert newest(tmp_path).state["stale"] == 1


# Resuming after a divergence


def test_the_rate_may_be_changed_until_a_checkpoint_was_trained_with_it(tmp_path: Path) -> None:
    run = Run(tmp_path / "run")
    guesses = [Recipe.read(None, [*SETTINGS, "train.steps=10", f"train.schedule.lr={lr}"]) for lr in (1, 0.1, 0.01)]
    run.train(Recipe.read(None, [*SETTINGS, "train.steps=5", "train.schedule.lr=1e-3"]))
    mark_diverged(run.path, 7, "a test", "another")
    run.begin(guesses[0])  # and then preparation fails, or the process is killed

    def fail(event: Event) -> None:
        if isinstance(event, Stepped):
            raise DataError("the disk is gone")

    with pytest.raises(DataError):
        run.train(guesses[1], listeners=[fail])
    assert has_diverged(run.path)
    assert run.train(guesses[2]).step == 10
    assert not has_diverged(run.path)
    with pytest.raises(ConfigError, match=r"train.schedule.lr was 0.01, is 0.1\."):
        run.train(guesses[1])


def test_a_changed_schedule_is_not_lowered_by_earlier_rollbacks(tmp_path: Path) -> None:
    wild = replace(ROLLBACK, schedule=Constant(lr=1e4), divergence=DivergenceRule(steps=2, rollbacks=2))
    tame = replace(wild, schedule=Constant(lr=1e-2))
    with pytest.raises(Diverged):
        train(objective(), CopyTask(), wild, tmp_path)
    assert newest(tmp_path).state["divergence"]["rollbacks"] == 2
    with pytest.raises(Diverged, match="training diverged at step"):  # the same schedule: no rollback is left
        train(objective(), CopyTask(), wild, tmp_path)
    for step in (1, 3):  # stopped and resumed: the rate stays
        events: list[Event] = []
        with pytest.raises(Interrupted):
            train(objective(), CopyTask(), tame, tmp_path, listeners=[stop_at(tmp_path, step), events.append])
        assert {event.rate for event in events if isinstance(event, Stepped)} == {1e-2}
    model, events = objective(), []
    train(model, CopyTask(), tame, tmp_path, listeners=[*explode(model, 8), events.append])
    assert [event.lr_factor for event in events if isinstance(event, RolledBack)] == [0.5]
