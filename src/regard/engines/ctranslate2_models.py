"""Models that CTranslate2 runs: Transformers of the task translate, GPT and Llama of the task generate."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from regard.engines.ctranslate2_decoder import write_decoder
from regard.engines.ctranslate2_folder import Precision, write_translator
from regard.errors import ModelError
from regard.models.gpt import GPTConfig
from regard.models.llama import LlamaConfig
from regard.models.transformer import TransformerConfig
from regard.progress import Progress, no_progress
from regard.tasks import Model
from regard.tasks.generate.modality import TextModality
from regard.tasks.generate.model import GenerationModel
from regard.tasks.translate.recipe import TranslationModel


def find_writer(
    model: Model, path: Path, precision: Precision, progress: Progress = no_progress
) -> Callable[[Path], None]:
    """What writes a model into an empty folder; a model that CTranslate2 does not have is refused."""
    shape = model.recipe.model
    if isinstance(model, TranslationModel) and isinstance(shape, TransformerConfig):
        return partial(write_translator, model, shape, precision=precision, progress=progress)
    of_text = isinstance(model, GenerationModel) and isinstance(model.modality, TextModality)
    if of_text and isinstance(shape, GPTConfig | LlamaConfig):
        assert isinstance(model, GenerationModel)
        return partial(write_decoder, model, shape, precision=precision, progress=progress)
    raise ModelError(
        f'{path}: model.kind = "{shape.kind}" of the task {model.recipe.kind()} cannot be run by CTranslate2 here; it '
        "runs transformer of the task translate, gpt and llama of the task generate"
    )
