"""Help is fast and has examples; errors of usage are one line."""

import subprocess
import sys
from pathlib import Path

import click
import pytest

import regard.cli
from regard import config
from regard.cli import cli
from regard.cli.options import SETTING_OPTIONS
from regard.tasks import Recipe


def commands(group, path=()):
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from commands(command, (*path, name))
        else:
            yield (*path, name), command


VERBS = dict(commands(cli))


@pytest.mark.parametrize("arguments", [["--help"], ["train", "--help"], ["config", "explain", "--help"]], ids=" ".join)
def test_help_does_not_import_torch(arguments):
    program = (
        "import sys\nfrom regard.cli import invoke\n"
        "assert invoke(sys.argv[1:]) == 0\n"
        "print(sorted({'torch', 'numpy', 'rich', 'sacrebleu', 'tokenizers'} & set(sys.modules)))"
    )
    command = [sys.executable, "-c", program, *arguments]
    result = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", check=True).stdout
    assert result.startswith("Usage: regard")
    assert result.endswith("[]\n")


@pytest.mark.parametrize("path", VERBS, ids=" ".join)
def test_the_help_of_every_verb_has_two_or_three_examples(path, run_cli):
    result = run_cli(*path, "--help")
    assert result.code == 0 and result.err == ""
    examples = result.out.split("Examples:\n")[1].split("\n\n")[0].splitlines()
    assert len(examples) in (2, 3)
    assert all(f"regard {' '.join(path)}" in example for example in examples[:2])
    assert all("regard " in example for example in examples)


@pytest.mark.parametrize("path", VERBS, ids=" ".join)
def test_every_verb_has_few_flags_and_each_says_what_it_does(path):
    flags = [p for p in VERBS[path].params if isinstance(p, click.Option) and not p.hidden]
    assert len(flags) <= {("generate",): 17, ("look",): 9, ("translate",): 11}.get(
        path, 8
    )  # the reason is in tests/architecture/test_budgets.py
    assert all(flag.help for flag in flags)


def test_the_help_of_regard_lists_every_exit_code(run_cli):
    result = run_cli("--help").out
    for code in (0, 1, 2, 3, 4, 5, 6, 66, 69, 71, 74, 75, 130, 143):
        assert f" {code}  " in result


def test_the_version_is_printed(run_cli):
    assert run_cli("--version").out == f"regard {regard.__version__}\n"


def test_an_unknown_verb_is_a_usage_error_with_a_guess(run_cli):
    result = run_cli("trian")
    assert result.code == 2
    assert result.err == "error: no such command 'trian'; did you mean 'train'? (see regard --help)\n"


def test_several_guesses_are_one_sentence_too(run_cli):
    message = "error: no such command 'translat'; did you mean one of: 'backtranslate', 'train', 'translate'?"
    assert run_cli("translat").err == f"{message} (see regard --help)\n"


def test_a_missing_argument_is_a_usage_error(run_cli):
    result = run_cli("train")
    assert result.code == 2
    assert result.err == "error: missing argument 'RECIPE' (see regard train --help)\n"


def test_regard_without_arguments_shows_its_help(run_cli):
    result = run_cli()
    assert result.code == 2
    assert "regard demo" in result.err


def test_a_bug_is_reported_in_two_lines_and_its_traceback_is_saved(run_cli, monkeypatch, tmp_path):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))

    def broken():
        raise ZeroDivisionError("oh")

    monkeypatch.setattr("platform.python_version", broken)
    result = run_cli("doctor")
    assert result.code == 1
    first, second = result.err.splitlines()
    assert first == f"error: this is a bug in regard {regard.__version__} (ZeroDivisionError: oh)"
    report = second.split("please report it with ")[1].split(",")[0]
    assert "ZeroDivisionError: oh" in Path(report).read_text(encoding="utf-8")


def test_verbose_prints_the_traceback_before_or_after_the_verb(run_cli):
    for arguments in (("-v", "translate", "nowhere", "x"), ("translate", "nowhere", "x", "-v")):
        result = run_cli(*arguments)
        assert result.code == 3
        assert result.err.startswith("Traceback")
        assert result.err.endswith("error: nowhere is not a run: there is no such directory\n")


def test_running_out_of_memory_is_no_bug(run_cli, monkeypatch):
    def full():
        raise MemoryError

    monkeypatch.setattr("platform.python_version", full)
    result = run_cli("doctor")
    assert result.code == 1
    assert (
        result.err
        == "error: there is not enough memory; try fewer train.batch_tokens, a smaller model or a smaller beam\n"
    )


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_what_the_shell_reads(shell, run_cli):
    result = run_cli("completion", shell)
    assert result.code == 0
    assert "_REGARD_COMPLETE" in result.out


def test_tab_completes_verbs(run_cli, monkeypatch):
    for name, value in {"_REGARD_COMPLETE": "bash_complete", "COMP_WORDS": "regard tr", "COMP_CWORD": "1"}.items():
        monkeypatch.setenv(name, value)
    assert run_cli().out.split() == ["plain,train", "plain,translate"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["translate", "run", "--nbest", "3"], "no such option: --nbest; it is now --n-best"),
        (["translate", "run", "--must=x"], "no such option: --must; it is now --require"),
        (["vectors", "neighbours", "run", "x"], "no such command: neighbours; it is now neighbors"),
    ],
)
def test_an_old_spelling_is_answered_with_the_new_one(run_cli, arguments, message):
    result = run_cli(*arguments)
    assert (result.code, result.out) == (2, "")
    assert result.err == f"error: {message} (see regard {arguments[0]} --help)\n"


def test_an_option_that_is_a_setting_here_is_answered_with_the_setting(run_cli):
    result = run_cli("train", "mine.toml", "--steps", "10")
    assert result.code == 2
    assert result.err == (
        "error: no such option: --steps; settings are given as key=value: train.steps=1000 (see regard train --help)\n"
    )
    assert "train.steps" not in run_cli("translate", "run", "--steps", "10").err


def test_every_setting_that_is_named_for_an_option_exists():
    known = {setting.key for recipe in Recipe.classes() for setting in config.settings(recipe)}
    assert {setting.partition("=")[0] for setting in SETTING_OPTIONS.values()} <= known


def test_the_hint_for_a_renamed_option_is_given_only_where_the_new_one_exists(run_cli):
    assert "it is now" not in run_cli("classify", "run", "--nbest", "3").err
