from __future__ import annotations

from pathlib import Path

import pytest

from regard.errors import ConfigError, DataError, InputError
from regard.tasks.translate.sources import PairFiles, PairJsonl, PairSource, PairTsv, read_jsonl, read_pairs, read_tsv


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("data").mkdir()


def write(path: str, text: str) -> str:
    Path(path).write_bytes(text.encode())
    return path


def test_line_n_of_one_file_meets_line_n_of_the_other() -> None:
    french, english = write("data/train.fr", "un\n\ndeux \r\n"), write("data/train.en", "one\nempty\ntwo")
    assert list(PairFiles(train=(french, english)).pairs("train")) == [("un", "one"), ("", "empty"), ("deux ", "two")]


def test_the_model_card_names_both_files_and_no_python() -> None:
    credit = PairFiles(train=("data/train.fr", "data/train.en")).credit()
    assert credit == "files: data/train.fr and data/train.en; license: not known (your own files)"


@pytest.mark.parametrize(("sources", "targets"), [(1200, 1199), (3, 5), (0, 2), (2, 0)])
def test_files_of_different_length_are_refused_with_both_numbers(sources: int, targets: int) -> None:
    french, english = write("data/train.fr", "oui\n" * sources), write("data/train.en", "yes\n" * targets)
    with pytest.raises(DataError) as caught:
        list(read_pairs(french, english))
    assert str(caught.value) == (
        f"data/train.fr has {sources} lines but data/train.en has {targets}; sentence pairs need the same number"
    )


def test_empty_files_are_refused() -> None:
    a, b = write("data/a", ""), write("data/b", "")
    for read, message in (
        (read_pairs(a, b), "data/a and data/b are empty; expected one sentence per line"),
        (read_tsv(a), "data/a is empty; expected one sentence pair per line"),
        (read_jsonl(a), "data/a is empty; expected one JSON object per line"),
    ):
        with pytest.raises(DataError) as caught:
            list(read)
        assert str(caught.value) == message


def test_a_missing_side_is_named() -> None:
    with pytest.raises(InputError, match=r"^data/none: there is no such file$"):
        list(read_pairs(write("data/a", "x\n"), "data/none"))


def test_columns_are_chosen_by_number() -> None:
    path = write("data/a.tsv", "7\tone\tun\tnote\n8\ttwo\tdeux\n")
    assert list(PairTsv(train=path, source=3, target=2).pairs("train")) == [("un", "one"), ("deux", "two")]


def test_a_line_with_too_few_columns_is_named() -> None:
    path = write("data/a.tsv", "un\tone\ndeux two\n")
    with pytest.raises(DataError) as caught:
        list(read_tsv(path))
    assert str(caught.value) == "data/a.tsv, line 2: expected at least 2 tab-separated columns, found 1"


def test_texts_are_chosen_by_key() -> None:
    path = write(
        "data/a.jsonl", '{"fr": "un\\nautre", "en": "caf\\u00e9"}\n{"en": "😀", "fr": "\\ud83d\\ude00", "x": []}\n'
    )
    pairs = list(PairJsonl(train=path, source="fr", target="en").pairs("train"))
    assert pairs == [("un\nautre", "café"), ("😀", "😀")]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("un\tone", 'expected a JSON object, found "un\tone"'),
        ("", 'expected a JSON object, found ""'),
        ('["un", "one"]', 'expected a JSON object, found "["un", "one"]"'),
        ("[" * 100_000, f'expected a JSON object, found "{"[" * 57}..."'),
        ('{"source": "un"}', 'there is no key "target" (keys: "source")'),
        ("{}", 'there is no key "source" (keys: none)'),
        ('{"source": "un", "target": 1}', 'expected a text under "target", found 1'),
        ('{"source": "un", "target": null}', 'expected a text under "target", found null'),
        ('{"source": "\\ud83d", "target": "x"}', 'the text under "source" has half a character, \\ud83d'),
    ],
)
def test_a_line_that_is_not_the_expected_json_is_named(line: str, message: str) -> None:
    path = write("data/a.jsonl", f'{{"source": "a", "target": "b"}}\n{line}\n')
    with pytest.raises(DataError) as caught:
        list(read_jsonl(path))
    assert str(caught.value) == f"data/a.jsonl, line 2: {message}"


def test_splits_that_are_not_given_are_not_there() -> None:
    source: PairSource = PairTsv(train="a", test="b")
    assert source.splits() == ("train", "test")
    with pytest.raises(ConfigError) as caught:
        source.pairs("valid")
    assert str(caught.value) == 'there is no split "valid" (splits: train, test); name its file in the recipe'


def test_every_kind_reads_the_split_that_is_asked_for() -> None:
    train, valid = write("data/a", "un\tone"), write("data/b", "deux\ttwo")
    assert list(PairTsv(train=train, valid=valid).pairs("valid")) == [("deux", "two")]
    assert list(PairFiles(train=(train, train), valid=(valid, train)).pairs("valid")) == [("deux\ttwo", "un\tone")]
    third = write("data/c", '{"source": "x", "target": "y"}')
    assert list(PairJsonl(train=train, test=third).pairs("test")) == [("x", "y")]


def test_a_split_of_one_file_is_refused() -> None:
    with pytest.raises(ConfigError) as caught:
        PairFiles(train=("a", "b"), valid=("a",))  # type: ignore[arg-type]
    assert str(caught.value) == "valid: expected two files, the source and the target, got 1"


def test_column_0_is_refused() -> None:
    with pytest.raises(ConfigError) as caught:
        PairTsv(train="a", target=0)
    assert str(caught.value) == "target = 0: columns are counted from 1"
