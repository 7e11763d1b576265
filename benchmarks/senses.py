"""Senses of words in their sentences: nearest centroid, leave one out, for each layer of a model.

    python benchmarks/senses.py runs/elmo-english                                   an ELMo
    python benchmarks/senses.py --taggers runs/ewt-upos runs/ewt-upos-elmo          the same tagger without and with it

benchmarks/senses.tsv has 100 sentences written for this: five words (bank, star, light, bear, left), each with ten
sentences for each of two senses. The vector of the word in a sentence is assigned to the sense whose centroid over the
other sentences has the larger cosine; a tie goes to the sense that is listed first. Each layer, and the mean of all
layers, is compared with the embedding, which does not know the sentence, and with the same layer of the same model with
random weights (five seeds), by the exact McNemar test. The taggers are those of recipes/label/ewt-upos.toml and
ewt-upos-elmo.toml, on the test split of the first (UD English EWT, dev), by the paired bootstrap test over sentences.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

import regard
from regard.data.lines import read_lines
from regard.metrics.paired import paired_bootstrap_sums
from regard.progress import no_progress
from regard.tasks import EvalRequest
from regard.tasks.generate.model import GenerationModel

SENTENCES = Path(__file__).parent / "senses.tsv"
MEAN = "mean of layers"
SEEDS = (1, 2, 3, 4, 5)
TIE = 1e-9
"""difference of cosines that counts as none"""


@dataclass(frozen=True)
class Example:
    """A word, its sense, and a sentence that has it once."""

    word: str
    sense: str
    sentence: str


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path, nargs="?")
    parser.add_argument("--taggers", type=Path, nargs=2, metavar=("WITHOUT", "WITH"))
    args = parser.parse_args()
    if args.taggers:
        compare_taggers(*args.taggers)
    if args.run:
        compare_senses(args.run)


def compare_taggers(without: Path, with_elmo: Path) -> None:
    """Print the accuracy of two taggers and the paired test of their difference."""
    runs = [regard.load(run).evaluate(EvalRequest(), no_progress) for run in (without, with_elmo)]
    print(paired_bootstrap_sums(runs[0].per_unit, runs[1].per_unit, "accuracy", "unit:sentence"))


def compare_senses(run: Path) -> None:
    """Print the share of right senses of each layer."""
    model: Any = regard.load(run)
    examples = read_examples()
    found = right_by_layer(model, examples)
    context_free = found["embedding"]
    random = [right_by_layer(untrained(model, seed), examples) for seed in SEEDS]
    for layer, right in found.items():
        guesses = [other[layer] for other in random]
        mean = sum(map(sum, guesses)) / len(guesses) / len(examples)
        line = f"{layer:<15} {percent(right):5.1f} % right   random weights {100 * mean:5.1f} %"
        worst = max(mcnemar(other, right) for other in guesses)
        line += f" (largest p {worst:.2g})   embedding {percent(context_free):5.1f} %"
        print(f"{line} (p {mcnemar(context_free, right):.2g})" if layer != "embedding" else line)
        words = dict.fromkeys(example.word for example in examples)
        parts = {word: [r for r, e in zip(right, examples, strict=True) if e.word == word] for word in words}
        print(" " * 16 + ", ".join(f"{word} {sum(part)}/{len(part)}" for word, part in parts.items()))


def read_examples() -> list[Example]:
    """The sentences of senses.tsv."""
    return [Example(*line.split("\t")) for line in list(read_lines(SENTENCES))[1:]]


def untrained(model: Any, seed: int) -> Any:
    """The same language model with random weights."""
    recipe = replace(model.recipe, seed=seed)
    return GenerationModel(recipe.build(model.modality).eval().requires_grad_(False), model.modality, recipe, 0)


def right_by_layer(model: Any, examples: Sequence[Example]) -> dict[str, list[bool]]:
    """Of each layer, and of the mean of all, which examples are assigned to their sense."""
    vectors = [model.contextual_layers(one.sentence).word_vectors(one.word) for one in examples]
    vectors = [layers | {MEAN: torch.stack(list(layers.values())).mean(0)} for layers in vectors]
    found = {}
    for layer in vectors[0]:
        points = torch.stack([layers[layer] for layers in vectors])
        found[layer] = [nearest_centroid(points, examples, i) == one.sense for i, one in enumerate(examples)]
    return found


def nearest_centroid(points_ND: Tensor, examples: Sequence[Example], number: int) -> str:
    """The sense of the nearest centroid of the other sentences with the same word."""
    word = examples[number].word
    others = [i for i, one in enumerate(examples) if one.word == word and i != number]
    senses = list(dict.fromkeys(one.sense for one in examples if one.word == word))
    cosines = []
    for sense in senses:
        centroid_D = points_ND[[i for i in others if examples[i].sense == sense]].mean(0)
        cosines.append(float(torch.cosine_similarity(points_ND[number], centroid_D, dim=0)))
    best = max(cosines)
    return next(sense for sense, value in zip(senses, cosines, strict=True) if value >= best - TIE)


def percent(right: Sequence[bool]) -> float:
    """Share in percent."""
    return 100 * sum(right) / len(right)


def mcnemar(a: Sequence[bool], b: Sequence[bool]) -> float:
    """Exact McNemar test, two-sided: the p-value of a and b being right equally often.

    >>> mcnemar([False] * 6 + [True], [True] * 6 + [True])
    0.03125
    """
    only_a = sum(x and not y for x, y in zip(a, b, strict=True))
    only_b = sum(y and not x for x, y in zip(a, b, strict=True))
    count = only_a + only_b
    tail = sum(math.comb(count, i) for i in range(min(only_a, only_b) + 1)) / 2**count
    return min(1.0, 2 * tail)


if __name__ == "__main__":
    main()
