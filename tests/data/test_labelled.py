"""Labelled texts and rows: read from any of their files, split by themselves, and refused with file and line."""

from __future__ import annotations

import gzip
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.data.labelled import (
    Example,
    LabelledCsv,
    LabelledJsonl,
    LabelledLines,
    LabelledTsv,
    MovieReviews,
)
from regard.data.splits import split_of
from regard.data.tabular import LabelledTable, read_table
from regard.errors import ConfigError, DataError, InputError


def written(folder: Path, name: str, text: str) -> str:
    path = folder / name
    path.write_bytes(text.encode())
    return str(path)


SAME = {
    "tsv": ("text\tlabel\nso great\tpositive\nso “bad”, ça\tnegative\n", LabelledTsv, {}),
    "tsv-numbered": (
        "1\tpositive\tso great\n2\tnegative\tso “bad”, ça\n",
        LabelledTsv,
        {"text": "3", "label": "2"},
    ),
    "tsv-dos": ("\ufefflabel\ttext\r\npositive\tso great\r\n\r\nnegative\tso “bad”, ça", LabelledTsv, {}),
    "csv": ('id,label,text\n1,positive,so great\n2,negative,"so “bad”, ça"\n', LabelledCsv, {}),
    "csv-numbered": ('positive,so great\nnegative,"so “bad”, ça"\n', LabelledCsv, {"text": "2", "label": "1"}),
    "jsonl": (
        '{"text": "so great", "label": "positive"}\n{"label": "negative", "text": "so “bad”, \\u00e7a"}\n',
        LabelledJsonl,
        {},
    ),
    "lines": ("positive so great\nnegative so “bad”, ça\n", LabelledLines, {}),
}


@pytest.mark.parametrize("name", SAME)
def test_the_same_examples_come_out_of_every_kind_of_file(name: str, tmp_path: Path) -> None:
    text, kind, columns = SAME[name]
    data = kind(train=written(tmp_path, name, text), **columns)
    found = [(example.text, example.label) for example in data.examples("train")]
    assert found == [("so great", "positive"), ("so “bad”, ça", "negative")]
    assert data.splits() == ("train",)


def test_a_packed_file_is_read_like_the_one_inside(tmp_path: Path) -> None:
    (tmp_path / "a.tsv.gz").write_bytes(gzip.compress(b"text\tlabel\nso great\tpositive\n"))
    assert list(LabelledTsv(train=str(tmp_path / "a.tsv.gz")).examples("train")) == [Example("so great", "positive", 2)]


def test_a_cell_in_quotes_may_hold_commas_quotes_and_line_ends(tmp_path: Path) -> None:
    path = written(tmp_path, "a.csv", 'text,label\n"one, ""two""\nthree",x\nfour,y\n')
    assert list(LabelledCsv(train=path).examples("train")) == [
        Example('one, "two"\nthree', "x", 3),
        Example("four", "y", 4),
    ]


def test_a_text_of_a_megabyte_is_one_cell(tmp_path: Path) -> None:
    long = "word " * 200_000
    path = written(tmp_path, "a.csv", f"text,label\n{long},x\n")
    assert [len(example.text) for example in LabelledCsv(train=path).examples("train")] == [len(long)]


def test_labels_of_json_may_be_numbers_and_truths(tmp_path: Path) -> None:
    rows = ['{"text": "a", "label": 1}', '{"text": "b", "label": true}', '{"text": "c", "label": " x  y "}']
    path = written(tmp_path, "a.jsonl", "\n".join(rows))
    assert [example.label for example in LabelledJsonl(train=path).examples("train")] == ["1", "true", "x y"]


