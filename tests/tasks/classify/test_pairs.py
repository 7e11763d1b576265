"""Pairs of texts: reading, truncation, segments, training and use, and refused input."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
import tokenizers
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

import regard
from helpers import check_refused
from regard.cli import cli
from regard.errors import ConfigError, DataError, LineError
from regard.progress import no_progress
from regard.run import Run
from regard.tasks import EvalRequest, Recipe
from regard.tasks.classify.inputs import PairInput
from regard.tasks.classify.pairs import truncated_lengths
from regard.tasks.classify.sources import LabeledCsv, LabeledJsonl, LabeledTsv
from regard.text import Tokenizer, TokenizerConfig

ANIMALS = ["cat", "dog", "bird", "fish", "horse"]


def pairs(count: int, seed: int) -> list[tuple[str, str, str]]:
    """Pairs that name the same animal or another one: neither text alone gives the label away."""
    draw, made = random.Random(seed), []
    for _ in range(count):
        first, second = draw.choice(ANIMALS), draw.choice(ANIMALS)
        made.append((f"the {first} sleeps", f"it is a {second}", "same" if first == second else "other"))
    return made


def write_pairs(path: Path, rows: list[tuple[str, str, str]]) -> str:
    lines = ["premise\thypothesis\tlabel", *("\t".join(row) for row in rows)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return str(path)


def recipe(folder: Path, *more: str) -> list[str]:
    files = f"train='{folder}/train.tsv', test='{folder}/test.tsv'"
    data = f"data={{kind='tsv', {files}, text='premise', second='hypothesis'}}"
    model = "model={kind='transformer', layers=1, width=16, ffn_width=32, heads=2, dropout=0.0}"
    return [data, "task={kind='classify', pool='first', word_dropout=0.0}", model, "train.steps=4", *more]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pairs")
    write_pairs(folder / "train.tsv", pairs(80, 1))
    write_pairs(folder / "test.tsv", pairs(20, 2))
    Run(folder / "run").train(Recipe.read(None, recipe(folder)))
    return folder / "run"


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (LabeledTsv, "a\tb\tlabel\none dog\ttwo, cats\tx\n"),
        (LabeledCsv, 'label,b,a\nx,"two, cats","one\tdog"\n'),
        (LabeledJsonl, '{"b": "two, cats", "a": "one dog", "label": "x"}\n'),
    ],
)
def test_a_pair_comes_out_of_every_kind_of_file(kind: type[LabeledTsv], text: str, tmp_path: Path) -> None:
    (tmp_path / "a").write_text(text, encoding="utf-8")
    data = kind(train=str(tmp_path / "a"), text="a", second="b")
    assert [example.text for example in data.examples("train")] == ["one dog\ttwo, cats"]


def test_columns_of_a_pair_are_named_in_errors(tmp_path: Path) -> None:
    check_refused(
        ConfigError,
        'second = "a" is the column of data.text; a pair needs two text columns',
        lambda: LabeledTsv(train="x", text="a", second="a"),
    )
    (tmp_path / "a.tsv").write_text("a\tlabel\none dog\tx\n", encoding="utf-8")
    with pytest.raises(DataError, match='has no column "b" \\(header: a, label\\)'):
        list(LabeledTsv(train=str(tmp_path / "a.tsv"), text="a", second="b").examples("train"))
    with pytest.raises(ConfigError, match=r"task\.max_length = 1: a pair needs at least one token for each text"):
        Recipe.read(None, recipe(tmp_path, "task.max_length=1"))
    with pytest.raises(ConfigError, match=r"task\.max_length = 8 takes 11 positions, and model\.max_positions = 10"):
        Recipe.read(None, recipe(tmp_path, "task.max_length=8", "model.positions='learned'", "model.max_positions=10"))


@given(st.integers(0, 12), st.integers(0, 12), st.integers(2, 16))
def test_the_longer_text_is_truncated_first_as_by_the_tokenizers_library(first: int, second: int, most: int) -> None:
    library = tokenizers.Tokenizer(tokenizers.models.WordLevel({"a": 0, "b": 1}, unk_token="a"))
    library.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    library.enable_truncation(most, strategy="longest_first")
    ids = library.encode("a " * first, "b " * second).ids
    assert truncated_lengths(first, second, most) == (ids.count(0), ids.count(1))


def test_a_pair_is_encoded_with_separators_and_segments() -> None:
    tokenizer = Tokenizer.train(["a b c d e"], TokenizerConfig(kind="word", vocab_size=20))
    encoder = PairInput(tokenizer, 5, add_sos=True, add_eos=True)
    rows = encoder.encode(["a b c d\tc", "a [SEP] b", "", "a b c d\te e e"])
    assert [one.truncated for one in rows] == [0, 0, 0, 2]
    assert encoder.token_texts(rows[3].row) == ["<SOS>", "a", "b", "c", "<EOS>", "e", "e", "<EOS>"]
    batch = encoder.collate([rows[0].row, rows[1].row])
    assert batch.segments is not None
    assert batch.segments.tolist() == [[0, 0, 0, 0, 0, 0, 1, 1], [0, 0, 0, 1, 1, 0, 0, 0]]
    dropped = encoder.drop_words([rows[0].row], np.array([1], np.uint64), 0.99)[0]
    assert (dropped == tokenizer.eos).tolist() == [False] * 4 + [True, False]


def test_a_model_of_pairs_reads_tuples_lines_and_files(run: Path) -> None:
    model = regard.load(run)
    pair = ("the cat sleeps", "it is a dog")
    label = model.classify(pair)
    assert label in ("same", "other")
    assert model.classify([pair, pair]) == [label, label]
    assert model.classify(["the cat sleeps\tit is a dog", "the cat sleeps [SEP] it is a dog"]) == [label, label]
    assert model.classify(pair, top=2)[0][0].probability >= 0.5
    assert model.saliency("the cat sleeps [SEP] it is a dog").columns.count("<EOS>") == 2
    evaluation = model.evaluate(EvalRequest(), no_progress)
    assert evaluation.unit == "pairs"
    assert len(evaluation.examples) == 20
    statistics = model.recipe.statistics(run)
    assert model.recipe.format_statistics(statistics)[1].split("  ")[-1].endswith("pairs; dropped: none")


def test_the_command_answers_line_by_line_and_reports_half_a_pair(run: Path, tmp_path: Path) -> None:
    (tmp_path / "in.tsv").write_text("the cat sleeps\tit is a dog\n\nthe cat sleeps\n", encoding="utf-8")
    shown = CliRunner().invoke(cli, ["classify", str(run), "-i", str(tmp_path / "in.tsv")])
    assert isinstance(shown.exception, DataError)
    assert [line.partition("\t")[0] in ("same", "other") for line in shown.stdout.splitlines()] == [True, False, False]
    assert "line 3: expected a pair" in shown.stderr


def test_the_order_of_a_pair_matters(run: Path) -> None:
    model = regard.load(run)
    rows = [("the cat sleeps", "it is a dog"), ("it is a dog", "the cat sleeps")]
    first, second = (found[0].probability for found in model.classify(rows, top=1))
    assert first != second


def test_half_a_pair_is_refused(run: Path) -> None:
    model = regard.load(run)
    check_refused(
        LineError,
        "line 1: expected a pair, two texts with a tab or [SEP] between them, found one text",
        lambda: model.classify("the cat sleeps"),
    )
    check_refused(
        LineError, "line 1: the second text of the pair is empty", lambda: model.classify(("the cat sleeps", " "))
    )
    check_refused(
        LineError,
        "line 1: expected a pair, two texts with a tab or [SEP] between them, found 3 texts",
        lambda: model.classify("a\tb\tc"),
    )
    with pytest.raises(DataError, match="classify: expected a text or a tuple of two, got"):
        model.classify([("a", "b", "c")])
    assert model.classify("") == ""


def test_a_pair_with_an_empty_half_is_left_out_and_counted(tmp_path: Path) -> None:
    write_pairs(tmp_path / "train.tsv", [*pairs(40, 1), ("the cat sleeps", " ", "same")])
    made = Recipe.read(None, recipe(tmp_path))
    counts = made.preparation().run(tmp_path / "data", no_progress)
    assert counts["train"]["empty"] + counts["valid"]["empty"] == 1
