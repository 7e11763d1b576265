"""regard translate: one line of output per line of input, even if something fails."""

import io
import json
import shutil
import signal

import pytest

import regard
from helpers import PATIENCE, wait_until
from regard.cli.line_io import open_output, read_stdin
from regard.errors import ConfigError, DataError, ModelError


@pytest.fixture(scope="module")
def model(trained):
    return regard.load(trained)


TEXTS = ["je suis étudiant", "", "nous mangeons", "  ", "le chat"]


def test_stdin_goes_to_stdout_in_order_and_empty_lines_stay(trained, model, run_cli):
    result = run_cli("translate", trained, typed="\n".join(TEXTS).encode())
    assert (result.code, result.err) == (0, "")
    assert result.out.split("\n") == [*model.translate(TEXTS), ""]
    assert result.out.split("\n")[1] == result.out.split("\n")[3] == ""


def test_no_line_in_gives_no_line_out(trained, run_cli):
    assert run_cli("translate", trained, typed=b"").out == ""


def test_windows_line_ends_and_a_byte_order_mark_change_nothing(trained, run_cli):
    plain = run_cli("translate", trained, typed=b"je suis\nle chat\n").out
    assert run_cli("translate", trained, typed=b"\xef\xbb\xbfje suis\r\nle chat\r\n").out == plain


def test_texts_are_translated_as_they_are_given(trained, model, run_cli):
    assert run_cli("translate", trained, "le chat", "je suis").out == "".join(
        f"{line}\n" for line in model.translate(["le chat", "je suis"])
    )


def test_a_file_goes_to_a_file(trained, model, run_cli, tmp_path):
    lines = [f"le chat {i}" if i % 7 else "" for i in range(600)]  # more than are translated at once
    source, target = tmp_path / "a.fr", tmp_path / "a.en"
    source.write_text("\n".join(lines) + "\n", encoding="utf-8")
    result = run_cli("translate", trained, "-i", source, "-o", target, "--beam", 1)
    assert (result.code, result.out, result.err) == (0, "", "")
    assert target.read_text(encoding="utf-8").split("\n") == [*model.translate(lines, beam=1), ""]


def test_the_n_best_lines_start_with_the_number_of_their_source(trained, model, run_cli):
    result = run_cli("translate", trained, "--n-best", 2, "--scores", typed=b"je suis\n\nle chat\n")
    rows = [line.split("\t") for line in result.out.splitlines()]
    assert [row[0] for row in rows] == ["1", "1", "2", "3", "3"]
    best = model.translate(["le chat"], n_best=2)[0]
    assert [row[3] for row in rows[3:]] == [t.text for t in best]
    assert [float(row[1]) for row in rows[3:]] == pytest.approx([t.value for t in best], abs=1e-3)
    assert [float(row[2]) for row in rows[3:]] == pytest.approx([t.score for t in best], abs=1e-3)


def test_the_score_that_comes_first_is_the_one_that_ranks(trained, run_cli):
    lines = run_cli("translate", trained, "le chat", "--n-best", 8, "--beam", 8, "--scores").out.splitlines()
    values = [float(line.split("\t")[1]) for line in lines]
    assert len(values) > 2 and values == sorted(values, reverse=True)


def test_no_text_is_twice_among_the_best(model):
    found = model.translate(["le chat noir"], beam=60, n_best=60)[0]
    assert len({t.text for t in found}) == len(found) < 60  # some of the 60 hypotheses have the same text
    assert [t.value for t in found] == sorted((t.value for t in found), reverse=True)


def test_json_has_all_of_a_translation(trained, run_cli):
    row = json.loads(run_cli("translate", trained, "le chat", "--json").out)
    assert (row["line"], row["source"]) == (1, "le chat")
    assert set(row["translations"][0]) == {"text", "value", "score", "tokens", "complete"}


def test_translations_start_with_the_prefix_and_contain_required_words(trained, run_cli):
    assert run_cli("translate", trained, "le chat", "--prefix", "I am").out.startswith("I am")
    assert "student" in run_cli("translate", trained, "le chat", "--require", "student").out


def test_unknown_characters_are_translated_too(trained, run_cli):
    result = run_cli("translate", trained, typed="漢字 🙂 \u202e\x07\n".encode())
    assert (result.code, result.out.count("\n")) == (0, 1)


def test_control_characters_and_bidi_marks_never_come_out(trained, run_cli, monkeypatch):
    monkeypatch.setattr("regard.text.tokenizer.Tokenizer.decode", lambda self, ids: "a\u202eb\x1b[2J")
    result = run_cli("translate", trained, "le chat")
    assert (result.code, result.out) == (0, "ab [2J\n")
    result = run_cli("translate", trained, "le chat", "--prefix", "a\u202eb\x1b[2J")
    assert result.code == 4 and not {"\u202e", "\x1b"} & set(result.err)


