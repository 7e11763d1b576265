"""Labeled texts and rows: all file formats, splits by hash, and errors with file and line."""

from __future__ import annotations

import gzip
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers import check_refused
from regard.data.splits import split_of
from regard.errors import ConfigError, DataError, InputError
from regard.tasks import Recipe
from regard.tasks.classify.sources import (
    LabeledCsv,
    LabeledExample,
    LabeledJsonl,
    LabeledLines,
    LabeledReviews,
    LabeledTable,
    LabeledTsv,
    read_table,
)


def write_file(folder: Path, name: str, text: str) -> str:
    path = folder / name
    path.write_bytes(text.encode())
    return str(path)


SAME = {
    "tsv": ("text\tlabel\nso great\tpositive\nso “bad”, ça\tnegative\n", LabeledTsv, {}),
    "tsv-numbered": (
        "1\tpositive\tso great\n2\tnegative\tso “bad”, ça\n",
        LabeledTsv,
        {"text": "3", "label": "2"},
    ),
    "tsv-dos": ("\ufefflabel\ttext\r\npositive\tso great\r\n\r\nnegative\tso “bad”, ça", LabeledTsv, {}),
    "csv": ('id,label,text\n1,positive,so great\n2,negative,"so “bad”, ça"\n', LabeledCsv, {}),
    "csv-numbered": ('positive,so great\nnegative,"so “bad”, ça"\n', LabeledCsv, {"text": "2", "label": "1"}),
    "jsonl": (
        '{"text": "so great", "label": "positive"}\n{"label": "negative", "text": "so “bad”, \\u00e7a"}\n',
        LabeledJsonl,
        {},
    ),
    "lines": ("positive so great\nnegative so “bad”, ça\n", LabeledLines, {}),
}


@pytest.mark.parametrize("name", SAME)
def test_the_same_examples_come_out_of_every_kind_of_file(name: str, tmp_path: Path) -> None:
    text, kind, columns = SAME[name]
    data = kind(train=write_file(tmp_path, name, text), **columns)
    found = [(example.text, example.label) for example in data.examples("train")]
    assert found == [("so great", "positive"), ("so “bad”, ça", "negative")]
    assert data.splits() == ("train",)


def test_a_gzipped_file_is_read(tmp_path: Path) -> None:
    (tmp_path / "a.tsv.gz").write_bytes(gzip.compress(b"text\tlabel\nso great\tpositive\n"))
    assert list(LabeledTsv(train=str(tmp_path / "a.tsv.gz")).examples("train")) == [
        LabeledExample("so great", "positive", 2)
    ]


def test_a_cell_in_quotes_may_hold_commas_quotes_and_line_ends(tmp_path: Path) -> None:
    path = write_file(tmp_path, "a.csv", 'text,label\n"one, ""two""\nthree",x\nfour,y\n')
    assert list(LabeledCsv(train=path).examples("train")) == [
        LabeledExample('one, "two"\nthree', "x", 3),
        LabeledExample("four", "y", 4),
    ]


def test_a_text_of_a_megabyte_is_one_cell(tmp_path: Path) -> None:
    long = "word " * 200_000
    path = write_file(tmp_path, "a.csv", f"text,label\n{long},x\n")
    assert [len(example.text) for example in LabeledCsv(train=path).examples("train")] == [len(long)]


def test_json_labels_may_be_integers_and_booleans(tmp_path: Path) -> None:
    rows = ['{"text": "a", "label": 1}', '{"text": "b", "label": true}', '{"text": "c", "label": " x  y "}']
    path = write_file(tmp_path, "a.jsonl", "\n".join(rows))
    assert [example.label for example in LabeledJsonl(train=path).examples("train")] == ["1", "true", "x y"]


