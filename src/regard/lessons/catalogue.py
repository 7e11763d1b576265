"""The lessons in the order of the line. What one computes is in the file of its name, read when it is taught."""

from __future__ import annotations

import difflib
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from regard.errors import ConfigError
from regard.lessons.engine.inputs import Plan
from regard.lessons.engine.lesson import Lesson


@dataclass(frozen=True)
class Entry:
    """A lesson in the table of contents.

    >>> CONTENTS["rnn"].part
    'Recurrent networks'
    """

    part: str
    title: str
    learns: str
    example: str
    """inputs worth trying, as they are typed"""
    needs: tuple[str, ...] = ()
    """small models that it looks into; see lessons/trained.py"""


WORDS, NETWORKS, ATTENTION = "Words and batches", "Recurrent networks", "Attention"
TRANSFORMER, LEARNING = "The Transformer", "Learning and searching"

CONTENTS = {
    "embedding": Entry(
        WORDS,
        "Words as numbers",
        "A text is bytes, a word is a number, a number is a one-hot vector, and a one-hot vector picks a row of a "
        "table: the word's vector. One can calculate with such vectors.",
        "word=thanks",
    ),
    "padding": Entry(
        WORDS,
        "Four proverbs, one batch",
        "Sentences of unequal length become one rectangle of numbers, filled up with <PAD>. A model that is right "
        "never sees the filling: a sentence gives the same numbers alone as among longer ones.",
        "row=1",
    ),
    "rnn": Entry(
        NETWORKS,
        "One cell of a recurrent network",
        "A recurrent cell adds what it remembers to what it reads, bends the sum, and that is what it remembers next.",
        "x=2,0",
    ),
    "bptt": Entry(
        NETWORKS,
        "Backpropagation through time, written out",
        "The gradient of a recurrent network is a sum over time, because the same weights are used at every step. "
        "Written out twice: by the formulas for each weight, and by the recursion that unrolls them.",
        "window=1",
    ),
    "gradients": Entry(
        NETWORKS,
        "Why gradients vanish or explode",
        "From one step to the one before, a gradient is multiplied by the same matrix: over a distance it shrinks or "
        "grows like a power. Gates and attention give it another way.",
        "radius=1.1",
    ),
    "lstm": Entry(
        NETWORKS,
        "An LSTM cell, gate by gate",
        "The cell state is changed by adding, not by a matrix. Three gates between 0 and 1 say what is written, what "
        "is kept and what is shown.",
        "x=0,1",
    ),
    "gru": Entry(
        NETWORKS,
        "A GRU cell, gate by gate",
        "Two gates and no cell of its own: one says how much of the old state is kept, the other how much of it a new "
        "proposal may see. The paper and today's libraries put the second in different places.",
        "h=1,0",
    ),
    "bidirectional": Entry(
        NETWORKS,
        "The same word, another context",
        "Read from the left, a word knows only what came before it. Read from both sides, it also knows what follows.",
        'second="the bank of the town"',
    ),
    "seq2seq": Entry(
        NETWORKS,
        "Through one vector",
        "An encoder reads a sentence and hands over its last state; a decoder says word after word from it, until "
        "<EOS>. All that is known of the sentence must fit into that state.",
        'sentence="Que sera, sera"',
    ),
    "bahdanau": Entry(
        ATTENTION,
        "Additive attention",
        "Before each word the decoder compares its state with every state of the encoder, by a small network. The "
        "softmax of these scores says how much of each goes into the context.",
        "s=0,1",
    ),
    "luong": Entry(
        ATTENTION,
        "Four ways to score, and input feeding",
        "A score can be a plain product, a product through a matrix, a small network or a cosine. Context and state "
        "then become the attention vector, which is fed to the next step.",
        "h=0,1",
    ),
    "attention": Entry(
        ATTENTION,
        "Scaled dot-product attention",
        "Queries meet keys by a matrix product; divided by the root of their width and put through a softmax, the "
        "products are the weights of the values.",
        "y=1,0,0",
    ),
    "evolution-of-attention": Entry(
        ATTENTION,
        "From a small network to a matrix product",
        "RNNsearch scores the encoder's own states by a small network. A Transformer makes keys, queries and values of "
        "them by matrices, and all scores are one product. The same sentence through both.",
        'sentence="elle mange une pomme"',
        ("rnnsearch", "transformer"),
    ),
    "eight-heads": Entry(
        TRANSFORMER,
        "Thinking Machines through eight heads",
        "Several small attentions side by side look at different things at once; one more matrix puts what they found "
        "together.",
        "heads=4",
    ),
    "kinds-of-attention": Entry(
        TRANSFORMER,
        "Self, masked and cross",
        "The same formula three times: a sentence looks at itself, at what was said so far, or at another sentence. "
        "What differs is where queries and keys come from, and who may be seen.",
        'later="[0,0,0]"',
    ),
    "positions": Entry(
        TRANSFORMER,
        "Where a word stands",
        "Attention alone does not see order. A vector for each place brings it in, added to the word's or beside it: a "
        "counter whose digits are waves.",
        'order="[2,1,3]"',
    ),
    "transformer": Entry(
        TRANSFORMER,
        "An encoder and a decoder, step by step",
        "A trained Transformer reads a sentence all at once and says another, word by word: what each part was given, "
        "where it looked, and what it expected.",
        'sentence="elle mange une pomme"',
        ("transformer",),
    ),
    "it": Entry(
        TRANSFORMER,
        'What the word "it" stands for',
        "One word decides what is meant. Where does a translator look when it reads the pronoun, and does that matter "
        "for what it says?",
        "layer=1",
        ("pronoun",),
    ),
    "training": Entry(
        LEARNING,
        "One-hot targets, and a loss that falls",
        "What should be said is a row with a single 1; what a model expects is a row of shares. Training moves one "
        "towards the other: a small Transformer learns a sentence while you wait.",
        "steps=10",
    ),
    "label-smoothing": Entry(
        LEARNING,
        "A target that is not too sure",
        "A little of the target is taken from the right word and spread over the others: the loss then has a lowest "
        "point, and scores do not grow for ever.",
        "smoothing=0.3",
    ),
    "noam": Entry(
        LEARNING,
        "A learning rate that rises and falls",
        "The Transformer paper's schedule: a straight rise, then one over the root of the step; wide models take "
        "smaller steps.",
        "width=1024",
    ),
    "beam-search": Entry(
        LEARNING,
        "Several sentences at once",
        "A beam keeps the likeliest beginnings open instead of one, and so finds sentences that begin badly and end "
        "well. Every branch is one that the search of this package took.",
        "beam=2",
        ("transformer",),
    ),
}


