"""SST-2 with and without GloVe beside a bag of words, and how much faster many sentences are than one at a time.

    REGARD_DATA=folder python benchmarks/classify.py                trains recipes/classify/sst2*.toml, then scores
    REGARD_DATA=folder python benchmarks/classify.py --only speed   a recipe's model on 10,000 sentences, in rounds

The folder holds sst2/stsa.binary.train and .dev, and glove-6b-50d-20k/glove.6B.50d.top20k.txt.gz. Accuracy is on dev,
which nothing was chosen by: what is validated on is a part of train. The bag of words is a logistic regression of our
own: log-scaled counts of words and pairs of words, L2, its strength chosen on the same part of train.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F

import regard
from regard.data.labelled import LabelledLines
from regard.metrics.classification import Judged
from regard.objective import silent
from regard.run import Run
from regard.tasks import Asked, Recipe
from regard.tasks.classify.prepare import ClassifyConfig, TextPreparation
from regard.tasks.classify.recipe import ClassificationModel

RECIPES = Path(__file__).parents[1] / "recipes" / "classify"
STRENGTHS = (1e-5, 3e-5, 1e-4, 3e-4, 1e-3)
SENTENCES = 10_000


def main() -> None:
    given = arguments()
    torch.set_num_threads(given.threads)
    folder = Path(os.environ.get("REGARD_DATA") or sys.exit("set REGARD_DATA to the folder that holds sst2/")) / "sst2"
    data = LabelledLines(train=str(folder / "stsa.binary.train"), test=str(folder / "stsa.binary.dev"))
    with tempfile.TemporaryDirectory() as place:
        if given.only in (None, "bag"):
            bag_of_words(data)
        for name in ("sst2", "sst2-glove"):
            if given.only in (None, name):
                trained(name, given.seeds, Path(place))
        if given.only in (None, "speed"):
            speed(data, given.rounds, Path(place))


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=["bag", "sst2", "sst2-glove", "speed"])
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3], help="each another run of a recipe")
    parser.add_argument("--rounds", type=int, default=5, help="of the measurement of speed")
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    return parser.parse_args()


def trained(name: str, seeds: list[int], place: Path) -> None:
    """Train a recipe from several seeds; of each, how good it is on dev and how long it took."""
    found = []
    for seed in seeds:
        began = time.perf_counter()
        run = place / f"{name}-{seed}"
        Run(run).train(Recipe.read(RECIPES / f"{name}.toml", [f"seed={seed}"]))
        seconds = time.perf_counter() - began
        scores = {score.name: score for score in regard.load(run).evaluate(Asked(split="test"), silent).scores}
        found.append(scores["accuracy"].value)
        said = ", ".join(f"{name} {scores[name].value:.2f}" for name in ("macro_f1", "ece", "loss"))
        print(f"{name}, seed {seed}: {scores['accuracy']}, {said}; {seconds:.0f} s", flush=True)
    print(f"{name}: accuracy {statistics.mean(found):.2f} ({min(found):.2f} to {max(found):.2f})", flush=True)


def bag_of_words(data: LabelledLines) -> None:
    """A logistic regression over words, and over words and pairs of them."""
    preparation = TextPreparation(data, task=ClassifyConfig(held_out=0.05))
    texts = {split: list(preparation.examples(split)) for split in ("train", "valid", "test")}
    for pairs in (False, True):
        words: dict[str, int] = {}
        for example in texts["train"]:
            for word in cut(example.text, pairs):
                words.setdefault(word, len(words))
        rows = {split: counted([e.text for e in found], words, pairs) for split, found in texts.items()}
        wanted = {split: torch.tensor([float(e.label) for e in found]) for split, found in texts.items()}
        models = [fitted(rows["train"], wanted["train"], strength) for strength in STRENGTHS]
        best = max(models, key=lambda model: right(model, rows["valid"], wanted["valid"]))
        share = torch.sigmoid(rows["test"] @ best[:-1] + best[-1]).double().numpy()
        judged = Judged(("0", "1"), wanted["test"].long().numpy(), np.stack([1 - share, share], 1))
        what = "words and pairs" if pairs else "words"
        print(f"bag of {what} ({len(words):,}): {judged.accuracy()}, {judged.calibration()}", flush=True)


def cut(text: str, pairs: bool) -> list[str]:
    words = text.lower().split()
    return words + ([f"{a} {b}" for a, b in pairwise(words)] if pairs else [])


def counted(texts: list[str], words: dict[str, int], pairs: bool) -> torch.Tensor:
    """(N, V), sparse: 1 + log of how often each word is there, each row of length 1."""
    at, numbers = [], []
    for i, text in enumerate(texts):
        found: dict[int, int] = {}
        for word in cut(text, pairs):
            if word in words:
                found[words[word]] = found.get(words[word], 0) + 1
        row = np.array([1 + np.log(count) for count in found.values()])
        at += [(i, word) for word in found]
        numbers += (row / max(np.linalg.norm(row), 1e-9)).tolist()
    size = len(texts), len(words)
    return torch.sparse_coo_tensor(torch.tensor(at).T, torch.tensor(numbers), size).coalesce().to_sparse_csr()


def fitted(rows: torch.Tensor, wanted: torch.Tensor, strength: float) -> torch.Tensor:
    """The weights of the words, and the bias last, by L-BFGS."""
    weights = torch.zeros(rows.shape[1] + 1, requires_grad=True)
    optimizer = torch.optim.LBFGS([weights], max_iter=100, line_search_fn="strong_wolfe")

    def loss() -> torch.Tensor:
        optimizer.zero_grad()
        found = F.binary_cross_entropy_with_logits(rows @ weights[:-1] + weights[-1], wanted)
        found = found + strength * weights[:-1].square().sum()
        found.backward()
        return found

    optimizer.step(loss)
    return weights.detach()


def right(weights: torch.Tensor, rows: torch.Tensor, wanted: torch.Tensor) -> float:
    return float(((rows @ weights[:-1] + weights[-1] > 0).float() == wanted).float().mean())


def speed(data: LabelledLines, rounds: int, place: Path) -> None:
    """Sentences a second of one model: together, and one at a time; in turns, so that a busy machine slows both."""
    Run(place / "speed").train(Recipe.read(RECIPES / "sst2.toml", ["train.steps=1"]))
    model = regard.load(place / "speed")
    assert isinstance(model, ClassificationModel)
    texts = [example.text for example in data.examples("train")]
    texts = (texts * (1 + SENTENCES // len(texts)))[:SENTENCES]
    ratios, speeds = [], []
    for number in range(rounds + 1):  # the first round warms up
        began = time.perf_counter()
        together = model.classify(texts)
        between = time.perf_counter()
        alone = [model.classify(text) for text in texts[::10]]
        taken = between - began, 10 * (time.perf_counter() - between)
        assert alone == together[::10]
        if number:
            speeds.append((SENTENCES / taken[0], SENTENCES / taken[1]))
            ratios.append(taken[1] / taken[0])
    for what, found in zip(("together", "one at a time"), zip(*speeds, strict=True), strict=True):
        print(f"{what}: {statistics.median(found):,.0f} sentences/s ({min(found):,.0f} to {max(found):,.0f})")
    print(f"ratio {statistics.median(ratios):.1f} ({min(ratios):.1f} to {max(ratios):.1f}), {SENTENCES:,} sentences")


if __name__ == "__main__":
    main()
