"""regard vectors: neighbours, sums, maps and files, of a run and of what others made."""

import json

import numpy as np
import pytest

from regard.text.word_table import WordTable, read_table

PEOPLE = {"king": [1, 1, 0], "man": [0.1, 1, 0], "woman": [0.1, -1, 0], "queen": [1, -1, 0], "étudiant": [0, 0.2, 1]}


@pytest.fixture
def glove(tmp_path):
    path = tmp_path / "glove.txt"
    lines = list(WordTable(tuple(PEOPLE), np.array(list(PEOPLE.values()), np.float32)).lines())[1:]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def words(tmp_path_factory):
    from regard.cli import invoke

    folder = tmp_path_factory.mktemp("words")
    (folder / "sea.txt").write_text("the sea is deep and the sky is high over the boat . " * 200, encoding="utf-8")
    (folder / "w.toml").write_text(
        f'[task]\nkind = "vectors"\n[data]\nkind = "text"\ntrain = "{folder}/sea.txt"\n[model]\nwidth = 8\n'
        "[train]\nsteps = 3\n",
        encoding="utf-8",
    )
    assert invoke(["train", str(folder / "w.toml"), "--out", str(folder / "run"), "--quiet"]) == 0
    return folder / "run"


def test_neighbours_of_one_word_come_with_their_cosines_and_of_several_in_lines(say, glove):
    said = say("vectors", "neighbours", glove, "king", "-n", 2)
    assert said.code == 0 and said.out.splitlines() == [" 0.7740  man", " 0.1387  étudiant"]
    said = say("vectors", "neighbours", glove, "king", "Étudiant", "-n", 1)
    assert said.out.splitlines() == ["king: man", "Étudiant: man"]
    found = json.loads(say("vectors", "neighbours", glove, "king", "--json").out)
    assert [near["word"] for near in found["king"]] == ["man", "étudiant", "queen", "woman"]


@pytest.mark.parametrize("given", [["king - man + woman"], ["king", "-", "man", "+", "woman"]])
def test_a_sum_may_be_one_word_of_the_shell_or_several(say, glove, given):
    said = say("vectors", "analogy", glove, *given, "-n", 1)
    assert said.code == 0 and said.out.split()[1:] == ["queen"]


def test_questions_are_scored_by_section(say, glove, tmp_path):
    file = tmp_path / "questions.txt"
    file.write_text(": royal\nman king woman queen\nMan woman king queen\n: odd\nman king ghost ghost\n", "utf-8")
    said = say("vectors", "analogy", glove, "--questions", file)
    assert said.out.splitlines() == [
        "royal  100.0  2 of 2",
        "1 of 3 questions have unknown words",
        "100.0 % of 2 questions right (95 %: 100.0 to 100.0)",
    ]
    found = json.loads(say("vectors", "analogy", glove, "--questions", file, "--json").out)
    assert found["sections"] == {"royal": {"right": 2, "asked": 2}} and found["unknown"] == 1


def test_a_map_is_drawn_in_the_terminal_and_in_files(say, glove, tmp_path):
    said = say("vectors", "map", glove)
    assert said.code == 0 and all(f"·{word}" in said.out or f"{word}·" in said.out for word in PEOPLE)
    for ending in ("svg", "png", "json"):
        file = tmp_path / f"map.{ending}"
        assert say("vectors", "map", glove, *PEOPLE, "-o", file).out == f"{file}\n" and file.stat().st_size
    assert "étudiant</text>" in (tmp_path / "map.svg").read_text(encoding="utf-8")
    rows = json.loads((tmp_path / "map.json").read_text(encoding="utf-8"))["words"]
    assert [row["word"] for row in rows] == list(PEOPLE)
    found = json.loads(say("vectors", "map", glove, "king", "--near", 3, "--json").out)
    assert [row["word"] for row in found["words"]] == ["king", "man", "étudiant", "queen"]


def test_what_a_run_learnt_is_written_for_others_and_read_back(say, words, tmp_path):
    import regard

    file = tmp_path / "sea.vec"
    assert say("vectors", "write", words, "-o", file).code == 0
    table = regard.load(words).table
    again = read_table(file.read_text(encoding="utf-8").splitlines(), file)
    assert again.words == table.words and np.array_equal(again.numbers, table.numbers)
    assert say("vectors", "neighbours", file, "sea").out == say("vectors", "neighbours", words, "sea").out


def test_without_a_file_vectors_are_written_to_stdout(say, glove):
    told = say("vectors", "write", glove, "--words", 2)
    assert told.code == 0 and told.out.splitlines() == ["2 3", "king 1.0 1.0 0.0", "man 0.1 1.0 0.0"]


def test_looking_into_vectors_says_what_to_do_instead(say, words):
    told = say("look", words, "the sea")
    assert told.code == 2 and "use regard vectors neighbours, analogy or map" in told.err


def test_only_the_first_words_are_taken_if_so_many_are_asked_for(say, glove, words):
    assert say("vectors", "neighbours", glove, "king", "--words", 2).out.split()[1:] == ["man"]
    assert len(say("vectors", "neighbours", words, "the", "--words", 3).out.splitlines()) == 2


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        (["neighbours", "none.txt", "king"], 66, "none.txt"),
        (["neighbours", "GLOVE", "kng"], 4, '"kng" is none of the 5 words; did you mean king?'),
        (["neighbours", "GLOVE", "king", "--side", "target"], 2, "is a file, and has one table"),
        (["analogy", "GLOVE", "king man"], 2, "expected words with + and - between them"),
        (["analogy", "GLOVE"], 2, "give either a sum"),
        (["map", "GLOVE", "--near", "3"], 2, "--near: name the words"),
        (["analogy", "GLOVE", "--questions", "EMPTY", "-n", "3"], 2, "-n: of questions"),
        (["map", "GLOVE", "king", "man"], 2, "a map needs at least 3 words"),
        (["map", "GLOVE", "-o", "map.bmp"], 2, "expected a name that ends in .svg, .png, .json"),
        (["analogy", "GLOVE", "--qestions", "foo"], 2, "there is no option --qestions"),
        (["analogy", "GLOVE", "king - king"], 2, "is zero, and points nowhere"),
        (["write", "GLOVE", "-o", "no/such/folder/a.vec"], 74, "cannot be written"),
        (["write", "GLOVE", "-o", "a.vec.gz"], 2, "plain text; leave .gz off"),
        (["write", "GLOVE", "-o", "GLOVE"], 2, "is the file that is read"),
        (["write", "GLOVE", "-o", "/dev/full"], 74, "/dev/full: cannot be written (No space left on device)"),
        (["neighbours", "EMPTY", "king"], 4, "is empty; expected a word and its numbers on each line"),
    ],
)
def test_what_cannot_be_done_is_told(say, glove, tmp_path, arguments, code, told):
    (tmp_path / "empty.txt").touch()
    names = {"GLOVE": glove, "EMPTY": tmp_path / "empty.txt"}
    said = say("vectors", *(names.get(argument, argument) for argument in arguments))
    assert (said.code, said.out) == (code, "") and told in said.err


def test_a_run_is_scored_described_and_used_as_all_others_are(say, words, tmp_path):
    assert '"loss"' in say("eval", words, "--split", "valid", "--json").out
    assert "word2vec" in (words / "MODEL_CARD.md").read_text(encoding="utf-8")
    assert f'regard vectors neighbours {words} "..."' in say("translate", words, "sea").err
    assert say("new", tmp_path / "mine", "--task", "vectors").code == 0
    assert 'kind = "vectors"' in (tmp_path / "mine.toml").read_text(encoding="utf-8")
