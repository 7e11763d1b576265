"""Divergence: a rule on loss and gradient norm that stops training, and a search for the first NaN.

The rule is a pure function of the series of losses and gradient norms, and all that it remembers is in the
checkpoint: a resumed run decides as one that was never stopped. docs/divergence.md gives the reasons for its form.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import torch
from torch import nn

from regard.config import check_at_least
from regard.errors import ConfigError, ModelError
from regard.files import parse_json, read_bounded, write_text_atomically
from regard.objective import Batch
from regard.train import checkpoint, checkpoint_store

OnDivergence = Literal["stop", "skip", "rollback"]
MARK = "diverged.json"
"""file of a run that diverged: at which step, why, and by which learning-rate schedule"""
MAX_MARK = 1 << 16
"""bytes of the largest such file; it has a few hundred"""
RECOVERY = 10
"""a fault of less than a tenth of the largest recent one is a run that recovers"""
EARLY_RECOVERY = 2
"""the same within the first 2 x steps, in which a density may still find its scale: less than half"""
NORM_MEMORY = 100
"""steps over which the running mean of the gradient norm's logarithm forgets"""


@dataclass(frozen=True)
class DivergenceRule:
    """Divergence rule: when a loss or a gradient norm is too large, and how often it must be.

    >>> rule, state = DivergenceRule(steps=2), DivergenceState()
    >>> [rule.observe(state, step, loss, norm=1.0, clip_norm=1.0) for step, loss in enumerate([8.5, 7.0, 95.0, 6.0], 1)]
    [None, None, Fault(kind='loss', value=95.0, limit=93.5, count=1, window=4, falling=False), None]
    >>> rule.observe(state, 5, 96.0, norm=1.0, clip_norm=1.0).diverged
    True
    """

    loss_factor: float = 10.0
    """a loss is too large if it exceeds the first loss by this x max(|first loss|, 1); 0: losses are not limited"""
    norm_factor: float = 1000.0
    """a gradient norm is too large above this x max(its running mean, clip_norm or 1); 0: norms are not limited"""
    steps: int = 10
    """a run has diverged when so many of the last 2 x steps were too large; NaN and infinity count at once"""
    rollbacks: int = 3
    """on_divergence = "rollback": most rollbacks of a run; then it stops"""
    lr_factor: float = 0.5
    """on_divergence = "rollback": each rollback multiplies the learning rate by this"""

    def __post_init__(self) -> None:
        check_at_least(self, 0, "loss_factor", "norm_factor", "rollbacks")
        check_at_least(self, 1, "steps")
        if not 0 < self.lr_factor <= 1:
            raise ConfigError(f"lr_factor = {self.lr_factor} must be above 0 and at most 1")

    def observe(
        self, state: DivergenceState, step: int, loss: float, norm: float, clip_norm: float | None
    ) -> Fault | None:
        """Judge one step and remember it in `state`: what was too large, or None."""
        fault = self._find_fault(state, loss, norm, clip_norm or 1.0)
        state.forget(step - 2 * self.steps)
        if fault is not None:
            kind, value, limit, size = fault
            state.since = state.since if state.faults else step
            state.faults.append(step)
            state.sizes.append(size)
            recovery = EARLY_RECOVERY if step <= 2 * self.steps else RECOVERY
            falling = size < max(state.sizes) / recovery and step - state.since < 8 * self.steps
            return Fault(kind, value, limit, len(state.faults), 2 * self.steps, falling)
        if state.first_loss is None:
            state.first_loss = loss
        if not state.faults and loss <= state.first_loss:
            state.learned = step
        state.seen = min(state.seen + 1, NORM_MEMORY)
        state.log_norm += (math.log(max(norm, 1e-30)) - state.log_norm) / state.seen
        return None

    def observe_validation(self, state: DivergenceState, step: int) -> Fault:
        """Fault of weights that gave no finite loss at the validation after a step; `state` remembers it.

        It counts like one of the next step, which would compute its loss with these weights.
        """
        fault = self.observe(state, step + 1, math.nan, math.nan, None)
        assert fault is not None  # NaN always is one
        return fault

    def _find_fault(
        self, state: DivergenceState, loss: float, norm: float, clip_norm: float
    ) -> tuple[FaultKind, float, float, float] | None:
        """Kind, value, limit, and how many times the limit it is."""
        if not math.isfinite(loss + norm):
            return "nonfinite", loss, math.inf, max(state.sizes, default=1.0)
        first = loss if state.first_loss is None else state.first_loss
        limit = first + self.loss_factor * max(abs(first), 1.0)
        if self.loss_factor and loss > limit:
            return "loss", loss, limit, (loss - first) / (limit - first)
        usual = max(math.exp(state.log_norm), clip_norm)
        if self.norm_factor and state.seen and norm > self.norm_factor * usual:
            return "norm", norm, self.norm_factor * usual, norm / (self.norm_factor * usual)
        return None


