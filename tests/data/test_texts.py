"""Running text: reading, splits, and errors."""

from __future__ import annotations

from pathlib import Path

from helpers import refusal
from regard.data.texts import Shakespeare, TextFiles
from regard.errors import ConfigError, DataError, InputError


def write_texts(folder: Path, **texts: str) -> Path:
    for name, text in texts.items():
        (folder / f"{name}.txt").write_bytes(text.encode())
    return folder


def whole(data: TextFiles, split: str) -> str:
    return "".join(piece for piece in data.pieces(split) if piece is not None)


def test_the_last_tenth_of_a_text_is_held_out_to_the_character(tmp_path: Path) -> None:
    text = "".join(f"line {i}: été\n" for i in range(100))
    data = TextFiles(train=str(write_texts(tmp_path, book=text) / "book.txt"))
    train, valid = whole(data, "train"), whole(data, "valid")
    assert train + valid == text
    assert len(train) == int(len(text) * 0.9)


def test_a_validation_file_leaves_train_whole(tmp_path: Path) -> None:
    write_texts(tmp_path, a="one\n", b="two\n", c="three\n")
    data = TextFiles(train=f"{tmp_path}/a.txt", valid=f"{tmp_path}/b.txt", test=f"{tmp_path}/c.txt")
    assert [whole(data, split) for split in data.splits()] == ["one\n", "two\n", "three\n"]


def test_a_pattern_names_files_in_the_order_of_their_names(tmp_path: Path) -> None:
    write_texts(tmp_path, b="two\n", a="one\n", c="three\n")
    data = TextFiles(train=f"{tmp_path}/*.txt", valid=f"{tmp_path}/a.txt")
    assert whole(data, "train") == "one\ntwo\nthree\n"


def test_a_file_whose_name_looks_like_a_pattern_is_read(tmp_path: Path) -> None:
    (tmp_path / "what [is] this?.txt").write_text("text\n")
    assert whole(TextFiles(train=f"{tmp_path}/what [is] this?.txt", valid="x"), "train") == "text\n"


def test_lines_that_are_texts_end_and_evenly_spaced_ones_are_held_out(tmp_path: Path) -> None:
    names = [f"name {i}" for i in range(20)]
    write_texts(tmp_path, names="\r\n".join(["", *names, " ", ""]))
    data = TextFiles(train=f"{tmp_path}/names.txt", unit="line", valid_share=0.2)
    valid = [piece for piece in data.pieces("valid") if piece is not None]
    train = [piece for piece in data.pieces("train") if piece is not None]
    assert valid == ["name 4", "name 9", "name 14", "name 19"]
    assert sorted(train + valid) == sorted(names)
    assert list(data.pieces("valid"))[1::2] == [None] * 4


def test_invalid_files_and_settings_are_reported(tmp_path: Path) -> None:
    write_texts(tmp_path, empty="")
    assert refusal(InputError, lambda: whole(TextFiles(train="no/book.txt"), "train")) == (
        "no/book.txt: there is no such file"
    )
    assert refusal(InputError, lambda: whole(TextFiles(train=f"{tmp_path}/*.md"), "train")) == (
        f"{tmp_path}/*.md: there is no file with such a name"
    )
    assert refusal(DataError, lambda: whole(TextFiles(train=f"{tmp_path}/empty.txt"), "train")) == (
        f"{tmp_path}/empty.txt: there is no text in it; expected a text to learn from"
    )
    assert (
        refusal(ConfigError, lambda: TextFiles(train="a", valid_share=0))
        == "valid_share = 0 must be above 0 and below 1"
    )
    assert refusal(ConfigError, lambda: TextFiles(train="a").pieces("test")) == (
        'there is no split "test" (splits: train, valid); name its file in the recipe'
    )
    assert refusal(ConfigError, lambda: Shakespeare().pieces("test")) == (
        "no split is called 'test'; there are: train, valid"
    )


def test_text_that_is_not_utf_8_is_reported_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "book.txt").write_bytes(b"fine\nca\xe9\n")
    assert refusal(DataError, lambda: whole(TextFiles(train=f"{tmp_path}/book.txt"), "train")).startswith(
        f"{tmp_path}/book.txt, line 2: byte 3 (0xe9) is not UTF-8"
    )
