"""Training loop: update, validate, checkpoint, stop. It asks an objective for a loss and sends events to listeners.

A step is a pure function of (recipe, seed, step): batches are addressed by position, and the random generator is
reseeded at each step. So a checkpoint holds the weights, the optimizer state, the hidden state of truncated BPTT (one
per rank) and a few plain numbers, and a stopped run resumes bit for bit.
"""

from __future__ import annotations

import copy
import math
import signal
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, replace
from hashlib import blake2b
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from regard.device import default_threads, describe_device, resolve_device, seed_device, widest_float
from regard.distributed import ProcessGroup
from regard.errors import Diverged, Interrupted, ModelError, RegardError, Terminated
from regard.metrics.score import LOWER_IS_BETTER
from regard.models.base import parameters
from regard.objective import Batch, Loader, Objective
from regard.run_lock import RunLock
from regard.train import bptt_state, checkpoint, checkpoint_store
from regard.train.compile import compile_layers
from regard.train.config import TrainConfig
from regard.train.control import COMMANDS, RADIX, Command, Control
from regard.train.divergence import (
    DivergenceState,
    Fault,
    adapt_to_resumption,
    advice,
    clear_diverged,
    first_nonfinite,
    last_good_checkpoint,
    mark_diverged,
)
from regard.train.events import Began, Ended, Event, Listener, RolledBack, Saved, Skipped, Stepped, Validated
from regard.train.optim import FlatParameters, optimizer_tensors, restore_optimizer, set_learning_rate
from regard.train.parallel import tune_malloc
from regard.train.parameter_patterns import freeze_parameters, rate_multipliers
from regard.train.precision import Precision
from regard.train.schedule import count_drops, rate_setting
from regard.train.signals import SignalFlag
from regard.train.state import TrainReport, TrainState
from regard.train.validation import NonfiniteValidation, Validate, validate_finite, validation_loss
from regard.train.weights import load_weights, weights


def train(
    objective: Objective,
    loader: Loader,
    config: TrainConfig,
    run: Path,
    group: ProcessGroup = ProcessGroup(),  # noqa: B008
    listeners: Sequence[Listener] = (),
    validate: Validate | None = None,
    seed: int = 1,
) -> TrainReport:
    """Train in the run directory `run`, or resume from its newest good checkpoint."""
    tune_malloc()
    with RunLock(run) if group.is_main else nullcontext():
        trainer = Trainer(objective, loader, config, run, group, listeners, validate, seed)
        with SignalFlag() as signals:
            return trainer.fit(signals)


