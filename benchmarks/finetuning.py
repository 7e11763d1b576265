"""MiniLM fine-tuned on SST-2 by regard and by a loop written with transformers: accuracy on dev, several seeds each.

    REGARD_DATA=folder python benchmarks/finetuning.py

The folder holds sst2/stsa.binary.train and .dev. regard trains recipes/classify/sst2-minilm.toml; the loop has its
settings: steps, sentences per step on average, AdamW, linear schedule with warmup, clipped gradients, dropout 0.1,
64 tokens. The loop draws sentences at random, regard those of similar length; the loop also drops attention weights.
The test is a paired bootstrap over the sentences of dev, of the accuracies averaged over the seeds.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

import regard
from regard.exchange.catalogue import MODELS
from regard.metrics import paired_bootstrap_sums
from regard.progress import no_progress
from regard.run import Run
from regard.tasks import EvalRequest, Recipe

RECIPE = Path(__file__).parents[1] / "recipes" / "classify" / "sst2-minilm.toml"
LONGEST = 64
"""tokens of a sentence, [CLS] and [SEP] included"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--steps", type=int, help="fewer or more than the recipe has")
    options = parser.parse_args()
    torch.set_num_threads(1)
    folder = MODELS["minilm"].fetch()[0].parent
    found: dict[str, list[list[float]]] = {"regard": [], "transformers": []}
    with tempfile.TemporaryDirectory() as home:
        MODELS["minilm"].import_to(Path(home) / "minilm")
        for seed in options.seeds:
            recipe = read_recipe(Path(home) / "minilm", seed, options.steps)
            found["regard"].append(train_here(recipe, Path(home) / f"run-{seed}", seed))
            rows = train_there(recipe, folder, mean_rows(recipe, Path(home) / f"run-{seed}"), seed)
            found["transformers"].append(rows)
    for name, rows in found.items():
        scores = np.mean(rows, axis=1)
        print(f"{name}: mean {np.mean(scores):.2f} ({', '.join(f'{score:.2f}' for score in scores)})")
    pairs = [[(total, len(options.seeds)) for total in np.sum(rows, axis=0).tolist()] for rows in found.values()]
    test = paired_bootstrap_sums(pairs[1], pairs[0], "accuracy", "unit:sentence")
    print(f"regard - transformers: {test.delta:+.2f} points, p = {test.p_value:.3f} over {len(pairs[0])} sentences")


def read_recipe(minilm: Path, seed: int, steps: int | None) -> Any:
    """The recipe from this run, with this seed."""
    chosen = [f"seed={seed}", f"model.init={minilm}", f"text.tokenizer={minilm}", "train.threads=1"]
    return Recipe.read(RECIPE, chosen + ([f"train.steps={steps}", f"train.validate_every={steps}"] if steps else []))


def mean_rows(recipe: Any, run: Path) -> int:
    """Sentences of a step on average over an epoch."""
    loader = recipe.loader(run / "prepared" if (run / "prepared").is_dir() else run)
    batches = list(loader.plan(loader.train, 0).epoch(0))
    return round(len(loader.train) / len(batches))


def train_here(recipe: Any, path: Path, seed: int) -> list[float]:
    """Fine-tune with regard; 100 or 0 for each sentence of dev."""
    began = time.process_time()
    run = Run(path)
    run.train(recipe)
    spent = time.process_time() - began
    scored = regard.load(run.path).evaluate(EvalRequest(), no_progress)
    print(f"regard, seed {seed}: accuracy {scored.scores[0].value:.2f}, {spent:.0f} CPU seconds", flush=True)
    return [right for right, _ in scored.per_unit]


def read_sentences(name: str) -> tuple[list[str], list[int]]:
    """Sentences and labels of a file of SST-2."""
    lines = Path(os.environ["REGARD_DATA"], "sst2", name).read_text(encoding="utf-8").splitlines()
    pairs = [line.split(" ", 1) for line in lines]
    return [text for _, text in pairs], [int(label) for label, _ in pairs]


def train_there(recipe: Any, folder: Path, rows: int, seed: int) -> list[float]:
    """Fine-tune with transformers; 100 or 0 for each sentence of dev."""
    from transformers import (
        AutoModelForSequenceClassification,
        AutoTokenizer,
        get_linear_schedule_with_warmup,
        set_seed,
    )

    set_seed(seed)
    began, train = time.process_time(), recipe.train
    words = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForSequenceClassification.from_pretrained(folder, num_labels=2)
    named = list(model.named_parameters())
    groups = [
        {"params": [p for _, p in named if p.ndim > 1], "weight_decay": train.optimizer.weight_decay},
        {"params": [p for _, p in named if p.ndim < 2], "weight_decay": 0.0},
    ]
    optimizer = torch.optim.AdamW(groups, lr=train.schedule.lr, fused=True)
    schedule = get_linear_schedule_with_warmup(optimizer, train.schedule.warmup, train.steps)
    texts, labels = read_sentences("stsa.binary.train")
    order: list[int] = []
    model.train()
    for _ in range(train.steps):
        if len(order) < rows:
            order = torch.randperm(len(texts)).tolist()
        chosen, order = order[:rows], order[rows:]
        batch = words(
            [texts[i] for i in chosen], padding=True, truncation=True, max_length=LONGEST, return_tensors="pt"
        )
        loss = model(**batch, labels=torch.tensor([labels[i] for i in chosen])).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), train.clip_norm)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
    spent = time.process_time() - began
    found = score_there(model.eval(), words)
    print(f"transformers, seed {seed}: accuracy {np.mean(found):.2f}, {spent:.0f} CPU seconds, "
          f"{rows} sentences per step", flush=True)  # fmt: skip
    return found


@torch.no_grad()
def score_there(model: Any, words: Any) -> list[float]:
    """100 or 0 for each sentence of dev."""
    texts, labels = read_sentences("stsa.binary.dev")
    found: list[float] = []
    for start in range(0, len(texts), 64):
        part = words(texts[start : start + 64], padding=True, truncation=True, max_length=LONGEST, return_tensors="pt")
        right = model(**part).logits.argmax(-1) == torch.tensor(labels[start : start + 64])
        found += [100.0 * value for value in right.tolist()]
    return found


if __name__ == "__main__":
    main()
