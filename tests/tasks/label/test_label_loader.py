"""Tagged sentences become batches, and predictions are joined to labeled texts."""

from __future__ import annotations

import random
from collections import Counter
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from helpers import refusal
from regard.distributed import ProcessGroup
from regard.errors import ConfigError, DataError
from regard.metrics.labels import TokenAccuracy
from regard.models import EncoderOnlyConfig
from regard.models.base import Tagger
from regard.models.convolution import ConvolutionConfig
from regard.models.crf_tagger import CRFTagger
from regard.models.mlp import MLPConfig
from regard.models.recurrent import RecurrentConfig
from regard.models.transformer import TransformerConfig
from regard.objective import Batch, Objective, PerToken
from regard.sequence import Padded, Tokens
from regard.spaces import Angles, Classes, Space, Values
from regard.tasks.label import baseline, targets, vocab
from regard.tasks.label.baseline import load_baseline
from regard.tasks.label.config import CharCNNConfig, CharLSTMConfig, LabelConfig, NoCharEncoder, input_space
from regard.tasks.label.loader import LabelLoader
from regard.tasks.label.predict import LabelPredictor
from regard.tasks.label.prepare import REPAIRED, TOO_LONG, UNSEEN, LabelPreparation
from regard.tasks.label.sources import ConllFiles, TaggedTsv
from regard.tasks.label.targets import CRFTask, TagTarget, TargetKind, TokenPrediction, ViterbiDecoding, load_target
from regard.tasks.label.vocab import WordTypes, WordVocab
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
    data = ConllFiles(train=conll(folder, tagged(sentences())), valid_share=0.2)
    LabelPreparation(data, LabelConfig(char_encoder=CharCNNConfig())).run(folder)
    return folder


def loader(folder: Path, group: ProcessGroup = ProcessGroup()) -> LabelLoader:  # noqa: B008
    return LabelLoader.open(folder, load_target(folder, "tags", "word", None, False), BUDGET, 1, group)


def read_back(folder: Path, batch: Batch) -> list[tuple[str, ...]]:
    """The words and tags of a batch, decoded by the vocabulary and the targets."""
    words, names = WordVocab.load(folder / vocab.FILE), loader(folder).target.to_dict()["tags"]
    rows = zip(batch.source.data[..., 0].tolist(), batch.target.data.tolist(), batch.source.lengths.tolist())
    return [
        tuple(f"{words.word(i)}/{names[t]}" for i, t in zip(ids[:n], tags[:n], strict=True)) for ids, tags, n in rows
    ]


def epoch(made: LabelLoader) -> list[Batch]:
    return [batch for batch, _ in islice(made.train_batches(None), made.batches_per_epoch())]


# The loader


def test_an_epoch_has_every_sentence_once_with_its_own_tags_within_the_budget(prepared: Path) -> None:
    made = loader(prepared)
    batches = epoch(made)
    seen = Counter(row for batch in batches for row in read_back(prepared, batch))
    held_out = Counter(row for batch in made.valid_batches() for row in read_back(prepared, batch))
    expected = Counter(tuple(f"{word}/{tag}" for word, tag in row) for row in tagged(sentences()))
    assert seen + held_out == expected and not seen & held_out and len(held_out) > 5
    assert all(batch.source.data.shape[0] * batch.source.data.shape[1] <= BUDGET for batch in batches)
    assert all(batch.source.lengths.tolist() == batch.target.lengths.tolist() for batch in batches)


def test_characters_spell_their_words_and_padding_is_zero(prepared: Path) -> None:
    words, batch = WordVocab.load(prepared / vocab.FILE), next(loader(prepared).train_batches(None))[0]
    for ids, length in zip(batch.source.data, batch.source.lengths.tolist(), strict=True):
        for row in ids[:length].tolist():
            letters = "".join(words.chars[i - 2] for i in row[1:] if i)
            assert letters == words.word(row[0])
        assert ids[length:].abs().sum() == 0


