"""Opening of an engine: the model of a run gets another library's search."""

from __future__ import annotations

from pathlib import Path

from regard.engines.ctranslate2_folder import check_precision, import_ctranslate2, require_transformer, write_folder
from regard.engines.ctranslate2_search import CTranslate2Search
from regard.engines.kept_folder import kept_folder
from regard.errors import ConfigError
from regard.tasks import Model
from regard.train.checkpoint import Checkpoint

ENGINES = ("regard", "ctranslate2")


def use_engine(model: Model, path: Path, saved: Checkpoint, engine: str, precision: str) -> None:
    """Give a model the search of an engine; its files are made from the checkpoint where they are not there."""
    if engine not in ENGINES:
        raise ConfigError(f"engine: expected one of {', '.join(ENGINES)}, got {engine!r}")
    chosen = check_precision(precision)
    if engine == "regard":
        if chosen != "float32":
            raise ConfigError(f"precision = {chosen} is of the engine ctranslate2; name it: --engine ctranslate2")
        return
    version = import_ctranslate2().__version__
    translation, shape = require_transformer(model, path)

    def write(folder: Path) -> None:
        write_folder(translation, shape, folder, chosen)

    folder = kept_folder(path, saved, f"ctranslate2-{version}-{chosen}", write)
    translation.engine = CTranslate2Search(folder, translation.vocabularies, chosen)
