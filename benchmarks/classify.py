"""SST-2 with and without GloVe beside a bag of words, and the speed of batched and single classification.

    REGARD_DATA=folder python benchmarks/classify.py                trains recipes/classify/sst2*.toml, then scores
    REGARD_DATA=folder python benchmarks/classify.py --only speed   speed of a recipe's model on 10,000 sentences

The folder holds sst2/stsa.binary.train and .dev, and glove-6b-50d-20k/glove.6B.50d.top20k.txt.gz. Accuracy is on dev,
which no choice depends on: validation uses a part of train. The bag of words is a logistic regression on log-scaled
counts of words and bigrams with an L2 penalty that is chosen on the same part of train.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F

import regard
from regard.metrics.classification import ClassPredictions
from regard.progress import no_progress
from regard.run import Run
from regard.tasks import EvalRequest, Recipe
from regard.tasks.classify.prepare import LabeledTextPreparation
from regard.tasks.classify.recipe import ClassificationModel
from regard.tasks.classify.sources import LabeledLines

RECIPES = Path(__file__).parents[1] / "recipes" / "classify"
PENALTIES = (1e-5, 3e-5, 1e-4, 3e-4, 1e-3)
SENTENCES = 10_000


def main() -> None:
    args = arguments()
    torch.set_num_threads(args.threads)
    folder = Path(os.environ.get("REGARD_DATA") or sys.exit("set REGARD_DATA to the folder that holds sst2/")) / "sst2"
    data = LabeledLines(train=str(folder / "stsa.binary.train"), test=str(folder / "stsa.binary.dev"))
    with tempfile.TemporaryDirectory() as place:
        if args.only in (None, "bag"):
            bag_of_words(data)
        for name in ("sst2", "sst2-glove"):
            if args.only in (None, name):
                train_recipe(name, args.seeds, Path(place))
        if args.only in (None, "speed"):
            speed(data, args.rounds, Path(place))


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=["bag", "sst2", "sst2-glove", "speed"])
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3], help="one run of a recipe per seed")
    parser.add_argument("--rounds", type=int, default=5, help="rounds of the speed measurement")
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    return parser.parse_args()


def train_recipe(name: str, seeds: list[int], place: Path) -> None:
    """Train a recipe with several seeds; prints accuracy on dev and seconds of each."""
    found = []
    for seed in seeds:
        started = time.perf_counter()
        run = place / f"{name}-{seed}"
        Run(run).train(Recipe.read(RECIPES / f"{name}.toml", [f"seed={seed}"]))
        seconds = time.perf_counter() - started
        scores = {
            score.name: score for score in regard.load(run).evaluate(EvalRequest(split="test"), no_progress).scores
        }
        found.append(scores["accuracy"].value)
        others = ", ".join(f"{name} {scores[name].value:.2f}" for name in ("macro_f1", "ece", "loss"))
        print(f"{name}, seed {seed}: {scores['accuracy']}, {others}; {seconds:.0f} s", flush=True)
    print(f"{name}: accuracy {statistics.mean(found):.2f} ({min(found):.2f} to {max(found):.2f})", flush=True)


def bag_of_words(data: LabeledLines) -> None:
    """A logistic regression over words, and over words and bigrams."""
    preparation = LabeledTextPreparation(replace(data, valid_share=0.05))
    texts = {split: list(preparation.examples(split)) for split in ("train", "valid", "test")}
    for bigrams in (False, True):
        words: dict[str, int] = {}
        for example in texts["train"]:
            for word in split_words(example.text, bigrams):
                words.setdefault(word, len(words))
        rows = {split: count_features([e.text for e in found], words, bigrams) for split, found in texts.items()}
        targets = {split: torch.tensor([float(e.label) for e in found]) for split, found in texts.items()}
        models = [fit(rows["train"], targets["train"], penalty) for penalty in PENALTIES]
        best = max(models, key=lambda model: accuracy(model, rows["valid"], targets["valid"]))
        share = torch.sigmoid(rows["test"] @ best[:-1] + best[-1]).double().numpy()
        predictions = ClassPredictions(("0", "1"), targets["test"].long().numpy(), np.stack([1 - share, share], 1))
        what = "words and bigrams" if bigrams else "words"
        print(f"bag of {what} ({len(words):,}): {predictions.accuracy()}, {predictions.calibration()}", flush=True)


def split_words(text: str, bigrams: bool) -> list[str]:
    words = text.lower().split()
    return words + ([f"{a} {b}" for a, b in pairwise(words)] if bigrams else [])


def count_features(texts: list[str], words: dict[str, int], bigrams: bool) -> torch.Tensor:
    """(N, V), sparse: 1 + log of the count of each word, each row of unit norm."""
    at, numbers = [], []
    for i, text in enumerate(texts):
        found: dict[int, int] = {}
        for word in split_words(text, bigrams):
            if word in words:
                found[words[word]] = found.get(words[word], 0) + 1
        row = np.array([1 + np.log(count) for count in found.values()])
        at += [(i, word) for word in found]
        numbers += (row / max(np.linalg.norm(row), 1e-9)).tolist()
    size = len(texts), len(words)
    return torch.sparse_coo_tensor(torch.tensor(at).T, torch.tensor(numbers), size).coalesce().to_sparse_csr()


def fit(rows: torch.Tensor, targets: torch.Tensor, penalty: float) -> torch.Tensor:
    """The weights of the words, and the bias last, by L-BFGS."""
    weights = torch.zeros(rows.shape[1] + 1, requires_grad=True)
    optimizer = torch.optim.LBFGS([weights], max_iter=100, line_search_fn="strong_wolfe")

    def loss() -> torch.Tensor:
        optimizer.zero_grad()
        found = F.binary_cross_entropy_with_logits(rows @ weights[:-1] + weights[-1], targets)
        found = found + penalty * weights[:-1].square().sum()
        found.backward()
        return found

    optimizer.step(loss)
    return weights.detach()


def accuracy(weights: torch.Tensor, rows: torch.Tensor, targets: torch.Tensor) -> float:
    return float(((rows @ weights[:-1] + weights[-1] > 0).float() == targets).float().mean())


def speed(data: LabeledLines, rounds: int, place: Path) -> None:
    """Sentences per second of one model, batched and one at a time; in turns, so that other work slows both."""
    Run(place / "speed").train(Recipe.read(RECIPES / "sst2.toml", ["train.steps=1"]))
    model = regard.load(place / "speed")
    assert isinstance(model, ClassificationModel)
    texts = [example.text for example in data.examples("train")]
    texts = (texts * (1 + SENTENCES // len(texts)))[:SENTENCES]
    ratios, speeds = [], []
    for number in range(rounds + 1):  # the first round is warmup
        started = time.perf_counter()
        batch_answers = model.classify(texts)
        batched = time.perf_counter()
        single_answers = [model.classify(text) for text in texts[::10]]
        seconds = batched - started, 10 * (time.perf_counter() - batched)
        assert single_answers == batch_answers[::10]
        if number:
            speeds.append((SENTENCES / seconds[0], SENTENCES / seconds[1]))
            ratios.append(seconds[1] / seconds[0])
    for what, found in zip(("together", "one at a time"), zip(*speeds, strict=True), strict=True):
        print(f"{what}: {statistics.median(found):,.0f} sentences/s ({min(found):,.0f} to {max(found):,.0f})")
    print(f"ratio {statistics.median(ratios):.1f} ({min(ratios):.1f} to {max(ratios):.1f}), {SENTENCES:,} sentences")


if __name__ == "__main__":
    main()