def test_the_loader_resumes_at_any_position(prepared: Path) -> None:
    made = loader(prepared)
    batches = list(islice(made.train_batches(None), 2 * made.batches_per_epoch() + 3))
    for i in range(0, len(batches) - 1, 5):
        batch, after = next(loader(prepared).train_batches(batches[i][1]))
        assert after == batches[i + 1][1]
        assert torch.equal(batch.source.data, batches[i + 1][0].source.data)


def test_processes_share_each_batch(prepared: Path) -> None:
    parts = [epoch(loader(prepared, ProcessGroup(rank=rank, size=3))) for rank in range(3)]
    for batch, *shares in zip(epoch(loader(prepared)), *parts, strict=True):
        rows = [row for share in shares for row in read_back(prepared, share)]
        assert sorted(rows) == sorted(read_back(prepared, batch))


def test_words_and_labels_are_read_back_unchanged(prepared: Path) -> None:
    made = loader(prepared)
    rows = np.arange(len(made.train))
    found, references = made.words(made.train, rows), made.references(made.train, rows)
    assert all(tags == [TAGS.get(word, "V") for word in row] for row, tags in zip(found, references, strict=True))
    assert all(row in sentences() for row in found)


# Preparation


def prepare(folder: Path, train: str, valid: str, task: LabelConfig = LabelConfig(), **data: Any) -> dict[str, Any]:  # noqa: B008
    source = ConllFiles(train=train, valid=valid, **data)
    return {split: dict(counts) for split, counts in LabelPreparation(source, task).run(folder / "out").items()}


def test_spans_that_do_not_begin_with_b_are_repaired_and_counted(tmp_path: Path) -> None:
    rows = [[("a", "O"), ("b", "I-X"), ("c", "I-X"), ("d", "B-Y"), ("e", "I-X")]]
    counts = prepare(tmp_path, conll(tmp_path, rows), conll(tmp_path, rows, "v"), LabelConfig(scheme="bio"))
    assert counts["train"][REPAIRED] == 2
    target = load_target(tmp_path / "out", "tags", "word", "bio", False)
    made = LabelLoader.open(tmp_path / "out", target, BUDGET, 1)
    assert made.references(made.train, np.array([0])) == [["O", "B-X", "I-X", "B-Y", "B-X"]]


def test_a_strict_task_refuses_them_and_names_the_line(tmp_path: Path) -> None:
    train = conll(tmp_path, [[("a", "O"), ("b", "I-X")]])
    strict = LabelConfig(scheme="bio", strict=True)
    assert refusal(DataError, lambda: prepare(tmp_path, train, train, strict)) == (
        f'{train}, line 2: "I-X" is not allowed there in BIO, "B-X" would be valid; fix the data, or let it be '
        "repaired with task.strict = false"
    )


def test_a_tag_outside_the_scheme_is_reported(tmp_path: Path) -> None:
    train = conll(tmp_path, [[("a", "O"), ("b", "NOUN")]])
    assert refusal(DataError, lambda: prepare(tmp_path, train, train, LabelConfig(scheme="bioes"))) == (
        f'{train}, line 2: "NOUN" is not a tag of task.scheme = "bioes", which has B-X, I-X, E-X and S-X and O; if '
        'tags are not spans, use task.scheme = "none"'
    )


def test_validation_drops_and_counts_unseen_tags_or_refuses_them(tmp_path: Path) -> None:
    train = conll(tmp_path, [[("a", "X"), ("b", "Y")]])
    valid = conll(tmp_path, [[("a", "X")], [("b", "Z")]], "v.conll")
    assert prepare(tmp_path, train, valid)["valid"][UNSEEN] == 1
    assert refusal(DataError, lambda: prepare(tmp_path, train, valid, LabelConfig(strict=True))) == (
        f'{valid}, line 3: the tag "Z" was never seen in training; fix the data, or let it count as an error with '
        "task.strict = false"
    )


