"""Tagged sentences: CoNLL and TSV files, restored text, folding chains."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers import refusal
from regard.errors import ConfigError, DataError, InputError
from regard.tasks.label.chains import FoldingChains, chain_angles, wrap_degrees
from regard.tasks.label.restore import RestoreFile, RestoreText, plain_and_forms, split_plain, strip_character
from regard.tasks.label.sources import ConllFiles, TaggedTsv, read_conll, read_tagged_tsv


def write_file(folder: Path, text: str, name: str = "a.conll") -> Path:
    (folder / name).write_bytes(text.encode())
    return folder / name


# Columns


def test_sentences_are_separated_by_blank_lines_and_know_their_lines(tmp_path: Path) -> None:
    file = write_file(tmp_path, "\n\nI PRP B-NP\nam VBP B-VP\n\n \nYes UH O\n\n")
    found = list(read_conll(file))
    assert [(s.words, s.tags, s.lines) for s in found] == [
        (("I", "am"), ("B-NP", "B-VP"), (3, 4)),
        (("Yes",), ("O",), (7,)),
    ]
    assert found[1].location(0) == f"{file}, line 7"


def test_windows_line_ends_a_byte_order_mark_and_no_last_line_end_change_nothing(tmp_path: Path) -> None:
    plain_file = write_file(tmp_path, "I PRON\n\nYes INTJ\n")
    windows = write_file(tmp_path, "\ufeffI PRON\r\n\r\nYes INTJ", "b.conll")
    assert [(s.words, s.tags) for s in read_conll(plain_file)] == [(s.words, s.tags) for s in read_conll(windows)]


def test_columns_are_chosen_by_number(tmp_path: Path) -> None:
    file = write_file(tmp_path, "1\tNew York\tPROPN\tNNP\n2\tis\tAUX\tVBZ\n")
    one = next(read_conll(file, word=2, tag=3))
    assert (one.words, one.tags) == (("New York", "is"), ("PROPN", "AUX"))
    assert next(read_conll(file, word=2)).tags == ("NNP", "VBZ")


def test_separators_are_guessed_once_a_file_or_given(tmp_path: Path) -> None:
    assert next(read_conll(write_file(tmp_path, "a  b   c\n"))).tags == ("c",)
    assert next(read_conll(write_file(tmp_path, "a,b\nc,d\n"), separator=",")).words == ("a", "c")


def test_comments_are_skipped_only_if_configured(tmp_path: Path) -> None:
    file = write_file(tmp_path, "# text = I don't\n1\tI\tPRON\n2-3\tdon't\t_\n2\tdo\tAUX\n3\tn't\tPART\n3.1\tx\t_\n")
    one = next(read_conll(file, word=2, skip="^(#|[0-9]+[-.])"))
    assert (one.words, one.lines) == (("I", "do", "n't"), (2, 4, 5))
    assert refusal(DataError, lambda: list(read_conll(file, word=2, tag=3))) == (
        f'{file}, line 1: expected 3 columns or more, found 1; is it a comment? data.skip = "^#" skips such lines'
    )
    assert refusal(ConfigError, lambda: ConllFiles(train="a", skip="(")) == (
        "skip = '(' is not a regular expression: missing ), unterminated subpattern at position 0"
    )
    assert next(read_conll(write_file(tmp_path, "# # B-NP\n1 CD I-NP\n"))).words == ("#", "1")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("I PRON\nam\n", "line 2: expected 2 columns or more, found 1"),
        ("I PRON\nam VBP AUX\n", "line 2: expected 2 columns as above, found 3"),
        ("I\tPRON\n\tAUX\n", "line 2: column 1 is empty"),
        ("I\tPRON\nam\t\n", "line 2: column -1 is empty"),
    ],
)
def test_an_invalid_line_is_reported_with_its_file_and_number(tmp_path: Path, text: str, message: str) -> None:
    file = write_file(tmp_path, text)
    assert refusal(DataError, lambda: list(read_conll(file))) == f"{file}, {message}"


def test_sentences_before_an_invalid_line_are_read(tmp_path: Path) -> None:
    found = read_conll(write_file(tmp_path, "I PRON\n\nam\n"))
    assert next(found).words == ("I",)
    with pytest.raises(DataError):
        next(found)


def test_missing_and_empty_files_are_refused(tmp_path: Path) -> None:
    assert refusal(InputError, lambda: list(read_conll("none.conll"))) == "none.conll: there is no such file"
    file = write_file(tmp_path, "\n\n")
    assert refusal(DataError, lambda: list(read_conll(file))) == (
        f"{file} is empty; expected one word per line with its tag, and a blank line after each sentence"
    )
    assert refusal(DataError, lambda: list(read_tagged_tsv(file))) == (
        f"{file} is empty; expected one sentence per line: its words, a tab, and as many tags"
    )


# Lines


def test_a_line_has_as_many_tags_as_words(tmp_path: Path) -> None:
    file = write_file(tmp_path, "I am\tPRON AUX\n\nYes\tINTJ\n", "a.tsv")
    assert [(s.words, s.lines) for s in read_tagged_tsv(file)] == [(("I", "am"), (1, 1)), (("Yes",), (3,))]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("I am\tPRON AUX\nI am here\tPRON AUX\n", "line 2: there are 3 words and 2 tags; each word needs one"),
        ("I am PRON AUX\n", "line 1: expected words, a tab and tags, found 1 columns"),
    ],
)
def test_unequal_numbers_of_words_and_tags_are_refused(tmp_path: Path, text: str, message: str) -> None:
    file = write_file(tmp_path, text, "a.tsv")
    assert refusal(DataError, lambda: list(read_tagged_tsv(file))) == f"{file}, {message}"


# Splits


def test_shares_of_train_are_held_out_and_repeated_sentences_stay_together(tmp_path: Path) -> None:
    text = "".join(f"word{i % 150} X\nis Y\n\n" for i in range(450))
    data = ConllFiles(train=str(write_file(tmp_path, text)), valid_share=0.2, test_share=0.2)
    parts = {split: [s.words for s in data.sentences(split)] for split in data.splits()}
    assert list(parts) == ["train", "valid", "test"]
    assert sum(map(len, parts.values())) == 450
    assert all(60 < len(parts[split]) < 130 for split in ("valid", "test"))
    kinds = [set(part) for part in parts.values()]
    assert not (kinds[0] & kinds[1] or kinds[0] & kinds[2] or kinds[1] & kinds[2])


def test_files_replace_shares(tmp_path: Path) -> None:
    files = {name: str(write_file(tmp_path, f"{name} X\n\n", f"{name}.conll")) for name in ("train", "valid", "test")}
    data = ConllFiles(**files)
    assert [next(data.sentences(split)).words for split in data.splits()] == [("train",), ("valid",), ("test",)]
    assert data.scored_on(Path(files["train"])).sentences("test") is not None


def test_an_empty_split_is_refused(tmp_path: Path) -> None:
    file = write_file(tmp_path, "I PRON\n\n")
    assert refusal(DataError, lambda: list(ConllFiles(train=str(file), valid_share=0.01).sentences("valid"))) == (
        f"{file}: none of its 1 sentences falls to valid when a share of 0.01 is held out; name files for data.valid "
        "and data.test, or give more sentences"
    )
    assert refusal(ConfigError, lambda: list(TaggedTsv(train=str(file)).sentences("test"))) == (
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
        ("l'e\u0301te\u0301 !", "lete"),
        ("สวัสดี ชาวโลก", "สวสด ชาวโลก"),
    ],
)
def test_plain_text_has_no_case_no_accents_and_no_punctuation(text: str, read: str) -> None:
    assert "".join(split_plain(text)[0]) == read


@settings(deadline=None)
@given(st.text(alphabet=st.characters(codec="utf-8", exclude_categories=("Cs",)), max_size=60))
def test_the_joined_forms_are_the_text(text: str) -> None:
    read, written_as = plain_and_forms(text)
    assert len(read) == len(written_as)
    if read:
        assert "".join(written_as) == text


@settings(deadline=None)
@given(st.text(alphabet="aàbcçeéœAÉ 'Œ’-.,!? 3", max_size=40))
def test_plain_text_of_plain_text_is_the_same(text: str) -> None:
    once = "".join(split_plain(text)[0])
    assert "".join(split_plain(once)[0]) == once
    assert all(strip_character(letter) or letter == " " for letter in once)


TEXTS = [f"La {number} maison d'Élodie est-elle à côté ?" for number in "abcdefghijklmnopqrstuvwxyz"] * 2


def test_sentences_with_equal_plain_text_are_in_one_split_and_each_comes_once(tmp_path: Path) -> None:
    lines = [f"{text}{end}" for text in TEXTS for end in ("", "!", " ...")]
    lines += [line.replace("à", "a").upper() for line in lines]
    data = RestoreText(train=str(write_file(tmp_path, "\n".join(lines), "a.txt")), valid_share=0.2)
    parts = [{"".join(s.words) for s in data.sentences(split)} for split in data.splits()]
    assert not (parts[0] & parts[1] or parts[0] & parts[2] or parts[1] & parts[2])
    assert len(set.union(*parts)) == 26
    every = [s.tags for split in data.splits() for s in data.sentences(split)]
    assert len(every) == len(set(every)) == len(set(lines))


def test_a_limit_applies_to_train_alone(tmp_path: Path) -> None:
    path = str(write_file(tmp_path, "\n".join(TEXTS), "a.txt"))
    few, all_of_them = RestoreText(train=path, valid_share=0.2, limit=5), RestoreText(train=path, valid_share=0.2)
    assert len(list(few.sentences("train"))) == 5
    assert list(few.sentences("test")) == list(all_of_them.sentences("test"))
    assert list(few.sentences("train")) == list(RestoreText(train=path, valid_share=0.2, limit=5).sentences("train"))


def test_a_scored_file_is_read_whole(tmp_path: Path) -> None:
    file = write_file(tmp_path, "Où ?\n\n?!\nÇa va.\n", "b.txt")
    assert ["".join(s.tags) for s in RestoreFile(file).sentences("test")] == ["Où ?", "Ça va."]
    assert [s.lines[0] for s in RestoreFile(file).sentences("test")] == [1, 4]
    empty = write_file(tmp_path, "", "c.txt")
    assert refusal(DataError, lambda: list(RestoreFile(empty).sentences("test"))) == (
        f"{empty} is empty; expected one sentence per line"
    )


# Chains


def test_chains_are_a_pure_function_of_their_settings() -> None:
    one, again = (list(FoldingChains(count=20).sentences("train")) for _ in range(2))
    assert one == again
    assert one != list(FoldingChains(count=20, seed=2).sentences("train"))
    assert {s.words for s in one}.isdisjoint(s.words for s in FoldingChains(count=20).sentences("test"))


def test_a_hinge_flips_the_direction_of_all_later_turns() -> None:
    plain_chain = chain_angles("GAGLHA")[1:]
    assert chain_angles("PGAGLHA")[2:] == [-angle for angle in plain_chain]
    assert chain_angles("PPGAGLHA")[3:] == plain_chain


def test_without_noise_the_tags_are_the_rule() -> None:
    for chain in FoldingChains(count=10, noise=0.0).sentences("valid"):
        rule = [wrap_degrees(angle) for angle in chain_angles("".join(chain.words))]
        assert [float(tag) for tag in chain.tags] == pytest.approx(rule, abs=0.051)
