"""Word analogies, such as "Athens is to Greece as Oslo is to ...": accuracy by section."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from regard.errors import DataError
from regard.metrics.score import Score
from regard.metrics.spans import accuracy_score


class Question(NamedTuple):
    """An analogy question of four words: a is to b as c is to d."""

    section: str
    words: tuple[str, str, str, str]


def read_questions(lines: Iterable[str], name: str | Path) -> list[Question]:
    """Questions in the format of Mikolov et al. 2013: four words per line, and ": name" before each section.

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
        raise DataError(f"{name} has no question; expected four words per line, such as: boy girl king queen")
    return found


@dataclass(frozen=True)
class AnalogyResult:
    """Answers to the questions whose words are all in the vocabulary.

    >>> found = AnalogyResult(["family", "family", "tense"], [True, False, True], total=4)
    >>> round(found.score().value, 1), found.sections()
    (66.7, {'family': (1, 2), 'tense': (1, 1)})
    """

    section: Sequence[str]
    right: Sequence[bool]
    total: int
    """all questions, including those with unknown words"""

    def score(self) -> Score:
        """Accuracy in %."""
        return accuracy_score("analogies", [int(r) for r in self.right], [1] * len(self.right), "unit:question")

    def sections(self) -> Mapping[str, tuple[int, int]]:
        """For each section, the number of correct answers and of answers."""
        counts = dict.fromkeys(self.section, (0, 0))
        for name, right in zip(self.section, self.right, strict=True):
            counts[name] = counts[name][0] + right, counts[name][1] + 1
        return counts

    def summary_lines(self) -> list[str]:
        """Accuracy of each section as text lines."""
        counts = self.sections()
        wide = max(map(len, counts), default=0)
        lines = [f"{name:<{wide}}  {100 * r / n:5.1f}  {r:,} of {n:,}" for name, (r, n) in counts.items()]
        skipped = self.total - len(self.right)
        return [*lines, f"{skipped:,} of {self.total:,} questions have unknown words"] if skipped else lines


def answer_questions(
    questions: Sequence[Question],
    find: Callable[[str], int | None],
    answer: Callable[[list[tuple[int, ...]]], Sequence[int]],
) -> AnalogyResult:
    """Answer the questions whose words are known: `find` gives a word's index, `answer` those predicted for a, b, c.

    >>> indices = {"boy": 0, "girl": 1, "king": 2, "queen": 3}
    >>> answer_questions([Question("family", ("boy", "girl", "king", "queen"))], indices.get, lambda known: [3]).right
    [True]
    """
    sections, known, targets = list[str](), list[tuple[int, ...]](), list[int]()
    for section, words in questions:
        found = [index for index in map(find, words) if index is not None]
        if len(found) == len(words):
            sections.append(section)
            known.append(tuple(found[:3]))
            targets.append(found[3])
    if not known:
        raise DataError(
            f"not one of the {len(questions):,} questions has four known words; check the language of the "
            "file and the size of the vocabulary"
        )
    right = [output == target for output, target in zip(answer(known), targets, strict=True)]
    return AnalogyResult(sections, right, len(questions))