def test_sentences_that_are_too_long_are_left_out_and_counted(tmp_path: Path) -> None:
    train = conll(tmp_path, [[("a", "X")] * 9, [("a", "X"), ("b", "Y")]])
    assert prepare(tmp_path, train, train, LabelConfig(max_length=8))["train"] == {
        "read": 2, "tokens": 2, TOO_LONG: 1, REPAIRED: 0, UNSEEN: 0,
    }  # fmt: skip
    assert refusal(DataError, lambda: prepare(tmp_path, train, train, LabelConfig(max_length=1))) == (
        "each of the 2 sentences of train has more than 1 tokens; raise task.max_length"
    )


def test_a_single_tag_is_refused(tmp_path: Path) -> None:
    train = conll(tmp_path, [[("a", "X"), ("b", "X")]])
    assert refusal(DataError, lambda: prepare(tmp_path, train, train)) == (
        'every token of train has the tag "X"; there is nothing to learn; is data.tag the right column?'
    )


def test_numbers_are_scaled_by_training_and_come_back(tmp_path: Path) -> None:
    train = conll(tmp_path, [[("a", "10"), ("b", "30")], [("a", "20.5")]])
    prepare(tmp_path, train, train, label_type="numbers")
    target = load_target(tmp_path / "out", "numbers", "word", None, False)
    made = LabelLoader.open(tmp_path / "out", target, BUDGET, 1)
    assert made.references(made.train, np.arange(2)) == [["10", "30"], ["20.5"]]
    values = torch.cat(
        [b.target.data[b.target.mask] for b, _ in islice(made.train_batches(None), made.batches_per_epoch())]
    )
    torch.testing.assert_close(values.mean(), torch.zeros(()), atol=1e-5, rtol=0)
    bad = conll(tmp_path, [[("a", "1")], [("b", "inf")]], "bad")
    assert refusal(DataError, lambda: prepare(tmp_path, bad, bad, label_type="numbers")) == (
        f'{bad}, line 3: "inf" is not a number'
    )


def test_the_baseline_predicts_the_most_frequent_tags(tmp_path: Path) -> None:
    train = conll(tmp_path, [[("a", "X"), ("b", "Y")], [("a", "Z"), ("b", "Y")], [("a", "Z")]])
    prepare(tmp_path, train, train)
    assert load_baseline(tmp_path / "out", "tags").predict(["a", "b", "new"]) == ["Z", "Y", "Y"]


# Models


ENCODERS: dict[str, EncoderOnlyConfig] = {
    "lstm": RecurrentConfig(width=24, dropout=0.1),
    "gru": RecurrentConfig(cell="gru", layers=2, width=24, dropout=0.1),
    "tanh": RecurrentConfig(cell="tanh", width=24, bidirectional=False, dropout=0.1),
    "convolution": ConvolutionConfig(layers=2, width=24),
    "transformer": TransformerConfig(layers=1, width=24, ffn_width=32, heads=2),
    "mlp": MLPConfig(width=24),
}
LETTERS = {
    "none": NoCharEncoder(),
    "convolution": CharCNNConfig(width=8, embedding=5),
    "lstm": CharLSTMConfig(width=8, embedding=5),
}
VOCAB = WordVocab(("the", "cat", "sat"), tuple("acehst"))
TEXT = [["the", "cat", "sat", "there"], ["cat"], ["teeth", "sat"]]


def source_of(words: list[list[str]], letters: str) -> Tokens:
    word_vocab = VOCAB if letters != "none" else WordVocab(VOCAB.words, ())
    every = [word for row in words for word in row]
    return WordTypes.encode(every, word_vocab).collate([np.array([every.index(word) for word in row]) for row in words])


def model_of(encoder: str, letters: str, space: Space, chained: bool = False) -> Any:
    torch.manual_seed(0)
    config = LETTERS[letters]
    made = ENCODERS[encoder].build_encoder(input_space(VOCAB, config))
    return CRFTagger(made, space, made.width) if chained else Tagger(made, space, made.width)  # type: ignore[arg-type]