FaultKind = Literal["nonfinite", "loss", "norm"]


@dataclass(frozen=True)
class Fault:
    """A step whose loss or gradient norm was too large, or not finite."""

    kind: FaultKind
    value: float
    limit: float
    count: int
    """faults among the last `window` steps, with this one"""
    window: int
    falling: bool
    """whether it is less than a tenth (early: half) of the largest of them: training recovers"""

    @property
    def lasts(self) -> bool:
        """Whether half of the last steps had one and it does not fall: the weights are bad, and not a single batch."""
        return 2 * self.count >= self.window and not self.falling

    @property
    def diverged(self) -> bool:
        """Whether training cannot go on as it is."""
        return self.lasts or self.kind == "nonfinite"

    def describe(self, first_bad: str = "") -> str:
        """The fault in words; `first_bad` names the first module with NaN, "" stands for a validation."""
        if self.kind == "nonfinite" and not first_bad:
            return "at the validation the weights or the loss are NaN or infinite"
        if self.kind == "nonfinite":
            return f"the loss or the gradient is NaN or infinite (first in {first_bad})"
        name = "loss" if self.kind == "loss" else "gradient norm"
        return f"the {name} is {self.value:.3g}, the limit {self.limit:.3g}"


@dataclass
class DivergenceState:
    """What the rule remembers, as plain JSON for a checkpoint."""

    first_loss: float | None = None
    log_norm: float = 0.0
    """running mean of the logarithm of the gradient norm"""
    seen: int = 0
    """steps in that mean, at most NORM_MEMORY"""
    faults: list[int] = field(default_factory=list)
    """those of the last 2 x steps that were too large"""
    sizes: list[float] = field(default_factory=list)
    """how many times the limit each of them was"""
    since: int = 0
    """the first of the steps that were too large, each less than 2 x steps after the one before"""
    learned: int = 0
    """the last step before them whose loss was at most the first one"""
    good: int | None = None
    """step of a checkpoint after which a loss was at most the first one"""
    latest: int | None = None
    """step of the latest checkpoint that was saved when no recent step was too large"""
    rollbacks: int = 0

    def forget(self, step: int) -> None:
        """Forget the faults up to a step."""
        kept = sum(at > step for at in self.faults)
        self.faults, self.sizes = self.faults[len(self.faults) - kept :], self.sizes[len(self.sizes) - kept :]

    def mark_checkpoint(self, step: int) -> None:
        """Remember a checkpoint that the recipe plans at this step, if no recent step was too large.

        Checkpoints of an interruption are not remembered: a rollback must not depend on them.
        """
        if not self.faults and step != self.latest:
            if self.latest is not None and self.latest < self.learned:
                self.good = self.latest
            self.latest = step

    def rejects(self, loss: float) -> bool:
        """Whether weights with this validation loss cannot be the best: after recent faults, and worse than untrained.

        A single step that was too large says nothing about them, nor does a skipped one.
        """
        return bool(self.faults) and not (self.first_loss is not None and loss <= self.first_loss)

    @property
    def last_good_step(self) -> int:
        """The last step after whose weights a loss was at most the first one, before the faults; -1 or less: none."""
        known = -1 if self.good is None else self.good
        return max(min(self.since - 2, self.learned - 1), known)

    @property
    def rollback_step(self) -> int | None:
        """Step of the checkpoint that a rollback goes back to."""
        latest_is_good = self.latest is not None and self.latest <= self.last_good_step
        return self.latest if latest_is_good else self.good

    @property
    def kept_steps(self) -> set[int]:
        """Steps whose checkpoints may be needed, and are not pruned."""
        return {step for step in (self.good, self.latest) if step is not None}


def last_good_checkpoint(run: Path, step: int, relink: bool) -> checkpoint.Checkpoint | None:
    """The newest good checkpoint up to a step; `last` and `best` leave later ones if `relink`. None: there is none.

    Those after `last` are left over from before an earlier divergence, and are not good.
    """
    last = checkpoint_store.resolve_link(run, "last")
    limit = checkpoint_store.parse_name(last) if last is not None else None
    for path in reversed(checkpoint_store.checkpoints(run)):
        found = checkpoint_store.parse_name(path)
        if found is None or found[0] > step or (limit is not None and found > limit):
            continue
        try:
            good = checkpoint.read(path)
        except ModelError:
            continue
        if relink:
            checkpoint_store.set_link(run, "last", path)
            _relink_best(run, good)
        return good
    if relink:
        checkpoint_store.remove_link(run, "best")
    return None