def test_json_escapes_control_characters(trained, run_cli):
    result = run_cli("translate", trained, "le\u202e\u2028\x9b[2J chat", "--json")
    assert len(result.out.splitlines()) == 1
    assert not {"\u202e", "\u2028", "\x9b"} & set(result.out)
    assert json.loads(result.out)["source"] == "le\u202e\u2028\x9b[2J chat"


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--beam", "0"], 2, "beam = 0 must be between 1 (greedy) and 1000"),
        (["--beam", "1000000"], 2, "beam = 1000000 must be between 1 (greedy) and 1000"),
        (["--n-best", "0"], 2, "n_best = 0 must be between 1 and 1000"),
        (["--beam", "2", "--n-best", "3"], 2, "n_best = 3 is more than beam = 2; a beam finds no more than that"),
        (["--require", "student " * 60], 4, "line 1: its constraints need 182 tokens with <EOS>, but at most 54 are "
         "allowed; raise the limit, or require fewer words"),
        (["-i", "none.fr"], 2, "give either texts or -i, not both"),
    ],
)  # fmt: skip
def test_what_cannot_be_done_is_refused(trained, run_cli, arguments, code, message):
    result = run_cli("translate", trained, "le chat", *arguments)
    assert (result.code, result.out, result.err) == (code, "", f"error: {message}\n")


def test_a_constraint_that_cannot_be_met_names_its_line(model):
    translator = model.translator()
    constraints = [[], [], ["student " * 60], []]
    with pytest.raises(DataError) as error:
        translator.translate(["le chat", "", "je suis", "nous mangeons"], constraints=constraints, first_line=257)
    assert str(error.value) == (
        "line 259: its constraints need 182 tokens with <EOS>, but at most 56 are allowed; raise the limit, or require "
        "fewer words"
    )


def test_required_words_outside_of_the_vocabulary_are_refused(trained, run_cli):
    result = run_cli("translate", trained, "--require", "漢字\x1b", typed=b"\nle chat\n")
    assert (result.code, result.out) == (4, "")
    assert (
        result.err == 'error: --require: "漢字 " cannot appear in an output: the vocabulary does not know all of it\n'
    )


@pytest.mark.parametrize("empty", ["", "  "])
def test_empty_required_words_are_refused(trained, model, run_cli, empty):
    result = run_cli("translate", trained, "le chat", "--require", empty)
    assert (result.code, result.err) == (2, 'error: --require "": expected words that every translation must contain\n')
    with pytest.raises(DataError, match="holds no word"):
        model.translator().translate(["le chat"], constraints=[[empty]])


def test_a_prefix_outside_of_the_vocabulary_is_refused(trained, model, run_cli):
    result = run_cli("translate", trained, "le chat", "--prefix", "日本")
    message = 'the prefix "日本" cannot begin an output: the vocabulary does not know all of it'
    assert (result.code, result.err) == (4, f"error: {message}\n")
    result = run_cli("translate", trained, "le chat", "--prefix", "the cat " * 60)
    assert result.code == 4 and "an output at most" in result.err
    assert model.translator().translate(["le chat"], prefix=" I ") == model.translator().translate(["le chat"], "I")


def test_a_model_whose_outputs_are_nan_is_reported_as_damaged(trained):
    broken = regard.load(trained)
    broken.inference_module.decoder.embed.weight.data.fill_(float("nan"))
    for beam in (1, 2):
        with pytest.raises(ModelError, match=r"line 3: .*not numbers"):
            broken.translator(beam).translate(["le chat"], first_line=3)


def test_half_a_character_names_its_line(model):
    with pytest.raises(DataError) as error:
        model.translate(["le chat", "le\ud83d chat"])
    assert str(error.value) == (
        "line 2: character 3 is U+D83D, half of a surrogate pair and no character; decode the text as UTF-8 or UTF-16 "
        "again, or leave it out"
    )


def test_a_missing_model_is_reported(run_cli, trained, tmp_path):
    result = run_cli("translate", "runs/none", "x")
    assert (result.code, result.err) == (3, "error: runs/none is not a run: there is no such directory\n")
    result = run_cli("translate", tmp_path, "x")
    assert (result.code, result.err) == (3, f"error: {tmp_path} is not a run: it has no recipe.toml\n")
    shutil.copy(trained / "recipe.toml", tmp_path)
    result = run_cli("translate", tmp_path, "x")
    assert (result.code, result.err) == (3, f"error: {tmp_path} has no finished checkpoint; train it first\n")


