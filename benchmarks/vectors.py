"""Word vectors beside gensim's word2vec: the same words, the same window and negatives, one after the other, in rounds.

    pip install gensim
    python benchmarks/vectors.py                 film reviews out of a registry, one epoch a round
    python benchmarks/vectors.py --questions questions-words.txt --epochs 4 --rounds 1    how good they are, too

A round trains both for the same number of epochs with the same number of threads; what is told is how many words of
the text each reads a second, and their ratio. Reading and cutting the text into words is not counted: both are given
the same words. regard's step is Adam's on whole batches, gensim's is SGD's on single pairs, by threads that do not wait
for one another: so beside the speed stand the analogies that each answers right.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
from gensim.models import Word2Vec

import regard
from regard.data.lines import read_lines
from regard.metrics.analogies import ask, read_questions
from regard.sequence import EOS
from regard.tasks.vectors.recipe import VectorsRecipe
from regard.tasks.vectors.word2vec import LEAST
from regard.text import Tokenizer
from regard.text.word_table import WordTable

RECIPE = Path(__file__).parents[1] / "recipes" / "vectors" / "reviews.toml"


def main() -> None:
    given = arguments()
    torch.set_num_threads(given.threads)
    settings = [f"task.method={given.method}", f"train.epochs={given.epochs}"]
    recipe = regard.Recipe.read(RECIPE, settings)
    assert isinstance(recipe, VectorsRecipe)
    with tempfile.TemporaryDirectory() as place:
        ratios = []
        for number in range(given.rounds):
            run = regard.Run(Path(place, str(number)))
            run.begin(recipe)
            run.prepare(recipe)
            ours, table = by_regard(run, recipe)
            theirs, other = by_gensim(run.path, recipe, given)
            ratios.append(ours / theirs)
            print(f"round {number + 1}: regard {ours:,.0f}, gensim {theirs:,.0f} words/s, ratio {ratios[-1]:.2f}")
            if given.questions:
                for name, one in (("regard", table), ("gensim", other)):
                    print(f"{name}: {examined(one, given.questions)}")
    middle = statistics.median(ratios)
    print(f"regard / gensim, {given.method}: {middle:.2f} ({min(ratios):.2f}-{max(ratios):.2f}), {given.rounds} rounds")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--method", choices=["skipgram", "cbow"], default="skipgram")
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--questions", type=Path, help="a file of analogies")
    return parser.parse_args()


def by_regard(run: regard.Run, recipe: VectorsRecipe) -> tuple[float, WordTable]:
    """Words a second, and the vectors. Validation once, at the end, is counted."""
    began = time.perf_counter()
    run.train(recipe)
    seconds = time.perf_counter() - began
    words = recipe.feed(run.path).epoch() * recipe.train.tokens * (recipe.train.epochs or 1)
    return words / seconds, regard.load(run.path).table  # type: ignore[attr-defined]


def by_gensim(run: Path, recipe: VectorsRecipe, given: argparse.Namespace) -> tuple[float, WordTable]:
    """The same words, in its own settings but for those that the recipe names."""
    tokenizer = Tokenizer.load(run / "tokenizer.json")
    ids = recipe.feed(run).train
    spelled = np.array(tokenizer.vocabulary)
    texts = [spelled[part[part >= LEAST]].tolist() for part in np.split(ids, np.flatnonzero(ids == EOS))]
    task = recipe.task
    model = Word2Vec(
        vector_size=recipe.model.width,
        window=task.window,
        negative=task.negatives,
        sample=task.common,
        sg=int(task.method == "skipgram"),
        min_count=1,
        workers=given.threads,
        epochs=given.epochs,
        seed=recipe.seed,
    )
    model.build_vocab(texts)
    began = time.perf_counter()
    model.train(texts, total_examples=len(texts), epochs=given.epochs)
    seconds = time.perf_counter() - began
    return len(ids) * given.epochs / seconds, WordTable(tuple(model.wv.index_to_key), model.wv.vectors)


def examined(table: WordTable, questions: Path) -> str:
    """The share of analogies that are answered right."""
    found = ask(read_questions(read_lines(questions), questions), table.find, table.answers)
    family = found.sections().get("family", (0, 1))
    return f"{found.score()}, family {100 * family[0] / family[1]:.1f}"


if __name__ == "__main__":
    main()
