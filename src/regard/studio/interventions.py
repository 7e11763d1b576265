"""What if: the same text through the same model with something changed, and what moved because of it.

A change is plain data that a request sends and a trace keeps. Values that a model shows are replaced where it shows
them; a word is said by a rule of the search; positions are dropped where they are made.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, fields, replace
from functools import reduce
from typing import Any, Literal

import torch
from torch import Tensor, nn

import regard
from regard import config
from regard.decode import DecodeConfig
from regard.decode.hypothesis import Strategy
from regard.decode.processors import Rule, forced
from regard.errors import RegardError
from regard.look import Recording
from regard.nn.inference import SinusoidTable
from regard.nn.positions import LearnedPositions, Sinusoids
from regard.sequence import EOS, Tokens
from regard.studio.errors import Refusal

Replacing = dict[str, Callable[[Tensor], Tensor]]
POSITIONS = (Sinusoids, SinusoidTable, LearnedPositions)
WEIGHTS = ("batch", "head", "query", "key")


@dataclass(frozen=True)
class HeadOff:
    """A head looks nowhere: its weights are 0.

    >>> read({"kind": "head", "tensor": "cross.weights", "head": 2})
    HeadOff(tensor='cross.weights', head=2, kind='head')
    """

    tensor: str
    """the name of its weights"""
    head: int
    """its number, from 0 on"""
    kind: Literal["head"] = "head"


@dataclass(frozen=True)
class RowWritten:
    """One row of a head's weights, written by hand; the same in every hypothesis.

    >>> read({"kind": "row", "tensor": "cross.weights", "head": 0, "query": 1, "weights": [0.5, 0.5]}).weights
    (0.5, 0.5)
    """

    tensor: str
    """the name of the weights"""
    head: int
    """its number, from 0 on"""
    query: int
    """the row, from 0 on"""
    weights: tuple[float, ...]
    """one a key; a key that is not there yet is 0"""
    kind: Literal["row"] = "row"


@dataclass(frozen=True)
class TokenSaid:
    """Another word is said at a step; what was said before stays, and the search goes on from there.

    >>> read({"kind": "token", "step": 1, "id": 7}).id
    7
    """

    step: int
    """from 0 on"""
    id: int
    """of the word"""
    shown: str = ""
    """how it is spelt; filled in"""
    before: tuple[int, ...] = ()
    """what was said until then; filled in"""
    kind: Literal["token"] = "token"


@dataclass(frozen=True)
class NoPositions:
    """No word knows where it stands.

    >>> read({"kind": "positions"})
    NoPositions(kind='positions')
    """

    kind: Literal["positions"] = "positions"


@dataclass(frozen=True)
class NoMask:
    """The answer is read again at once, and each of its words sees those after it.

    >>> read({"kind": "mask"})
    NoMask(kind='mask')
    """

    kind: Literal["mask"] = "mask"


Change = HeadOff | RowWritten | TokenSaid | NoPositions | NoMask


@dataclass(frozen=True)
class Asked:
    """What a request to fork says."""

    change: Change
    """what is changed"""


def read(table: Mapping[str, Any]) -> Change:
    """A change out of a request, or out of a trace.

    >>> read({"kind": "head", "head": 2})
    Traceback (most recent call last):
    regard.studio.errors.Refusal: change.tensor must be given
    """
    try:
        return config.parse(Asked, {"change": dict(table)}).change
    except RegardError as error:
        raise Refusal(422, "bad-request", str(error), "mend the request") from None


@contextmanager
def acting(model: regard.Model, beam: int | None, changes: Sequence[Change]) -> Iterator[None]:
    """The same model, for a moment with another search and without what was taken from it; one pass runs at a time,
    so nobody else sees it."""
    said = last_said(changes)
    with ExitStack() as stack:
        if beam is not None or said is not None:
            rule = None if said is None else beginning((*said.before, said.id))
            stack.enter_context(_searching(model, beam, rule))
        if any(isinstance(change, NoPositions) for change in changes):
            stack.enter_context(_nowhere(model.ready))
        yield


def last_said(changes: Sequence[Change]) -> TokenSaid | None:
    """Of words that are said instead of others, the last that was asked for: it knows what is said before it.

    >>> last_said([TokenSaid(0, 7), NoMask(), TokenSaid(2, 9), NoPositions()]).id
    9
    """
    return next((change for change in reversed(changes) if isinstance(change, TokenSaid)), None)


@contextmanager
def _searching(model: regard.Model, beam: int | None, rule: Rule | None) -> Iterator[None]:
    before: Any = model.recipe
    if "decode" not in {field.name for field in fields(before)}:
        raise Refusal(422, "no-beam", "this model does not search", "leave the beam as trained")
    decode = before.decode if beam is None else replace(before.decode, beam=beam)
    if rule is not None:
        decode = Steered(**{field.name: getattr(decode, field.name) for field in fields(decode)}, rule=rule)
    model.recipe = replace(before, decode=decode)
    try:
        yield
    finally:
        model.recipe = before


@dataclass(frozen=True)
class Steered(DecodeConfig):
    """The settings of a search, with one rule more that comes first.

    >>> Steered(rule=beginning((7,))).strategy().width
    4
    """

    rule: Rule | None = None
    """what else says which word may be said"""

    def strategy(
        self, eos: int = EOS, prefixes: Tokens | None = None, constraints: Any = None, rules: Sequence[Rule] = ()
    ) -> Strategy:
        return super().strategy(eos, prefixes, constraints, (*([self.rule] if self.rule else []), *rules))


def beginning(ids: tuple[int, ...]) -> Rule:
    """The answer begins with these ids; once they were said the rule is over, so that a text that goes on in a second
    stretch does not begin with them again.

    >>> from types import SimpleNamespace
    >>> rule = beginning((1,))
    >>> now, then = (SimpleNamespace(length=n, owners=torch.tensor([0])) for n in (0, 1))
    >>> [rule(torch.zeros(1, 3), moment).tolist() for moment in (now, then, now)]
    [[[-inf, 0.0, -inf]], [[0.0, 0.0, 0.0]], [[0.0, 0.0, 0.0]]]
    """
    rule, over = forced(Tokens.of([ids])), False

    def act(log_NV: Tensor, history: Any) -> Tensor:
        nonlocal over
        over = over or history.length >= len(ids)
        return log_NV if over else rule(log_NV, history)

    return act


@contextmanager
def _nowhere(module: nn.Module) -> Iterator[None]:
    """Positions are zeros, wherever they are made."""
    hooks = [
        part.register_forward_hook(lambda part, given, made: torch.zeros_like(made))
        for part in module.modules()
        if isinstance(part, POSITIONS)
    ]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


def replacing(changes: Sequence[Change]) -> Replacing:
    """What a pass goes on with instead of what a model shows; made anew for each pass, since rows are counted.

    >>> heads = [HeadOff("cross.weights", 1), HeadOff("cross.weights", 2)]
    >>> replacing(heads)["cross.weights"](torch.ones(1, 4, 1, 1)).flatten().tolist()
    [1.0, 0.0, 0.0, 1.0]
    """
    acts: dict[str, list[Callable[[Tensor], Tensor]]] = {}
    for change in changes:
        match change:
            case HeadOff():
                acts.setdefault(change.tensor, []).append(_silenced(change.head))
            case RowWritten():
                acts.setdefault(change.tensor, []).append(_written(change))
    return {name: _one_after_another(those) for name, those in acts.items()}


def _one_after_another(acts: Sequence[Callable[[Tensor], Tensor]]) -> Callable[[Tensor], Tensor]:
    return lambda weights: reduce(lambda so_far, act: act(so_far), acts, weights)


def _silenced(head: int) -> Callable[[Tensor], Tensor]:
    def act(weights_NHTL: Tensor) -> Tensor:
        changed = weights_NHTL.clone()
        changed[:, head] = 0.0
        return changed

    return act


def _written(change: RowWritten) -> Callable[[Tensor], Tensor]:
    """Decoding shows a few rows at each step: they are counted until the row comes."""
    seen = 0

    def act(weights_NHTL: Tensor) -> Tensor:
        nonlocal seen
        at, seen = change.query - seen, seen + weights_NHTL.shape[2]
        if not 0 <= at < weights_NHTL.shape[2]:
            return weights_NHTL
        changed, row_L = weights_NHTL.clone(), weights_NHTL.new_zeros(weights_NHTL.shape[3])
        given = change.weights[: len(row_L)]
        row_L[: len(given)] = row_L.new_tensor(given)
        changed[:, change.head, at] = row_L
        return changed

    return act


def unmasked(names: Sequence[str]) -> Replacing:
    """Weights that are the softmax of all scores, whatever the mask says; `names` are those of the weights.

    >>> acts = unmasked(["a.weights"])
    >>> _ = acts["a.scores"](torch.tensor([[1.0, 1.0]]))
    >>> acts["a.weights"](torch.tensor([[1.0, 0.0]]))
    tensor([[0.5000, 0.5000]])
    """
    kept: dict[str, Tensor] = {}

    def keep(name: str) -> Callable[[Tensor], Tensor]:
        return lambda scores: kept.setdefault(name, scores)

    def use(name: str) -> Callable[[Tensor], Tensor]:
        return lambda weights: kept.pop(name).softmax(-1)

    scores = {f"{name.removesuffix('weights')}scores": keep(name) for name in names}
    return scores | {name: use(name) for name in names}


def masks(recording: Recording) -> list[str]:
    """The weights, in a condensed recording, of a sequence that looks at itself while it is said: they have a mask."""
    named = {record.name for record in recording.records}
    return [
        record.name
        for record in recording.records
        if record.axes == WEIGHTS
        and record.labels.get("query") is not None
        and record.labels.get("query") is record.labels.get("key") is record.scene.get("read")
        and f"{record.name.removesuffix('weights')}scores" in named
    ]


def possible(model: regard.Model, recording: Recording) -> list[str]:
    """Which changes of a whole model make sense, by their kinds."""
    found = ["positions"] if any(isinstance(part, POSITIONS) for part in model.ready.modules()) else []
    return [*found, "mask"] if masks(recording) else found


def check_row(change: RowWritten, keys: int, scores: Tensor | None) -> None:
    """Refuse weights that no row can have.

    >>> check_row(RowWritten("w", 0, 0, (0.5,)), 2, None)
    Traceback (most recent call last):
    regard.studio.errors.Refusal: weights: expected 2, one a key, got 1
    """
    if len(change.weights) != keys:
        told = f"weights: expected {keys}, one a key, got {len(change.weights)}"
        raise Refusal(422, "bad-request", told, "write the whole row")
    if not all(math.isfinite(weight) and 0 <= weight <= 1 for weight in change.weights):
        raise Refusal(422, "bad-request", "weights: expected numbers from 0 to 1", "mend the row")
    if scores is not None and any(w and math.isnan(s) for w, s in zip(change.weights, scores.tolist(), strict=True)):
        raise Refusal(422, "bad-request", "weights: a key was not there yet, and cannot be looked at", "set it to 0")
