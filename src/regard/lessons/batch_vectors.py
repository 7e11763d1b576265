"""Lesson: a batch of sentences as vectors: a zero vector for <PAD>, and one vector for a word that comes twice."""

from __future__ import annotations

from itertools import pairwise

import torch
from torch import Tensor, nn

from regard.lessons.engine.builder import MAX_NUMBER, Input, LessonBuilder, value
from regard.lessons.engine.exercises import Exercise
from regard.lessons.engine.reading import Reading
from regard.lessons.proverbs import SPANISH, WordList
from regard.sequence import PAD, Tokens

WIDTH = 4

INPUTS = (
    Input("sentences", SPANISH, "a batch of sentences", ("sentence",)),
    Input("width", WIDTH, "numbers per word", bounds=(1, 16)),
    Input("seed", 1, "random seed of the table", bounds=(0, MAX_NUMBER)),
)


def compute(page: LessonBuilder) -> None:
    """Ids, the table, the batch as a tensor of three axes, repeated words, and the gradient of the table."""
    sentences = page.data("sentences")
    for number, sentence in enumerate(sentences, 1):
        if not sentence.split():
            raise page.error(f"sentences: expected words in each, and number {number} has none")
    words = WordList.of(sentences)
    batch = Tokens.pad([words.ids(sentence) for sentence in sentences])
    table = embedding_table(words.size, page.data("width"), page.data("seed"))
    with torch.no_grad():
        vectors = table(batch.data)
    rows, places = batch.data.shape
    page.step(
        "Ids",
        "Every word has one number, <PAD> is 0. A word that comes twice has the same number twice; words with and "
        "without a comma are different words here.",
        "",
        "sentences",
        value("ids", batch.data, "sentence place", r"\text{ids}"),
        value("padded", [words.words(row) for row in batch.data.tolist()], "sentence place", r"\text{words}"),
    )
    page.step(
        "Vectors",
        "Each number selects its row of a table: the batch becomes a tensor of sentences x places x width. Its rows, "
        "one sentence after the other; the row of <PAD> in the table is all zeros.",
        r"X_{b, t} = E_{\text{id}_{b, t}}",
        "ids width seed",
        value(
            "shape",
            [rows, places, page.data("width")],
            "axis",
            r"\text{shape}",
            {"axis": ["sentences", "places", "width"]},
        ),
        *(
            value(
                f"X_{i + 1}",
                vectors[i],
                "place width",
                f"X_{{{i + 1}}}",
                {"place": words.words(batch.data[i].tolist())},
                "signed",
            )
            for i in range(rows)
        ),
    )
    _repeated_words(page, words, batch, vectors)
    _padding(page, table, batch)


def embedding_table(size: int, width: int, seed: int) -> nn.Embedding:
    """A random table whose row for <PAD> is zero."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return nn.Embedding(size, width, padding_idx=PAD, dtype=torch.float64)


def _repeated_words(page: LessonBuilder, words: WordList, batch: Tokens, vectors: Tensor) -> None:
    places: dict[int, list[tuple[int, int]]] = {}
    for b, row in enumerate(batch.data.tolist()):
        for t, i in enumerate(row):
            if i != PAD:
                places.setdefault(i, []).append((b, t))
    repeated = {i: found for i, found in places.items() if len(found) > 1}
    apart = max(
        (float((vectors[a] - vectors[b]).abs().max()) for found in repeated.values() for a, b in pairwise(found)),
        default=0.0,
    )
    shown = [words.words([i])[0] for i in repeated] or ["none"]
    page.step(
        "A word that comes twice",
        "Its vector is the same at both places: the table knows nothing of the context. To tell the two apart is the "
        "task of what follows: a recurrent state, or positions and attention.",
        r"\max | X_{b, t} - X_{b', t'} |",
        "ids sentences width seed",
        value("repeated", shown, "word", r"\text{repeated}"),
        value("apart", apart, "", r"\text{difference}"),
    )
    page.compare("both vectors of a word that comes twice", 0.0, apart, 0)


def _padding(page: LessonBuilder, table: nn.Embedding, batch: Tokens) -> None:
    total = table(batch.data).square().sum() / 2
    (gradient,) = torch.autograd.grad(total, [table.weight])
    count = int((batch.data == PAD).sum())
    page.step(
        "Zeros that stay zeros",
        "The row of <PAD> is left out of the gradient, so that training does not change it. Zeros alone do not make "
        "padding harmless: a softmax gives a zero vector a weight too. So models also get the lengths (regard lesson "
        "padding).",
        r"\frac{\partial L}{\partial E_\text{PAD}} = 0",
        "ids width seed",
        value("pad_gradient", gradient[PAD], "width", r"\partial L / \partial E_\text{PAD}"),
        value("pads", count, "", r"\text{padded places}"),
        value("wasted", count / batch.data.numel(), "", r"\text{share of the batch}"),
    )
    page.compare("the vector of <PAD> and zero", 0.0, float(table.weight[PAD].detach().abs().max()), 0)


FIGURE = "sentences > ids > X_2; width > X_2; seed > X_2; ids > repeated; ids > pads"
EXERCISES = (
    Exercise(
        "Which word comes twice in the four proverbs, exactly as written?",
        lambda lesson: lesson.value("repeated").data[0],
        hint="in the second sentence; sera, and sera differ by a comma",
    ),
    Exercise(
        "What share of the places of this batch is padding?",
        "wasted",
        hint="two places of four times five",
    ),
)
READING = Reading(
    "A batch as vectors: zeros for <PAD>, one vector for a word that comes twice",
    ("embedding layer", "padding index", "batch tensor (batch, length, width)", "context-free embedding"),
    ("Bengio et al. 2003, A neural probabilistic language model, section 2",),
)
