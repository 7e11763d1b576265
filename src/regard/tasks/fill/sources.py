"""Data sources of the fill task: running text, or film reviews without their labels."""

from __future__ import annotations

from regard.data.texts import ImportedText, Shakespeare, TextFiles
from regard.tasks.vectors.sources import ReviewTexts

FillData = TextFiles | Shakespeare | ReviewTexts | ImportedText
"""Choices of data.kind"""