BAD = [
    (LabeledTsv, {}, "text\tstars\na\t1\n", 'FILE has no column "label" (header: text, stars); name another in the '
     "recipe, or count them from 1 if there is no header"),
    (LabeledTsv, {}, "text\tlabel\na\tx\nb\n", "FILE, line 3: expected 2 columns as in the header, found 1"),
    (LabeledTsv, {"text": "1", "label": "3"}, "a\tx\n", "FILE, line 1: expected 3 columns or more, found 2"),
    (LabeledTsv, {"text": "0", "label": "1"}, "a\tx\n", "FILE: columns are counted from 1, got 0"),
    (LabeledTsv, {}, "text\tlabel\na\t \n",
     "FILE, line 2: the label is empty; give every text one, or leave the line out"),
    (LabeledTsv, {}, "", "FILE has no example; expected a text and its label on each line"),
    (LabeledTsv, {}, "text\tlabel\n", "FILE has no example; expected a text and its label on each line"),
    (LabeledCsv, {}, 'text,label\n"a,x\nb,y\n', "FILE, line 3: unexpected end of data; expected cells with \",\" "
     "between them, those that hold it in double quotes, and a quote inside them doubled"),
    (LabeledJsonl, {}, '{"text": "a"}\n', 'FILE, line 1: there is no key "label" (keys: "text")'),
    (LabeledJsonl, {}, '[1]\n', 'FILE, line 1: expected a JSON object, found "[1]"'),
    (LabeledJsonl, {}, '{"text": 7, "label": "x"}\n', 'FILE, line 1: expected a text under "text", found 7'),
    (LabeledJsonl, {}, '{"text": "a", "label": [1]}\n',
     'FILE, line 1: expected a text or a whole number under "label", found [1]'),
    (LabeledJsonl, {}, '{"text": "\\ud800", "label": "x"}\n',
     'FILE, line 1: the text under "text" has half a character, \\ud800'),
    (LabeledJsonl, {}, "", "FILE is empty; expected one JSON object per line"),
    (LabeledLines, {}, "", "FILE has no example; expected a text and its label on each line"),
    (LabeledLines, {}, " so great\n", "FILE, line 1: the label is empty; give every text one, or leave the line out"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "columns", "text", "message"), BAD)
def test_an_invalid_file_is_reported_with_its_line(kind, columns, text, message, tmp_path: Path) -> None:
    path = write_file(tmp_path, "given", text)
    with pytest.raises(DataError) as caught:
        list(kind(train=path, **columns).examples("train"))
    assert str(caught.value) == message.replace("FILE", path)


def test_a_missing_file_cannot_be_opened(tmp_path: Path) -> None:
    for kind in (LabeledTsv, LabeledCsv, LabeledJsonl, LabeledLines):
        with pytest.raises(InputError) as caught:
            list(kind(train=str(tmp_path / "none")).examples("train"))
        assert str(caught.value) == f"{tmp_path / 'none'}: there is no such file"


def test_a_split_without_a_file_is_refused() -> None:
    with pytest.raises(ConfigError) as caught:
        LabeledTsv(train="a", test="b").file("valid")
    assert str(caught.value) == 'there is no split "valid" (splits: train, test); name its file in the recipe'


@given(st.text(), st.integers(0, 9))
def test_a_text_is_always_in_the_same_split(text: str, seed: int) -> None:
    assert split_of(text, 0.2, 0.3, seed) == split_of(f" {text}  ", 0.2, 0.3, seed)


def test_splits_have_the_requested_shares() -> None:
    counts = Counter(split_of(f"review number {i}", 0.05, 0.1, seed=1) for i in range(20_000))
    assert abs(counts["test"] / 20_000 - 0.1) < 0.01 and abs(counts["valid"] / 20_000 - 0.05) < 0.01


REVIEWS = "text,label,source\n" + "".join(
    f'"film {i} was <br /><br />{word}",{label},x\n' for label, word in ((1, "great"), (0, "bad")) for i in range(200)
)


def test_movie_reviews_have_named_labels_and_no_markup_and_no_review_is_in_two_splits(tmp_path: Path) -> None:
    data = LabeledReviews(path=write_file(tmp_path, "reviews.csv", REVIEWS))
    splits = {split: list(data.examples(split)) for split in data.splits()}
    assert sum(map(len, splits.values())) == 400
    assert {label for found in splits.values() for _, label, _ in found} == {"negative", "positive"}
    assert splits["train"][0] == LabeledExample("film 1 was great", "positive", 3)
    texts = [example.text for found in splits.values() for example in found]
    assert len(set(texts)) == len(texts)
    assert {example.label for example in splits["test"]} == {"negative", "positive"}  # the file is sorted by label
    assert [e.text for e in LabeledReviews(path=data.path, seed=2).examples("test")] != [e.text for e in splits["test"]]


