"""The one trainer. It asks an objective for a Loss, not what it trains; it tells listeners, not the screen.

What a step does is a pure function of (recipe, seed, step): batches come by position, and the random numbers of
dropout are seeded anew at each step. So a checkpoint holds weights, the optimiser's memory, what a batch hands to the
next (the carry of truncated BPTT, each rank's own) and a few plain numbers, and a run that was stopped goes on bit for
bit.
"""

from __future__ import annotations

import copy
import math
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from regard.distributed import World
from regard.errors import Diverged, Interrupted, ModelError, RegardError, Terminated
from regard.metrics.score import FALLING
from regard.models.base import parameters
from regard.objective import Batch, Feed, Objective
from regard.train import bptt_state, checkpoint, checkpoint_store
from regard.train.compile import compile_layers
from regard.train.config import TrainConfig
from regard.train.control import BITS, REQUESTS, Control, Request
from regard.train.events import Began, Ended, Event, Listener, Saved, Skipped, Stepped, Validated
from regard.train.nan_guard import Signals, culprit
from regard.train.optim import Flat, optimizer_tensors, restore_optimizer
from regard.train.parallel import steady_memory
from regard.train.precision import Precision
from regard.train.schedule import drops
from regard.train.weights import load_weights, weights

Validate = Callable[[], tuple[Mapping[str, float], Sequence[Mapping[str, Any]]]]
"""Scores of the model as it is now, and sample outputs."""


@dataclass
class Progress:
    """Where a run is: everything but tensors that a checkpoint holds. Plain JSON.

    >>> Progress(steps=100).step
    0
    """

    steps: int
    """planned updates in all"""
    step: int = 0
    position: Mapping[str, int] | None = None
    best: dict[str, float] = field(default_factory=dict)
    stale: int = 0
    """validations since the best one"""
    drops: int = 0
    tokens: int = 0


@dataclass(frozen=True)
class Report:
    """How a run ended.

    >>> Report(step=100, reason="done", best={"loss": 2.0}).reason
    'done'
    """

    step: int
    reason: str
    best: Mapping[str, float]


def train(
    objective: Objective,
    feed: Feed,
    config: TrainConfig,
    run: Path,
    world: World = World(),  # noqa: B008
    listeners: Sequence[Listener] = (),
    validate: Validate | None = None,
    seed: int = 1,
) -> Report:
    """Train, or go on training, in the run directory `run`; `steps` of the config says when it is done.

    >>> import tempfile
    >>> from regard.models.seq2seq import Seq2SeqConfig
    >>> from regard.spaces import Words
    >>> from regard.objective import Continue
    >>> from regard.tasks.copying import Copying
    >>> model = Seq2SeqConfig(layers=1, width=8).build(Words(8), Words(8))
    >>> with tempfile.TemporaryDirectory() as run:
    ...     train(Objective(model, Continue(Words(8))), Copying(), TrainConfig(steps=3), Path(run)).reason
    'done'
    """
    steady_memory()
    trainer = Trainer(objective, feed, config, run, world, listeners, validate, seed)
    with Signals() as signals:
        return trainer.run_through(signals)


