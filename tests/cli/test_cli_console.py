"""Bars on a terminal, lines elsewhere, nothing when asked to be quiet."""

import io

import pytest

from regard.cli.console import Bar, Console, Pace, Silent, Stages, Ticker, clock, minutes


class Screen(io.StringIO):
    """A terminal that remembers."""

    def isatty(self):
        return True


@pytest.fixture
def screen(monkeypatch):
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "100")
    return Screen()


def test_a_terminal_gets_a_bar_with_count_share_and_eta(screen):
    console = Console(file=screen)
    with console.progress("training", 200) as progress:
        assert isinstance(progress, Bar)
        progress.update(156, "loss 3.200")
    shown = screen.getvalue()
    assert "━" in shown and "156/200  78%  00:00 < 00:00  loss 3.200" in shown


def test_what_is_said_beside_a_bar_is_not_drawn_into_it(screen):
    console = Console(file=screen)
    with console.progress("training", 200):
        console.say(" 100   [red]2.5[/red]  [1, 2]")
    assert " 100   [red]2.5[/red]  [1, 2]\n" in screen.getvalue()


def test_no_color_is_respected(screen, monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    with Console(file=screen).progress("training", 200) as progress:
        progress.update(100)
    assert "━" in screen.getvalue()
    assert "\x1b[38" not in screen.getvalue()


def test_a_pipe_gets_lines_now_and_then():
    file = io.StringIO()
    assert isinstance(Console(file=file).progress("training", 10), Ticker)
    ticker = Ticker("training", 10, file, pause=1e9)
    ticker.update(5)
    assert file.getvalue() == ""
    ticker = Ticker("training", None, file, pause=0.0)
    ticker.update(5)
    assert file.getvalue() == " training  5  00:00\n"


def test_quiet_is_quiet(screen):
    console = Console(quiet=True, file=screen)
    console.say("unheard")
    assert isinstance(console.progress("training", 10), Silent)
    Stages(console)("reading", 1, 0)
    assert screen.getvalue() == ""


def test_each_stage_has_a_bar_of_its_own(screen):
    with Stages(Console(file=screen)) as stages:
        stages("reading", 10, 0)
        stages.bytes(5_000, 10_000)
        assert "5,000/10,000  50%" in stages._progress.pace.told(5_000)
    assert "reading" in screen.getvalue() and "fetching" in screen.getvalue()


def test_what_was_done_before_took_none_of_this_time():
    pace = Pace(total=100, start=50, began=0.0)
    assert pace.told(75, now=10.0) == "75/100  75%  00:10 < 00:10"
    assert pace.told(50, now=1.0) == "50/100  50%  00:01 < --:--"


def test_times_are_told_as_people_tell_them():
    assert [minutes(s) for s in (0.4, 89, 91, 3600, 5400)] == ["0 s", "89 s", "2 min", "1 h 0 min", "1 h 30 min"]
    assert [clock(s) for s in (0, 59.6, 3600)] == ["00:00", "01:00", "1:00:00"]
