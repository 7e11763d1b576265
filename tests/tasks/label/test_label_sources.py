"""Tagged sentences out of files, out of plain text, and out of a rule."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.errors import ConfigError, DataError, InputError, RegardError
from regard.tasks.label.chains import Chains, angles, wrapped
from regard.tasks.label.restore import Restore, RestoredFile, bare, cut, forms, plain
from regard.tasks.label.sources import Columns, Lines, read_columns, read_tagged_lines


def refusal(kind: type[RegardError], act: Callable[[], object]) -> str:
    with pytest.raises(kind) as caught:
        act()
    return str(caught.value)


def written(folder: Path, text: str, name: str = "a.conll") -> Path:
    (folder / name).write_bytes(text.encode())
    return folder / name


# Columns


def test_sentences_are_parted_by_blank_lines_however_many_and_know_their_lines(tmp_path: Path) -> None:
    file = written(tmp_path, "\n\nI PRP B-NP\nam VBP B-VP\n\n \nYes UH O\n\n")
    found = list(read_columns(file))
    assert [(s.words, s.tags, s.lines) for s in found] == [
        (("I", "am"), ("B-NP", "B-VP"), (3, 4)),
        (("Yes",), ("O",), (7,)),
    ]
    assert found[1].at(0) == f"{file}, line 7"


def test_windows_line_ends_a_byte_order_mark_and_no_last_line_end_change_nothing(tmp_path: Path) -> None:
    plain_file = written(tmp_path, "I PRON\n\nYes INTJ\n")
    windows = written(tmp_path, "\ufeffI PRON\r\n\r\nYes INTJ", "b.conll")
    assert [(s.words, s.tags) for s in read_columns(plain_file)] == [(s.words, s.tags) for s in read_columns(windows)]


def test_columns_are_chosen_by_number(tmp_path: Path) -> None:
    file = written(tmp_path, "1\tNew York\tPROPN\tNNP\n2\tis\tAUX\tVBZ\n")
    one = next(read_columns(file, word=1, tag=2))
    assert (one.words, one.tags) == (("New York", "is"), ("PROPN", "AUX"))
    assert next(read_columns(file, word=1)).tags == ("NNP", "VBZ")


def test_separators_are_guessed_once_a_file_or_given(tmp_path: Path) -> None:
    assert next(read_columns(written(tmp_path, "a  b   c\n"))).tags == ("c",)
    assert next(read_columns(written(tmp_path, "a,b\nc,d\n"), separator=",")).words == ("a", "c")


def test_comments_are_passed_over_only_if_asked(tmp_path: Path) -> None:
    file = written(tmp_path, "# text = I don't\n1\tI\tPRON\n2-3\tdon't\t_\n2\tdo\tAUX\n3\tn't\tPART\n3.1\tx\t_\n")
    one = next(read_columns(file, word=1, skip="^(#|[0-9]+[-.])"))
    assert (one.words, one.lines) == (("I", "do", "n't"), (2, 4, 5))
    assert refusal(DataError, lambda: list(read_columns(file, word=1, tag=2))) == (
        f'{file}, line 1: expected 3 columns or more, found 1; is it a comment? data.skip = "^#" passes over such'
    )
    assert refusal(ConfigError, lambda: Columns(train="a", skip="(")) == (
        "skip = '(' is no regular expression: missing ), unterminated subpattern at position 0"
    )
    assert next(read_columns(written(tmp_path, "# # B-NP\n1 CD I-NP\n"))).words == ("#", "1")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("I PRON\nam\n", "line 2: expected 2 columns or more, found 1"),
        ("I PRON\nam VBP AUX\n", "line 2: expected 2 columns as above, found 3"),
        ("I\tPRON\n\tAUX\n", "line 2: column 0 is empty"),
        ("I\tPRON\nam\t\n", "line 2: column -1 is empty"),
    ],
)
def test_a_line_that_does_not_fit_is_told_with_its_file_and_number(tmp_path: Path, text: str, message: str) -> None:
    file = written(tmp_path, text)
    assert refusal(DataError, lambda: list(read_columns(file))) == f"{file}, {message}"


def test_what_stands_before_a_bad_line_is_read(tmp_path: Path) -> None:
    found = read_columns(written(tmp_path, "I PRON\n\nam\n"))
    assert next(found).words == ("I",)
    with pytest.raises(DataError):
        next(found)


def test_missing_and_empty_files_are_told(tmp_path: Path) -> None:
    assert refusal(InputError, lambda: list(read_columns("none.conll"))) == "none.conll: there is no such file"
    file = written(tmp_path, "\n\n")
    assert refusal(DataError, lambda: list(read_columns(file))) == (
        f"{file} is empty; expected one word a line, its tag beside it, and a blank line after a sentence"
    )
    assert refusal(DataError, lambda: list(read_tagged_lines(file))) == (
        f"{file} is empty; expected a sentence a line: its words, a tab, and as many tags"
    )


# Lines


def test_a_sentence_a_line_has_as_many_tags_as_words(tmp_path: Path) -> None:
    file = written(tmp_path, "I am\tPRON AUX\n\nYes\tINTJ\n", "a.tsv")
    assert [(s.words, s.lines) for s in read_tagged_lines(file)] == [(("I", "am"), (1, 1)), (("Yes",), (3,))]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("I am\tPRON AUX\nI am here\tPRON AUX\n", "line 2: there are 3 words and 2 tags; each word needs one"),
        ("I am PRON AUX\n", "line 1: expected words, a tab and tags, found 1 columns"),
    ],
)
def test_words_and_tags_of_unequal_number_are_told(tmp_path: Path, text: str, message: str) -> None:
    file = written(tmp_path, text, "a.tsv")
    assert refusal(DataError, lambda: list(read_tagged_lines(file))) == f"{file}, {message}"


# Splits


def test_shares_of_train_part_its_sentences_and_repeated_ones_stay_together(tmp_path: Path) -> None:
    text = "".join(f"word{i % 150} X\nis Y\n\n" for i in range(450))
    data = Columns(train=str(written(tmp_path, text)), held_out=0.2, tested=0.2)
    parts = {split: [s.words for s in data.sentences(split)] for split in data.splits()}
    assert list(parts) == ["train", "valid", "test"]
    assert sum(map(len, parts.values())) == 450
    assert all(60 < len(parts[split]) < 130 for split in ("valid", "test"))
    kinds = [set(part) for part in parts.values()]
    assert not (kinds[0] & kinds[1] or kinds[0] & kinds[2] or kinds[1] & kinds[2])


def test_files_of_ones_own_take_the_place_of_shares(tmp_path: Path) -> None:
    files = {name: str(written(tmp_path, f"{name} X\n\n", f"{name}.conll")) for name in ("train", "valid", "test")}
    data = Columns(**files)
    assert [next(data.sentences(split)).words for split in data.splits()] == [("train",), ("valid",), ("test",)]
    assert data.scored_on(Path(files["train"])).sentences("test") is not None


def test_a_split_that_gets_nothing_is_told(tmp_path: Path) -> None:
    file = written(tmp_path, "I PRON\n\n")
    assert refusal(DataError, lambda: list(Columns(train=str(file), held_out=0.01).sentences("valid"))) == (
        f"{file}: none of its 1 sentences falls to valid when a share of 0.01 is kept apart; name files for data.valid "
        "and data.test, or give more sentences"
    )
    assert refusal(ConfigError, lambda: list(Lines(train=str(file)).sentences("test"))) == (
        'there is no split "test" (splits: train, valid); name its file in the recipe'
    )


# Restoring


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("Où va-t-il ?", "ou va t il"),
        ("L’œuf d'Ève, c'est ÇA !", "loeuf deve cest ca"),
        ("« Bonjour ! »", "bonjour"),
        ("Aujourd'hui : 3,5 km.", "aujourdhui 3 5 km"),
        ("Ça m'est égal…", "ca mest egal"),
        ("Straße", "strasse"),
        ("?!", ""),
        ("", ""),
        ("我是学生。", "我是学生"),
    ],
)
def test_what_is_read_has_no_case_no_accents_and_no_signs(text: str, read: str) -> None:
    assert bare(text) == read


@settings(deadline=None)
@given(st.text(alphabet=st.characters(codec="utf-8", exclude_categories=("Cs",)), max_size=60))
def test_the_forms_put_together_are_the_text(text: str) -> None:
    read, written_as = forms(text)
    assert len(read) == len(written_as)
    if read:
        assert "".join(written_as) == text


@settings(deadline=None)
@given(st.text(alphabet="aàbcçeéœAÉ 'Œ’-.,!? 3", max_size=40))
def test_what_is_read_reads_the_same_again(text: str) -> None:
    once = bare(text)
    assert bare(once) == once
    assert all(plain(letter) or letter == " " for letter in cut(text)[0])


TEXTS = [f"La {number} maison d'Élodie est-elle à côté ?" for number in "abcdefghijklmnopqrstuvwxyz"] * 2


def test_sentences_that_read_alike_are_in_one_split_and_each_comes_once(tmp_path: Path) -> None:
    lines = [f"{text}{end}" for text in TEXTS for end in ("", "!", " ...")]
    lines += [line.replace("à", "a").upper() for line in lines]
    data = Restore(train=str(written(tmp_path, "\n".join(lines), "a.txt")), held_out=0.2)
    parts = [{"".join(s.words) for s in data.sentences(split)} for split in data.splits()]
    assert not (parts[0] & parts[1] or parts[0] & parts[2] or parts[1] & parts[2])
    assert len(set.union(*parts)) == 26
    every = [s.tags for split in data.splits() for s in data.sentences(split)]
    assert len(every) == len(set(every)) == len(set(lines))


def test_a_limit_draws_from_train_alone(tmp_path: Path) -> None:
    path = str(written(tmp_path, "\n".join(TEXTS), "a.txt"))
    few, all_of_them = Restore(train=path, held_out=0.2, limit=5), Restore(train=path, held_out=0.2)
    assert len(list(few.sentences("train"))) == 5
    assert list(few.sentences("test")) == list(all_of_them.sentences("test"))
    assert list(few.sentences("train")) == list(Restore(train=path, held_out=0.2, limit=5).sentences("train"))


def test_a_file_that_is_scored_is_read_whole(tmp_path: Path) -> None:
    file = written(tmp_path, "Où ?\n\n?!\nÇa va.\n", "b.txt")
    assert ["".join(s.tags) for s in RestoredFile(file).sentences("test")] == ["Où ?", "Ça va."]
    assert [s.lines[0] for s in RestoredFile(file).sentences("test")] == [1, 4]
    empty = written(tmp_path, "", "c.txt")
    assert refusal(DataError, lambda: list(RestoredFile(empty).sentences("test"))) == (
        f"{empty} is empty; expected one sentence a line"
    )


# Chains


def test_chains_are_a_pure_function_of_their_settings() -> None:
    one, again = (list(Chains(count=20).sentences("train")) for _ in range(2))
    assert one == again
    assert one != list(Chains(count=20, seed=2).sentences("train"))
    assert {s.words for s in one}.isdisjoint(s.words for s in Chains(count=20).sentences("test"))


def test_a_hinge_turns_the_side_of_all_that_follows() -> None:
    plain_chain = angles("GAGLHA")[1:]
    assert angles("PGAGLHA")[2:] == [-angle for angle in plain_chain]
    assert angles("PPGAGLHA")[3:] == plain_chain


def test_without_noise_the_tags_are_the_rule() -> None:
    for chain in Chains(count=10, noise=0.0).sentences("valid"):
        rule = [wrapped(angle) for angle in angles("".join(chain.words))]
        assert [float(tag) for tag in chain.tags] == pytest.approx(rule, abs=0.051)
