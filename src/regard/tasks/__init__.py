"""The tasks, one folder each; task.kind of a recipe names one of those below, or one of another installed package.

A task is imported when it is used: one command needs one of them. Other packages add tasks by entry points:
docs/add-a-task.md.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from regard import plugins
from regard.tasks.base import EvalRequest, Evaluation, Model, Recipe, RecipeTemplate, ScoredExample

if TYPE_CHECKING:
    from regard.tasks.caption.recipe import CaptionRecipe
    from regard.tasks.classify.recipe import ClassifyRecipe
    from regard.tasks.fill.recipe import FillRecipe
    from regard.tasks.forecast.recipe import ForecastRecipe
    from regard.tasks.generate.recipe import GenerateRecipe
    from regard.tasks.label.recipe import LabelRecipe
    from regard.tasks.regress.recipe import RegressRecipe
    from regard.tasks.translate.recipe import TranslateRecipe
    from regard.tasks.vectors.recipe import VectorsRecipe

TASKS = {
    "translate": "regard.tasks.translate.recipe:TranslateRecipe",
    "generate": "regard.tasks.generate.recipe:GenerateRecipe",
    "classify": "regard.tasks.classify.recipe:ClassifyRecipe",
    "forecast": "regard.tasks.forecast.recipe:ForecastRecipe",
    "label": "regard.tasks.label.recipe:LabelRecipe",
    "caption": "regard.tasks.caption.recipe:CaptionRecipe",
    "vectors": "regard.tasks.vectors.recipe:VectorsRecipe",
    "fill": "regard.tasks.fill.recipe:FillRecipe",
    "regress": "regard.tasks.regress.recipe:RegressRecipe",
}
"""The recipe class of each task, written as in an entry point; the first is the default where task.kind is missing."""

__all__ = [
    "TASKS", "CaptionRecipe", "ClassifyRecipe", "EvalRequest", "Evaluation", "FillRecipe", "ForecastRecipe",
    "GenerateRecipe", "LabelRecipe", "Model", "Recipe", "RecipeTemplate", "RegressRecipe", "ScoredExample",
    "TranslateRecipe", "VectorsRecipe", "recipe_class", "recipe_classes", "recipe_fault", "task_names",
]  # fmt: skip


def task_names() -> list[str]:
    """The names of all tasks; nothing is imported for them."""
    return [*TASKS, *plugins.new_names(plugins.TASKS, TASKS)]


def recipe_class(name: str) -> type[Recipe]:
    """The recipe class of a task."""
    if name not in TASKS:
        found: type[Recipe] = plugins.load_plugin(plugins.TASKS, name, recipe_fault)
        return found
    module, _, attribute = TASKS[name].partition(":")
    own: type[Recipe] = getattr(import_module(module), attribute)
    return own


def recipe_classes() -> tuple[type[Recipe], ...]:
    """The recipe classes of all tasks; a plugin that cannot be used is named in a warning."""
    added = plugins.load_plugins(plugins.TASKS, TASKS, recipe_fault)
    return (*map(recipe_class, TASKS), *added.values())


def recipe_fault(name: str, found: Any) -> str | None:
    """What is wrong with the recipe class of a plugin."""
    if not (isinstance(found, type) and issubclass(found, Recipe)):
        return f"expected a subclass of regard.Recipe, found {found!r}"
    return None if found.kind() == name else f'its task has the kind "{found.kind()}"; expected "{name}"'


def __getattr__(name: str) -> Any:
    """Import a recipe class on first access."""
    for place in TASKS.values():
        module, _, attribute = place.partition(":")
        if attribute == name:
            return getattr(import_module(module), name)
    raise AttributeError(f"module 'regard.tasks' has no attribute {name!r}")
