"""Cost of a model in FLOPs, memory and time, computed from its shape: the meta device has shapes without numbers.

Training takes about 6 FLOPs per parameter and token, use 2 (Kaplan et al. 2020, section 2.1): a multiplication and an
addition forward, twice as many backward. Attention scores are left out, which is little while the context is much
shorter than 12 x layers x width. Memory of activations is not a formula: one training step runs on the meta device, and
the bytes of all tensors that are alive are counted.
"""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from regard.distributed import ProcessGroup
from regard.models.base import EncoderDecoder, parameters
from regard.models.presets import Preset
from regard.objective import Batch, NextToken, Objective
from regard.sequence import Padded, Tokens
from regard.spaces import Words

TRAINING_FLOPS, INFERENCE_FLOPS = 6, 2
"""floating-point operations per parameter and token"""
PETAFLOP_S_DAY = 1e15 * 24 * 60 * 60
"""floating-point operations of one petaflop/s over a day"""
BYTES = 4
"""of a float32 number"""
DEFAULT_CONTEXT = 50
"""tokens of a sequence for models without a limit"""
SAMPLED_BATCHES = 8
"""batches of a recipe that are looked at: the largest is run, their mean gives the planned tokens"""


def training_flops(count: int, tokens: float) -> float:
    """FLOPs of training a model with `count` parameters on some tokens.

    >>> round(training_flops(174_604_259_328, 300e9) / PETAFLOP_S_DAY)
    3638
    """
    return TRAINING_FLOPS * count * tokens


@dataclass(frozen=True)
class TrainingMemory:
    """Bytes that a training step needs."""

    weights: int
    gradients: int
    optimizer: int
    """state of the optimizer, two moments for Adam, and the moving average of the weights where there is one"""
    activations: int
    """peak of everything else that is alive in the forward and backward pass of a batch"""

    @property
    def total(self) -> int:
        return self.weights + self.gradients + self.optimizer + self.activations


@dataclass(frozen=True)
class InferenceMemory:
    """Bytes that a model needs to be used on one sequence."""

    weights: int
    kv_cache: int
    """decoder state at the full context: a KV cache, or the hidden state of a recurrent model"""

    @property
    def total(self) -> int:
        return self.weights + self.kv_cache


@dataclass(frozen=True)
class ModelCost:
    """What a model costs, whatever the machine.

    >>> from regard.models.presets import PRESETS
    >>> cost = preset_cost(PRESETS["gpt-2"], tokens=1e9)
    >>> cost.parameters, cost.flops_per_token, cost.inference_memory.kv_cache >> 20
    (124439808, 248879616, 72)
    """

    parameters: int
    tokens: float
    """tokens of training"""
    batch: tuple[int, int]
    """rows and positions of the batch whose activations are counted"""
    context: int
    """tokens of the sequence that is read or generated in use"""
    training_memory: TrainingMemory
    inference_memory: InferenceMemory

    @property
    def training_flops(self) -> float:
        return training_flops(self.parameters, self.tokens)

    @property
    def petaflop_s_days(self) -> float:
        return self.training_flops / PETAFLOP_S_DAY

    @property
    def flops_per_token(self) -> int:
        """FLOPs of use, per token."""
        return INFERENCE_FLOPS * self.parameters


class PeakMemory(TorchDispatchMode):
    """Counts the bytes of all tensors that are made inside the context: those alive now, and their peak."""

    def __init__(self) -> None:
        super().__init__()
        self.now = self.peak = 0
        self._alive: set[int] = set()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        before = {t.untyped_storage()._cdata for t in tree_leaves((args, kwargs)) if isinstance(t, Tensor)}
        out = func(*args, **(kwargs or {}))
        for tensor in tree_leaves(out):
            if isinstance(tensor, Tensor) and tensor.untyped_storage()._cdata not in before:  # else a view
                self._add(tensor.untyped_storage())
        return out

    def _add(self, storage: Any) -> None:
        key, size = storage._cdata, storage.nbytes()
        if key in self._alive:
            return
        self._alive.add(key)
        self.now += size
        self.peak = max(self.peak, self.now)
        weakref.finalize(storage, self._remove, key, size).atexit = False

    def _remove(self, key: int, size: int) -> None:
        self._alive.discard(key)
        self.now -= size


