"""Lessons: the worked examples of the line as data that the terminal and the page draw; every number can be changed.

A lesson shows the numbers that the package's own layers and models give; where a formula is written out, the lesson
says how far both are apart.
"""

from __future__ import annotations

from regard.lessons.catalogue import CONTENTS, Entry, plan, teach
from regard.lessons.engine.inputs import Input, Plan
from regard.lessons.engine.lesson import Check, Given, Lesson, Step, Value

__all__ = ["CONTENTS", "Check", "Entry", "Given", "Input", "Lesson", "Plan", "Step", "Value", "plan", "teach"]
