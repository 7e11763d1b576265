"""Interventions: the same text through the same model with something changed.

An intervention is plain data: it is part of a request and of a trace's header. Attention weights are replaced at their
taps, a token is forced by a logits processor, and positions are set to zero by forward hooks.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, fields, replace
from typing import Any, Literal

import torch
from torch import Tensor, nn

import regard
from regard import config
from regard.decode import DecodeConfig
from regard.decode.hypothesis import Strategy
from regard.decode.processors import LogitsProcessor, force_prefix
from regard.errors import RegardError
from regard.look import Recording
from regard.look.head_importance import ablate
from regard.look.replay import chain_replacements
from regard.nn.inference import SinusoidTable
from regard.nn.positions import LearnedPositions, Sinusoids
from regard.nn.rotary import Rotary
from regard.sequence import EOS, Tokens
from regard.studio.errors import ApiError

Replacements = dict[str, Callable[[Tensor], Tensor]]
POSITIONS = (Sinusoids, SinusoidTable, LearnedPositions, Rotary)
"""modules whose output, set to zero, leaves the model without positions"""
WEIGHTS = ("batch", "head", "query", "key")


@dataclass(frozen=True)
class AblateHead:
    """Ablates one attention head: all of its weights are 0."""

    tensor: str
    """name of the attention weights"""
    head: int
    kind: Literal["head"] = "head"


@dataclass(frozen=True)
class SetAttentionRow:
    """Replaces one row of a head's attention weights, in every hypothesis."""

    tensor: str
    """name of the attention weights"""
    head: int
    query: int
    """index of the row"""
    weights: tuple[float, ...]
    """one per key; 0 for a masked key"""
    window: int = 0
    """window of a generated text in which the row is; filled in by the studio"""
    kind: Literal["row"] = "row"


@dataclass(frozen=True)
class ForceToken:
    """Forces a token at a step, after the same prefix; the search continues from there."""

    step: int
    id: int
    """id of the token"""
    label: str = ""
    """the token as text; filled in by the studio"""
    prefix: tuple[int, ...] = ()
    """ids of all tokens that were generated before it; filled in by the studio"""
    window: int = 0
    """window of a generated text in which the step is; filled in by the studio"""
    kind: Literal["token"] = "token"


@dataclass(frozen=True)
class RemovePositions:
    """Removes the position encodings."""

    kind: Literal["positions"] = "positions"


@dataclass(frozen=True)
class RemoveCausalMask:
    """Removes the causal mask in a teacher-forced pass over the answer."""

    kind: Literal["mask"] = "mask"


Intervention = AblateHead | SetAttentionRow | ForceToken | RemovePositions | RemoveCausalMask


@dataclass(frozen=True)
class ForkRequest:
    """Body of a request to fork a trace."""

    change: Intervention


def parse_intervention(table: Mapping[str, Any]) -> Intervention:
    """An intervention from a request or from a trace's header.

    >>> parse_intervention({"kind": "head", "tensor": "cross.weights", "head": 2})
    AblateHead(tensor='cross.weights', head=2, kind='head')
    >>> parse_intervention({"kind": "head", "head": 2})
    Traceback (most recent call last):
    regard.studio.errors.ApiError: change.tensor must be given
    """
    try:
        return config.parse(ForkRequest, {"change": dict(table)}).change
    except RegardError as error:
        raise ApiError(422, "bad-request", str(error), "fix the request") from None


def trace_changes(header: Mapping[str, Any]) -> list[Intervention]:
    """The interventions that a trace was made with."""
    fork = header.get("fork")
    return [parse_intervention(table) for table in (fork["changes"] if fork else ())]


