"""regard translate: a line out for each line in, whatever happens."""

import io
import json
import shutil
import signal
import time

import pytest

import regard
from regard.cli.lines import arriving, opened_output
from regard.errors import ConfigError, DataError, ModelError


@pytest.fixture(scope="module")
def model(trained):
    return regard.load(trained)


TEXTS = ["je suis étudiant", "", "nous mangeons", "  ", "le chat"]


def test_stdin_goes_to_stdout_in_order_and_empty_lines_stay(trained, model, say):
    told = say("translate", trained, typed="\n".join(TEXTS).encode())
    assert (told.code, told.err) == (0, "")
    assert told.out.split("\n") == [*model.translate(TEXTS), ""]
    assert told.out.split("\n")[1] == told.out.split("\n")[3] == ""


def test_no_line_in_gives_no_line_out(trained, say):
    assert say("translate", trained, typed=b"").out == ""


def test_windows_line_ends_and_a_byte_order_mark_change_nothing(trained, say):
    plain = say("translate", trained, typed=b"je suis\nle chat\n").out
    assert say("translate", trained, typed=b"\xef\xbb\xbfje suis\r\nle chat\r\n").out == plain


def test_texts_are_translated_as_they_are_given(trained, model, say):
    assert say("translate", trained, "le chat", "je suis").out == "".join(
        f"{line}\n" for line in model.translate(["le chat", "je suis"])
    )


def test_a_file_goes_to_a_file(trained, model, say, tmp_path):
    lines = [f"le chat {i}" if i % 7 else "" for i in range(600)]  # more than are translated at once
    source, target = tmp_path / "a.fr", tmp_path / "a.en"
    source.write_text("\n".join(lines) + "\n", encoding="utf-8")
    told = say("translate", trained, "-i", source, "-o", target, "--beam", 1)
    assert (told.code, told.out, told.err) == (0, "", "")
    assert target.read_text(encoding="utf-8").split("\n") == [*model.translate(lines, beam=1), ""]


def test_the_n_best_lines_begin_with_the_number_of_their_source(trained, model, say):
    told = say("translate", trained, "--nbest", 2, "--scores", typed=b"je suis\n\nle chat\n")
    rows = [line.split("\t") for line in told.out.splitlines()]
    assert [row[0] for row in rows] == ["1", "1", "2", "3", "3"]
    best = model.translate(["le chat"], nbest=2)[0]
    assert [row[2] for row in rows[3:]] == [t.text for t in best]
    assert [float(row[1]) for row in rows[3:]] == pytest.approx([t.score for t in best], abs=1e-3)


def test_json_has_all_of_a_translation(trained, say):
    row = json.loads(say("translate", trained, "le chat", "--json").out)
    assert (row["line"], row["source"]) == (1, "le chat")
    assert set(row["translations"][0]) == {"text", "value", "score", "tokens", "complete"}


def test_a_prefix_begins_and_words_that_must_appear_do(trained, say):
    assert say("translate", trained, "le chat", "--prefix", "I am").out.startswith("I am")
    assert "student" in say("translate", trained, "le chat", "--must", "student").out


def test_unknown_characters_are_translated_too(trained, say):
    told = say("translate", trained, typed="漢字 🙂 \u202e\x07\n".encode())
    assert (told.code, told.out.count("\n")) == (0, 1)


def test_control_characters_and_bidi_marks_never_come_out(trained, say, monkeypatch):
    monkeypatch.setattr("regard.text.tokenizer.Tokenizer.decode", lambda self, ids: "a\u202eb\x1b[2J")
    told = say("translate", trained, "le chat")
    assert (told.code, told.out) == (0, "ab [2J\n")
    told = say("translate", trained, "le chat", "--prefix", "a\u202eb\x1b[2J")
    assert told.code == 4 and not {"\u202e", "\x1b"} & set(told.err)


def test_json_says_hidden_characters_by_their_numbers(trained, say):
    told = say("translate", trained, "le\u202e\u2028\x9b[2J chat", "--json")
    assert len(told.out.splitlines()) == 1
    assert not {"\u202e", "\u2028", "\x9b"} & set(told.out)
    assert json.loads(told.out)["source"] == "le\u202e\u2028\x9b[2J chat"


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--beam", "0"], 2, "beam = 0 must be between 1 (greedy) and 1000"),
        (["--beam", "1000000"], 2, "beam = 1000000 must be between 1 (greedy) and 1000"),
        (["--nbest", "0"], 2, "n_best = 0 must be between 1 and 1000"),
        (["--beam", "2", "--nbest", "3"], 2, "n_best = 3 is more than beam = 2; a beam finds no more than that"),
        (["--must", "student " * 60], 4, "line 1: its constraints need 182 tokens with <EOS>, but at most 54 may be "
         "said; raise the limit, or ask for fewer words"),
        (["-i", "none.fr"], 2, "give either texts or -i, not both"),
    ],
)  # fmt: skip
def test_what_cannot_be_done_is_told(trained, say, arguments, code, message):
    told = say("translate", trained, "le chat", *arguments)
    assert (told.code, told.out, told.err) == (code, "", f"error: {message}\n")


