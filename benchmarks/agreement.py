"""Whether two implementations of one search find the same sentences; where they do not, why.

Beam search throws hypotheses away at each step. Where the last that stays and the first that goes are closer than the
rounding of float32, two correct programs may keep different ones, and then end with sentences whose values are further
apart than any rounding. So each difference is looked into: the gap between the values, the narrowest decision of the
search, and whether both programs say the same in double precision.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import torch
from torch import Tensor
from transformers import MarianMTModel

from regard.decode import Beam, Choice, History, Penalty, power, score, search
from regard.models.base import EncoderDecoder
from regard.sequence import EOS, PAD, SOS, Tokens

ALPHA = 1.0
Said = tuple[int, ...]


@dataclass(frozen=True)
class Case:
    """A model in both forms, and what it reads."""

    name: str
    module: EncoderDecoder
    """as it was trained"""
    ours: EncoderDecoder
    """the same, made ready for use"""
    theirs: MarianMTModel
    sources: list[list[int]]

    def double(self) -> Case:
        """The same in double precision."""
        module = copy.deepcopy(self.module).double()
        return Case(self.name, module, module, copy.deepcopy(self.theirs).double(), self.sources)


def longest(sources: list[list[int]]) -> int:
    return max(map(len, sources)) + 50


def ours(model: EncoderDecoder, sources: list[list[int]], width: int) -> list[Said]:
    prompt = Tokens.full(torch.full((len(sources), 1), SOS))
    limits = torch.full((len(sources),), longest(sources))
    return [found[0].tokens for found in search(model, Tokens.of(sources), prompt, Beam(width, power(ALPHA)), limits)]


def theirs(model: MarianMTModel, sources: list[list[int]], width: int) -> list[Said]:
    source = Tokens.of(sources)
    settings = {"num_beams": width, "do_sample": False, "max_new_tokens": longest(sources)}
    if width > 1:
        settings |= {"length_penalty": ALPHA, "early_stopping": True}
    out = model.generate(input_ids=source.data, attention_mask=source.mask.long(), **settings)
    return [until_end(row) for row in out[:, 1:].tolist()]


def until_end(ids: list[int]) -> Said:
    return tuple(ids[: ids.index(EOS) + 1] if EOS in ids else [i for i in ids if i != PAD])


@dataclass(frozen=True)
class Difference:
    """A sentence for which two searches found different outputs."""

    number: int
    gap: float
    """value of ours less value of theirs, both by one scorer in double precision"""
    margin: float
    """how close the narrowest decision of the search was, in double precision"""
    settled: bool
    """whether both say the same in double precision"""
    like: str
    """and whose output that is"""

    @property
    def excused(self) -> bool:
        """The values are as good as equal, or a decision was narrower than the rounding of float32."""
        return abs(self.gap) < 1e-4 or (self.settled and self.margin < 1e-5)

    def __str__(self) -> str:
        agree = f"both say the same, as {self.like} here" if self.settled else "they differ too"
        return (
            f"sentence {self.number}: value gap {self.gap:+.1e}; narrowest decision {self.margin:.1e}, and in double "
            f"precision {agree}"
        )


def differences(case: Case, batch: int, width: int, count: int) -> Iterator[Difference]:
    """Of the first `count` sources, those with two outputs; they are decoded in batches as when speed is measured."""
    sources, exact = case.sources[:count], None
    for i in range(0, len(sources), batch):
        part = sources[i : i + batch]
        both = zip(part, ours(case.ours, part, width), theirs(case.theirs, part, width), strict=True)
        for number, (source, mine, other) in enumerate(both, i):
            if mine != other:
                exact = exact or case.double()
                (true,), (also,) = ours(exact.ours, [source], width), theirs(exact.theirs, [source], width)
                gap = value(exact.ours, source, mine) - value(exact.ours, source, other)
                like = {mine: "ours", other: "theirs"}.get(true, "neither")
                yield Difference(number, gap, narrowest(exact.ours, source, width), true == also, like)


def value(model: EncoderDecoder, source: list[int], said: Said) -> float:
    total = float(score(model, Tokens.of([source]), Tokens.of([[SOS, *said]])).totals)
    return total / len(said) ** ALPHA


def narrowest(model: EncoderDecoder, source: list[int], width: int) -> float:
    """The smallest distance between a hypothesis that stayed and one that had to go, over a whole search."""
    watched = Watched(width, power(ALPHA))
    prompt, limits = Tokens.of([[SOS]]), torch.tensor([longest([source])])
    search(model, Tokens.of([source]), prompt, watched, limits)  # type: ignore[arg-type]
    return min(watched.margins, default=math.inf)


@dataclass
class Watched:
    """A beam for one source that notes how narrow its decisions are."""

    width: int
    penalty: Penalty
    n_best: int = 1
    coverage: float = 0.0
    margins: list[float] = field(default_factory=list)

    def choose(self, out_NV: Tensor, history: History) -> tuple[Choice, History]:
        W, V = self.width, out_NV.shape[1]
        scores_NV = history.scores[:, None] + out_NV.log_softmax(-1)
        top, at = scores_NV.flatten().topk(min(2 * W + 1, scores_NV.numel()))
        ends = at % V == EOS
        going = top[~ends]
        self._note(going, W)
        if ends[W - 1 : W + 1].any():  # an end counts only among the first
            self._note(top, W)
        return Beam(W, self.penalty).choose(out_NV, history)

    def _note(self, scores: Tensor, W: int) -> None:
        if len(scores) > W and bool(scores[W] > -math.inf):
            self.margins.append(float(scores[W - 1] - scores[W]))


def compared(case: Case, batch: int, width: int, count: int, tell: Callable[[str], None]) -> None:
    """Say how many outputs are the same, and all about the others."""
    found = list(differences(case, batch, width, count))
    total = min(count, len(case.sources))
    tell(f"  same output for {total - len(found):,} of {total:,} sentences")
    for difference in found:
        tell(f"    {difference}{'' if difference.excused else ' - NOT EXPLAINED BY ROUNDING'}")