@contextmanager
def apply_interventions(model: regard.Model, beam: int | None, changes: Sequence[Intervention]) -> Iterator[None]:
    """Temporarily change the model's beam, force tokens and remove positions; callers run one pass at a time."""
    forced = last_forced_token(changes)
    with ExitStack() as stack:
        if beam is not None or forced is not None:
            processor = None if forced is None else force_start((*forced.prefix, forced.id))
            stack.enter_context(_with_decoding(model, beam, processor))
        if any(isinstance(change, RemovePositions) for change in changes):
            stack.enter_context(_without_positions(model.inference_module))
        yield


@contextmanager
def apply_to_module(module: nn.Module, changes: Sequence[Intervention]) -> Iterator[None]:
    """Temporarily remove the positions of a module whose passes are replayed, if one of the changes does."""
    removed = any(isinstance(change, RemovePositions) for change in changes)
    with _without_positions(module) if removed else nullcontext():
        yield


def replay_replacements(changes: Sequence[Intervention], recording: Recording) -> Replacements:
    """Replacement functions by tap name for one pass over the answer of a changed trace.

    A forced token is part of the answer, and positions are removed from the module.
    """
    found = replacements(changes)
    if any(isinstance(change, RemoveCausalMask) for change in changes):
        found = chain_replacements(unmasked_weights(masked_weights(recording)), found)
    return found


def last_forced_token(changes: Sequence[Intervention]) -> ForceToken | None:
    """The last forced token; its prefix includes the earlier ones."""
    return next((change for change in reversed(changes) if isinstance(change, ForceToken)), None)


@contextmanager
def _with_decoding(model: regard.Model, beam: int | None, processor: LogitsProcessor | None) -> Iterator[None]:
    recipe: Any = model.recipe
    if "decode" not in {field.name for field in fields(recipe)}:
        raise ApiError(422, "no-beam", "this model does not use beam search", "leave the beam out")
    decode = recipe.decode if beam is None else replace(recipe.decode, beam=beam, sample=False)
    if processor is not None:
        settings = {field.name: getattr(decode, field.name) for field in fields(decode)}
        decode = SteeredDecodeConfig(**settings, processor=processor)
    model.recipe = replace(recipe, decode=decode)
    try:
        yield
    finally:
        model.recipe = recipe


@dataclass(frozen=True)
class SteeredDecodeConfig(DecodeConfig):
    """Decoding settings with an additional logits processor that is applied first."""

    processor: LogitsProcessor | None = None

    def strategy(
        self,
        eos: int = EOS,
        prefixes: Tokens | None = None,
        constraints: Any = None,
        processors: Sequence[LogitsProcessor] = (),
        prompts: Any = None,
    ) -> Strategy:
        first = [self.processor] if self.processor else []
        return super().strategy(eos, prefixes, constraints, (*first, *processors), prompts)


def force_start(ids: tuple[int, ...]) -> LogitsProcessor:
    """A logits processor that forces the first tokens of a text, which may be generated in several windows."""
    before, length = 0, -1  # tokens of earlier windows, and of this one

    def process(log_NV: Tensor, history: Any) -> Tensor:
        nonlocal before, length
        if history.length <= length:  # a new window
            before += length + 1
        length = history.length
        here = ids[before:]
        return force_prefix(Tokens.pad([here]))(log_NV, history) if length < len(here) else log_NV

    return process


@contextmanager
def _without_positions(module: nn.Module) -> Iterator[None]:
    """Replace all position encodings by zeros."""
    hooks = [
        part.register_forward_hook(lambda part, inputs, output: torch.zeros_like(output))
        for part in module.modules()
        if isinstance(part, POSITIONS)
    ]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


def replacements(changes: Sequence[Intervention]) -> Replacements:
    """Replacement functions by tap name; for one pass only, since they count rows.

    >>> heads = [AblateHead("cross.weights", 1), AblateHead("cross.weights", 2)]
    >>> replacements(heads)["cross.weights"](torch.ones(1, 4, 1, 1)).flatten().tolist()
    [1.0, 0.0, 0.0, 1.0]
    """
    found: Replacements = {}
    for change in changes:
        match change:
            case AblateHead():
                found = chain_replacements(found, {change.tensor: ablate(change.head)})
            case SetAttentionRow():
                found = chain_replacements(found, {change.tensor: _set_row(change)})
    return found


