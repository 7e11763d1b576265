"""Progress bars on a terminal, plain lines elsewhere, nothing with --quiet."""

import io

import pytest

from regard.cli.console import (
    BarProgress,
    Console,
    LineProgress,
    SilentProgress,
    StageProgress,
    format_clock,
    format_duration,
    format_progress,
)


class Screen(io.StringIO):
    """A terminal that records its output."""

    def isatty(self):
        return True


@pytest.fixture
def screen(monkeypatch):
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "100")
    return Screen()


def test_a_terminal_gets_a_bar_with_count_percentage_and_eta(screen):
    console = Console(file=screen)
    with console.progress("training", 200) as progress:
        assert isinstance(progress, BarProgress)
        progress.update(156, "loss 3.200")
    output = screen.getvalue()
    assert "━" in output and "156/200  78%  00:00 < 00:00  loss 3.200" in output


def test_a_line_printed_while_a_bar_is_shown_is_not_interpreted_as_markup(screen):
    console = Console(file=screen)
    with console.progress("training", 200):
        console.print(" 100   [red]2.5[/red]  [1, 2]")
    assert " 100   [red]2.5[/red]  [1, 2]\n" in screen.getvalue()


def test_no_color_is_respected(screen, monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    with Console(file=screen).progress("training", 200) as progress:
        progress.update(100)
    assert "━" in screen.getvalue()
    assert "\x1b[38" not in screen.getvalue()


def test_a_pipe_gets_a_line_every_few_seconds():
    file = io.StringIO()
    assert isinstance(Console(file=file).progress("training", 10), LineProgress)
    progress = LineProgress("training", 10, file, pause=1e9)
    progress.update(5)
    assert file.getvalue() == ""
    progress = LineProgress("training", None, file, pause=0.0)
    progress.update(5)
    assert file.getvalue() == " training  5  00:00\n"


def test_quiet_prints_nothing(screen):
    console = Console(quiet=True, file=screen)
    console.print("hidden")
    assert isinstance(console.progress("training", 10), SilentProgress)
    StageProgress(console)("reading", 1, 0)
    assert screen.getvalue() == ""


def test_each_stage_has_its_own_bar(screen):
    with StageProgress(Console(file=screen)) as stages:
        stages("reading", 10, 0)
        stages.download(5_000, 10_000)
    output = screen.getvalue()
    assert "reading" in output and "downloading" in output and "5,000/10,000  50%" in output


def test_the_eta_of_a_resumed_run_counts_only_what_was_done_since():
    assert format_progress(75, 100, elapsed=10.0, start=50) == "75/100  75%  00:10 < 00:10"
    assert format_progress(50, 100, elapsed=1.0, start=50) == "50/100  50%  00:01 < --:--"


def test_durations_are_formatted_in_words_and_as_a_clock():
    assert [format_duration(s) for s in (0.4, 89, 91, 3600, 5400)] == [
        "0 s",
        "89 s",
        "2 min",
        "1 h 0 min",
        "1 h 30 min",
    ]
    assert [format_clock(s) for s in (0, 59.6, 3600)] == ["00:00", "01:00", "1:00:00"]


def test_a_warning_is_printed_even_with_quiet():
    out = io.StringIO()
    console = Console(quiet=True, file=out)
    console.print("hidden")
    console.warn("a checkpoint was passed over")
    assert out.getvalue() == " warning: a checkpoint was passed over\n"
