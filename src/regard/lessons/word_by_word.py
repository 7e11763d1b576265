"""Lesson: "Soy orador MadPy", read word by word by an encoder, and translated word by word by a decoder."""

from __future__ import annotations

import torch
from torch import Tensor

from regard.decode import Beam, search
from regard.lessons.engine.builder import Input, LessonBuilder, value
from regard.lessons.engine.exercises import Exercise
from regard.lessons.engine.layers import max_difference
from regard.lessons.engine.reading import Reading
from regard.lessons.seq2seq import train_pairs
from regard.sequence import SOS, Tokens
from regard.trace import record

SOURCES = ("Soy orador MadPy", "Soy estudiante", "Soy orador", "No soy estudiante", "Soy estudiante MadPy")
TARGETS = ("I am a MadPy speaker", "I am a student", "I am a speaker", "I am not a student", "I am a MadPy student")
LIMIT = 10

INPUTS = (
    Input("sentence", SOURCES[0], "source sentence, of words of the five training sentences"),
    Input("other", "Soy estudiante MadPy", "another one, to compare the states with"),
)


def compute(page: LessonBuilder) -> None:
    """State after each word; the state after the last word is what the decoder starts from."""
    source, target, model = train_pairs(SOURCES, TARGETS)
    states, texts = {}, {}
    for name in ("sentence", "other"):
        page.words(name)
        ids = source.ids(page.data(name))
        read = Tokens.pad([ids])
        with record(model) as trace, torch.no_grad():
            memory = model.encoder(read)
        states[name] = torch.cat([seen.data for seen in trace.find("encoder.*.hidden")])
        best = search(model, read, Tokens.pad([[SOS]]), Beam(1), torch.tensor([LIMIT]))[0][0]
        texts[name] = target.words([i for i in best.tokens if i > 3])
        page.compare(f"the last state and the context, {name}", memory.final[0][0][0], states[name][-1], 1e-6)
    words = source.words(source.ids(page.data("sentence")))
    page.step(
        "Words become ids",
        "One number per word; a word that no training sentence has is <UNK>. The model, a GRU, was trained just now on "
        "five sentences about speakers and students.",
        "",
        "sentence",
        value("ids", source.ids(page.data("sentence")), "word", r"\text{ids}", {"word": words}),
    )
    _read(page, states["sentence"], words)
    page.step(
        "Word by word, out again",
        "The decoder starts from that state and generates one word after the other until <EOS>.",
        r"y_t = \argmax p(y \mid y_{<t}, c)",
        "states sentence",
        value("output", texts["sentence"] or ["nothing"], "place", r"\text{output}"),
    )
    apart = [max_difference(one, other) for one, other in zip(states["sentence"], states["other"])]
    page.step(
        "Another sentence beside it",
        "The largest difference of the two states after each word: none as long as the words are the same. From the "
        "first different word on the states differ, also where the words agree again.",
        r"\max | h_t - h'_t |",
        "states other",
        value(
            "apart", apart, "place", r"\text{difference}", {"place": [str(t + 1) for t in range(len(apart))]}, "line"
        ),
        value("other_output", texts["other"] or ["nothing"], "place", r"\text{the other one}"),
    )
    page.expect("Soy orador MadPy", TARGETS[0].split(), "output")


def _read(page: LessonBuilder, h: Tensor, words: list[str]) -> None:
    """A step for each word, then all states."""
    using = "ids"
    for t, word in enumerate(words, 1):
        before = h[t - 2] if t > 1 else torch.zeros_like(h[0])
        page.step(
            f"Word {t}: {word}",
            "The state starts at zero. The word's vector and the state before it give the next state; how much it "
            "changed is the word's contribution at this moment."
            if t == 1
            else "",
            "h_t = f(h_{t-1}, x_t)" if t == 1 else "",
            using,
            value(f"h_{t}", h[t - 1], "unit", f"h_{{{t}}}"),
            value(f"moved_{t}", float((h[t - 1] - before).norm()), "", f"\\| h_{{{t}}} - h_{{{t - 1}}} \\|"),
        )
        using = f"ids h_{t}"
    page.step(
        "The whole sentence",
        "After the last word the state stands for the sentence. All states, one row per word.",
        f"c = h_{{{len(words)}}}",
        using,
        value("states", h, "word unit", "h", {"word": words}, "signed"),
    )


FIGURE = "sentence > ids > h_1 > h_2 > h_3 > output; ids > h_2; ids > h_3"
EXERCISES = (
    Exercise(
        "After the first word, how far apart are the states of Soy orador MadPy and Soy estudiante MadPy?",
        lambda lesson: lesson.value("apart").data[0],
        hint="so far both sentences are the same",
    ),
    Exercise(
        "What does the decoder make of Soy estudiante? Four words.",
        "output",
        {"sentence": "Soy estudiante"},
        hint="I am a ...",
    ),
)
READING = Reading(
    '"Soy orador MadPy", read word by word',
    ("encoder RNN", "hidden state", "context vector", "autoregressive decoder"),
    (
        "Sutskever, Vinyals and Le 2014, Sequence to sequence learning with neural networks",
        "Cho et al. 2014, On the properties of neural machine translation: encoder-decoder approaches",
    ),
)