def _set_row(change: SetAttentionRow) -> Callable[[Tensor], Tensor]:
    """Decoding taps a few rows per step, counted up to the row to be replaced; fewer keys begin a new window."""
    window, count, keys = 0, 0, 0

    def replace_weights(weights_NHTL: Tensor) -> Tensor:
        nonlocal window, count, keys
        if weights_NHTL.shape[3] < keys:
            window, count = window + 1, 0
        keys = weights_NHTL.shape[3]
        at, count = change.query - count, count + weights_NHTL.shape[2]
        if window != change.window or not 0 <= at < weights_NHTL.shape[2]:
            return weights_NHTL
        changed, row_L = weights_NHTL.clone(), weights_NHTL.new_zeros(weights_NHTL.shape[3])
        new_row = change.weights[: len(row_L)]
        row_L[: len(new_row)] = row_L.new_tensor(new_row)
        changed[:, change.head, at] = row_L
        return changed

    return replace_weights


def unmasked_weights(names: Sequence[str]) -> Replacements:
    """Replacement of attention weights by the softmax of all scores, without the mask.

    >>> functions = unmasked_weights(["a.weights"])
    >>> _ = functions["a.scores"](torch.tensor([[1.0, 1.0]]))
    >>> functions["a.weights"](torch.tensor([[1.0, 0.0]]))
    tensor([[0.5000, 0.5000]])
    """
    scores_by_name: dict[str, Tensor] = {}

    def store_scores(name: str) -> Callable[[Tensor], Tensor]:
        return lambda scores: scores_by_name.setdefault(name, scores)

    def softmax_scores(name: str) -> Callable[[Tensor], Tensor]:
        return lambda weights: scores_by_name.pop(name).softmax(-1)

    at_scores = {f"{name.removesuffix('weights')}scores": store_scores(name) for name in names}
    return at_scores | {name: softmax_scores(name) for name in names}


def masked_weights(recording: Recording) -> list[str]:
    """Names of the decoder self-attention weights of a condensed recording, which have a causal mask."""
    names = {record.name for record in recording.records}
    return [
        record.name
        for record in recording.records
        if record.axes == WEIGHTS
        and record.labels.get("query") is not None
        and record.labels.get("query") is record.labels.get("key") is record.context.get("read")
        and f"{record.name.removesuffix('weights')}scores" in names
    ]


def supported_interventions(model: regard.Model, recording: Recording) -> list[str]:
    """Kinds of the interventions on a whole model that it supports."""
    kinds = ["positions"] if any(isinstance(part, POSITIONS) for part in model.inference_module.modules()) else []
    return [*kinds, "mask"] if masked_weights(recording) else kinds


def check_row(change: SetAttentionRow, keys: int, scores: Tensor | None) -> None:
    """Check the weights of a row: their number, their range, and that masked keys have weight 0.

    >>> check_row(SetAttentionRow("w", 0, 0, (0.5,)), 2, None)
    Traceback (most recent call last):
    regard.studio.errors.ApiError: weights: expected 2, one per key, got 1
    """
    if len(change.weights) != keys:
        message = f"weights: expected {keys}, one per key, got {len(change.weights)}"
        raise ApiError(422, "bad-request", message, "send the whole row")
    if not all(math.isfinite(weight) and 0 <= weight <= 1 for weight in change.weights):
        raise ApiError(422, "bad-request", "weights: expected numbers from 0 to 1", "fix the row")
    if scores is not None and any(w and math.isnan(s) for w, s in zip(change.weights, scores.tolist(), strict=True)):
        raise ApiError(422, "bad-request", "weights: a masked key must have weight 0", "set it to 0")
