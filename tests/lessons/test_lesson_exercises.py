"""Exercises: answers are computed by the lesson, and what the reader types is graded."""

import json

import pytest

from regard.cli import invoke
from regard.lessons.catalogue import find_exercise, solve
from regard.lessons.engine.exercises import grade


@pytest.fixture
def run_cli(capsys, monkeypatch):
    def run(typed, *arguments):
        import io

        monkeypatch.setenv("COLUMNS", "80")
        monkeypatch.setattr("sys.stdin", io.StringIO(typed))
        code = invoke(["lesson", *arguments])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


@pytest.mark.parametrize(("text", "expected", "right"), [
    ("0, 1, 1", [0.0, 1.0, 1.0], True),
    ("[0 1 1]", [0.0, 1.0, 1.0], True),
    ("(0; 1; 1.004)", [0.0, 1.0, 1.0], True),
    ("0 1 1.01", [0.0, 1.0, 1.0], False),
    ("−.5", -0.5, True),
    ("61,100,840", 61100840, True),
    ("1/3", 0.3333, True),
    ("90 %", 0.9, True),
    ("1e-3", 0.0, True),
    ("1/0", 1.0, False),
    ("nan", 0.0, False),
    ("1e999", 0.0, False),
    ("", 0.0, False),
    ('"Mat"', "mat", True),
    ("[I am a student]", ["I", "am", "a", "student"], True),
    ("I am student", ["I", "am", "a", "student"], False),
])  # fmt: skip
def test_an_answer_is_graded_by_its_numbers_or_words(text, expected, right):
    assert grade(text, expected).right is right


def test_answers_are_read_from_stdin_and_checked(run_cli):
    code, out, err = run_cli("0 1 1\n20\n", "rnn", "--exercises")
    assert (code, err) == (0, "")
    assert "1  With x = [0, 1] instead, what is the new hidden state" in out
    assert "✓ 0 1 1: right" in out
    assert "✗ 20: not right; hint: units + units squared + units times inputs" in out
    assert "answer: 21" in out and out.splitlines()[-1] == "1 of 2 right"
    assert "shown by: regard lesson rnn 'x=[1, 0, 1]' 'U=[[1, 0, 0]," in " ".join(out.split())


def test_without_answers_the_solutions_are_shown_and_no_escape_sequence_is_echoed(run_cli):
    code, out, _ = run_cli("", "attention", "--exercises")
    assert code == 0 and "answer: [0  1  0]" in out and "0 of 2 right" in out
    assert "\x1b" not in run_cli("\x1b[31m\n\n", "attention", "--exercises")[1]


def test_exercises_as_json_have_the_answers_of_the_lesson(run_cli):
    rows = json.loads(run_cli("", "soft-lookup", "--exercises", "--json")[1])
    assert [row["answer"] for row in rows] == [25.0, "late"]
    assert rows[0]["answer"] == solve("soft-lookup", find_exercise("soft-lookup", 1))


def test_step_and_exercises_exclude_each_other(run_cli):
    code, out, err = run_cli("", "rnn", "--exercises", "--step", "1")
    assert (code, out) == (2, "")
    assert err == "error: --step and --exercises exclude each other; leave one of them out\n"
