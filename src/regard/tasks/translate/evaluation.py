"""Scores of a translation model on sentence pairs, and of a mix on each of its parts."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from regard.errors import DataError
from regard.metrics import Score, chrf, perplexity, ter
from regard.metrics import bleu as bleu_score
from regard.progress import Progress
from regard.tasks.evaluation import Evaluation, ScoredExample
from regard.tasks.translate.predict import Translator
from regard.tasks.translate.sources import Pair

CHUNK = 256
"""sentences that are translated between two progress reports"""


@dataclass(frozen=True)
class EvalPart:
    """Sentence pairs to score: all of them, or those of one part of a mix."""

    label: str
    pairs: Sequence[Pair]


def evaluate_parts(
    name: str, parts: Sequence[EvalPart], translator: Translator, lowercase: bool, progress: Progress
) -> Evaluation:
    """The scores of all pairs together and, if there are several parts, BLEU and chrF of each.

    `lowercase`: score without case, since a lowercasing tokenizer cannot produce capitals.
    """
    sources, references = map(list, zip(*(pair for part in parts for pair in part.pairs), strict=True))
    outputs: list[str] = []
    began = time.perf_counter()
    for start in range(0, len(sources), CHUNK):
        found = translator.translate(sources[start : start + CHUNK], first_line=start + 1)
        outputs += [best[0].text for best in found]
        progress("translating", len(outputs), len(sources))
    seconds = time.perf_counter() - began
    scores = [
        *score_outputs(outputs, references, lowercase),
        ter(outputs, references),
        reference_perplexity(translator, sources, references),
    ]
    examples = [ScoredExample(*texts) for texts in zip(sources, outputs, references, strict=True)]
    by_part = score_parts(parts, outputs, lowercase) if len(parts) > 1 else []
    lines = [
        f"{label}, {own[0].n:,} sentences: " + ", ".join(format_score(score) for score in own) for label, own in by_part
    ]
    detail = [{"part": label, "scores": [asdict(score) for score in own]} for label, own in by_part]
    return Evaluation(name, scores, examples, seconds, lines, {"parts": detail} if detail else {})


def score_outputs(outputs: Sequence[str], references: Sequence[str], lowercase: bool) -> list[Score]:
    """BLEU and chrF."""
    return [metric(outputs, references, lowercase=lowercase) for metric in (bleu_score, chrf)]


def score_parts(parts: Sequence[EvalPart], outputs: Sequence[str], lowercase: bool) -> list[tuple[str, list[Score]]]:
    """BLEU and chrF of each part; the outputs are those of all parts, one part after the other."""
    found, start = [], 0
    for part in parts:
        end = start + len(part.pairs)
        found.append((part.label, score_outputs(outputs[start:end], [pair[1] for pair in part.pairs], lowercase)))
        start = end
    return found


def format_score(score: Score) -> str:
    """A score with its interval, in part of a line."""
    return f"{score.name} {score.value:.2f} ({score.low:.2f} to {score.high:.2f})"


def reference_perplexity(translator: Translator, sources: Sequence[str], references: Sequence[str]) -> Score:
    """The perplexity of the references; pairs with an empty side are left out."""
    pairs = [pair for pair in zip(sources, references, strict=True) if all(side.strip() for side in pair)]
    if not pairs:
        raise DataError("every sentence pair has an empty side; there is nothing to score")
    sources, references = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    counts = [len(ids) + 1 for ids in translator.vocabularies.target.encode_batch(references)]
    return perplexity([-total for total in translator.score(sources, references)], counts)
