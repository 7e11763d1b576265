"""Questions of the kind "Athens is to Greece as Oslo is to what": how many are answered right, by section."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from regard.errors import DataError
from regard.metrics.score import Score
from regard.metrics.spans import share_right


class Question(NamedTuple):
    """Four words: a is to b as c is to d.

    >>> Question("family", ("boy", "girl", "king", "queen")).words[3]
    'queen'
    """

    section: str
    words: tuple[str, str, str, str]


def read_questions(lines: Iterable[str], name: str | Path) -> list[Question]:
    """Questions as Mikolov et al. 2013 publish them: four words a line, and ": name" before each section.

    >>> read_questions([": family", "boy girl king queen"], "questions.txt")
    [Question(section='family', words=('boy', 'girl', 'king', 'queen'))]
    """
    section, found = "", []
    for number, line in enumerate(lines, 1):
        words = line.split()
        if line.startswith(":"):
            section = line[1:].strip()
        elif len(words) == 4:
            found.append(Question(section, (words[0], words[1], words[2], words[3])))
        elif words:
            raise DataError(f"{name}, line {number}: expected four words, found {len(words)}")
    if not found:
        raise DataError(f"{name} has no question; expected four words a line, such as: boy girl king queen")
    return found


@dataclass(frozen=True)
class Answered:
    """Questions whose words are all known, and which of them are answered right.

    >>> found = Answered(["family", "family", "tense"], [True, False, True], asked=4)
    >>> round(found.score().value, 1), found.sections()
    (66.7, {'family': (1, 2), 'tense': (1, 1)})
    """

    section: Sequence[str]
    right: Sequence[bool]
    asked: int
    """all questions, those with unknown words too"""

    def score(self) -> Score:
        """The share that is right, in %."""
        return share_right("analogies", [int(r) for r in self.right], [1] * len(self.right), "unit:question")

    def sections(self) -> Mapping[str, tuple[int, int]]:
        """Of each section, how many are right and how many were answered."""
        counts = dict.fromkeys(self.section, (0, 0))
        for name, right in zip(self.section, self.right, strict=True):
            counts[name] = counts[name][0] + right, counts[name][1] + 1
        return counts

    def told(self) -> list[str]:
        """The same for people, in lines."""
        counts = self.sections()
        wide = max(map(len, counts), default=0)
        lines = [f"{name:<{wide}}  {100 * r / n:5.1f}  {r:,} of {n:,}" for name, (r, n) in counts.items()]
        left = self.asked - len(self.right)
        return [*lines, f"{left:,} of {self.asked:,} questions have unknown words"] if left else lines


def ask(
    questions: Sequence[Question],
    find: Callable[[str], int | None],
    answer: Callable[[list[tuple[int, ...]]], Sequence[int]],
) -> Answered:
    """Ask the questions whose words are known: `find` gives a word's place, `answer` the places that a, b, c lead to.

    >>> places = {"boy": 0, "girl": 1, "king": 2, "queen": 3}
    >>> ask([Question("family", ("boy", "girl", "king", "queen"))], places.get, lambda asked: [3]).right
    [True]
    """
    sections, known, wanted = list[str](), list[tuple[int, ...]](), list[int]()
    for section, words in questions:
        found = [place for place in map(find, words) if place is not None]
        if len(found) == len(words):
            sections.append(section)
            known.append(tuple(found[:3]))
            wanted.append(found[3])
    if not known:
        raise DataError(
            f"not one of the {len(questions):,} questions has four known words; is it the same language, and the "
            "vocabulary large enough?"
        )
    right = [said == place for said, place in zip(answer(known), wanted, strict=True)]
    return Answered(sections, right, len(questions))