class FusedAttention(TorchFunctionMode):
    """Attention on the meta device by the shapes of the fused kernel, which stores no scores; it would take another."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func is not F.scaled_dot_product_attention:
            return func(*args, **kwargs)
        mask, causal = kwargs.get("attn_mask"), kwargs.get("is_causal", False)
        mask = mask if mask is None else mask.to(args[0].dtype)
        kernel = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
        return kernel(*args, dropout_p=0.0, is_causal=causal, attn_mask=mask)[0]


def activation_bytes(model: nn.Module, loss: Callable[[], Tensor]) -> int:
    """Peak bytes of a forward and backward pass on the meta device, beyond weights and gradients.

    >>> with torch.device("meta"):
    ...     layer, x = nn.Linear(4, 4, bias=False), torch.ones(2, 4)
    >>> activation_bytes(layer, lambda: layer(x).square().sum())
    136
    """
    # a gradient is added to one that is allocated already, and freed: here it is freed at once
    handles = [
        p.register_post_accumulate_grad_hook(_free_gradient)
        for p in dict.fromkeys(model.parameters())
        if p.requires_grad
    ]
    try:
        with PeakMemory() as memory, FusedAttention():
            loss().backward()
    finally:
        for handle in handles:
            handle.remove()
    return memory.peak


def _free_gradient(parameter: Tensor) -> None:
    parameter.grad = None


def decoder_state_bytes(model: nn.Module, source: Any, context: int) -> int:
    """Bytes of the decoder's state for one sequence at full context; 0 for a model without a decoder."""
    if not isinstance(model, EncoderDecoder):
        return 0
    with torch.no_grad():
        state = model.start(source, context)
    stored = {t.untyped_storage()._cdata: t for t in tree_leaves(state) if isinstance(t, Tensor) and t.numel()}
    return sum(t.untyped_storage().nbytes() for t in stored.values() if t.is_floating_point())


def preset_cost(preset: Preset, tokens: float) -> ModelCost:
    """The cost of a preset, trained with Adam on batches of one sequence of its whole context."""
    context = preset.config.position_limit or DEFAULT_CONTEXT
    model = preset.build_on_meta()
    source, target = (_meta_tokens(length) for length in (source_length(model, context), context + 1))

    def loss() -> Tensor:
        if not isinstance(model, EncoderDecoder):
            return model(source).sum()
        objective, batch = Objective(model, NextToken(Words(preset.words[1]))), Batch(source, target)
        return objective(batch)[0].mean(objective.task.counts(batch))

    weights = BYTES * parameters(model)
    training = TrainingMemory(weights, weights, 2 * weights, activation_bytes(model.train(), loss))
    use = InferenceMemory(weights, decoder_state_bytes(model.eval(), source, context))
    return ModelCost(parameters(model), tokens, (1, context), context, training, use)


def source_length(model: nn.Module, context: int) -> int:
    """Positions of the source: none for a language model."""
    return 0 if isinstance(model, EncoderDecoder) and not model.encoder.width else context


def _meta_tokens(length: int) -> Tokens:
    return Tokens.full(torch.zeros(1, length, dtype=torch.long, device="meta"))


def optimizer_copies(config: Any) -> int:
    """Numbers per parameter that an optimizer of the [train] section keeps, with the moving average of the weights.

    >>> from regard.train.config import TrainConfig
    >>> optimizer_copies(TrainConfig()), optimizer_copies(TrainConfig(ema=0.999))
    (2, 3)
    """
    moments = 2 if hasattr(config.optimizer, "betas") else int(bool(config.optimizer.momentum))
    return moments + bool(config.ema)


def build_objective(recipe: Any, run: Path) -> tuple[Objective, Any]:
    """Objective of a recipe on the meta device, and its loader; `run` holds the prepared data.

    A task that computes with the initial weights cannot be built there (forecast, vectors): it is built with numbers.
    """
    try:
        with torch.device("meta"):
            objective, loader, _ = recipe.training_parts(run, ProcessGroup())
        next(iter(loader.train_batches(None)))[0].to("cpu")  # fails if the loader made tensors there, too
    except (RuntimeError, NotImplementedError, TypeError):
        objective, loader, _ = recipe.training_parts(run, ProcessGroup())
    return objective.to("meta"), loader