def _relink_best(run: Path, good: checkpoint.Checkpoint) -> None:
    """Point a `best` that lies after the good checkpoint to the best up to that one, or remove it if that is gone."""
    with suppress(ModelError):
        best = checkpoint.best(run)
        if best is None or best.step <= good.step:
            return
    step = good.state.get("best", {}).get("step")
    for path in reversed(checkpoint_store.checkpoints(run)):
        with suppress(ModelError):
            if (checkpoint_store.parse_name(path) or (None,))[0] == step and checkpoint.read(path):
                return checkpoint_store.set_link(run, "best", path)
    checkpoint_store.remove_link(run, "best")


def check_loadable(run: Path) -> None:
    """Refuse to use a run whose checkpoints are all of weights that had diverged."""
    if checkpoint_store.checkpoints(run) and not _read_mark(run, "is_resumable", True):
        raise ModelError(
            f"{run} diverged and has no good checkpoint to use; train it again with --fresh and a lower learning rate, "
            f"or name one of {run / checkpoint_store.FOLDER} to look at the weights as they are"
        )


def mark_diverged(run: Path, step: int, reason: str, schedule: str, is_resumable: bool = True) -> None:
    """Note in the run's folder that it diverged: the learning rate may then be changed when it is resumed."""
    run.mkdir(parents=True, exist_ok=True)
    content = {"step": step, "reason": reason, "schedule": schedule, "is_resumable": is_resumable}
    write_text_atomically(run / MARK, json.dumps(content, indent=1) + "\n")


def has_diverged(run: Path) -> bool:
    """Whether the run diverged and has no newer checkpoint since."""
    return (run / MARK).is_file()


def adapt_to_resumption(run: Path, state: DivergenceState, step: int, schedule: str) -> None:
    """Let a run that diverged count the checkpoint that it resumes from as good, and take a new schedule as it is."""
    if has_diverged(run):
        state.good = step if _read_mark(run, "is_resumable", True) else state.good
        if _read_mark(run, "schedule", schedule) != schedule:
            state.rollbacks = 0


def check_resumable(run: Path) -> None:
    """Refuse to resume a run whose checkpoints are all of weights that had diverged."""
    if checkpoint_store.checkpoints(run) and not _read_mark(run, "is_resumable", True):
        raise ModelError(f"{run} diverged and has no good checkpoint to resume from; start again with --fresh")


def _read_mark(run: Path, name: str, default: Any) -> Any:
    try:
        return parse_json(read_bounded(run / MARK, MAX_MARK))[name]
    except (OSError, ValueError, KeyError, TypeError):  # it has not diverged, or the note is damaged
        return default


def clear_diverged(run: Path) -> None:
    """Remove the note of a divergence: a checkpoint was trained since."""
    (run / MARK).unlink(missing_ok=True)


def advice(step: int, reason: str, good: checkpoint.Checkpoint | None, rate: str) -> str:
    """The message of a run that diverged: what happened, what is kept, what to try."""
    what = f"training diverged at step {step}: {reason}"
    change = f"a lower {rate} or train.clip_norm"
    if good is None:
        return f"{what}. There is no good checkpoint; start again with --fresh and {change}"
    return f"{what}. The last good checkpoint is {good.path}, step {good.step}; resume from it with {change}"


def first_nonfinite(objective: nn.Module, batches: Sequence[Batch], seed: int, hidden_state: Any = None) -> str:
    """Name of the first module with a NaN or infinite output, else of the first parameter with such a gradient.

    The batches of a step are repeated exactly: with its seed, from its hidden state, in its order.
    """
    found: list[str] = []

    def check_output(name: str) -> Any:
        def hook(module: nn.Module, args: Any, out: Any) -> None:
            leaves = torch.utils._pytree.tree_leaves(out)
            if any(torch.is_tensor(t) and t.is_floating_point() and not t.isfinite().all() for t in leaves):
                found.append(name)

        return hook

    hooks = [module.register_forward_hook(check_output(name)) for name, module in objective.named_modules()]
    try:
        with torch.no_grad(), torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            for batch in batches:
                if len(batch):
                    _, hidden_state = objective(batch, hidden_state)
    finally:
        for hook in hooks:
            hook.remove()
    bad = [n for n, p in objective.named_parameters() if p.grad is not None and not p.grad.isfinite().all()]
    name = next(iter(found or [f"gradient of {n}" for n in bad]), "loss")
    return name.replace("model.", "", 1) or "loss"