BAD = [
    (LabelledTsv, {}, "text\tstars\na\t1\n", 'FILE has no column "label" (on top: text, stars); name another in the '
     "recipe, or count them from 1 if there are no names on top"),
    (LabelledTsv, {}, "text\tlabel\na\tx\nb\n", "FILE, line 3: expected 2 columns as on top, found 1"),
    (LabelledTsv, {"text": "1", "label": "3"}, "a\tx\n", "FILE, line 1: expected 3 columns or more, found 2"),
    (LabelledTsv, {"text": "0", "label": "1"}, "a\tx\n", "FILE: columns are counted from 1, got 0"),
    (LabelledTsv, {}, "text\tlabel\na\t \n",
     "FILE, line 2: the label is empty; give every text one, or leave the line out"),
    (LabelledTsv, {}, "", "FILE has no example; expected a text and its label on each line"),
    (LabelledTsv, {}, "text\tlabel\n", "FILE has no example; expected a text and its label on each line"),
    (LabelledCsv, {}, 'text,label\n"a,x\nb,y\n', "FILE, line 3: unexpected end of data; expected cells with \",\" "
     "between them, those that hold it in double quotes, and a quote inside them doubled"),
    (LabelledJsonl, {}, '{"text": "a"}\n', 'FILE, line 1: there is no key "label" (keys: "text")'),
    (LabelledJsonl, {}, '[1]\n', 'FILE, line 1: expected a JSON object, found "[1]"'),
    (LabelledJsonl, {}, '{"text": 7, "label": "x"}\n', 'FILE, line 1: expected a text under "text", found 7'),
    (LabelledJsonl, {}, '{"text": "a", "label": [1]}\n',
     'FILE, line 1: expected a text or a whole number under "label", found [1]'),
    (LabelledJsonl, {}, '{"text": "\\ud800", "label": "x"}\n',
     'FILE, line 1: the text under "text" has half a character, \\ud800'),
    (LabelledJsonl, {}, "", "FILE has no example; expected a JSON object on each line"),
    (LabelledLines, {}, "", "FILE has no example; expected a text and its label on each line"),
    (LabelledLines, {}, " so great\n", "FILE, line 1: the label is empty; give every text one, or leave the line out"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "columns", "text", "message"), BAD)
def test_a_file_that_cannot_be_read_is_told_with_its_line(kind, columns, text, message, tmp_path: Path) -> None:
    path = written(tmp_path, "given", text)
    with pytest.raises(DataError) as caught:
        list(kind(train=path, **columns).examples("train"))
    assert str(caught.value) == message.replace("FILE", path)


def test_a_missing_file_cannot_be_opened(tmp_path: Path) -> None:
    for kind in (LabelledTsv, LabelledCsv, LabelledJsonl, LabelledLines):
        with pytest.raises(InputError) as caught:
            list(kind(train=str(tmp_path / "none")).examples("train"))
        assert str(caught.value) == f"{tmp_path / 'none'}: there is no such file"


def test_a_split_without_a_file_is_refused() -> None:
    with pytest.raises(ConfigError) as caught:
        LabelledTsv(train="a", test="b").file("valid")
    assert str(caught.value) == 'there is no split "valid" (splits: train, test); name its file in the recipe'


@given(st.text(), st.integers(0, 9))
def test_a_text_is_in_one_split_wherever_it_stands(text: str, seed: int) -> None:
    assert split_of(text, 0.2, 0.3, seed) == split_of(f" {text}  ", 0.2, 0.3, seed)


def test_splits_have_the_shares_that_were_asked_for() -> None:
    counts = Counter(split_of(f"review number {i}", 0.05, 0.1, seed=1) for i in range(20_000))
    assert abs(counts["test"] / 20_000 - 0.1) < 0.01 and abs(counts["valid"] / 20_000 - 0.05) < 0.01


REVIEWS = "text,label,source\n" + "".join(
    f'"film {i} was <br /><br />{word}",{label},x\n' for label, word in ((1, "great"), (0, "bad")) for i in range(200)
)