def find(name: str) -> Entry:
    """The entry of a lesson; a name that is none is an error with a guess.

    >>> find("bahdanu")
    Traceback (most recent call last):
    regard.errors.ConfigError: there is no lesson "bahdanu"; did you mean "bahdanau"?
    """
    if name not in CONTENTS:
        close = difflib.get_close_matches(name.lower(), CONTENTS, n=1, cutoff=0.5)
        guess = f'did you mean "{close[0]}"?' if close else f"there are {', '.join(CONTENTS)}"
        raise ConfigError(f'there is no lesson "{name}"; {guess}')
    return CONTENTS[name]


def plan(name: str) -> Plan:
    """What a lesson asks for, and how it is worked out.

    >>> [put.name for put in plan("rnn").inputs]
    ['U', 'V', 'W', 'h', 'x', 'b', 'f', 'b_o', 'g']
    """
    find(name)
    return import_module(f"regard.lessons.{name.replace('-', '_')}").PLAN


def teach(name: str, changes: Mapping[str, Any] | None = None) -> Lesson:
    """A lesson, worked out: with the lecture's numbers, or with some of them changed.

    >>> teach("rnn").value("o").data, teach("rnn", {"x": [2, 0]}).value("o").data
    (1.0, 2.0)
    """
    entry, asked = find(name), plan(name)
    inputs = asked.resolve(changes or {})
    work = asked.work({given.value.name: given.value for given in inputs})
    return Lesson(name, entry.title, entry.learns, inputs, work.steps, work.checks)


def listing(width: int) -> list[str]:
    """The table of contents in lines; a title that does not fit beside its name stands below it.

    >>> print(*listing(60)[:3], sep="\\n")
    Words and batches
      embedding               Words as numbers
      padding                 Four proverbs, one batch
    """
    lines, part, longest = list[str](), "", max(map(len, CONTENTS))
    for name, entry in CONTENTS.items():
        if entry.part != part:
            lines += [*([""] if part else []), entry.part]
            part = entry.part
        if longest + 4 + len(entry.title) <= width:
            lines.append(f"  {name:{longest}}  {entry.title}")
        else:
            lines += [f"  {name}", *textwrap.wrap(entry.title, max(width, 20), initial_indent="    ")]
    said = "regard lesson NAME shows one; NAME=VALUE after it changes an input, and what follows."
    return [*lines, "", *textwrap.wrap(said, max(width, 20))]
