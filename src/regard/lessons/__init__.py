"""Lessons: worked examples as data for the terminal and the page; every input can be changed.

The numbers come from the package's own layers and models; where a formula is computed as well, the lesson
reports the difference.
"""

from __future__ import annotations

from regard.lessons.catalogue import LESSONS, LessonEntry, lesson_plan, teach
from regard.lessons.engine.inputs import Input, LessonPlan
from regard.lessons.engine.lesson import InputValue, Lesson, LessonCheck, LessonStep, Value

__all__ = [
    "LESSONS", "Input", "InputValue", "Lesson", "LessonCheck", "LessonEntry", "LessonPlan", "LessonStep", "Value",
    "lesson_plan", "teach",
]  # fmt: skip