def recipe_cost(recipe: Any, run: Path, tokens: float | None) -> ModelCost:
    """The cost of a recipe, with its own batches; `tokens`: not those that it plans."""
    objective, loader = build_objective(recipe, run)
    stream = iter(loader.train_batches(None))
    batches = [next(stream)[0] for _ in range(SAMPLED_BATCHES)]
    sizes = [count_positions(objective, batch) for batch in batches]
    largest = batches[sizes.index(max(sizes))].to("meta")
    config, mean = recipe.train, sum(sizes) / len(sizes)
    if tokens is None:
        steps = planned_batches(config, loader)
        tokens = 1e9 if steps is None else steps * mean
    objective.train()
    model, weights = objective.model, BYTES * parameters(objective)

    def loss() -> Tensor:
        return objective(largest)[0].mean(objective.task.counts(largest))

    activations = activation_bytes(objective, loss)
    training = TrainingMemory(weights, weights, optimizer_copies(config) * weights, activations)
    length = getattr(recipe.task, "window", None) or -(-max(sizes) // len(largest))
    context = recipe.model.position_limit or length
    state = decoder_state_bytes(model.eval(), _meta_tokens(source_length(model, context)), context)
    use = InferenceMemory(weights, state)
    rows = len(largest)
    return ModelCost(parameters(objective), tokens, (rows, -(-max(sizes) // rows)), context, training, use)


def planned_batches(config: Any, loader: Any) -> float | None:
    """Batches of a training by its [train] section; None if its budget is a time."""
    if config.minutes:
        return None
    if config.steps:
        return float(config.steps * config.accumulate)
    return float((config.epochs or 10) * loader.batches_per_epoch())


def count_positions(objective: Objective, batch: Batch) -> int:
    """Tokens of a batch on its longer side, without padding; examples where there are no tokens."""
    predictions = sum(int(count) for count in objective.task.counts(batch).values())
    return max(predictions, int(batch.source.lengths.sum()) if isinstance(batch.source, Padded) else 0)


@dataclass(frozen=True)
class MachineSpeed:
    """Speed of this machine in float32 matrix products, measured."""

    flops_per_second: float
    size: int
    """rows and columns of the matrices"""
    repetitions: int
    seconds: float
    threads: int

    def describe(self) -> str:
        """How it was measured."""
        times = "the only one" if self.repetitions == 1 else f"the fastest of {self.repetitions}"
        return (
            f"{times} in {self.seconds:.1f} s: float32 product of {self.size} x {self.size} matrices, "
            f"{self.threads} thread{'s' if self.threads > 1 else ''}"
        )


def measure_speed(seconds: float = 1.0, size: int = 1024) -> MachineSpeed:
    """Time matrix products for about `seconds`; the fastest counts, since other programs only slow it down."""
    left, right = torch.randn(size, size), torch.randn(size, size)
    left[:256, :256] @ right[:256, :256]  # starts the threads
    times: list[float] = []
    while not times or sum(times) < seconds:
        started = time.perf_counter()
        left @ right
        times.append(time.perf_counter() - started)
    return MachineSpeed(2 * size**3 / min(times), size, len(times), sum(times), torch.get_num_threads())


def as_json(cost: ModelCost, speed: MachineSpeed) -> Mapping[str, Any]:
    """All figures of a cost as plain JSON; memory in bytes, times in seconds."""
    training, use = cost.training_memory, cost.inference_memory
    return {
        "parameters": cost.parameters,
        "tokens": cost.tokens,
        "training_flops": cost.training_flops,
        "petaflop_s_days": cost.petaflop_s_days,
        "flops_per_token": cost.flops_per_token,
        "training_memory": {**vars(training), "total": training.total, "batch": list(cost.batch)},
        "inference_memory": {**vars(use), "total": use.total, "context": cost.context},
        "machine": {**vars(speed), "method": speed.describe()},
        "training_seconds": cost.training_flops / speed.flops_per_second,
        "seconds_per_token": cost.flops_per_token / speed.flops_per_second,
        "times_are": "lower bounds",
    }
