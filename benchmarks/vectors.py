"""Word vectors beside gensim's word2vec: the same words, the same window and negatives, in alternating rounds.

    pip install gensim
    python benchmarks/vectors.py                 film reviews from PyPI, one epoch per round
    python benchmarks/vectors.py --questions questions-words.txt --epochs 4 --rounds 1    with their accuracy

A round trains both for the same number of epochs with the same number of threads, and prints words per second and
their ratio. Reading and tokenizing the text is not counted: both get the same words. regard uses Adam on whole batches,
gensim asynchronous SGD on single pairs: so the accuracy on analogies is printed beside the speed.
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
from regard.metrics.analogies import answer_questions, read_questions
from regard.sequence import EOS
from regard.tasks.vectors.prepare import FIRST_WORD
from regard.tasks.vectors.recipe import VectorsRecipe
from regard.tasks.vectors.word_table import WordTable
from regard.text import Tokenizer

RECIPE = Path(__file__).parents[1] / "recipes" / "vectors" / "reviews.toml"


def main() -> None:
    args = arguments()
    torch.set_num_threads(args.threads)
    settings = [f"task.method={args.method}", f"train.epochs={args.epochs}"]
    recipe = regard.Recipe.read(RECIPE, settings)
    assert isinstance(recipe, VectorsRecipe)
    with tempfile.TemporaryDirectory() as place:
        ratios = []
        for number in range(args.rounds):
            run = regard.Run(Path(place, str(number)))
            run.begin(recipe)
            run.prepare(recipe)
            ours, table = train_regard(run, recipe)
            theirs, other = train_gensim(run.path, recipe, args)
            ratios.append(ours / theirs)
            print(f"round {number + 1}: regard {ours:,.0f}, gensim {theirs:,.0f} words/s, ratio {ratios[-1]:.2f}")
            if args.questions:
                for name, one in (("regard", table), ("gensim", other)):
                    print(f"{name}: {analogy_accuracy(one, args.questions)}")
    middle = statistics.median(ratios)
    print(f"regard / gensim, {args.method}: {middle:.2f} ({min(ratios):.2f}-{max(ratios):.2f}), {args.rounds} rounds")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--method", choices=["skipgram", "cbow"], default="skipgram")
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--questions", type=Path, help="a file of analogies")
    return parser.parse_args()


def train_regard(run: regard.Run, recipe: VectorsRecipe) -> tuple[float, WordTable]:
    """Words per second and the vectors; the validation at the end is included."""
    started = time.perf_counter()
    run.train(recipe)
    seconds = time.perf_counter() - started
    words = recipe.loader(run.path).batches_per_epoch() * recipe.train.batch_tokens * (recipe.train.epochs or 1)
    return words / seconds, regard.load(run.path).table  # type: ignore[attr-defined]


def train_gensim(run: Path, recipe: VectorsRecipe, args: argparse.Namespace) -> tuple[float, WordTable]:
    """The same words, with gensim's settings except those of the recipe."""
    tokenizer = Tokenizer.load(run / "tokenizer.json")
    ids = recipe.loader(run).train
    vocabulary = np.array(tokenizer.vocabulary)
    texts = [vocabulary[part[part >= FIRST_WORD]].tolist() for part in np.split(ids, np.flatnonzero(ids == EOS))]
    task = recipe.task
    model = Word2Vec(
        vector_size=recipe.model.width,
        window=task.window,
        negative=task.negatives,
        sample=task.subsample,
        sg=int(task.method == "skipgram"),
        min_count=1,
        workers=args.threads,
        epochs=args.epochs,
        seed=recipe.seed,
    )
    model.build_vocab(texts)
    started = time.perf_counter()
    model.train(texts, total_examples=len(texts), epochs=args.epochs)
    seconds = time.perf_counter() - started
    return len(ids) * args.epochs / seconds, WordTable(tuple(model.wv.index_to_key), model.wv.vectors)


def analogy_accuracy(table: WordTable, questions: Path) -> str:
    """Accuracy on analogies."""
    found = answer_questions(read_questions(read_lines(questions), questions), table.find, table.solve_analogies)
    family = found.sections().get("family", (0, 1))
    return f"{found.score()}, family {100 * family[0] / family[1]:.1f}"


if __name__ == "__main__":
    main()
