"""Agreement of two implementations of beam search on the same model, with the reason for each difference.

Beam search drops hypotheses at each step. Where the last that is kept and the first that is dropped are closer than the
rounding error of float32, two correct programs may keep different ones, and end with sentences whose scores differ by
more than any rounding. So each difference is examined: the gap between the scores, the narrowest decision of the
search, and whether both programs agree in double precision.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import torch
from torch import Tensor
from transformers import MarianMTModel

from regard.decode import Beam, Choice, History, LengthPenalty, power_penalty, score, search
from regard.models.base import EncoderDecoder
from regard.sequence import EOS, PAD, SOS, Tokens

ALPHA = 1.0
Output = tuple[int, ...]


@dataclass(frozen=True)
class Case:
    """A model in both implementations, and its inputs."""

    name: str
    module: EncoderDecoder
    """as it was trained"""
    ours: EncoderDecoder
    """the same, optimized for inference"""
    theirs: MarianMTModel
    sources: list[list[int]]

    def double(self) -> Case:
        """The same in double precision."""
        module = copy.deepcopy(self.module).double()
        return Case(self.name, module, module, copy.deepcopy(self.theirs).double(), self.sources)


def max_length(sources: list[list[int]]) -> int:
    return max(map(len, sources)) + 50


def ours(model: EncoderDecoder, sources: list[list[int]], width: int) -> list[Output]:
    prompt = Tokens.full(torch.full((len(sources), 1), SOS))
    limits = torch.full((len(sources),), max_length(sources))
    found = search(model, Tokens.pad(sources), prompt, Beam(width, power_penalty(ALPHA)), limits)
    return [hypotheses[0].tokens for hypotheses in found]


def theirs(model: MarianMTModel, sources: list[list[int]], width: int) -> list[Output]:
    source = Tokens.pad(sources)
    settings = {"num_beams": width, "do_sample": False, "max_new_tokens": max_length(sources)}
    if width > 1:
        settings |= {"length_penalty": ALPHA, "early_stopping": True}
    out = model.generate(input_ids=source.data, attention_mask=source.mask.long(), **settings)
    return [until_end(row) for row in out[:, 1:].tolist()]


def until_end(ids: list[int]) -> Output:
    return tuple(ids[: ids.index(EOS) + 1] if EOS in ids else [i for i in ids if i != PAD])


@dataclass(frozen=True)
class Difference:
    """A sentence for which two searches found different outputs."""

    number: int
    gap: float
    """score of our output minus score of theirs, both by one scorer in double precision"""
    margin: float
    """margin of the narrowest decision of the search, in double precision"""
    agrees_in_double: bool
    """whether both outputs are the same in double precision"""
    like: str
    """whose float32 output that is"""

    @property
    def is_rounding(self) -> bool:
        """Whether rounding explains it: equal scores, or a decision narrower than the rounding error of float32."""
        return abs(self.gap) < 1e-4 or (self.agrees_in_double and self.margin < 1e-5)

    def __str__(self) -> str:
        agree = f"both agree, on {self.like}" if self.agrees_in_double else "they differ, too"
        return (
            f"sentence {self.number}: value gap {self.gap:+.1e}; narrowest decision {self.margin:.1e}, and in double "
            f"precision {agree}"
        )


def differences(case: Case, batch: int, width: int, count: int) -> Iterator[Difference]:
    """Differences among the first `count` sources, decoded in batches as in the speed measurement."""
    sources, exact = case.sources[:count], None
    for i in range(0, len(sources), batch):
        part = sources[i : i + batch]
        both = zip(part, ours(case.ours, part, width), theirs(case.theirs, part, width), strict=True)
        for number, (source, mine, other) in enumerate(both, i):
            if mine != other:
                exact = exact or case.double()
                (true,), (also,) = ours(exact.ours, [source], width), theirs(exact.theirs, [source], width)
                gap = length_normalized(exact.ours, source, mine) - length_normalized(exact.ours, source, other)
                like = {mine: "ours", other: "theirs"}.get(true, "neither")
                yield Difference(number, gap, narrowest_margin(exact.ours, source, width), true == also, like)


def length_normalized(model: EncoderDecoder, source: list[int], output: Output) -> float:
    total = float(score(model, Tokens.pad([source]), Tokens.pad([[SOS, *output]])).totals)
    return total / len(output) ** ALPHA


def narrowest_margin(model: EncoderDecoder, source: list[int], width: int) -> float:
    """The smallest margin between a kept and a dropped hypothesis over a whole search."""
    beam = RecordingBeam(width, power_penalty(ALPHA))
    prompt, limits = Tokens.pad([[SOS]]), torch.tensor([max_length([source])])
    search(model, Tokens.pad([source]), prompt, beam, limits)  # type: ignore[arg-type]
    return min(beam.margins, default=math.inf)


@dataclass
class RecordingBeam:
    """A beam for one source that records the margins of its decisions."""

    width: int
    penalty: LengthPenalty
    n_best: int = 1
    coverage_penalty: float = 0.0
    margins: list[float] = field(default_factory=list)

    def choose(self, out_NV: Tensor, history: History) -> tuple[Choice, History]:
        W, V = self.width, out_NV.shape[1]
        scores_NV = history.scores[:, None] + out_NV.log_softmax(-1)
        top, at = scores_NV.flatten().topk(min(2 * W + 1, scores_NV.numel()))
        ends = at % V == EOS
        going = top[~ends]
        self._record_margin(going, W)
        if ends[W - 1 : W + 1].any():  # an end counts only among the first
            self._record_margin(top, W)
        return Beam(W, self.penalty).choose(out_NV, history)

    def _record_margin(self, scores: Tensor, W: int) -> None:
        if len(scores) > W and bool(scores[W] > -math.inf):
            self.margins.append(float(scores[W - 1] - scores[W]))


def report_agreement(case: Case, batch: int, width: int, count: int, report: Callable[[str], None]) -> None:
    """Report how many outputs are the same, and the reason for each difference."""
    found = list(differences(case, batch, width, count))
    total = min(count, len(case.sources))
    report(f"  same output for {total - len(found):,} of {total:,} sentences")
    for difference in found:
        report(f"    {difference}{'' if difference.is_rounding else ' - NOT EXPLAINED BY ROUNDING'}")
