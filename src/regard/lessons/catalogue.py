"""The list of lessons in their order. A lesson is a module of its name, with INPUTS and compute(page)."""

from __future__ import annotations

import difflib
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from regard.errors import ConfigError
from regard.lessons.engine.inputs import LessonPlan
from regard.lessons.engine.lesson import Lesson


@dataclass(frozen=True)
class LessonEntry:
    """Title and summary of a lesson."""

    part: str
    title: str
    summary: str
    example: str
    """inputs worth trying, as typed"""
    needs: tuple[str, ...] = ()
    """cached models that it inspects; see engine/cached_models.py"""


ORIGINS, IMAGES = "Origins", "Images"
WORDS, NETWORKS, ATTENTION = "Words and batches", "Recurrent networks", "Attention"
TRANSFORMER, LEARNING = "The Transformer", "Training and search"
LANGUAGE = "Language models"

LESSONS = {
    "neuron": LessonEntry(
        ORIGINS,
        "A neuron as a logical element",
        "McCulloch and Pitts, 1943: a neuron that fires if enough of its inputs are on computes AND, OR and NOT. XOR "
        "needs three of them, in two layers.",
        "threshold=1",
    ),
    "perceptron": LessonEntry(
        ORIGINS,
        "A neuron that learns",
        "Rosenblatt, 1957: each mistake moves the weights toward the right answer. A boundary line turns until it "
        "separates the two classes, if a line can.",
        "targets=0,1,1,1",
    ),
    "xor": LessonEntry(
        ORIGINS,
        "What one line cannot separate",
        "Minsky and Papert, 1969: a perceptron cannot learn XOR. With a hidden layer, and a gradient for every weight, "
        "a network can; the plane shows both.",
        "units=2",
    ),
    "tape": LessonEntry(
        ORIGINS,
        "Backpropagation on a tape",
        "Linnainmaa, 1970: one walk backwards over the instructions of a computation gives all derivatives of its "
        "result. He used it to bound rounding errors; autograd is the same walk.",
        'f="x*y + x"',
    ),
    "mlp": LessonEntry(
        ORIGINS,
        "Learning representations by back-propagating errors",
        "Rumelhart, Hinton and Williams, 1986: the error of the output is sent back through the weights to the hidden "
        "units. One update of a small network, number by number.",
        "x=0,1",
    ),
    "filters": LessonEntry(
        ORIGINS,
        "A filter slides over a picture",
        "An image is a table of numbers. Nine weights slide over it, nine products are summed at each place, and edges "
        "light up: what a convolutional network does in its first layer.",
        "filter=sobel-y",
    ),
    "alexnet": LessonEntry(
        IMAGES,
        "AlexNet, layer by layer",
        "Krizhevsky, Sutskever and Hinton, 2012: five convolutions and three dense layers, 61 million parameters, "
        "counted one layer after the other; and the contest that such networks have won since.",
        "classes=10",
    ),
    "resnet": LessonEntry(
        IMAGES,
        "A block that learns what to add",
        "He et al., 2015: batch normalization in training and in use, number by number; a shortcut around two layers, "
        "and why the gradient passes through many of them.",
        "blocks=20",
    ),
    "vit": LessonEntry(
        IMAGES,
        "Patches as words",
        "Dosovitskiy et al., 2020: an image is cut into patches, which are read like the words of a sentence. Without "
        "positions it would be a set of patches.",
        "patch=2",
    ),
    "embedding": LessonEntry(
        WORDS,
        "Words as numbers",
        "A text is bytes, a word is an index, an index is a one-hot vector, and a one-hot vector selects a row of an "
        "embedding table: the word's vector. Such vectors can be added and subtracted.",
        "word=thanks",
    ),
    "padding": LessonEntry(
        WORDS,
        "Four proverbs, one batch",
        "Sentences of unequal length become one rectangular tensor, padded with <PAD>. A correct model masks the "
        "padding: a sentence gives the same numbers alone as in a batch with longer ones.",
        "row=1",
    ),
    "rnn": LessonEntry(
        NETWORKS,
        "One cell of a recurrent network",
        "A recurrent cell adds the transformed previous hidden state to the transformed input and applies an "
        "activation function: the result is the new hidden state.",
        "x=2,0",
    ),
    "bptt": LessonEntry(
        NETWORKS,
        "Backpropagation through time, written out",
        "The gradient of a recurrent network is a sum over time, because the same weights are used at every step. "
        "Computed in two ways: by the formula for each weight, and by the recursion that unrolls them.",
        "window=1",
    ),
    "gradients": LessonEntry(
        NETWORKS,
        "Why gradients vanish or explode",
        "From one step to the previous one, a gradient is multiplied by the same matrix: with distance it shrinks or "
        "grows like a power. Gates and attention provide another path.",
        "radius=1.1",
    ),
    "lstm": LessonEntry(
        NETWORKS,
        "An LSTM cell, gate by gate",
        "The cell state is updated by addition, not by a matrix. Three gates between 0 and 1 control what is written, "
        "what is kept and what is output.",
        "x=0,1",
    ),
    "gru": LessonEntry(
        NETWORKS,
        "A GRU cell, gate by gate",
        "Two gates and no separate cell state: the update gate controls how much of the old state is kept, the reset "
        "gate how much of it the candidate may use. The paper and today's libraries apply the reset gate at different "
        "points.",
        "h=1,0",
    ),
    "bidirectional": LessonEntry(
        NETWORKS,
        "The same word, another context",
        "Read from left to right, a word's state depends only on the words before it. Read in both directions, it also "
        "depends on the words after it.",
        'second="the bank of the town"',
    ),
    "seq2seq": LessonEntry(
        NETWORKS,
        "Through one vector",
        "An encoder reads a sentence and passes on its last hidden state; a decoder generates word after word from it, "
        "until <EOS>. All information about the sentence must fit into that state.",
        'sentence="Que sera, sera"',
    ),
    "bahdanau": LessonEntry(
        ATTENTION,
        "Additive attention",
        "Before each word, the decoder compares its state with every encoder state by a small network. The softmax of "
        "these scores gives the weight of each encoder state in the context.",
        "s=0,1",
    ),
    "luong": LessonEntry(
        ATTENTION,
        "Four ways to score, and input feeding",
        "A score can be a dot product, a product through a matrix, a small network or a cosine. Context and state are "
        "then combined into the attention vector, which is an input of the next step.",
        "h=0,1",
    ),
    "attention": LessonEntry(
        ATTENTION,
        "Scaled dot-product attention",
        "Queries and keys are compared by a matrix product; divided by the square root of their width and passed "
        "through a softmax, the products are the weights of the values.",
        "y=1,0,0",
    ),
    "evolution-of-attention": LessonEntry(
        ATTENTION,
        "From a small network to a matrix product",
        "RNNsearch scores the encoder states with a small network. A Transformer computes keys, queries and values "
        "with matrices, and all scores are one matrix product. The same sentence through both.",
        'sentence="elle mange une pomme"',
        ("rnnsearch", "transformer"),
    ),
    "eight-heads": LessonEntry(
        TRANSFORMER,
        "Thinking Machines through eight heads",
        "Several small attention heads in parallel attend to different things; an output projection combines their "
        "results.",
        "heads=4",
    ),
    "kinds-of-attention": LessonEntry(
        TRANSFORMER,
        "Self, masked and cross",
        "The same formula three times: a sentence attends to itself, to its previous words only, or to another "
        "sentence. The differences are where queries and keys come from, and the mask.",
        'later="[0,0,0]"',
    ),
    "positions": LessonEntry(
        TRANSFORMER,
        "Positional encoding",
        "Attention alone ignores order. A vector per position adds it, summed with the word vector or concatenated to "
        "it: a counter whose digits are waves.",
        'order="[2,1,3]"',
    ),
    "transformer": LessonEntry(
        TRANSFORMER,
        "An encoder and a decoder, step by step",
        "A trained Transformer reads a whole sentence at once and generates its translation word by word: the inputs, "
        "attention weights and predicted probabilities of each part.",
        'sentence="elle mange une pomme"',
        ("transformer",),
    ),
    "it": LessonEntry(
        TRANSFORMER,
        'What the word "it" refers to',
        "One word decides what a pronoun refers to. Which words does a translation model attend to at the pronoun, and "
        "does that matter for its output?",
        "layer=1",
        ("pronoun",),
    ),
    "training": LessonEntry(
        LEARNING,
        "One-hot targets, and a loss that falls",
        "The target is a row with a single 1; the model's prediction is a row of probabilities. Training moves the "
        "prediction toward the target: a small Transformer learns one sentence while you wait.",
        "steps=10",
    ),
    "label-smoothing": LessonEntry(
        LEARNING,
        "Label smoothing",
        "A small part of the target probability is moved from the correct word to all others: the loss then has a "
        "minimum at finite scores, and scores do not grow without bound.",
        "smoothing=0.3",
    ),
    "noam": LessonEntry(
        LEARNING,
        "A learning rate that rises and falls",
        "The learning rate schedule of the Transformer paper: linear warmup, then decay with the inverse square root "
        "of the step; wide models use smaller rates.",
        "width=1024",
    ),
    "beam-search": LessonEntry(
        LEARNING,
        "Several hypotheses at once",
        "A beam keeps the most probable partial sentences instead of one, and so finds sentences with an improbable "
        "start and a probable end. Every branch is one that this package's beam search explored.",
        "beam=2",
        ("transformer",),
    ),
    "gpt": LessonEntry(
        LANGUAGE,
        "One block of a GPT, and its cache",
        "Radford et al., 2018 and 2019: a Transformer's decoder without an encoder predicts the next word. One block "
        "by hand, the causal mask, and why the keys and values of earlier words can be kept.",
        'text="the dog sat on the"',
    ),
    "bert": LessonEntry(
        LANGUAGE,
        "BERT reads to both sides",
        "Devlin et al., 2019: 15 % of the words are masked and predicted from all others. Two masks in two segments, "
        "one layer by hand, what a causal mask would hide, and a loss at the masked words only.",
        'text="Let\'s make [MASK] chicken! [SEP] It [MASK] great with lemon plates"',
    ),
    "elmo": LessonEntry(
        LANGUAGE,
        "ELMo: one word in two sentences",
        "Peters et al., 2018: two LSTM language models, one reading forwards and one backwards. The vector of bank is "
        "the same in both sentences, its states are not; a task mixes the layers.",
        "w=0,0,5 gamma=1",
    ),
    "rotary": LessonEntry(
        LANGUAGE,
        "Rotary positions",
        "Su et al., 2021: queries and keys are rotated by an angle that grows with their position. Their product then "
        "depends only on the difference of the two positions.",
        "m=105 n=102",
    ),
    "sizes": LessonEntry(
        LANGUAGE,
        "Sizes and costs, from GPT-1 to GPT-4",
        "Five models with architecture, parameters, data, date and training cost as quoted, and an open one. Where the "
        "shape is published the parameters can be counted exactly, and the cost follows from them and the tokens.",
        "layers=48 width=1600 context=1024",
    ),
}