class Trainer:
    """One call of `train`: model, optimizer, loader and state."""

    def __init__(
        self,
        objective: Objective,
        loader: Loader,
        config: TrainConfig,
        run: Path,
        group: ProcessGroup,
        listeners: Sequence[Listener],
        validate: Validate | None,
        seed: int,
    ) -> None:
        self.objective, self.loader, self.config, self.run = objective, loader, config, run
        self.group, self.listeners, self.seed = group, listeners, seed
        found = find_resumable(run, group)
        before = str(found.checkpoint.state.get("device", "cpu")) if found.checkpoint else None
        self.device = resolve_device(config.device, group.size, before)
        if self.device.type == "cuda":
            torch.cuda.set_device(self.device)  # NCCL takes the current device
        objective.to(self.device).train()
        torch.set_num_threads(config.threads or default_threads(parameters(objective), training=True))
        self.validate = validate or (lambda: (validation_loss(objective, loader, group), ()))
        if config.compile:
            compile_layers(objective)
        freeze_parameters(objective.model, config.freeze)
        self.flat = FlatParameters(objective, rate_multipliers(objective.model, config.rates, config.layer_decay))
        self.optimizer = self.flat.optimizer(config.optimizer)
        self.batches_per_epoch = loader.batches_per_epoch()
        self.validate_every = config.validate_every or max(1, math.ceil(self.batches_per_epoch / config.accumulate))
        self.ema = [w.clone() for w in self.flat.weights()] if config.ema else []
        self.hidden_state: Any = None
        self.state = self.restore(found.checkpoint) if found.checkpoint else TrainState(self.planned_steps())
        adapt_to_resumption(run, self.state.divergence, self.state.step, repr(config.schedule))
        moved_from = before if before not in (None, self.device.type) else None
        began = Began(self.state.step, self.state.steps, parameters(objective), found.refused, moved_from=moved_from)
        smoothing = float(getattr(objective.task.space, "smoothing", 0.0))
        self.notify(replace(began, device=describe_device(self.device), label_smoothing=smoothing))

    def fit(self, signals: SignalFlag) -> TrainReport:
        """The training loop: update, validate or save, then handle signals and the control file."""
        control = Control(self.run, self.group.is_main)
        if self.config.on_divergence == "rollback" and self.state.step == 0 and self.state.divergence.latest is None:
            self.save(planned=True)
        self.stream = self.loader.train_batches(self.state.position)
        while (state := self.state).step < state.steps and not self.out_of_patience():
            self.step([next(self.stream) for _ in range(self.config.accumulate)])
            if self.state is not state:
                continue  # rolled back
            last = state.step >= state.steps
            if last or state.step % self.validate_every == 0:
                self.validate_and_save()
            elif self.config.save_every and state.step % self.config.save_every == 0:
                self.save(planned=True)
            if self.state is not state:
                continue  # rolled back by the validation
            caught, number = divmod(self.group.max_over_ranks(RADIX * signals.caught + control.poll()), RADIX)
            if not last:  # the last step is saved already
                self.obey(caught, COMMANDS[number - 1] if number else None)
        reason = "done" if state.step >= state.steps else "early"
        self.notify(Ended(state.step, reason, state.best))
        return TrainReport(state.step, reason, state.best)

    def step(self, accumulated: Sequence[tuple[Batch, Mapping[str, int]]]) -> None:
        """One update: the gradient of the mean loss per prediction over all accumulated batches and all ranks."""
        started, number, batches = time.perf_counter(), self.state.step + 1, [batch for batch, _ in accumulated]
        counts = self.count_predictions(batches)
        seed_device(self.device, self.step_seed(number))
        value, hidden_state = self.gradients(batches, counts, self.hidden_state)
        loss, norm = self.loss_and_norm(value)
        self.state.step, self.state.position = number, accumulated[-1][1]
        fault = self.config.divergence.observe(self.state.divergence, number, loss, norm, self.config.clip_norm)
        if fault and (fault.diverged or self.config.on_divergence == "skip"):
            return self.handle_divergence(fault, batches)
        self.hidden_state = hidden_state
        if self.config.clip_norm and norm > self.config.clip_norm:
            self.flat.scale_gradients(self.config.clip_norm / norm)
        rate = self.rate(number)
        set_learning_rate(self.optimizer, rate)
        self.optimizer.step()
        decay = min(self.config.ema, (1 + number) / (10 + number))  # forgets the random initial weights quickly
        for mean, weight in zip(self.ema, self.flat.weights(), strict=bool(self.ema)):
            mean.lerp_(weight, 1 - decay)
        tokens = int(sum(float(c) for c in counts.values()))
        self.state.tokens += tokens
        self.notify(Stepped(number, loss, rate, norm, tokens, time.perf_counter() - started))

    def gradients(
        self, batches: Sequence[Batch], counts: Mapping[str, Tensor], hidden_state: Any
    ) -> tuple[Tensor, Any]:
        """Compute gradients, summed over batches and ranks; returns this rank's loss and the next hidden state."""
        value = torch.zeros((), dtype=torch.double)
        counts = {name: count.to(self.device, widest_float(self.device)) for name, count in counts.items()}
        self.flat.zero_grad()
        with self.precision.backend():
            for batch in batches:
                if len(batch):  # a batch with fewer rows than ranks is empty on some of them
                    with self.precision.autocast():
                        loss, hidden_state = self.objective(batch, hidden_state)
                        part = loss.mean(counts)
                    part.backward()
                    value += part.detach().cpu().double()
        for grad in self.flat.gradients():
            self.group.all_reduce_(grad)
        return value, hidden_state

    def loss_and_norm(self, value: Tensor) -> tuple[float, float]:
        """Loss over all ranks and gradient norm of the main rank, in one sum: all ranks decide by the same numbers."""
        norm = float(self.flat.norm()) if self.group.is_main else 0.0
        sums = self.group.sum({"loss": value, "norm": torch.tensor(norm, dtype=torch.double)})
        return float(sums["loss"]), float(sums["norm"])

    def rate(self, step: int) -> float:
        """Learning rate of a step: the schedule's, lowered by each rollback."""
        rate = self.config.schedule.rate(step, self.state.steps, self.state.drops)
        return float(rate * self.config.divergence.lr_factor**self.state.divergence.rollbacks)

    def count_predictions(self, batches: Sequence[Batch]) -> dict[str, Tensor]:
        """Predictions of some batches by part of the loss, over all ranks."""
        counts = [self.objective.task.counts(batch) for batch in batches]
        return self.group.sum({name: torch.stack([c[name] for c in counts]).sum() for name in counts[0]})

    def step_seed(self, step: int) -> int:
        """Seed of the random generator for one step on this rank; a checkpoint needs no generator state."""
        return int.from_bytes(blake2b(f"{self.seed} {step} {self.group.rank}".encode(), digest_size=7).digest())

    @property
    def precision(self) -> Precision:
        return Precision(self.config.precision, next(self.objective.parameters()).device.type)

    def handle_divergence(self, fault: Fault, batches: Sequence[Batch] = ()) -> None:
        """Skip the step (a validation, without batches, has none), roll back, or stop, as the recipe says."""
        step, memory, mode = self.state.step, self.state.divergence, self.config.on_divergence
        name = ""
        if fault.kind == "nonfinite" and batches:
            with self.precision.backend(), self.precision.autocast():
                name = first_nonfinite(self.objective, batches, self.step_seed(step), self.hidden_state)
        reason = fault.describe(name)
        if mode == "skip" and batches and not fault.lasts:
            return self.notify(Skipped(step, reason))
        back = memory.rollback_step
        if mode == "rollback" and back is not None and memory.rollbacks < self.config.divergence.rollbacks:
            return self.roll_back(back, reason)
        good = last_good_checkpoint(self.run, memory.last_good_step, self.group.is_main)
        if self.group.is_main:
            mark_diverged(self.run, step, reason, repr(self.config.schedule), good is not None)
        self.notify(Ended(step, "diverged", good.state["best"] if good else {}))
        raise Diverged(advice(step, reason, good, rate_setting(self.config.schedule)))

    def roll_back(self, step: int, reason: str) -> None:
        """Go on from the checkpoint of a step with a lower learning rate, after the batches that diverged."""
        diverged, rollbacks = self.state, self.state.divergence.rollbacks + 1
        found = last_good_checkpoint(self.run, step, self.group.is_main)
        if found is None:
            raise ModelError(f"{self.run}: the checkpoint of step {step} is gone, and training cannot be rolled back")
        self.group.max_over_ranks(0)  # the main rank has moved the links
        self.state = self.restore(found)
        self.group.max_over_ranks(0)  # every rank has read the checkpoint before it may be pruned
        self.state.position, self.hidden_state = diverged.position, None
        memory = self.state.divergence
        memory.good, memory.latest, memory.rollbacks = found.step, found.step, rollbacks
        memory.forget(diverged.step)
        self.stream = self.loader.train_batches(self.state.position)
        lr_factor = self.config.divergence.lr_factor**rollbacks
        self.notify(RolledBack(found.step, diverged.step, reason, lr_factor))
        self.save()

    def validate_and_save(self) -> None:
        """Validate, update the best metrics and the count for early stopping, and save a checkpoint."""
        state, metric = self.state, self.config.best_metric
        try:
            with self.averaged_weights():
                metrics, samples = validate_finite(self.objective, self.validate, self.flat.weights())
        except NonfiniteValidation:
            return self.handle_divergence(self.config.divergence.observe_validation(state.divergence, state.step))
        value, before = metrics[metric], state.best.get(metric)
        improved = before is None or (value < before if metric in LOWER_IS_BETTER else value > before)
        better = improved and math.isfinite(value) and not state.divergence.rejects(metrics.get("loss", math.inf))
        state.stale = 0 if better else state.stale + 1
        state.drops = count_drops(self.config.schedule, state.drops, state.stale)
        if better:
            finite = {name: number for name, number in metrics.items() if math.isfinite(number)}
            state.best = {**finite, "step": float(state.step)}
        self.notify(Validated(state.step, metrics, better, samples))
        self.save(best=better, planned=True)
        self.group.wait_for_main()  # it decodes samples alone, and writes

    @contextmanager
    def averaged_weights(self) -> Iterator[None]:
        """Context in which the model has the averaged weights, if the run keeps an exponential moving average."""
        self.swap_weights()
        try:
            yield
        finally:
            self.swap_weights()

    def swap_weights(self) -> None:
        """Exchange the model's weights and their moving averages; without averages it does nothing."""
        for weight, mean in zip(self.flat.weights(), self.ema, strict=bool(self.ema)):
            copied = weight.clone()
            weight.copy_(mean)
            mean.copy_(copied)

    def planned_steps(self) -> int:
        """Updates in total; a budget of epochs or minutes is converted into steps once, here, and stored."""
        if self.config.minutes:
            return max(1, int(self.config.minutes * 60 / self.measure_step_seconds()))
        if self.config.epochs:
            return max(1, math.ceil(self.batches_per_epoch * self.config.epochs / self.config.accumulate))
        return self.config.steps or max(1, math.ceil(self.batches_per_epoch * 10 / self.config.accumulate))

    def measure_step_seconds(self) -> float:
        """Seconds per step, measured on real batches (forward, backward, all-reduce) without updating weights."""
        stream, hidden_state, times = self.loader.train_batches(None), None, []
        for _ in range(12):
            started = time.perf_counter()
            batches = [next(stream)[0] for _ in range(self.config.accumulate)]
            _, hidden_state = self.gradients(batches, self.count_predictions(batches), hidden_state)
            times.append(time.perf_counter() - started)
        self.flat.zero_grad()
        mean = sum(sorted(times[2:])[1:-1]) / (len(times) - 4)
        return float(self.group.sum({"seconds": torch.tensor(mean)})["seconds"]) / self.group.size

    def out_of_patience(self) -> bool:
        """Whether early stopping ends the run."""
        return bool(self.config.patience) and self.state.stale >= self.config.patience

    def save(self, best: bool = False, planned: bool = False) -> None:
        """Commit a checkpoint; the main rank writes, and other ranks contribute only their hidden state."""
        if planned:
            self.state.divergence.mark_checkpoint(self.state.step)
        hidden = bptt_state.gather(self.hidden_state, self.group)
        if not self.group.is_main:
            return
        groups: dict[str, Mapping[str, Tensor]] = {"optimizer": optimizer_tensors(self.optimizer)}
        if hidden:
            groups["hidden_state"] = hidden
        if self.ema:
            groups["trained"] = weights(self.objective.model)
            with self.averaged_weights():
                groups["model"] = copy.deepcopy(weights(self.objective.model))  # tied names stay one tensor
        else:
            groups["model"] = weights(self.objective.model)
        machine = {"processes": self.group.size, "threads": torch.get_num_threads(), "device": self.device.type}
        state = {**asdict(self.state), **machine}
        keep, keep_steps = self.config.keep_checkpoints, self.state.divergence.kept_steps
        path = checkpoint.save(self.run, self.state.step, groups, state, keep=keep, best=best, keep_steps=keep_steps)
        if self.state.step or self.state.divergence.rollbacks:  # the initial weights are no progress
            clear_diverged(self.run)
        self.notify(Saved(self.state.step, path))

    def restore(self, found: checkpoint.Checkpoint) -> TrainState:
        """Resume from a checkpoint: bit for bit, hence with the same number of processes and threads.

        On another kind of device training continues, too, but other kernels round differently.
        """
        stored = {name: value for name, value in found.state.items() if name != "device"}
        if not {"processes", "threads"} <= stored.keys():
            raise ModelError(
                f"{found.path} has no training state to resume from: its weights were averaged or made elsewhere; use "
                "--out for a new run"
            )
        processes, threads, memory = stored.pop("processes"), stored.pop("threads"), stored.pop("divergence", {})
        if processes != self.group.size:
            raise ModelError(
                f"{found.path} was trained by {processes} processes, this is {self.group.size}; "
                f"resume with --nproc {processes}, or start again with --fresh"
            )
        torch.set_num_threads(threads)
        if self.ema:
            load_weights(self.objective.model, found.tensors("model"), str(found.path))
            for mean, weight in zip(self.ema, self.flat.weights(), strict=True):
                mean.copy_(weight)
        load_weights(self.objective.model, found.tensors("trained" if self.ema else "model"), str(found.path))
        restore_optimizer(self.optimizer, found.tensors("optimizer"))
        state = TrainState(**stored, divergence=DivergenceState(**memory))
        if not self.config.minutes:  # minutes were converted into steps once; steps or epochs may have been changed
            state.steps = self.planned_steps()
        if checkpoint_store.resolve_link(self.run, "best") is None:
            state.best = {}  # it is gone: the next one counts
        if "hidden_state" in found.groups:
            own = bptt_state.select_rank(found.tensors("hidden_state"), self.group.rank)
            self.hidden_state = bptt_state.unpack(own, self.hidden_state_after(state.position))
        return state

    @torch.no_grad()
    def hidden_state_after(self, position: Mapping[str, int] | None) -> Any:
        """Hidden state after the batch at a position: the structure that a restored hidden state must have."""
        batch, _ = next(self.loader.train_batches(position))
        with self.precision.backend(), self.precision.autocast():
            return self.objective(batch)[1] if len(batch) else None

    def obey(self, caught: int, command: Command | None) -> None:
        """Stop or save as a signal or the control file demands; all ranks get the same arguments."""
        if caught:
            self.stop(*(Interrupted, "interrupted") if caught == signal.SIGINT else (Terminated, "terminated"))
        elif command == "stop":
            self.stop(Interrupted, "stopped")
        elif command == "save":
            self.save()

    def stop(self, kind: type[RegardError], name: str) -> None:
        """Save a checkpoint and raise the error whose exit code is documented."""
        self.save()
        step = self.state.step
        self.notify(Ended(step, name, self.state.best))
        raise kind(f"{name} at step {step}; the checkpoint is written, run the same command again to resume")

    def notify(self, event: Event) -> None:
        if self.group.is_main:
            for listener in self.listeners:
                listener(event)


def find_resumable(run: Path, group: ProcessGroup) -> checkpoint.FoundCheckpoint:
    """The newest good checkpoint to resume from; if all are damaged, an error rather than a silent restart."""
    found = checkpoint.newest(run)
    if found.refused and found.checkpoint is None:
        raise ModelError(f"{found.refused[0]}; no checkpoint of {run} is usable, start again with --fresh")
    if found.refused and found.checkpoint and group.is_main:
        checkpoint_store.discard_after(run, found.checkpoint.step)
    group.max_over_ranks(0)  # other ranks wait until the main rank has removed damaged checkpoints
    return found
