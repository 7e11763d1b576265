"""regard vectors: neighbors, analogies, maps and files, of a run and of a file of vectors."""

import json

import numpy as np
import pytest

from regard.tasks.vectors.word_table import WordTable, read_word_table

PEOPLE = {"king": [1, 1, 0], "man": [0.1, 1, 0], "woman": [0.1, -1, 0], "queen": [1, -1, 0], "étudiant": [0, 0.2, 1]}


@pytest.fixture
def glove(tmp_path):
    path = tmp_path / "glove.txt"
    lines = list(WordTable(tuple(PEOPLE), np.array(list(PEOPLE.values()), np.float32)).word2vec_lines())[1:]
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


def test_neighbors_of_one_word_have_cosines_and_of_several_one_line_each(run_cli, glove):
    result = run_cli("vectors", "neighbors", glove, "king", "-n", 2)
    assert result.code == 0 and result.out.splitlines() == [" 0.7740  man", " 0.1387  étudiant"]
    result = run_cli("vectors", "neighbors", glove, "king", "Étudiant", "-n", 1)
    assert result.out.splitlines() == ["king: man 0.7740", "Étudiant: man 0.1951"]
    found = json.loads(run_cli("vectors", "neighbors", glove, "king", "--json").out)
    assert [near["word"] for near in found["king"]] == ["man", "étudiant", "queen", "woman"]


def test_a_map_leaves_unknown_words_out_with_a_warning(run_cli, glove, tmp_path):
    file = tmp_path / "map.json"
    result = run_cli("vectors", "map", glove, *PEOPLE, "kng", "xyzzy", "-o", file, "-q")
    assert result.code == 0 and [row["word"] for row in json.loads(file.read_text(encoding="utf-8"))["words"]] == list(
        PEOPLE
    )
    assert result.err == (
        ' warning: "kng" is none of the 5 words; did you mean king?; left out of the map\n'
        ' warning: "xyzzy" is none of the 5 words; left out of the map\n'
    )
    none = run_cli("vectors", "map", glove, "kng", "xyzzy")
    assert none.code == 4 and '"xyzzy" is none of the 5 words' in none.err


@pytest.mark.parametrize("expression", [["king - man + woman"], ["king", "-", "man", "+", "woman"]])
def test_a_sum_may_be_one_word_of_the_shell_or_several(run_cli, glove, expression):
    result = run_cli("vectors", "analogy", glove, *expression, "-n", 1)
    assert result.code == 0 and result.out.split()[1:] == ["queen"]


def test_questions_are_scored_by_section(run_cli, glove, tmp_path):
    file = tmp_path / "questions.txt"
    file.write_text(": royal\nman king woman queen\nMan woman king queen\n: odd\nman king ghost ghost\n", "utf-8")
    result = run_cli("vectors", "analogy", glove, "--questions", file)
    assert result.out.splitlines() == [
        "royal  100.0  2 of 2",
        "1 of 3 questions have unknown words",
        "100.0 % of 2 questions right (95 %: 100.0 to 100.0)",
    ]
    found = json.loads(run_cli("vectors", "analogy", glove, "--questions", file, "--json").out)
    assert found["sections"] == {"royal": {"right": 2, "asked": 2}} and found["unknown"] == 1


def test_a_map_is_drawn_in_the_terminal_and_in_files(run_cli, glove, tmp_path):
    result = run_cli("vectors", "map", glove)
    assert result.code == 0 and all(f"·{word}" in result.out or f"{word}·" in result.out for word in PEOPLE)
    for ending in ("svg", "png", "json"):
        file = tmp_path / f"map.{ending}"
        assert run_cli("vectors", "map", glove, *PEOPLE, "-o", file).out == f"{file}\n" and file.stat().st_size
    assert "étudiant</text>" in (tmp_path / "map.svg").read_text(encoding="utf-8")
    rows = json.loads((tmp_path / "map.json").read_text(encoding="utf-8"))["words"]
    assert [row["word"] for row in rows] == list(PEOPLE)
    found = json.loads(run_cli("vectors", "map", glove, "king", "--near", 3, "--json").out)
    assert [row["word"] for row in found["words"]] == ["king", "man", "étudiant", "queen"]