def find_lesson(name: str) -> LessonEntry:
    """Entry of a lesson; an unknown name is an error with a suggestion.

    >>> find_lesson("bahdanu")
    Traceback (most recent call last):
    regard.errors.ConfigError: there is no lesson "bahdanu"; did you mean "bahdanau"?
    """
    if name not in LESSONS:
        close = difflib.get_close_matches(name.lower(), LESSONS, n=1, cutoff=0.5)
        guess = f'did you mean "{close[0]}"?' if close else f"there are {', '.join(LESSONS)}"
        raise ConfigError(f'there is no lesson "{name}"; {guess}')
    return LESSONS[name]


def lesson_plan(name: str) -> LessonPlan:
    """Inputs of a lesson and the function that computes it."""
    find_lesson(name)
    module = import_module(f"regard.lessons.{name.replace('-', '_')}")
    return LessonPlan(module.INPUTS, module.compute)


def teach(name: str, changes: Mapping[str, Any] | None = None) -> Lesson:
    """Compute a lesson, with its default inputs or with some of them changed.

    >>> teach("rnn").value("o").data, teach("rnn", {"x": [2, 0]}).value("o").data
    (1.0, 2.0)
    """
    from regard.lessons.engine.builder import LessonBuilder  # imports torch, which the list of lessons does not need

    entry, plan = find_lesson(name), lesson_plan(name)
    inputs = plan.resolve(changes or {})
    page = LessonBuilder({one.value.name: one.value for one in inputs})
    plan.compute(page)
    return Lesson(name, entry.title, entry.summary, inputs, tuple(page.steps), tuple(page.checks))


def list_lines(width: int) -> list[str]:
    """The list of lessons as lines; a title that does not fit beside its name follows below."""
    lines, part, longest = list[str](), "", max(map(len, LESSONS))
    for name, entry in LESSONS.items():
        if entry.part != part:
            lines += [*([""] if part else []), entry.part]
            part = entry.part
        if longest + 4 + len(entry.title) <= width:
            lines.append(f"  {name:{longest}}  {entry.title}")
        else:
            lines += [f"  {name}", *textwrap.wrap(entry.title, max(width, 20), initial_indent="    ")]
    note = "regard lesson NAME shows one; NAME=VALUE after it changes an input and recomputes the results."
    return [*lines, "", *textwrap.wrap(note, max(width, 20))]