class Trainer:
    """One run of `train`: its parts, and what moves while it goes on."""

    def __init__(
        self,
        objective: Objective,
        feed: Feed,
        config: TrainConfig,
        run: Path,
        world: World,
        listeners: Sequence[Listener],
        validate: Validate | None,
        seed: int,
    ) -> None:
        self.objective, self.feed, self.config, self.run = objective, feed, config, run
        self.world, self.listeners, self.seed = world, listeners, seed
        self.validate = validate or (lambda: (surprise(objective, feed, world), ()))
        if config.compile:
            compile_layers(objective)
        self.flat = Flat(objective)
        self.optimizer = self.flat.optimizer(config.optimizer)
        self.epoch = feed.epoch()
        self.every = config.every or max(1, math.ceil(self.epoch / config.accumulate))
        self.ema = [w.clone() for w in self.flat.weights()] if config.ema else []
        self.carry: Any = None
        found = resumable(run, world)
        self.progress = self.restore(found.checkpoint) if found.checkpoint else Progress(self.planned())
        began = Began(self.progress.step, self.progress.steps, parameters(objective), found.refused)
        self.tell(began)

    def run_through(self, signals: Signals) -> Report:
        """The loop: batches, update, validation, checkpoint, and a look at who wants us to stop or to save."""
        progress, stream = self.progress, self.feed.stream(self.progress.position)
        control = Control(self.run, self.world.leads)
        while progress.step < progress.steps and not self.stuck():
            self.step([next(stream) for _ in range(self.config.accumulate)])
            last = progress.step >= progress.steps
            if last or progress.step % self.every == 0:
                self.check()
            elif self.config.save and progress.step % self.config.save == 0:
                self.save()
            caught, asked = divmod(self.world.any(BITS * signals.caught + control.asked()), BITS)
            if not last:  # else all is over and saved
                self.heed(caught, REQUESTS[asked - 1] if asked else None)
        reason = "done" if progress.step >= progress.steps else "early"
        self.tell(Ended(progress.step, reason, progress.best))
        return Report(progress.step, reason, progress.best)

    def step(self, taken: Sequence[tuple[Batch, Mapping[str, int]]]) -> None:
        """One update from some batches: the gradient of the loss per prediction, over all of them and all ranks."""
        began, number = time.perf_counter(), self.progress.step + 1
        batches = [batch for batch, _ in taken]
        counts = self.count(batches)
        torch.manual_seed(self.seed_of(number))
        value, after = self.gradients(batches, counts, self.carry)
        norm, loss = float(self.flat.norm()), float(self.world.sum({"loss": value})["loss"])
        self.progress.step, self.progress.position = number, taken[-1][1]
        if not math.isfinite(norm + loss):
            return self.not_a_number(batches)
        self.carry = after
        if self.config.clip and norm > self.config.clip:
            self.flat.scale(self.config.clip / norm)
        rate = self.config.schedule.rate(number, self.progress.steps, self.progress.drops)
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        self.optimizer.step()
        kept = min(self.config.ema, (1 + number) / (10 + number))  # else the first, random weights stay for long
        for mean, weight in zip(self.ema, self.flat.weights(), strict=bool(self.ema)):
            mean.lerp_(weight, 1 - kept)
        tokens = int(sum(float(c) for c in counts.values()))
        self.progress.tokens += tokens
        self.tell(Stepped(number, loss, rate, norm, tokens, time.perf_counter() - began))

    def gradients(self, batches: Sequence[Batch], counts: Mapping[str, Tensor], carry: Any) -> tuple[Tensor, Any]:
        """Gradients summed over batches and ranks, this rank's part of the loss, and what comes after goes on from."""
        value = torch.zeros((), dtype=torch.double)
        self.objective.train()
        self.flat.clear()
        with self.precision.around():
            for batch in batches:
                if len(batch):  # a batch with fewer rows than processes leaves some of them with none
                    with self.precision.inside():
                        loss, carry = self.objective(batch, carry)
                        part = loss.over(counts)
                    part.backward()
                    value += part.detach().double()
        for grad in self.flat.gradients():
            self.world.add_up(grad)
        return value, carry

    def count(self, batches: Sequence[Batch]) -> dict[str, Tensor]:
        counted = [self.objective.task.counts(batch) for batch in batches]
        return self.world.sum({name: torch.stack([c[name] for c in counted]).sum() for name in counted[0]})

    def seed_of(self, step: int) -> int:
        """The seed of a step's random numbers on this rank: nothing to remember, nothing to restore."""
        return int.from_bytes(blake2b(f"{self.seed} {step} {self.world.rank}".encode(), digest_size=7).digest())

    @property
    def precision(self) -> Precision:
        return Precision(self.config.precision, next(self.objective.parameters()).device.type)

    def not_a_number(self, batches: Sequence[Batch]) -> None:
        """Before the update: weights, the optimiser's memory and the carry are still good."""
        step = self.progress.step
        with self.precision.around(), self.precision.inside():
            name = culprit(self.objective, batches, self.seed_of(step), self.carry)
        if self.config.on_nan == "skip":
            return self.tell(Skipped(step, name))
        good = checkpoint.newest(self.run).checkpoint
        kept = f"last good checkpoint is {good.path}, step {good.step}" if good else "there is no checkpoint yet"
        raise Diverged(
            f"loss became NaN at step {step} (first bad: {name}); {kept}; "
            "try train.clip=1.0 or a lower train.schedule.lr"
        )

    def check(self) -> None:
        """Validate, remember the best, save."""
        progress = self.progress
        with self.averaged():
            self.objective.eval()
            metrics, samples = self.validate()
        value, before = metrics[self.config.select], progress.best.get(self.config.select)
        better = before is None or (value < before if self.config.select in FALLING else value > before)
        progress.stale = 0 if better else progress.stale + 1
        progress.drops = drops(self.config.schedule, progress.drops, progress.stale)
        if better:
            progress.best = {**metrics, "step": float(progress.step)}
        self.tell(Validated(progress.step, metrics, better, samples))
        self.save(best=better)

    def averaged(self) -> Swapped:
        """While inside, the model has its averaged weights, if the run averages."""
        return Swapped(list(self.flat.weights()), self.ema)

    def planned(self) -> int:
        """Updates in all; a budget of epochs or minutes is turned into steps once, here, and stored."""
        if self.config.minutes:
            return max(1, int(self.config.minutes * 60 / self.seconds_a_step()))
        if self.config.epochs:
            return max(1, math.ceil(self.epoch * self.config.epochs / self.config.accumulate))
        return self.config.steps or max(1, math.ceil(self.epoch * 10 / self.config.accumulate))

    def seconds_a_step(self) -> float:
        """Measured on real batches, forward, backward and the sum over ranks; nothing is learned from them."""
        stream, after, times = self.feed.stream(None), None, []
        for _ in range(12):
            began = time.perf_counter()
            batches = [next(stream)[0] for _ in range(self.config.accumulate)]
            _, after = self.gradients(batches, self.count(batches), after)
            times.append(time.perf_counter() - began)
        self.flat.clear()
        mean = sum(sorted(times[2:])[1:-1]) / (len(times) - 4)
        return float(self.world.sum({"seconds": torch.tensor(mean)})["seconds"]) / self.world.size

    def stuck(self) -> bool:
        return bool(self.config.patience) and self.progress.stale >= self.config.patience

    def save(self, best: bool = False) -> None:
        """Commit a checkpoint; the leader writes, the others hold the same but for their carry."""
        carried = bptt_state.gather(self.carry, self.world)
        if not self.world.leads:
            return
        groups: dict[str, Mapping[str, Tensor]] = {"optimizer": optimizer_tensors(self.optimizer)}
        if carried:
            groups["carry"] = carried
        if self.ema:
            groups["trained"] = weights(self.objective.model)
            with self.averaged():
                groups["model"] = copy.deepcopy(weights(self.objective.model))  # tied names stay one tensor
        else:
            groups["model"] = weights(self.objective.model)
        state = {**vars(self.progress), "processes": self.world.size, "threads": torch.get_num_threads()}
        path = checkpoint.save(self.run, self.progress.step, groups, state, keep=self.config.keep, best=best)
        self.tell(Saved(self.progress.step, path))

    def restore(self, found: checkpoint.Checkpoint) -> Progress:
        """Go on from a checkpoint: bit for bit, so with as many processes and threads as before."""
        state = dict(found.state)
        was = state.pop("processes"), state.pop("threads")
        if was[0] != self.world.size:
            raise ModelError(
                f"{found.path} was trained by {was[0]} processes, this is {self.world.size}; "
                f"go on with --nproc {was[0]}, or start anew with --fresh"
            )
        torch.set_num_threads(was[1])
        if self.ema:
            load_weights(self.objective.model, found.tensors("model"), str(found.path))
            for mean, weight in zip(self.ema, self.flat.weights(), strict=True):
                mean.copy_(weight)
        load_weights(self.objective.model, found.tensors("trained" if self.ema else "model"), str(found.path))
        restore_optimizer(self.optimizer, found.tensors("optimizer"))
        progress = Progress(**state)
        if not self.config.minutes:  # minutes were turned into steps once; the others may have been changed
            progress.steps = self.planned()
        if "carry" in found.groups:
            mine = bptt_state.of_rank(found.tensors("carry"), self.world.rank)
            self.carry = bptt_state.unpack(mine, self.carry_after(progress.position))
        return progress

    @torch.no_grad()
    def carry_after(self, position: Mapping[str, int] | None) -> Any:
        """What the batch at a position hands on: the shape that a restored carry must have."""
        batch, _ = next(self.feed.stream(position))
        with self.precision.around(), self.precision.inside():
            return self.objective(batch)[1] if len(batch) else None

    def heed(self, caught: int, asked: Request | None) -> None:
        """What a signal or the control file wants: all ranks know of it, and do the same."""
        if caught:
            self.stop(*(Interrupted, "interrupted") if caught == signal.SIGINT else (Terminated, "terminated"))
        elif asked == "stop":
            self.stop(Interrupted, "stopped")
        elif asked == "save":
            self.save()

    def stop(self, kind: type[RegardError], name: str) -> None:
        """Save, say so, and leave with the documented exit code."""
        self.save()
        step = self.progress.step
        self.tell(Ended(step, name, self.progress.best))
        raise kind(f"{name} at step {step}; the checkpoint is written, run the same command again to go on")

    def tell(self, event: Event) -> None:
        if self.world.leads:
            for listener in self.listeners:
                listener(event)