def test_trained_vectors_are_written_and_read_back(run_cli, words, tmp_path):
    import regard

    file = tmp_path / "sea.vec"
    assert run_cli("vectors", "write", words, "-o", file).code == 0
    table = regard.load(words).table
    again = read_word_table(file.read_text(encoding="utf-8").splitlines(), file)
    assert again.words == table.words and np.array_equal(again.vectors, table.vectors)
    assert run_cli("vectors", "neighbors", file, "sea").out == run_cli("vectors", "neighbors", words, "sea").out


def test_without_a_file_vectors_are_written_to_stdout(run_cli, glove):
    result = run_cli("vectors", "write", glove, "--words", 2)
    assert result.code == 0 and result.out.splitlines() == ["2 3", "king 1.0 1.0 0.0", "man 0.1 1.0 0.0"]


def test_look_at_word_vectors_names_the_commands_to_use(run_cli, words):
    result = run_cli("look", words, "the sea")
    assert result.code == 2 and "use regard vectors neighbors, analogy or map" in result.err


def test_words_limits_the_table_to_its_first_words(run_cli, glove, words):
    assert run_cli("vectors", "neighbors", glove, "king", "--words", 2).out.split()[1:] == ["man"]
    assert len(run_cli("vectors", "neighbors", words, "the", "--words", 3).out.splitlines()) == 2


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["neighbors", "none.txt", "king"], 66, "none.txt"),
        (["neighbors", "GLOVE", "kng"], 4, '"kng" is none of the 5 words; did you mean king?'),
        (["neighbors", "GLOVE", "king", "--side", "target"], 2, "is a file, and has one table"),
        (["analogy", "GLOVE", "king man"], 2, "expected words with + and - between them"),
        (["analogy", "GLOVE"], 2, "give either a sum"),
        (["map", "GLOVE", "--near", "3"], 2, "--near: name the words"),
        (["analogy", "GLOVE", "--questions", "EMPTY", "-n", "3"], 2, "-n: the answer to a question"),
        (["map", "GLOVE", "king", "man"], 2, "a map needs at least 3 words"),
        (["map", "GLOVE", "-o", "map.bmp"], 2, "expected a name that ends in .svg, .png, .json"),
        (["analogy", "GLOVE", "--qestions", "foo"], 2, "there is no option --qestions"),
        (["analogy", "GLOVE", "king - king"], 2, "is zero, and points nowhere"),
        (["write", "GLOVE", "-o", "no/such/folder/a.vec"], 74, "cannot be written"),
        (["write", "GLOVE", "-o", "a.vec.gz"], 2, "plain text; leave .gz off"),
        (["write", "GLOVE", "-o", "GLOVE"], 2, "is the file that is read"),
        (["write", "GLOVE", "-o", "/dev/full"], 74, "/dev/full: cannot be written (No space left on device)"),
        (["neighbors", "EMPTY", "king"], 4, "is empty; expected a word and its numbers on each line"),
    ],
)
def test_what_cannot_be_done_is_refused(run_cli, glove, tmp_path, arguments, code, message):
    (tmp_path / "empty.txt").touch()
    names = {"GLOVE": glove, "EMPTY": tmp_path / "empty.txt"}
    result = run_cli("vectors", *(names.get(argument, argument) for argument in arguments))
    assert (result.code, result.out) == (code, "") and message in result.err


def test_eval_card_and_new_work_for_word_vectors(run_cli, words, tmp_path):
    assert '"loss"' in run_cli("eval", words, "--split", "valid", "--json").out
    assert "word2vec" in (words / "MODEL_CARD.md").read_text(encoding="utf-8")
    assert f'regard vectors neighbors {words} "..."' in run_cli("translate", words, "sea").err
    assert run_cli("new", tmp_path / "mine", "--task", "vectors").code == 0
    assert 'kind = "vectors"' in (tmp_path / "mine.toml").read_text(encoding="utf-8")
