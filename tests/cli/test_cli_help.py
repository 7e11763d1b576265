"""Help answers at once, and teaches."""

import subprocess
import sys
from pathlib import Path

import click
import pytest

import regard.cli
from regard.cli import cli


def commands(group, path=()):
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from commands(command, (*path, name))
        else:
            yield (*path, name), command


VERBS = dict(commands(cli))


@pytest.mark.parametrize("arguments", [["--help"], ["train", "--help"], ["config", "explain", "--help"]], ids=" ".join)
def test_help_does_not_wait_for_torch(arguments):
    program = (
        "import sys\nfrom regard.cli import invoke\n"
        "assert invoke(sys.argv[1:]) == 0\n"
        "print(sorted({'torch', 'numpy', 'rich', 'sacrebleu', 'tokenizers'} & set(sys.modules)))"
    )
    command = [sys.executable, "-c", program, *arguments]
    told = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", check=True).stdout
    assert told.startswith("Usage: regard")
    assert told.endswith("[]\n")


@pytest.mark.parametrize("path", VERBS, ids=" ".join)
def test_every_verb_teaches_by_two_examples_that_name_it(path, say):
    told = say(*path, "--help")
    assert told.code == 0 and told.err == ""
    examples = told.out.split("Examples:\n")[1].split("\n\n")[0].splitlines()
    assert len(examples) == 2
    assert all(f"regard {' '.join(path)}" in example for example in examples)


@pytest.mark.parametrize("path", VERBS, ids=" ".join)
def test_every_verb_has_few_flags_and_each_says_what_it_does(path):
    flags = [p for p in VERBS[path].params if isinstance(p, click.Option) and not p.hidden]
    assert len(flags) <= 8
    assert all(flag.help for flag in flags)


def test_the_help_of_regard_lists_every_exit_code(say):
    told = say("--help").out
    for code in (0, 1, 2, 3, 4, 5, 6, 66, 69, 74, 130, 143):
        assert f" {code}  " in told


def test_the_version_is_told(say):
    assert say("--version").out == f"regard {regard.__version__}\n"


def test_an_unknown_verb_is_a_usage_error_with_a_guess(say):
    told = say("trian")
    assert told.code == 2
    assert told.err == "error: no such command 'trian'; did you mean 'train'? (see regard --help)\n"


def test_a_missing_argument_is_a_usage_error(say):
    told = say("train")
    assert told.code == 2
    assert told.err == "error: missing argument 'RECIPE' (see regard train --help)\n"


def test_regard_alone_shows_its_help(say):
    told = say()
    assert told.code == 2
    assert "regard demo" in told.err


def test_a_bug_is_told_in_two_lines_and_its_traceback_is_kept(say, monkeypatch, tmp_path):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))

    def broken():
        raise ZeroDivisionError("oh")

    monkeypatch.setattr("platform.python_version", broken)
    told = say("doctor")
    assert told.code == 1
    first, second = told.err.splitlines()
    assert first == f"error: this is a bug in regard {regard.__version__} (ZeroDivisionError: oh)"
    kept = second.split("please report it with ")[1].split(",")[0]
    assert "ZeroDivisionError: oh" in Path(kept).read_text(encoding="utf-8")


def test_the_traceback_is_shown_when_asked_for_before_or_after_the_verb(say):
    for arguments in (("-v", "translate", "nowhere", "x"), ("translate", "nowhere", "x", "-v")):
        told = say(*arguments)
        assert told.code == 3
        assert told.err.startswith("Traceback")
        assert told.err.endswith("error: nowhere is not a run: there is no such directory\n")


def test_running_out_of_memory_is_no_bug(say, monkeypatch):
    def full():
        raise MemoryError

    monkeypatch.setattr("platform.python_version", full)
    told = say("doctor")
    assert told.code == 1
    assert told.err == "error: there is not enough memory; try fewer train.tokens, a smaller model or a smaller beam\n"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_what_the_shell_reads(shell, say):
    told = say("completion", shell)
    assert told.code == 0
    assert "_REGARD_COMPLETE" in told.out


def test_tab_completes_verbs(say, monkeypatch):
    for name, value in {"_REGARD_COMPLETE": "bash_complete", "COMP_WORDS": "regard tr", "COMP_CWORD": "1"}.items():
        monkeypatch.setenv(name, value)
    assert say().out.split() == ["plain,train", "plain,translate"]