def resumable(run: Path, world: World) -> checkpoint.Found:
    """The newest good checkpoint to go on from; a run whose every checkpoint is damaged is not silently begun anew.

    >>> resumable(Path("nowhere"), World()).checkpoint is None
    True
    """
    found = checkpoint.newest(run)
    if found.refused and found.checkpoint is None:
        raise ModelError(f"{found.refused[0]}; no checkpoint of {run} is whole, start anew with --fresh")
    if found.refused and found.checkpoint and world.leads:
        checkpoint_store.discard_after(run, found.checkpoint.step)
    world.any(0)  # nobody reads on while the leader tidies up
    return found


@torch.no_grad()
def surprise(objective: Objective, feed: Feed, world: World) -> Mapping[str, float]:
    """Validation by loss and perplexity: the loss is not smoothed, and a stream starts from nothing.

    >>> from regard.models.seq2seq import Seq2SeqConfig
    >>> from regard.spaces import Words
    >>> from regard.objective import Continue
    >>> from regard.tasks.copying import Copying
    >>> model = Seq2SeqConfig(layers=1, width=8).build(Words(8), Words(8))
    >>> sorted(surprise(Objective(model, Continue(Words(8))).eval(), Copying(), World()))
    ['loss', 'ppl']
    """
    total, count, after = torch.zeros((), dtype=torch.double), torch.zeros((), dtype=torch.double), None
    for batch in feed.valid():
        if len(batch):
            loss, after = objective(batch, after)
            total += sum(t.double() for t in loss.totals.values())
            count += sum(objective.task.counts(batch).values())
    summed = world.sum({"total": total, "count": count})
    mean = float(summed["total"] / summed["count"].clamp(min=1))
    return {"loss": mean, "ppl": math.exp(min(mean, 700.0))}


class Swapped:
    """Two sets of weights that change places while inside; with nothing to swap, nothing happens."""

    def __init__(self, ours: list[Tensor], others: list[Tensor]) -> None:
        self.pairs = list(zip(ours, others, strict=bool(others)))

    def __enter__(self) -> None:
        self._swap()

    def __exit__(self, *_: object) -> None:
        self._swap()

    def _swap(self) -> None:
        for ours, other in self.pairs:
            kept = ours.clone()
            ours.copy_(other)
            other.copy_(kept)
