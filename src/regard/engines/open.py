"""Opening of an engine: the model of a run gets another library's search."""

from __future__ import annotations

from pathlib import Path

from regard.engines.ctranslate2_folder import check_precision, import_ctranslate2
from regard.engines.ctranslate2_generation import CTranslate2Generation
from regard.engines.ctranslate2_models import find_writer
from regard.engines.ctranslate2_search import CTranslate2Search
from regard.engines.kept_folder import kept_folder
from regard.errors import ConfigError
from regard.progress import Progress, no_progress
from regard.tasks import Model
from regard.tasks.generate.modality import TextModality
from regard.tasks.generate.model import GenerationModel
from regard.tasks.translate.recipe import TranslationModel
from regard.train.checkpoint import Checkpoint

ENGINES = ("regard", "ctranslate2")


def use_engine(
    model: Model, path: Path, saved: Checkpoint, engine: str, precision: str, progress: Progress = no_progress
) -> None:
    """Give a model the search of an engine; its files are made from the checkpoint where they are not there."""
    if engine not in ENGINES:
        raise ConfigError(f"engine: expected one of {', '.join(ENGINES)}, got {engine!r}")
    chosen = check_precision(precision)
    if engine == "regard":
        if chosen != "float32":
            raise ConfigError(f"precision = {chosen} is of the engine ctranslate2; name it: --engine ctranslate2")
        return
    version = import_ctranslate2().__version__
    write = find_writer(model, path, chosen, progress)
    folder = kept_folder(path, saved, f"ctranslate2-{version}-{chosen}", write)
    if isinstance(model, TranslationModel):
        model.engine = CTranslate2Search(folder, model.vocabularies, chosen)
    elif isinstance(model, GenerationModel) and isinstance(model.modality, TextModality):
        model.engine = CTranslate2Generation(folder, model.modality.tokenizer, chosen)
