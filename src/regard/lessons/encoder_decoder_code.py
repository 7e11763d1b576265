"""Lesson: the lecture's EncoderRNN and AutoRegressiveDecoder in code of our own, line by line beside what it does."""

from __future__ import annotations

import inspect
import textwrap

import torch
from torch import Tensor

from regard.decode import Beam, search
from regard.lessons.engine.builder import Input, LessonBuilder, Value, value
from regard.lessons.engine.exercises import Exercise
from regard.lessons.engine.reading import Reading
from regard.lessons.proverbs import SPANISH
from regard.lessons.seq2seq import train_on_proverbs
from regard.models.base import Decoder, Encoder
from regard.sequence import EOS, SOS, Memory, Tokens


class EncoderRNN:
    """Embedding and RNN; returns the output at every position and the final hidden state."""

    def __init__(self, encoder: Encoder) -> None:
        self.encoder = encoder

    def __call__(self, ids_BS: Tensor) -> tuple[Tensor, Tensor]:
        memory = self.encoder(Tokens.full(ids_BS))
        return memory.states.data, memory.final[0][0]


class AutoRegressiveDecoder:
    """From a start token until the stop token or a limit; returns ids and stacked logits."""

    def __init__(self, decoder: Decoder, start: int, stop: int, max_length: int) -> None:
        self.decoder, self.start, self.stop, self.max_length = decoder, start, stop, max_length

    def __call__(self, memory: Memory) -> tuple[Tensor, Tensor]:
        state = self.decoder.start(memory, self.max_length)
        output, logits = torch.tensor([[self.start]]), []
        for _ in range(self.max_length):
            features, state = self.decoder(Tokens.full(output[:, -1:]), state)
            logits.append(self.decoder.readout(features[:, -1]))
            output = torch.cat([output, logits[-1].argmax(-1, keepdim=True)], 1)
            if output[0, -1] == self.stop:
                break
        return output[:, 1:], torch.stack(logits, 1)


INPUTS = (
    Input("sentence", SPANISH[3], "source sentence; the vocabulary is that of the four proverbs"),
    Input("max_length", 8, "most words to generate", bounds=(1, 50)),
)
AXES = ["batch", "rounds", "words"]
MEANINGS = {
    "memory = self.encoder": "embeds the ids and runs the RNN over them: one state per word",
    "return memory": "all outputs, one per position, and the hidden state after the last word",
    "state = self": "the decoder's state starts as the encoder's last one: the context",
    "output, logits": "the output begins with the start token; logits are collected in a list",
    "for _ in": "one word per round, at most max_length of them",
    "features, state": "only the last word is read; the state has all words before it",
    "logits.append": "a linear layer: one score per word of the vocabulary",
    "output = torch.cat": "the word with the highest score is appended, and is read in the next round",
    "if output": "the stop token ends the sentence ...",
    "break": "... before the limit",
    "return output": "the ids without the start token, and the logits as one tensor",
}
"""what a line of the two listings does, by its beginning"""


def compute(page: LessonBuilder) -> None:
    """Both classes are shown from their source and run on a trained model of the package."""
    source, target, model = train_on_proverbs()
    page.words("sentence")
    ids = torch.tensor([source.ids(page.data("sentence"))])
    encode, limit = EncoderRNN(model.encoder), page.data("max_length")
    decode = AutoRegressiveDecoder(model.decoder, SOS, EOS, limit)
    with torch.no_grad():
        outputs, hidden = encode(ids)
        answer, logits = decode(model.encoder(Tokens.full(ids)))
    words = {"word": source.words(ids[0].tolist())}
    page.step(
        "The listing: EncoderRNN",
        "The lines of its call, from the code that is run below, each with what it does. The encoder is a GRU of this "
        "package, trained on the four proverbs.",
        "",
        "sentence",
        listing("encoder_code", EncoderRNN),
    )
    page.step(
        "What it returns",
        "The output at every position, and the hidden state: of one layer, that is the last output.",
        r"h_t = f(h_{t-1}, x_t)",
        "sentence",
        value("outputs", outputs[0], "word unit", r"\text{outputs}", words, "signed"),
        value("hidden", hidden[0], "unit", r"\text{hidden}"),
    )
    page.step(
        "The listing: AutoRegressiveDecoder",
        "It gets a start token, a stop token and a maximal length.",
        "",
        "max_length",
        listing("decoder_code", AutoRegressiveDecoder),
    )
    made = target.words(answer[0].tolist())
    best = {"place": made, "word": target.words(list(range(target.size)))}
    page.step(
        "What it returns",
        "Ids, and stacked logits: rounds x words of the vocabulary. Their softmax, a row per round.",
        r"y_t = \argmax_i l_{t, i}",
        "hidden max_length",
        value("ids", answer[0], "place", r"\text{ids}", {"place": made}),
        value("words", made, "place", r"\text{words}"),
        value("shape", list(logits.shape), "axis", r"\text{shape of the logits}", {"axis": AXES}),
        value("p", logits[0].softmax(-1), "place word", "p", best, "weights"),
    )
    ((greedy,),) = search(model, Tokens.full(ids), Tokens.pad([[SOS]]), Beam(1), torch.tensor([limit]))
    page.compare("this loop and the package's greedy search", list(greedy.tokens), answer[0].tolist(), 0)
    page.compare("the hidden state and the last output", hidden[0], outputs[0, -1])


def listing(name: str, cls: type) -> Value:
    """The lines of a class's call with their indentation, each with what it does."""
    _, _, body = inspect.getsource(cls.__call__).partition("\n")
    rows = [[line, _meaning(line.strip())] for line in textwrap.dedent(body).splitlines()]
    labels = {"line": [f"line {i + 1}" for i in range(len(rows))], "column": ["code", "what it does"]}
    return value(name, rows, "line column", rf"\text{{{cls.__name__}}}", labels, "listing")


def _meaning(line: str) -> str:
    return next(meaning for start, meaning in MEANINGS.items() if line.startswith(start))


FIGURE = (
    "sentence > embedding > RNN > outputs; RNN > hidden > decoder > logits > argmax > ids > decoder#2; max_length > ids"
)
EXERCISES = (
    Exercise(
        "With max_length = 2, how many rounds do the logits have?",
        lambda lesson: lesson.value("shape").data[1],
        {"max_length": 2},
        hint="the loop ends at the limit",
    ),
    Exercise(
        "Nunca es tarde para aprender has five words. How many outputs does the encoder return for it?",
        lambda lesson: len(lesson.value("outputs").data),
        {"sentence": SPANISH[2]},
        hint="one per position",
    ),
)
READING = Reading(
    "The lecture's EncoderRNN and AutoRegressiveDecoder",
    ("encoder", "autoregressive decoder", "start and stop token", "greedy decoding", "logits"),
    (
        "Sutskever, Vinyals and Le 2014, Sequence to sequence learning with neural networks",
        "Cho et al. 2014, Learning phrase representations using RNN encoder-decoder",
    ),
)
