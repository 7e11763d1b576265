"""Word map: every word has its dot, names do not overlap, and no word is markup."""

import re

import numpy as np
import pytest
from rich.cells import cell_len

from regard.look.wordmap import WordMapView

WORDS = ("king", "étudiant", "学生", "طالب", "</text><script>", "a\u202eb")


def view(words=WORDS, seed=1):
    return WordMapView("some", words, np.random.default_rng(seed).normal(size=(len(words), 2)), (0.5, 0.25))


def test_each_word_has_a_dot_whose_tooltip_names_it():
    drawn = view().svg()
    assert drawn.count("<circle") == len(WORDS)
    assert "<script>" not in drawn and "\u202e" not in drawn
    for word in ("king", "étudiant", "学生", "طالب"):
        assert re.search(rf"<title>[^<]*{word}[^<]*</title>", drawn)


def test_distances_of_dots_are_proportional_to_distances_of_points():
    """One scale for both axes: distances of dots are proportional to distances of points."""
    found = view()
    dots = re.findall(r'<circle cx="([\d.]+)" cy="([\d.]+)"', found.svg())
    drawn = np.array(dots, dtype=float)
    distances = [
        np.linalg.norm(x[:, None] - x[None], axis=-1)[np.triu_indices(len(WORDS), 1)] for x in (drawn, found.points)
    ]
    np.testing.assert_allclose(distances[0] / distances[0].max(), distances[1] / distances[1].max(), atol=1e-3)


def test_names_that_would_overlap_are_left_out():
    crowd = tuple(f"word{i}" for i in range(60))
    drawn = WordMapView("crowd", crowd, np.zeros((60, 2)), (1.0, 0.0)).svg()
    assert drawn.count("<circle") == 60 and 1 <= drawn.count('class="rg-word"') <= 4


@pytest.mark.parametrize("width", [20, 60, 100])
def test_no_line_is_wider_than_the_terminal_and_each_name_is_whole(width):
    output = view().text(width=width, height=12)
    lines = output.splitlines()[1:-1]
    assert len(lines) == 12 and max(map(cell_len, lines)) <= width
    names = re.findall(r"[^\s·]+", "\n".join(lines))
    assert "学生" in names and "king" in names


def test_words_without_room_in_the_terminal_are_counted():
    crowd = tuple(f"word{i}" for i in range(60))
    output = WordMapView("crowd", crowd, np.zeros((60, 2)), (1.0, 0.0)).text(width=40, height=5)
    count = len(re.findall(r"word\d+", output))
    assert 0 < count < 60 and output.endswith(f"no room for {60 - count} more")