def test_a_review_with_another_label_is_reported(tmp_path: Path) -> None:
    path = write_file(tmp_path, "reviews.csv", "text,label\nso great,5\n")
    with pytest.raises(DataError) as caught:
        list(LabeledReviews(path=path).examples("train"))
    assert str(caught.value) == f'{path}, line 2: expected the label 0 or 1, found "5"'
    for share in (0.0, 0.5):
        with pytest.raises(ConfigError, match=r"test_share: expected a share between 0 and 0\.5"):
            LabeledReviews(test_share=share)


def test_movie_reviews_are_scored_on_a_file_by_its_ending(tmp_path: Path) -> None:
    kinds = {"a.csv": LabeledCsv, "a.jsonl": LabeledJsonl, "a.tsv": LabeledTsv, "a.txt": LabeledTsv}
    for name, kind in kinds.items():
        assert type(LabeledReviews().scored_on(Path(name))) is kind


# Rows of numbers


FLOWERS = "name;width;height;kind\nrose;1;2.5;a\nlily; 3 ;4e0;b\n"


def test_a_table_is_read_by_its_number_columns_with_any_separator(tmp_path: Path) -> None:
    for sign in ";,\t":
        found = read_table(write_file(tmp_path, "f.csv", FLOWERS.replace(";", sign)), "kind")
        assert found.table.names == ("width", "height") and found.labels == ("a", "b") and found.lines == (2, 3)
        assert found.table.values.tolist() == [[1.0, 2.5], [3.0, 4.0]]


def test_columns_of_a_table_without_header_are_counted_from_1(tmp_path: Path) -> None:
    found = read_table(write_file(tmp_path, "f.csv", "a,1,2\nb,3,4\n"), "1", columns=("3",))
    assert (found.table.names, found.labels, found.table.values.tolist()) == (("3",), ("a", "b"), [[2.0], [4.0]])


BAD_TABLES = [
    ("width,kind\n1,a\nx,b\n", {}, 'FILE, line 3: "x" in column width is not a number'),
    ("width,kind\n1,a\nnan,b\n", {}, 'FILE, line 3: "nan" in column width is not a number'),
    ("width,kind\n1,a\n,b\n", {}, 'FILE, line 3: "" in column width is not a number'),
    ("width,kind\n1,a\n1,2,b\n", {}, "FILE, line 3: expected 2 columns as above, found 3"),
    ("width,species\n1,a\n", {}, 'FILE has no column "kind" (header: width, species); name another in the recipe, or '
     "count them from 1 if there is no header"),
    ("name,kind\nrose,a\n", {}, "FILE, line 2: none of its 2 columns but the label's holds a number"),
    ("width,kind\n1,2\n", {"columns": ("width", "kind")}, "FILE: data.columns names the label's own column; leave it "
     "out"),
    ("width,kind\n", {}, "FILE has no rows; expected numbers and a label on each line"),
    ("", {}, "FILE has no rows; expected numbers and a label on each line"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "columns", "message"), BAD_TABLES)
def test_an_invalid_table_is_reported_with_its_line(text, columns, message, tmp_path: Path) -> None:
    path = write_file(tmp_path, "t.csv", text)
    with pytest.raises(DataError) as caught:
        LabeledTable(train=path, label="kind", **columns).rows("train")
    assert str(caught.value) == message.replace("FILE", path)


def test_labels_get_their_names_and_a_label_without_one_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("1 so great\n0 so bad\npositive fine\n2 so so\n", encoding="utf-8")
    found = LabeledLines(train=str(path), label_names=("0=negative", "1 = positive")).examples("train")
    assert [next(found).label for _ in range(3)] == ["positive", "negative", "positive"]
    check_refused(
        DataError, f'{path}, line 4: the label "2" has no name; data.label_names has 0, 1', lambda: next(found)
    )
    for wrong in ("0", "=a", "a="):
        message = f'label_names: expected LABEL=NAME, such as "1=positive", got "{wrong}"'
        check_refused(ConfigError, message, lambda wrong=wrong: LabeledLines(train="a", label_names=(wrong,)))


def test_the_labels_of_sst2_have_names() -> None:
    for name in ("sst2", "sst2-glove"):
        recipe = Recipe.read(Path(__file__).parents[3] / "recipes" / "classify" / f"{name}.toml")
        assert recipe.data.label_names == ("0=negative", "1=positive")