@pytest.mark.parametrize("letters", LETTERS)
@pytest.mark.parametrize("encoder", ENCODERS)
@torch.no_grad()
def test_padding_and_other_rows_change_nothing(encoder: str, letters: str) -> None:
    model = model_of(encoder, letters, Classes(4)).eval()
    batched = model(source_of(TEXT, letters))
    for i, row in enumerate(TEXT):
        torch.testing.assert_close(model(source_of([row], letters))[0], batched[i, : len(row)], atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("chained", [False, True], ids=["each", "chain"])
@pytest.mark.parametrize("letters", LETTERS)
def test_every_parameter_learns(letters: str, chained: bool) -> None:
    space = Classes(4)
    model = model_of("lstm", letters, space, chained).train()
    batch = Batch(source_of(TEXT, letters), Tokens.pad([[0, 1, 2, 3], [1], [3, 2]]))
    objective = Objective(model, CRFTask(space) if chained else PerToken(space))
    objective(batch)[0].mean(objective.task.counts(batch)).backward()
    dead = [n for n, p in model.named_parameters() if p.grad is None or p.grad.abs().max() == 0]
    assert dead == []


@pytest.mark.parametrize("chained", [False, True], ids=["each", "chain"])
def test_the_losses_of_shares_sum_to_that_of_the_batch(chained: bool) -> None:
    space = Classes(4)
    model, labels = model_of("gru", "convolution", space, chained).eval(), [[0, 1, 2, 3], [1], [3, 2]]
    objective = Objective(model, CRFTask(space) if chained else PerToken(space)).eval()

    def total(rows: list[int]) -> torch.Tensor:
        source = source_of([TEXT[i] for i in rows], "convolution")
        return objective(Batch(source, Tokens.pad([labels[i] for i in rows])))[0].totals["each"]

    torch.testing.assert_close(total([0, 1, 2]), total([0, 2]) + total([1]), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("letters", LETTERS)
def test_every_tagger_runs_on_the_meta_device(letters: str) -> None:
    space = Classes(4)
    with torch.device("meta"):
        model = model_of("lstm", letters, space, chained=True)
        ids = torch.zeros((3, 5) if letters == "none" else (3, 5, 7), dtype=torch.long)
        batch = Batch(Tokens.full(ids), Tokens.full(torch.zeros(3, 5, dtype=torch.long)))
    loss = Objective(model, CRFTask(space))(batch)[0].totals["each"]
    assert loss.is_meta and loss.shape == ()


@pytest.mark.parametrize("space", [Values(1), Angles(1)], ids=["numbers", "angles"])
def test_real_values_have_a_loss_per_token_and_padding_has_none(space: Space) -> None:
    model, source = model_of("gru", "lstm", space).eval(), source_of(TEXT, "lstm")
    rows = [np.array(row, np.float32) for row in ([0.1, 0.2, 0.3, 0.4], [1.0], [-1.0, 2.0])]
    batch = Batch(source, Tokens.pad([row[:, None] for row in rows]))
    whole = Objective(model, PerToken(space)).eval()(batch)[0].totals["each"]
    alone = sum(
        Objective(model, PerToken(space))
        .eval()(Batch(source_of([words], "lstm"), Tokens.pad([row[:, None]])))[0]
        .totals["each"]
        for words, row in zip(TEXT, rows, strict=True)
    )
    torch.testing.assert_close(whole, alone, atol=1e-5, rtol=1e-5)


def test_recording_shows_states_under_the_words_and_changes_nothing() -> None:
    model, source = model_of("lstm", "lstm", Classes(4)).eval(), source_of(TEXT[:1], "lstm")
    with torch.no_grad(), record(model) as trace:
        seen = model(source)
        torch.testing.assert_close(seen, model(source), atol=1e-5, rtol=1e-5)
    hidden = trace.find("encoder.stack.*.forward_layer.hidden")
    assert len(hidden) == 2 * 4 and hidden[0].data.shape == (1, 24)
    assert all(r.context["reads"] == "characters" for r in trace.find("encoder.embed.chars.*.hidden"))


def test_a_character_encoder_that_leaves_no_width_for_the_word_is_refused() -> None:
    space = input_space(VOCAB, CharCNNConfig(width=24))
    assert refusal(ConfigError, lambda: space.embed(24)) == (
        "task.char_encoder.width = 24 leaves nothing of model.width = 24 for the word embedding"
    )


def test_viterbi_decoding_never_violates_the_scheme() -> None:
    names = ("O", "B-X", "I-X", "B-Y", "I-Y")
    tags = TagTarget(names, ViterbiDecoding(names, "bio"))
    model = model_of("lstm", "none", tags.space(), chained=True).eval()
    torch.manual_seed(1)
    out = Padded(torch.randn(50, 9, 5) * 5, torch.randint(1, 10, (50,)))
    for row in tags.predict(out, model):
        before = "O"
        for one in row:
            assert not one.label.startswith("I") or before[1:] == one.label[1:]
            assert one.probability is not None and 0 <= one.probability <= 1
            before = one.label


# Long texts


class Echo(torch.nn.Module):
    """Outputs per token the smaller of its left and right context, at most 9."""

    def __init__(self) -> None:
        super().__init__()
        self.readout, self.longest = torch.nn.Identity(), 0

    def forward(self, source: Tokens) -> torch.Tensor:
        self.longest = max(self.longest, source.data.shape[1])
        place = torch.arange(source.data.shape[1]).expand(source.data.shape[:2])
        return torch.minimum(place, source.lengths[:, None] - 1 - place).clamp(max=9)[..., None].float()


class Depth(TargetKind):
    """The output of Echo as it is."""

    column, metric = 1, TokenAccuracy()

    def space(self, smoothing: float = 0.0) -> Space:
        return Values(1)

    def encode(self, sentence: Any) -> list[int]:
        return []

    def decode(self, row: np.ndarray) -> list[str]:
        return []

    def collate(self, rows: Any) -> Tokens:
        return Tokens.pad([])

    def predict(self, out: Padded, model: Any) -> list[list[TokenPrediction]]:
        return [
            [TokenPrediction(str(int(v))) for v in row[:n, 0]]
            for row, n in zip(out.data, out.lengths.tolist(), strict=True)
        ]

    def to_dict(self) -> dict[str, Any]:
        return {}


@pytest.mark.parametrize("length", [0, 1, 64, 65, 97, 640, 1001])
def test_a_long_text_is_read_in_overlapping_windows_and_each_token_is_labeled_once(length: int) -> None:
    echo = Echo()
    predictor = LabelPredictor(echo, WordVocab(("a",), ()), Depth(), window=64)
    text = " ".join("a" for _ in range(length))
    found = predictor.label(["a a", text])
    assert [token.text for token in found[1].tokens] == ["a"] * length
    assert [token.start for token in found[1].tokens] == [2 * i for i in range(length)]
    assert echo.longest <= 64
    # away from the text's own ends every token saw at least nine neighbors on both sides
    assert [token.tag for token in found[1].tokens] == [str(min(i, length - 1 - i, 9)) for i in range(length)]
    assert [token.tag for token in found[0].tokens] == ["0", "0"]


def test_tsv_and_conll_files_prepare_the_same(tmp_path: Path) -> None:
    rows = tagged(sentences(30))
    lines = "".join(f"{' '.join(w for w, _ in row)}\t{' '.join(t for _, t in row)}\n" for row in rows)
    (tmp_path / "a.tsv").write_text(lines, encoding="utf-8")
    for name, data in (
        ("tsv", TaggedTsv(train=str(tmp_path / "a.tsv"), valid_share=0.2)),
        ("conll", ConllFiles(train=conll(tmp_path, rows), valid_share=0.2)),
    ):
        LabelPreparation(data).run(tmp_path / name)
    for file in (vocab.FILE, targets.FILE, baseline.FILE, "train/words.ids", "train/tags.ids"):
        assert (tmp_path / "tsv" / file).read_bytes() == (tmp_path / "conll" / file).read_bytes()
