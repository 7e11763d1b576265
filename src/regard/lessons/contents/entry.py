"""Entry of a lesson in the list, and the parts of the list."""

from __future__ import annotations

from dataclasses import dataclass

ORIGINS, IMAGES = "Origins", "Images"
WORDS, NETWORKS, ATTENTION = "Words and batches", "Recurrent networks", "Attention"
TRANSFORMER, LEARNING = "The Transformer", "Training and search"
LANGUAGE = "Language models"


@dataclass(frozen=True)
class LessonEntry:
    """Title and summary of a lesson."""

    part: str
    title: str
    summary: str
    example: str
    """inputs worth trying, as typed"""
    needs: tuple[str, ...] = ()
    """cached models that it inspects; see engine/cached_models.py"""
