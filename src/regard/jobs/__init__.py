"""The jobs that regard can do, one file each; the union below is the list that a recipe's task.kind chooses from."""

from __future__ import annotations

from typing import get_args

from regard.jobs.base import Answer, Asked, Evaluation, Model, Recipe, Starter
from regard.jobs.classify import ClassifyRecipe
from regard.jobs.forecast import ForecastRecipe
from regard.jobs.generate import GenerateRecipe
from regard.jobs.label import LabelRecipe
from regard.jobs.translate import TranslateRecipe
from regard.jobs.vectors import VectorsRecipe

AnyRecipe = TranslateRecipe | GenerateRecipe | ClassifyRecipe | ForecastRecipe | LabelRecipe | VectorsRecipe
"""One member a job; the first is what a recipe without task.kind means."""

Recipe.jobs = get_args(AnyRecipe)

__all__ = [
    "Answer",
    "AnyRecipe",
    "Asked",
    "ClassifyRecipe",
    "Evaluation",
    "ForecastRecipe",
    "GenerateRecipe",
    "LabelRecipe",
    "Model",
    "Recipe",
    "Starter",
    "TranslateRecipe",
    "VectorsRecipe",
]