def test_a_damaged_checkpoint_is_refused_and_another_used_if_there_is_one(run_cli, trained, tmp_path):
    run = tmp_path / "run"
    shutil.copytree(trained, run, symlinks=True)
    best = (run / "best").resolve()
    others = [path for path in (run / "checkpoints").iterdir() if path.resolve() != best]
    for i, weights in enumerate([best / "model.safetensors", *(path / "model.safetensors" for path in others)]):
        result = run_cli("translate", run, "x")
        assert result.code == 0 and ("warning" in result.err) == (i > 0)
        weights.write_bytes(weights.read_bytes()[:-1])
    result = run_cli("translate", run, "x")
    assert result.code == 3
    assert "model.safetensors" in result.err and "this checkpoint is damaged, use another" in result.err


def test_a_file_that_cannot_be_opened_ends_with_66(trained, run_cli):
    result = run_cli("translate", trained, "-i", "none.fr")
    assert (result.code, result.err) == (66, "error: none.fr: there is no such file\n")


def test_invalid_utf8_is_reported_with_its_line(trained, run_cli):
    result = run_cli("translate", trained, typed=b"le chat\n\xff\n")
    assert result.code == 4
    assert result.err.startswith("error: stdin, line 2: byte 1 (0xff) is not UTF-8; convert the file")


def test_an_output_that_cannot_be_written_ends_with_74_before_the_model_is_read(run_cli, tmp_path):
    (tmp_path / "file").write_text("")
    result = run_cli("translate", "runs/none", "x", "-o", tmp_path / "file" / "out")
    assert (result.code, result.err) == (74, f"error: {tmp_path}/file/out: cannot be written (Not a directory)\n")


def test_an_old_output_stays_until_the_model_is_loaded(trained, run_cli, tmp_path):
    file = tmp_path / "out"
    file.write_text("the work of hours, and more than comes now\n" * 9)
    before = file.read_text()
    assert run_cli("translate", "runs/none", "x", "-o", file).code == 3
    assert file.read_text() == before
    assert run_cli("translate", trained, "le chat", "-o", file).code == 0
    assert file.read_text() == run_cli("translate", trained, "le chat").out


def test_a_new_output_is_removed_if_nothing_was_written(run_cli, tmp_path):
    result = run_cli("translate", tmp_path / "nowhere", "le chat", "-o", tmp_path / "out.txt")
    assert result.code == 3 and not (tmp_path / "out.txt").exists()


def test_lines_before_invalid_utf8_are_answered(trained, model, run_cli):
    result = run_cli("translate", trained, typed=b"le chat\nje suis\n\xff\nnous\n")
    assert result.out.splitlines() == model.translate(["le chat", "je suis"])
    assert result.code == 4 and "line 3" in result.err


def test_a_full_disk_ends_with_74(trained, run_cli):
    result = run_cli("translate", trained, "le chat", "-o", "/dev/full")
    assert result.code == 74
    assert result.err == "error: /dev/full: cannot be written (No space left on device); 0 lines were\n"


def test_the_file_that_is_read_is_never_written(trained, run_cli, tmp_path):
    file = tmp_path / "a"
    file.write_text("le chat\n")
    result = run_cli("translate", trained, "-i", file, "-o", file)
    assert (result.code, result.err) == (2, f"error: -o {file} is the file that is read; write to another\n")
    assert file.read_text() == "le chat\n"


def test_the_file_on_stdin_is_never_overwritten(tmp_path, monkeypatch):
    file = tmp_path / "a"
    file.write_text("le chat\n")
    with file.open() as stdin:
        monkeypatch.setattr("sys.stdin", stdin)
        with pytest.raises(ConfigError) as error, open_output(file, None):
            pass
    assert str(error.value) == f"-o {file} is the file that is read; write to another"


def test_an_endless_line_does_not_use_all_memory(monkeypatch):
    monkeypatch.setattr("regard.data.lines.LONGEST", 3 << 20)
    with pytest.raises(DataError) as error:
        list(read_stdin(io.BytesIO(b"un\n" + b"x" * (4 << 20)), 10))
    assert str(error.value) == ("stdin, line 2: it is longer than 3 MB; expected text with one text per line")


def test_a_text_that_is_too_long_is_reported_and_the_others_are_translated(trained, run_cli):
    text = [*["le chat"] * 2, "le chat " * 3000, "je suis", "le chien " * 3000, "le chat"]
    result = run_cli("translate", trained, "-q", typed="\n".join(text).encode())
    short = run_cli("translate", trained, typed="\n".join(line if len(line) < 99 else "" for line in text).encode())
    assert (result.code, short.code, result.out) == (4, 0, short.out)
    first, second, last = result.err.splitlines()
    assert first.startswith(" warning: line 3 has ") and second.startswith(" warning: line 5 has ")
    assert first.endswith(" tokens; at most 4,096 can be translated at once: put one sentence per line")
    assert last == (
        "error: 2 lines of the input have no answer; the output has an empty line (with --json, an error) in each such "
        "place"
    )


