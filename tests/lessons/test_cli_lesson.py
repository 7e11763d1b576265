"""regard lesson: the list, a lesson, changed inputs, and invalid inputs."""

import json
import subprocess
import sys

import pytest

from regard.cli import invoke
from regard.lessons import LESSONS, teach
from regard.lessons.engine.cached_models import COMMON, PHRASES
from regard.run import Run
from regard.tasks import Recipe


@pytest.fixture
def run_cli(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")

    def run(*arguments):
        capsys.readouterr()
        code = invoke(["lesson", *arguments])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


def test_without_a_name_all_lessons_are_listed(run_cli):
    code, out, err = run_cli()
    assert (code, err) == (0, "")
    assert [line.split()[0] for line in out.splitlines() if line.startswith("  ")] == list(LESSONS)


def test_the_list_fits_into_a_narrow_terminal(run_cli, monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    assert max(map(len, run_cli()[1].splitlines())) <= 40


def test_the_list_does_not_import_torch():
    program = (
        "import sys\nfrom regard.cli import invoke\n"
        "assert invoke(['lesson']) == 0\nassert 'torch' not in sys.modules and 'numpy' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)


def test_a_lesson_ends_with_the_lectures_numbers(run_cli):
    code, out, err = run_cli("rnn")
    assert (code, err) == (0, "")
    assert "→ oₜ = 1\n" in out
    assert "✓ the output: 1\n" in out
    assert "All numbers are those of the lesson." in out.splitlines()
    assert out.splitlines()[-1].endswith("regard lesson rnn --exercises")


def test_a_changed_input_is_marked_and_shown_beside_the_original(run_cli):
    code, out, _ = run_cli("rnn", "x=[2,", "0]")
    assert code == 0
    assert "xₜ: current input; changed, the lesson has [1  0]" in " ".join(out.split()).replace("1 0", "1  0")
    assert "→ oₜ = 2   (the lesson has 1)" in out
    assert "the output: 2; the lesson has 1" in out
    assert "x changed: marked results differ from the lesson's." in out.splitlines()


def test_a_single_step(run_cli):
    code, out, _ = run_cli("attention", "--step", "7")
    assert code == 0
    assert "7  The result" in out and "6  Attention weights" not in out


def test_json_output_is_the_lesson(run_cli):
    code, out, _ = run_cli("bahdanau", "--json")
    assert code == 0
    assert json.loads(out) == json.loads(json.dumps(teach("bahdanau").to_dict()))


def test_a_lesson_can_use_two_of_the_users_runs(run_cli, runs):
    code, out, err = run_cli("evolution-of-attention", "--models", runs["rnnsearch"], runs["transformer"])
    assert (code, err) == (0, "")
    assert "→ rnnsearch =" in out and "→ transformer =" in out


def test_a_lesson_can_use_a_run_of_the_user(run_cli, runs):
    code, out, err = run_cli("transformer", f"model={runs['transformer']}", "limit=2")
    assert (code, err) == (0, "")
    assert "Step 2: after " in out and "Step 3: after " not in out


def test_a_model_of_another_kind_or_a_missing_word_is_refused(run_cli, runs):
    code, _, err = run_cli("transformer", f"model={runs['rnnsearch']}")
    assert code == 3
    assert err.endswith("is a model of the kind rnnsearch; this lesson needs a transformer\n")
    code, _, err = run_cli("pronoun", f"model={runs['pronoun']}", "word=he")
    assert (code, err) == (2, 'error: word: expected a word of both sentences, and "he" is not in first\n')


def test_a_run_without_attention_is_refused_with_what_the_lesson_needs(run_cli, runs, tmp_path):
    settings = (*COMMON, *PHRASES, "data.count=200", "text.vocab_size=200", "model.kind=seq2seq", "model.width=8")
    run = tmp_path / "no-attention"
    Run(run).train(Recipe.read(None, [*settings, "train.steps=1", "train.schedule.warmup=1"]))
    code, out, err = run_cli("evolution-of-attention", "--models", str(run), runs["transformer"])
    assert (code, out) == (3, "")
    assert err == (
        f"error: {run} is a model of the kind seq2seq, whose decoder does not attend to its source; "
        "this lesson needs one that does, such as rnnsearch, luong or transformer\n"
    )


@pytest.mark.parametrize(("arguments", "message"), [
    (["rn"], 'there is no lesson "rn"; did you mean "rnn"?'),
    (["xyz"], f'there is no lesson "xyz"; there are {", ".join(LESSONS)}'),
    (["rnn", "x=1,2,3"], "x: expected a list of 2 numbers (input), got a list of 3; for another size change U as well"),
    (["rnn", "U=[[1,2],[3]]"], "U: expected a matrix of numbers (3 unit x 2 input), got rows of unequal length"),
    (["rnn", "U=1,2"], "U: expected a matrix of numbers (3 unit x 2 input), got a list of 2"),
    (["rnn", "x=[a,b]"], "x: expected a list of 2 numbers (input), got '[a,b]'"),
    (["rnn", "x=[1,nan]"], "x: expected a list of 2 numbers (input), got '[1,nan]'"),
    (["rnn", "x=1e9,0"], "x: expected numbers from -1,000,000 to 1,000,000, got 1000000000.0"),
    (["rnn", "x="], "x: expected a list of 2 numbers (input), got ''"),
    (["rnn", "x=1e999,0"], "x: expected numbers from -1,000,000 to 1,000,000, got inf"),
    (["bptt", f"window=1{'0' * 400}"], f"window: expected numbers from 1 to 4,096, got 1{'0' * 38}…"),
    (["rnn", "f=sigmoid"], "f: expected one of relu, tanh, got 'sigmoid'"),
    (["rnn", "w=1"], 'there is no input "w"; there are U, V, W, h, x, b, f, b_o, g'),
    (["rnn", "x"], '"x" is not an input; write name=value, such as x=1,0'),
    (["rnn", "--step", "9"], '--step: the lesson "rnn" has the steps 1 to 5, got 9'),
    (["rnn", "--models", "a", "b"], '--models is for the lesson "evolution-of-attention", not for "rnn"'),
    (["bptt", "y=1,3,1,1"], "y: expected classes from 1 to 2 (c and V have as many), got 3"),
    (["bptt", "y=1,1.5,1,1"], "y: expected a list of 4 whole numbers (step), got 1.5"),
    (["bptt", "window=0"], "window: expected numbers from 1 to 4,096, got 0"),
    (["bptt", "weight=3,1"], "weight: expected a row and a column of W, each from 1 to 2"),
    (["embedding", "word=he"], 'word: expected one of a, am, i, thanks, student, <eos>, got "he"'),
    (["embedding", "text="], "text: expected at least one character, got ''"),
    (["padding", "row=9"], "row: expected a sentence from 1 to 4, got 9"),
    (["padding", "sentences=['a','','b','c']"], "sentences: expected words in each, and number 2 has none"),
    (["bidirectional", "word=tree"], 'word: expected a word of both sentences, and "tree" is not in first'),
    (["seq2seq", "sentence="], "sentence: expected some words, got none"),
    (["lstm", "b=1,2", "U=[[1,0],[0,1]]", "V=[[1,0],[0,1]]"],
     "b: expected 4 rows for each of 2 units, 8 in all, got 2"),
    (["eight-heads", "heads=3"], "heads: expected a number that divides the 16 rows of WQ, got 3"),
    (["positions", "order=1,1,2"], "order: expected each of 1 to 3 once, got [1, 1, 2]"),
    (["label-smoothing", "word=he"], 'word: expected one of a, am, i, thanks, student, <eos>, got "he"'),
    (["label-smoothing", "smoothing=1"], "smoothing: expected numbers from 0 to 0.99, got 1"),
    (["training", "target=i am he"], 'target: expected words of a, am, i, thanks, student, got "he"'),
    (["training", "source="], "source: expected some words, got none"),
    (["noam", "warmup=0"], "warmup: expected numbers from 1 to 1,000,000, got 0"),
    (["gpt", "text=the fox"], 'text: expected words of the, cat, dog, sat, on, mat, rug, ., got "fox"'),
    (["gpt", "text=the cat sat on the mat ."],
     "text: expected at most 5 words, since one more is appended and P has 6 positions; got 7"),
    (["elmo", "first=the fox"],
     'first: expected words of ., boats, clients, line, trust, the, bank, of, with, water, cash, got "fox"'),
    (["elmo", "second=the water"], 'second: expected a sentence with the word "bank", got "the water"'),
    (["elmo", "w=1,2"], "w: expected 3 numbers, one per layer, got 2"),
    (["elmo", "F1=[[1,0]]"],
     "F1: expected a matrix of numbers (8 gate x 5 in), got 1 x 2; for another size change B2 as well"),
    (["elmo", "second="], "second: expected some words, got none"),
    (["rotary", "q=1,2,3", "k=1,2,3"],
     "q: expected an even count of numbers, since they are rotated in pairs; got 3"),
    (["rotary", "wide=7"], "wide: expected an even number, since numbers are rotated in pairs; got 7"),
    (["rotary", "pair=1,2,3"], "pair: expected 2 numbers, got 3"),
    (["sizes", "layers=0"], "layers: expected numbers from 1 to 256, got 0"),
    (["sizes", "width=a"], "width: expected a whole number, got 'a'"),
    (["sizes", "tokens=300e9"], "tokens: expected numbers from 0 to 1,000,000, got 300000000000.0"),
    (["sizes", "show=GPT-5"],
     "show: expected one of all, GPT-1, GPT-2, GPT-3, GPT-3.5, GPT-4, GPT-NeoX-20B, got 'GPT-5'"),
    (["gpt", "text="], "text: expected some words, got none"),
    (["gpt", "W1=[[1,0,0,0]]", "W2=[[1],[1],[1],[1]]"], "W1: expected 16 rows, four times the width, got 1"),
    (["transformer", "sentence=", "model=none"], "sentence: expected some words, got none"),
    (["beam-search", "model=none"], "none is not a run: there is no such directory"),
    (["pronoun", "layer=0"], "layer: expected numbers from 1 to 64, got 0"),
    (["evolution-of-attention", "--models", "none", "none"], "none is not a run: there is no such directory"),
])  # fmt: skip
def test_invalid_arguments_are_refused_in_one_line(arguments, message, run_cli):
    code, out, err = run_cli(*arguments)
    assert code in (2, 3)
    assert out == ""
    assert err == f"error: {message}\n"


def test_an_input_of_another_size_is_accepted_if_all_inputs_that_share_the_axis_have_it(run_cli):
    code, out, _ = run_cli("rnn", "x=1,0,1", "U=[[1,0,0],[0,1,0],[-1,0,0]]")
    assert code == 0
    assert "→ U xₜ = [1  0  -1]" in out
