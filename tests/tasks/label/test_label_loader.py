"""Tagged sentences become batches, and what is labelled is put together again."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from regard.distributed import World
from regard.errors import ConfigError, DataError, RegardError
from regard.models import ReaderConfig
from regard.models.base import Tagger
from regard.models.convolution import ConvolutionConfig
from regard.models.crf_tagger import ChainTagger
from regard.models.mlp import MLPConfig
from regard.models.recurrent import RecurrentConfig
from regard.models.transformer import TransformerConfig
from regard.objective import Batch, Each, Objective
from regard.sequence import Padded, Tokens
from regard.spaces import Angles, Classes, Space, Values
from regard.tasks.label import baseline
from regard.tasks.label import targets as said_at
from regard.tasks.label.letters import ConvolvedLetters, NoLetters, RecurrentLetters, Types, space_of
from regard.tasks.label.predict import Labeller
from regard.tasks.label.prepare import (
    REPAIRED,
    SPELLING,
    TOO_LONG,
    UNSEEN,
    Chain,
    LabelConfig,
    LabelFeed,
    LabelPreparation,
)
from regard.tasks.label.sources import Columns, Lines
from regard.tasks.label.targets import Answers, Chained, Said, Tags
from regard.text.word_vocab import Spelling
from regard.trace import record

BUDGET = 40
WORDS = "the cat sat on a mat and Ada slept".split()  # noqa: SIM905
TAGS = {"the": "D", "a": "D", "cat": "N", "mat": "N", "Ada": "P", "on": "I", "and": "C"}


def sentences(count: int = 120) -> list[list[str]]:
    draw = random.Random(1)
    return [draw.choices(WORDS, k=1 + i % 9) for i in range(count)]


def conll(folder: Path, rows: list[list[tuple[str, str]]], name: str = "a.conll") -> str:
    text = "".join("".join(f"{word} {tag}\n" for word, tag in row) + "\n" for row in rows)
    (folder / name).write_text(text, encoding="utf-8")
    return str(folder / name)


def tagged(words: list[list[str]]) -> list[list[tuple[str, str]]]:
    return [[(word, TAGS.get(word, "V")) for word in row] for row in words]


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("prepared")
    data = Columns(train=conll(folder, tagged(sentences())), held_out=0.2)
    LabelPreparation(data, LabelConfig(letters=ConvolvedLetters())).run(folder)
    return folder


def feed(folder: Path, world: World = World()) -> LabelFeed:  # noqa: B008
    return LabelFeed.open(folder, said_at.load(folder, "tags", "word", None, False), BUDGET, 1, world)


def refusal(kind: type[RegardError], act: Callable[[], object]) -> str:
    with pytest.raises(kind) as caught:
        act()
    return str(caught.value)


def read_back(folder: Path, batch: Batch) -> list[tuple[str, ...]]:
    """The words and tags of a batch, by the vocabulary and the tags alone."""
    spelling, names = Spelling.load(folder / SPELLING), feed(folder).answers.to_dict()["tags"]
    rows = zip(batch.source.data[..., 0].tolist(), batch.target.data.tolist(), batch.source.lengths.tolist())
    return [
        tuple(f"{spelling.spelled(i)}/{names[t]}" for i, t in zip(ids[:n], tags[:n], strict=True))
        for ids, tags, n in rows
    ]


def epoch(made: LabelFeed) -> list[Batch]:
    return [batch for batch, _ in islice(made.stream(None), made.epoch())]


# The feed


def test_an_epoch_has_every_sentence_once_with_its_own_tags_within_the_budget(prepared: Path) -> None:
    made = feed(prepared)
    batches = epoch(made)
    seen = Counter(row for batch in batches for row in read_back(prepared, batch))
    held = Counter(row for batch in made.valid() for row in read_back(prepared, batch))
    wanted = Counter(tuple(f"{word}/{tag}" for word, tag in row) for row in tagged(sentences()))
    assert seen + held == wanted and not seen & held and len(held) > 5
    assert all(batch.source.data.shape[0] * batch.source.data.shape[1] <= BUDGET for batch in batches)
    assert all(batch.source.lengths.tolist() == batch.target.lengths.tolist() for batch in batches)


def test_letters_spell_their_words_and_padding_is_nothing(prepared: Path) -> None:
    spelling, batch = Spelling.load(prepared / SPELLING), next(feed(prepared).stream(None))[0]
    for ids, length in zip(batch.source.data, batch.source.lengths.tolist(), strict=True):
        for row in ids[:length].tolist():
            letters = "".join(spelling.letters[i - 2] for i in row[1:] if i)
            assert letters == spelling.spelled(row[0])
        assert ids[length:].abs().sum() == 0


def test_a_stream_goes_on_from_anywhere_as_if_it_had_never_stopped(prepared: Path) -> None:
    made = feed(prepared)
    taken = list(islice(made.stream(None), 2 * made.epoch() + 3))
    for i in range(0, len(taken) - 1, 5):
        batch, after = next(feed(prepared).stream(taken[i][1]))
        assert after == taken[i + 1][1]
        assert torch.equal(batch.source.data, taken[i + 1][0].source.data)


def test_processes_share_each_batch(prepared: Path) -> None:
    parts = [epoch(feed(prepared, World(rank=rank, size=3))) for rank in range(3)]
    for batch, *shares in zip(epoch(feed(prepared)), *parts, strict=True):
        rows = [row for share in shares for row in read_back(prepared, share)]
        assert sorted(rows) == sorted(read_back(prepared, batch))


def test_samples_are_spelled_as_they_came(prepared: Path) -> None:
    made = feed(prepared)
    rows = np.arange(len(made.train))
    words, wanted = made.words(made.train, rows), made.wanted(made.train, rows)
    assert all(tags == [TAGS.get(word, "V") for word in row] for row, tags in zip(words, wanted, strict=True))
    assert all(row in sentences() for row in words)


# Preparation


def prepare(folder: Path, train: str, valid: str, task: LabelConfig = LabelConfig(), **data: Any) -> dict[str, Any]:  # noqa: B008
    given = Columns(train=train, valid=valid, **data)
    return {split: dict(counts) for split, counts in LabelPreparation(given, task).run(folder / "out").items()}


def test_spans_that_do_not_begin_with_b_are_repaired_and_counted(tmp_path: Path) -> None:
    rows = [[("a", "O"), ("b", "I-X"), ("c", "I-X"), ("d", "B-Y"), ("e", "I-X")]]
    counts = prepare(tmp_path, conll(tmp_path, rows), conll(tmp_path, rows, "v"), LabelConfig(scheme="bio"))
    assert counts["train"][REPAIRED] == 2
    answers = said_at.load(tmp_path / "out", "tags", "word", "bio", False)
    made = LabelFeed.open(tmp_path / "out", answers, BUDGET, 1)
    assert made.wanted(made.train, np.array([0])) == [["O", "B-X", "I-X", "B-Y", "B-X"]]


def test_a_strict_task_refuses_them_and_names_the_line(tmp_path: Path) -> None:
    train = conll(tmp_path, [[("a", "O"), ("b", "I-X")]])
    strict = LabelConfig(scheme="bio", strict=True)
    assert refusal(DataError, lambda: prepare(tmp_path, train, train, strict)) == (
        f'{train}, line 2: "I-X" cannot stand there in BIO, "B-X" would be right; mend the data, or let it be repaired '
        "with task.strict = false"
    )


def test_a_tag_that_is_none_of_the_scheme_is_told(tmp_path: Path) -> None:
    train = conll(tmp_path, [[("a", "O"), ("b", "NOUN")]])
    assert refusal(DataError, lambda: prepare(tmp_path, train, train, LabelConfig(scheme="bioes"))) == (
        f'{train}, line 2: "NOUN" is no tag of task.scheme = "bioes", which has B-X, I-X, E-X and S-X and O; if tags '
        'are no spans, use task.scheme = "none"'
    )


def test_validation_leaves_out_and_counts_tags_that_training_never_had_or_refuses_them(tmp_path: Path) -> None:
    train = conll(tmp_path, [[("a", "X"), ("b", "Y")]])
    valid = conll(tmp_path, [[("a", "X")], [("b", "Z")]], "v.conll")
    assert prepare(tmp_path, train, valid)["valid"][UNSEEN] == 1
    assert refusal(DataError, lambda: prepare(tmp_path, train, valid, LabelConfig(strict=True))) == (
        f'{valid}, line 3: the tag "Z" was never seen in training; mend the data, or let it count as a fault with '
        "task.strict = false"
    )


def test_sentences_that_are_too_long_are_left_out_and_counted(tmp_path: Path) -> None:
    train = conll(tmp_path, [[("a", "X")] * 9, [("a", "X"), ("b", "Y")]])
    assert prepare(tmp_path, train, train, LabelConfig(longest=8))["train"] == {
        "read": 2, "places": 2, TOO_LONG: 1, REPAIRED: 0, UNSEEN: 0,
    }  # fmt: skip
    assert refusal(DataError, lambda: prepare(tmp_path, train, train, LabelConfig(longest=1))) == (
        "each of the 2 sentences of train has more than 1 places; raise task.longest"
    )


def test_one_tag_alone_is_nothing_to_learn(tmp_path: Path) -> None:
    train = conll(tmp_path, [[("a", "X"), ("b", "X")]])
    assert refusal(DataError, lambda: prepare(tmp_path, train, train)) == (
        'every place of train has the tag "X"; there is nothing to choose from, is data.tag the right column?'
    )


def test_numbers_are_scaled_by_training_and_come_back(tmp_path: Path) -> None:
    train = conll(tmp_path, [[("a", "10"), ("b", "30")], [("a", "20.5")]])
    prepare(tmp_path, train, train, answer="numbers")
    answers = said_at.load(tmp_path / "out", "numbers", "word", None, False)
    made = LabelFeed.open(tmp_path / "out", answers, BUDGET, 1)
    assert made.wanted(made.train, np.arange(2)) == [["10", "30"], ["20.5"]]
    values = torch.cat([b.target.data[b.target.mask] for b, _ in islice(made.stream(None), made.epoch())])
    torch.testing.assert_close(values.mean(), torch.zeros(()), atol=1e-5, rtol=0)
    bad = conll(tmp_path, [[("a", "1")], [("b", "inf")]], "bad")
    assert refusal(DataError, lambda: prepare(tmp_path, bad, bad, answer="numbers")) == (
        f'{bad}, line 3: "inf" is not a number'
    )


def test_habits_are_the_most_frequent_answers_and_outlive_the_data(tmp_path: Path) -> None:
    train = conll(tmp_path, [[("a", "X"), ("b", "Y")], [("a", "Z"), ("b", "Y")], [("a", "Z")]])
    prepare(tmp_path, train, train)
    assert baseline.load(tmp_path / "out", "tags").said(["a", "b", "new"]) == ["Z", "Y", "Y"]


# Models


ENCODERS: dict[str, ReaderConfig] = {
    "lstm": RecurrentConfig(width=24, dropout=0.1),
    "gru": RecurrentConfig(cell="gru", layers=2, width=24, dropout=0.1),
    "tanh": RecurrentConfig(cell="tanh", width=24, bidirectional=False, dropout=0.1),
    "convolution": ConvolutionConfig(layers=2, width=24),
    "transformer": TransformerConfig(layers=1, width=24, inner=32, heads=2),
    "mlp": MLPConfig(width=24),
}
LETTERS = {
    "none": NoLetters(),
    "convolution": ConvolvedLetters(width=8, embedding=5),
    "lstm": RecurrentLetters(width=8, embedding=5),
}
SPELLED = Spelling(("the", "cat", "sat"), tuple("acehst"))
TEXT = [["the", "cat", "sat", "there"], ["cat"], ["teeth", "sat"]]


def source_of(words: list[list[str]], letters: str) -> Tokens:
    spelling = SPELLED if letters != "none" else Spelling(SPELLED.words, ())
    every = [word for row in words for word in row]
    return Types.of(every, spelling).tokens([np.array([every.index(word) for word in row]) for row in words])


def model_of(encoder: str, letters: str, space: Space, chained: bool = False) -> Any:
    torch.manual_seed(0)
    config = LETTERS[letters]
    made = ENCODERS[encoder].build_encoder(space_of(SPELLED, config))
    return ChainTagger(made, space, made.width) if chained else Tagger(made, space, made.width)  # type: ignore[arg-type]


@pytest.mark.parametrize("letters", LETTERS)
@pytest.mark.parametrize("encoder", ENCODERS)
@torch.no_grad()
def test_padding_and_neighbours_change_nothing(encoder: str, letters: str) -> None:
    model = model_of(encoder, letters, Classes(4)).eval()
    together = model(source_of(TEXT, letters))
    for i, row in enumerate(TEXT):
        torch.testing.assert_close(model(source_of([row], letters))[0], together[i, : len(row)], atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("chained", [False, True], ids=["each", "chain"])
@pytest.mark.parametrize("letters", LETTERS)
def test_every_parameter_learns(letters: str, chained: bool) -> None:
    space = Classes(4)
    model = model_of("lstm", letters, space, chained).train()
    batch = Batch(source_of(TEXT, letters), Tokens.of([[0, 1, 2, 3], [1], [3, 2]]))
    objective = Objective(model, Chain(space) if chained else Each(space))
    objective(batch)[0].over(objective.task.counts(batch)).backward()
    dead = [n for n, p in model.named_parameters() if p.grad is None or p.grad.abs().max() == 0]
    assert dead == []


@pytest.mark.parametrize("chained", [False, True], ids=["each", "chain"])
def test_the_losses_of_shares_sum_to_that_of_the_batch(chained: bool) -> None:
    space = Classes(4)
    model, labels = model_of("gru", "convolution", space, chained).eval(), [[0, 1, 2, 3], [1], [3, 2]]
    objective = Objective(model, Chain(space) if chained else Each(space)).eval()

    def total(rows: list[int]) -> torch.Tensor:
        source = source_of([TEXT[i] for i in rows], "convolution")
        return objective(Batch(source, Tokens.of([labels[i] for i in rows])))[0].totals["each"]

    torch.testing.assert_close(total([0, 1, 2]), total([0, 2]) + total([1]), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("letters", LETTERS)
def test_every_tagger_runs_on_the_meta_device(letters: str) -> None:
    space = Classes(4)
    with torch.device("meta"):
        model = model_of("lstm", letters, space, chained=True)
        ids = torch.zeros((3, 5) if letters == "none" else (3, 5, 7), dtype=torch.long)
        batch = Batch(Tokens.full(ids), Tokens.full(torch.zeros(3, 5, dtype=torch.long)))
        loss = Objective(model, Chain(space))(batch)[0].totals["each"]
    assert loss.is_meta and loss.shape == ()


@pytest.mark.parametrize("space", [Values(1), Angles(1)], ids=["numbers", "angles"])
def test_real_values_have_a_loss_at_each_place_and_padding_none(space: Space) -> None:
    model, source = model_of("gru", "lstm", space).eval(), source_of(TEXT, "lstm")
    rows = [np.array(row, "<f4").view("<u4") for row in ([0.1, 0.2, 0.3, 0.4], [1.0], [-1.0, 2.0])]
    batch = Batch(source, said_at.values_of(rows))
    whole = Objective(model, Each(space)).eval()(batch)[0].totals["each"]
    alone = sum(
        Objective(model, Each(space))
        .eval()(Batch(source_of([words], "lstm"), said_at.values_of([row])))[0]
        .totals["each"]
        for words, row in zip(TEXT, rows, strict=True)
    )
    torch.testing.assert_close(whole, alone, atol=1e-5, rtol=1e-5)


def test_recording_shows_states_under_the_words_and_changes_nothing() -> None:
    model, source = model_of("lstm", "lstm", Classes(4)).eval(), source_of(TEXT[:1], "lstm")
    with torch.no_grad(), record(model) as trace:
        seen = model(source)
        torch.testing.assert_close(seen, model(source), atol=1e-5, rtol=1e-5)
    hidden = trace.find("encoder.stack.*.onward.hidden")
    assert len(hidden) == 2 * 4 and hidden[0].data.shape == (1, 24)
    assert all(r.scene["reads"] == "letters" for r in trace.find("encoder.embed.letters.*.hidden"))


def test_letters_that_leave_nothing_for_the_word_are_refused() -> None:
    space = space_of(SPELLED, ConvolvedLetters(width=24))
    assert refusal(ConfigError, lambda: space.embed(24)) == (
        "task.letters.width = 24 leaves nothing of model.width = 24 for the word itself"
    )


def test_a_chain_of_spans_never_says_what_the_scheme_forbids() -> None:
    names = ("O", "B-X", "I-X", "B-Y", "I-Y")
    tags = Tags(names, Chained(names, "bio"))
    model = model_of("lstm", "none", tags.space(), chained=True).eval()
    torch.manual_seed(1)
    out = Padded(torch.randn(50, 9, 5) * 5, torch.randint(1, 10, (50,)))
    for row in tags.said(out, model):
        before = "O"
        for said in row:
            assert not said.label.startswith("I") or before[1:] == said.label[1:]
            assert said.probability is not None and 0 <= said.probability <= 1
            before = said.label


# Long texts


class Echo(torch.nn.Module):
    """Says at each place how many places it saw to the left and to the right, at most 9."""

    def __init__(self) -> None:
        super().__init__()
        self.readout, self.longest = torch.nn.Identity(), 0

    def forward(self, source: Tokens) -> torch.Tensor:
        self.longest = max(self.longest, source.data.shape[1])
        place = torch.arange(source.data.shape[1]).expand(source.data.shape[:2])
        return torch.minimum(place, source.lengths[:, None] - 1 - place).clamp(max=9)[..., None].float()


class Depth(Answers):
    """What Echo says, as it is."""

    size, measure = 1, said_at.Places()

    def space(self, smoothing: float = 0.0) -> Space:
        return Values(1)

    def encoded(self, sentence: Any) -> list[int]:
        return []

    def decoded(self, row: np.ndarray) -> list[str]:
        return []

    def wanted(self, rows: Any) -> Tokens:
        return Tokens.of([])

    def said(self, out: Padded, model: Any) -> list[list[Said]]:
        return [[Said(str(int(v))) for v in row[:n, 0]] for row, n in zip(out.data, out.lengths.tolist(), strict=True)]

    def to_dict(self) -> dict[str, Any]:
        return {}


@pytest.mark.parametrize("length", [0, 1, 64, 65, 97, 640, 1001])
def test_a_long_text_is_read_in_windows_that_overlap_and_each_place_is_said_once(length: int) -> None:
    echo = Echo()
    labeller = Labeller(echo, Spelling(("a",), ()), Depth(), window=64)
    text = " ".join("a" for _ in range(length))
    found = labeller.label(["a a", text])
    assert [token.text for token in found[1].tokens] == ["a"] * length
    assert [token.start for token in found[1].tokens] == [2 * i for i in range(length)]
    assert echo.longest <= 64
    # away from the text's own ends every place saw at least nine neighbours on both sides
    assert [token.tag for token in found[1].tokens] == [str(min(i, length - 1 - i, 9)) for i in range(length)]
    assert [token.tag for token in found[0].tokens] == ["0", "0"]


def test_tsv_data_prepares_as_columns_do(tmp_path: Path) -> None:
    rows = tagged(sentences(30))
    lines = "".join(f"{' '.join(w for w, _ in row)}\t{' '.join(t for _, t in row)}\n" for row in rows)
    (tmp_path / "a.tsv").write_text(lines, encoding="utf-8")
    for name, data in (
        ("tsv", Lines(train=str(tmp_path / "a.tsv"), held_out=0.2)),
        ("conll", Columns(train=conll(tmp_path, rows), held_out=0.2)),
    ):
        LabelPreparation(data).run(tmp_path / name)
    for file in (SPELLING, said_at.FILE, baseline.FILE, "train/words.ids", "train/tags.ids"):
        assert (tmp_path / "tsv" / file).read_bytes() == (tmp_path / "conll" / file).read_bytes()