def test_the_place_of_a_text_without_a_translation_is_kept_in_json_and_in_lists(trained, run_cli):
    texts = ("le chat", "le chat " * 3000, "je suis")
    rows = [json.loads(line) for line in run_cli("translate", trained, *texts, "--json").out.splitlines()]
    assert [row["line"] for row in rows] == [1, 2, 3] and rows[1].keys() == {"line", "error"}
    assert rows[1]["error"].startswith("line 2 has ")
    lists = run_cli("translate", trained, *texts, "--n-best", 2, "--beam", 2).out.splitlines()
    assert [line.split("\t")[0] for line in lists] == ["1", "1", "2", "3", "3"] and lists[2] == "2\t"


def test_a_text_longer_than_the_learned_positions_is_reported(tiny, run_cli):
    few = ("train.steps=2", "task.bleu_sentences=0", "filter.max_tokens=63")
    assert run_cli("train", tiny, "model.positions=learned", "model.max_positions=64", *few, "-q").code == 0
    assert run_cli("translate", "runs/tiny", "le chat " * 8, "--beam", 1).code == 0  # cut where places end
    result = run_cli("translate", "runs/tiny", "le", "zzz " * 200, "chat")
    assert result.code == 4 and len(result.out.splitlines()) == 3
    assert result.err.startswith(" warning: line 2: a text of ")
    assert result.err.splitlines()[0].endswith(
        " tokens is longer than the 64 positions this model has learned; split it, or train with a larger "
        "model.max_positions"
    )


def test_stdin_is_read_line_by_line_as_it_arrives():
    parts = [b"un\nde", b"ux\n", b"trois"]

    class Slow:
        def read1(self, size):
            return parts.pop(0) if parts else b""

    assert list(read_stdin(Slow(), 10)) == [["un"], ["deux"], ["trois"]]


def test_a_closed_pipe_ends_quietly(trained, start, tmp_path):
    source = tmp_path / "a.fr"
    source.write_text("le chat\n" * 20_000)
    with source.open() as lines:
        process = start("translate", trained, "--beam", "1", stdin=lines)
        assert process.stdout.readline()
        process.stdout.close()
        assert process.wait(PATIENCE) == 0
    assert process.stderr.read() == ""


def test_ctrl_c_in_the_middle_of_a_file_leaves_whole_lines(trained, model, start, tmp_path):
    source, target = tmp_path / "a.fr", tmp_path / "a.en"
    source.write_text("le chat\n" * 50_000)
    process = start("translate", trained, "--beam", "1", "-i", source, "-o", target)
    wait_until(lambda: target.exists() and target.stat().st_size, "the first lines are written", process)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130
    output = target.read_text(encoding="utf-8")
    line = model.translate("le chat", beam=1)
    assert set(output.removesuffix("\n").split("\n")) == {line}
    assert output.endswith("\n")
    done = output.count("\n")
    assert 0 < done < 50_000
    assert err.splitlines()[-1] == f"error: interrupted after {done:,} lines; only whole lines were written"


def test_progress_without_a_terminal_is_lines_with_an_eta(trained, run_cli, tmp_path, monkeypatch):
    monkeypatch.setattr("regard.cli.console.LineProgress.__init__.__defaults__", (0, 0.0))
    source = tmp_path / "a.fr"
    source.write_text("le chat\n" * 3)
    result = run_cli("translate", trained, "-i", source)
    assert result.err == " translating  3/3  100%  00:00 < 00:00\n"


@pytest.mark.parametrize(("link", "mark"), [("best", " warning: "), ("last", " warning  ")])
def test_quiet_does_not_hide_that_a_damaged_checkpoint_was_passed_over(trained, run_cli, tmp_path, link, mark):
    run = tmp_path / "run"
    shutil.copytree(trained, run, symlinks=True)
    with (run / link / "model.safetensors").open("r+b") as file:
        file.truncate(100)
    verb = ["translate", run, "le chat"] if link == "best" else ["train", run, "train.steps=31"]
    result = run_cli(*verb, "-q")
    assert result.code == 0 and result.err.startswith(mark) and "this checkpoint is damaged" in result.err


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["a", 3], "text 2: expected a str, got 3 (int)"),
        (3, "expected a text or a list of texts, got 3 (int)"),
        (b"a", "expected a text or a list of texts, got b'a' (bytes)"),
        ([None], "text 1: expected a str, got None (NoneType)"),
    ],
)
def test_what_is_no_text_is_refused_in_python(trained, given, message):
    model = regard.load(trained)
    with pytest.raises(DataError) as caught:
        model.translate(given)
    assert str(caught.value) == message