def test_a_constraint_that_cannot_be_met_names_its_line(model):
    translator = model.translator()
    asked = [[], [], ["student " * 60], []]
    with pytest.raises(DataError) as error:
        translator.translate(["le chat", "", "je suis", "nous mangeons"], constraints=asked, first_line=257)
    assert str(error.value) == (
        "line 259: its constraints need 182 tokens with <EOS>, but at most 56 may be said; raise the limit, or ask for "
        "fewer words"
    )


def test_words_that_the_vocabulary_cannot_spell_are_refused_and_not_said_as_unknown(trained, say):
    told = say("translate", trained, "--must", "漢字\x1b", typed=b"\nle chat\n")
    assert (told.code, told.out) == (4, "\n")
    assert told.err == ('error: line 2: "漢字 " cannot appear in an output: the vocabulary does not know all of it\n')


@pytest.mark.parametrize("empty", ["", "  "])
def test_words_that_are_none_are_refused(trained, model, say, empty):
    told = say("translate", trained, "le chat", "--must", empty)
    assert (told.code, told.err) == (2, 'error: --must "": expected words that every translation shall hold\n')
    with pytest.raises(DataError, match="holds no word"):
        model.translator().translate(["le chat"], constraints=[[empty]])


def test_a_prefix_that_cannot_be_said_is_refused(trained, model, say):
    told = say("translate", trained, "le chat", "--prefix", "日本")
    said = 'the prefix "日本" cannot begin an output: the vocabulary does not know all of it'
    assert (told.code, told.err) == (4, f"error: {said}\n")
    told = say("translate", trained, "le chat", "--prefix", "the cat " * 60)
    assert told.code == 4 and "an output at most" in told.err
    assert model.translator().translate(["le chat"], prefix=" I ") == model.translator().translate(["le chat"], "I")


def test_a_model_that_gives_no_numbers_is_told_for_a_damaged_one(trained):
    broken = regard.load(trained)
    broken.ready.decoder.embed.weight.data.fill_(float("nan"))
    for beam in (1, 2):
        with pytest.raises(ModelError, match=r"line 3: .*not numbers"):
            broken.translator(beam).translate(["le chat"], first_line=3)


def test_half_a_character_names_its_line(model):
    with pytest.raises(DataError) as error:
        model.translate(["le chat", "le\ud83d chat"])
    assert str(error.value) == (
        "line 2: character 3 is U+D83D, half of a surrogate pair and no character; decode the text as UTF-8 or UTF-16 "
        "again, or leave it out."
    )


def test_a_model_that_is_not_there_is_told(say, trained, tmp_path):
    told = say("translate", "runs/none", "x")
    assert (told.code, told.err) == (3, "error: runs/none is not a run: there is no such directory\n")
    told = say("translate", tmp_path, "x")
    assert (told.code, told.err) == (3, f"error: {tmp_path} is not a run: it has no recipe.toml\n")
    shutil.copy(trained / "recipe.toml", tmp_path)
    told = say("translate", tmp_path, "x")
    assert (told.code, told.err) == (3, f"error: {tmp_path} has no finished checkpoint; train it first\n")


def test_a_damaged_checkpoint_is_refused_and_another_used_if_there_is_one(say, trained, tmp_path):
    run = tmp_path / "run"
    shutil.copytree(trained, run, symlinks=True)
    best = (run / "best").resolve()
    others = [path for path in (run / "checkpoints").iterdir() if path.resolve() != best]
    for i, weights in enumerate([best / "model.safetensors", *(path / "model.safetensors" for path in others)]):
        told = say("translate", run, "x")
        assert told.code == 0 and ("warning" in told.err) == (i > 0)
        weights.write_bytes(weights.read_bytes()[:-1])
    told = say("translate", run, "x")
    assert told.code == 3
    assert "model.safetensors" in told.err and "this checkpoint is damaged, use another" in told.err


def test_a_file_that_cannot_be_opened_ends_with_66(trained, say):
    told = say("translate", trained, "-i", "none.fr")
    assert (told.code, told.err) == (66, "error: none.fr: there is no such file\n")


def test_what_is_not_utf8_is_told_by_line_and_what_came_before_is_out(trained, say):
    told = say("translate", trained, typed=b"le chat\n\xff\n")
    assert told.code == 4
    assert told.err.startswith("error: stdin, line 2: byte 1 (0xff) is not UTF-8; convert the file")


def test_a_place_that_cannot_be_written_ends_with_74_before_the_model_is_read(say, tmp_path):
    (tmp_path / "file").write_text("")
    told = say("translate", "runs/none", "x", "-o", tmp_path / "file" / "out")
    assert (told.code, told.err) == (74, f"error: {tmp_path}/file/out: cannot be written (Not a directory)\n")


def test_an_output_stays_as_it_was_until_there_is_a_model(trained, say, tmp_path):
    file = tmp_path / "out"
    file.write_text("the work of hours, and more than comes now\n" * 9)
    before = file.read_text()
    assert say("translate", "runs/none", "x", "-o", file).code == 3
    assert file.read_text() == before
    assert say("translate", trained, "le chat", "-o", file).code == 0
    assert file.read_text() == say("translate", trained, "le chat").out


