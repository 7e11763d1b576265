"""SST-2 with and without the pre-training of a small BERT: accuracy on dev of several seeds, and a paired test.

    regard train recipes/fill/imdb.toml --out runs/imdb
    REGARD_DATA=folder python benchmarks/pretraining.py

The folder holds sst2/stsa.binary.train and .dev; runs/imdb is the pre-trained run. The runs are kept in
runs/sst2-bert-1 and so on, and not trained again. The test is a paired bootstrap over the sentences of dev, of the
accuracies averaged over the seeds.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np

import regard
from regard.metrics import paired_bootstrap_sums
from regard.progress import no_progress
from regard.run import Run
from regard.tasks import EvalRequest, Recipe

RECIPES = Path(__file__).parents[1] / "recipes" / "classify"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    args = parser.parse_args()
    sums = [train_and_score(name, args.seeds) for name in ("sst2-bert", "sst2-bert-scratch")]
    pairs = [[(total, len(args.seeds)) for total in totals] for totals in sums]
    found = paired_bootstrap_sums(pairs[1], pairs[0], "accuracy", "unit:sentence")
    print(f"pre-training: {found.delta:+.2f} points, p = {found.p_value:.4f} over {len(sums[0])} sentences")


def train_and_score(name: str, seeds: list[int]) -> list[float]:
    """Train a recipe once per seed; returns for each sentence of dev 100 x the number of seeds that are right."""
    scores, totals = [], []
    for seed in seeds:
        run, began = Run(Path("runs") / f"{name}-{seed}"), time.process_time()
        run.train(Recipe.read(RECIPES / f"{name}.toml", [f"seed={seed}"]))
        spent = time.process_time() - began
        found = regard.load(run.path).evaluate(EvalRequest(), no_progress)
        scores.append(found.scores[0].value)
        totals.append([right for right, _ in found.per_unit])
        print(f"{name}, seed {seed}: accuracy {scores[-1]:.2f}, {spent:.0f} CPU seconds", flush=True)
    print(f"{name}: mean {np.mean(scores):.2f}", flush=True)
    summed: list[float] = np.sum(totals, axis=0).tolist()
    return summed


if __name__ == "__main__":
    main()