def test_movie_reviews_have_names_for_labels_and_no_marks_and_no_review_is_in_two_splits(tmp_path: Path) -> None:
    data = MovieReviews(path=written(tmp_path, "reviews.csv", REVIEWS))
    splits = {split: list(data.examples(split)) for split in data.splits()}
    assert sum(map(len, splits.values())) == 400
    assert {label for found in splits.values() for _, label, _ in found} == {"negative", "positive"}
    assert splits["train"][0] == Example("film 1 was great", "positive", 3)
    texts = [example.text for found in splits.values() for example in found]
    assert len(set(texts)) == len(texts)
    assert {example.label for example in splits["test"]} == {"negative", "positive"}  # the file is sorted by label
    assert [e.text for e in MovieReviews(path=data.path, seed=2).examples("test")] != [e.text for e in splits["test"]]


def test_a_review_with_another_label_is_told(tmp_path: Path) -> None:
    path = written(tmp_path, "reviews.csv", "text,label\nso great,5\n")
    with pytest.raises(DataError) as caught:
        list(MovieReviews(path=path).examples("train"))
    assert str(caught.value) == f'{path}, line 2: expected the label 0 or 1, found "5"'
    for share in (0.0, 0.5):
        with pytest.raises(ConfigError, match=r"held_out: expected a share between 0 and 0\.5"):
            MovieReviews(held_out=share)


def test_movie_reviews_are_scored_on_a_file_by_its_ending(tmp_path: Path) -> None:
    kinds = {"a.csv": LabelledCsv, "a.jsonl": LabelledJsonl, "a.tsv": LabelledTsv, "a.txt": LabelledTsv}
    for name, kind in kinds.items():
        assert type(MovieReviews().scored_on(Path(name))) is kind


# Rows of numbers


FLOWERS = "name;width;height;kind\nrose;1;2.5;a\nlily; 3 ;4e0;b\n"


def test_a_table_is_read_by_the_columns_that_hold_numbers_whatever_stands_between(tmp_path: Path) -> None:
    for sign in ";,\t":
        found = read_table(written(tmp_path, "f.csv", FLOWERS.replace(";", sign)), "kind")
        assert found.table.names == ("width", "height") and found.labels == ("a", "b") and found.lines == (2, 3)
        assert found.table.values.tolist() == [[1.0, 2.5], [3.0, 4.0]]


def test_a_table_without_names_is_counted(tmp_path: Path) -> None:
    found = read_table(written(tmp_path, "f.csv", "a,1,2\nb,3,4\n"), "1", columns=("3",))
    assert (found.table.names, found.labels, found.table.values.tolist()) == (("3",), ("a", "b"), [[2.0], [4.0]])


BAD_TABLES = [
    ("width,kind\n1,a\nx,b\n", {}, 'FILE, line 3: "x" in column width is not a number'),
    ("width,kind\n1,a\nnan,b\n", {}, 'FILE, line 3: "nan" in column width is not a number'),
    ("width,kind\n1,a\n,b\n", {}, 'FILE, line 3: "" in column width is not a number'),
    ("width,kind\n1,a\n1,2,b\n", {}, "FILE, line 3: expected 2 columns as above, found 3"),
    ("width,species\n1,a\n", {}, 'FILE has no column "kind" (on top: width, species); name another in the recipe, or '
     "count them from 1 if there are no names on top"),
    ("name,kind\nrose,a\n", {}, "FILE, line 2: none of its 2 columns but the label's holds a number"),
    ("width,kind\n1,2\n", {"columns": ("width", "kind")}, "FILE: data.columns names the label's own column; leave it "
     "out"),
    ("width,kind\n", {}, "FILE has no rows; expected numbers and a label on each line"),
    ("", {}, "FILE has no rows; expected numbers and a label on each line"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "columns", "message"), BAD_TABLES)
def test_a_table_that_cannot_be_read_is_told_with_its_line(text, columns, message, tmp_path: Path) -> None:
    path = written(tmp_path, "t.csv", text)
    with pytest.raises(DataError) as caught:
        LabelledTable(train=path, label="kind", **columns).rows("train")
    assert str(caught.value) == message.replace("FILE", path)