def test_a_new_output_is_gone_again_if_nothing_could_be_written(say, tmp_path):
    told = say("translate", tmp_path / "nowhere", "le chat", "-o", tmp_path / "out.txt")
    assert told.code == 3 and not (tmp_path / "out.txt").exists()


def test_lines_before_one_that_is_not_text_are_answered(trained, model, say):
    told = say("translate", trained, typed=b"le chat\nje suis\n\xff\nnous\n")
    assert told.out.splitlines() == model.translate(["le chat", "je suis"])
    assert told.code == 4 and "line 3" in told.err


def test_a_full_disk_ends_with_74(trained, say):
    told = say("translate", trained, "le chat", "-o", "/dev/full")
    assert told.code == 74
    assert told.err == "error: /dev/full: cannot be written (No space left on device); 0 lines are\n"


def test_the_file_that_is_read_is_never_written(trained, say, tmp_path):
    file = tmp_path / "a"
    file.write_text("le chat\n")
    told = say("translate", trained, "-i", file, "-o", file)
    assert (told.code, told.err) == (2, f"error: -o {file} is the file that is read; write to another\n")
    assert file.read_text() == "le chat\n"


def test_what_comes_from_stdin_is_never_written_over(tmp_path, monkeypatch):
    file = tmp_path / "a"
    file.write_text("le chat\n")
    with file.open() as stdin:
        monkeypatch.setattr("sys.stdin", stdin)
        with pytest.raises(ConfigError) as error, opened_output(file, None):
            pass
    assert str(error.value) == f"-o {file} is the file that is read; write to another"


def test_a_line_without_end_does_not_take_all_memory(monkeypatch):
    monkeypatch.setattr("regard.data.lines.LONGEST", 3 << 20)
    with pytest.raises(DataError) as error:
        list(arriving(io.BytesIO(b"un\n" + b"x" * (4 << 20)), 10))
    assert str(error.value) == ("stdin, line 2: it is longer than 3 MB; expected text with one text a line")


def test_a_text_longer_than_a_sentence_can_be_is_told_by_its_line(trained, say):
    told = say("translate", trained, typed=b"le chat\n" * 5 + b"le chat " * 3000 + b"\nje suis\n" * 9)
    assert told.code == 4
    assert told.out == say("translate", trained, typed=b"le chat\n" * 5).out  # what came before it is out
    assert told.err.startswith("error: line 6 has ")
    assert told.err.endswith(" tokens; at most 4,096 can be translated at once: put one sentence on a line\n")


def test_a_text_longer_than_the_learned_positions_is_told(tiny, say):
    few = ("train.steps=2", "task.scored=0", "filter.tokens=63")
    assert say("train", tiny, "model.positions=learned", "model.longest=64", *few, "-q").code == 0
    assert say("translate", "runs/tiny", "le chat " * 8, "--beam", 1).code == 0  # cut where places end
    told = say("translate", "runs/tiny", "le", "zzz " * 200, "chat")
    assert told.code == 4
    assert told.err.startswith("error: line 2: a text of ")
    assert told.err.endswith(
        " tokens is longer than the 64 places this model has learned; split it, or train with a larger model.longest\n"
    )


def test_lines_are_given_as_they_arrive():
    parts = [b"un\nde", b"ux\n", b"trois"]

    class Slow:
        def read1(self, size):
            return parts.pop(0) if parts else b""

    assert list(arriving(Slow(), 10)) == [["un"], ["deux"], ["trois"]]


def test_a_closed_pipe_ends_quietly(trained, start, tmp_path):
    source = tmp_path / "a.fr"
    source.write_text("le chat\n" * 20_000)
    with source.open() as lines:
        process = start("translate", trained, "--beam", "1", stdin=lines)
        assert process.stdout.readline()
        process.stdout.close()
        assert process.wait(60) == 0
    assert process.stderr.read() == ""


def test_ctrl_c_in_the_middle_of_a_file_leaves_whole_lines(trained, model, start, tmp_path):
    source, target = tmp_path / "a.fr", tmp_path / "a.en"
    source.write_text("le chat\n" * 50_000)
    process = start("translate", trained, "--beam", "1", "-i", source, "-o", target)
    while not (target.exists() and target.stat().st_size):
        assert process.poll() is None
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    written = target.read_text(encoding="utf-8")
    line = model.translate("le chat", beam=1)
    assert set(written.removesuffix("\n").split("\n")) == {line}
    assert written.endswith("\n")
    done = written.count("\n")
    assert 0 < done < 50_000
    assert err.splitlines()[-1] == f"error: interrupted after {done:,} lines; what was written is whole lines"


def test_progress_without_a_terminal_is_lines_with_an_eta(trained, say, tmp_path, monkeypatch):
    monkeypatch.setattr("regard.cli.console.Ticker.__init__.__defaults__", (0, 0.0))
    source = tmp_path / "a.fr"
    source.write_text("le chat\n" * 3)
    told = say("translate", trained, "-i", source)
    assert told.err == " translating  3/3  100%  00:00 < 00:00\n"
