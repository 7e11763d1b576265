"""Import of Hugging Face folders: config.json, safetensors and a tokenizer become a run like any other."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from torch import Tensor

from regard import config
from regard.errors import InputError, ModelError
from regard.exchange.bert import BertFamily, DistilBertFamily
from regard.exchange.family import ImportedModel, ModelFamily, Origin
from regard.exchange.fine_tuned import SequenceClassifierFamily, TokenClassifierFamily
from regard.exchange.gguf import GGUFModel
from regard.exchange.gpt import GPT2Family, OpenAIGPTFamily
from regard.exchange.llama import LlamaFamily
from regard.exchange.marian import MarianFamily
from regard.exchange.pack import write_beside
from regard.exchange.settings import ForeignSettings, read_settings
from regard.exchange.vision import ResNetFamily, ViTFamily
from regard.exchange.weight_table import SafetensorsFolder, TensorSource, WeightRow, to_ours
from regard.files import read_bounded, write_bytes_atomically, write_text_atomically
from regard.manifest import MAX_KEPT, list_files, write_recipe
from regard.model_card import write_model_card
from regard.progress import Progress, no_progress
from regard.run import environment
from regard.train import checkpoint
from regard.train.state import TrainReport
from regard.train.weights import weights as module_weights

BERTS = (BertFamily(), DistilBertFamily())
FAMILIES: tuple[ModelFamily, ...] = (
    GPT2Family(),
    OpenAIGPTFamily(),
    LlamaFamily(),
    *BERTS,
    ResNetFamily(),
    ViTFamily(),
    MarianFamily(),
    *(head(body) for head in (SequenceClassifierFamily, TokenClassifierFamily) for body in BERTS),
)
LICENSE = "license:"
"""begins the line with the license in the head of a README.md"""


def import_folder(folder: Path, out: Path, progress: Progress = no_progress, origin: Origin | None = None) -> list[str]:
    """Import a Hugging Face folder as a new run, which appears when it is complete; returns notes for the user."""
    found = read_folder_config(folder)
    family = find_family(found)
    source = SafetensorsFolder(folder, family.prefix)
    model, rows = family.import_model(
        found, source, folder, origin or Origin(folder.resolve().name, license_of(folder))
    )
    return finish_import(out, family, model, rows, source, progress)


def import_gguf(path: Path, out: Path, progress: Progress = no_progress, origin: Origin | None = None) -> list[str]:
    """Import a GGUF file as a new run, which appears when it is complete; returns notes for the user."""
    source = GGUFModel(path)
    family = LlamaFamily()
    found = origin or Origin(path.name, source.license)
    model, rows = family.make_run(source.settings, source, source.tokenizer(), found)
    return finish_import(out, family, model, rows, source, progress)


def finish_import(
    out: Path,
    family: ModelFamily,
    model: ImportedModel,
    rows: Iterable[WeightRow],
    source: TensorSource,
    progress: Progress,
) -> list[str]:
    """Convert the weights and write the run; returns notes for the user."""
    shapes = {name: list(tensor.shape) for name, tensor in module_weights(model.module).items()}

    def report(done: int, total: int) -> None:
        progress("importing", done, total)

    weights = to_ours(rows, source, shapes, family.is_unused, report)
    write_run(out, model, {**model.given, **model.arrange(weights)})
    return list(model.notes)


def read_folder_config(folder: Path) -> ForeignSettings:
    """The config.json of a folder."""
    if not folder.is_dir():
        what = "it is a file" if folder.exists() else "there is no such folder"
        raise InputError(f"{folder}: {what}; expected a folder with config.json, model.safetensors and a tokenizer")
    if not (folder / "config.json").is_file():
        raise InputError(f"{folder}: there is no config.json; expected a folder that transformers could load")
    return read_settings(folder / "config.json")


def find_family(found: ForeignSettings) -> ModelFamily:
    """The family of a config; the error names those that there are."""
    kind, architectures = found.get("model_type"), found.get("architectures", ())
    of_kind = [family for family in FAMILIES if kind in family.model_types]
    for family in of_kind:
        if isinstance(architectures, list) and set(map(str, architectures)) & set(family.architectures):
            return family
    for family in of_kind:
        if not family.architectures:
            return family
    names = ", ".join(dict.fromkeys(name for family in FAMILIES for name in family.model_types))
    raise ModelError(f"{found.path}: model_type = {kind!r} is not among the models that can be imported: {names}")


def write_run(out: Path, model: ImportedModel, weights: Mapping[str, Tensor]) -> None:
    """Write a run with these weights as its only checkpoint, beside its place; then it is renamed."""
    with write_beside(out) as run:
        run.mkdir()
        write_recipe(run, config.dump(model.recipe))
        for name, data in model.artifacts.items():
            write_bytes_atomically(run / name, data)
        list_files(run, [run / name for name in model.artifacts])
        write_text_atomically(run / "environment.json", json.dumps(environment(), indent=1) + "\n")
        checkpoint.save(run, 0, {"model": dict(weights)}, {"imported": True, "step": 0, "steps": 0}, best=True)
        write_model_card(run, model.recipe, TrainReport(0, "imported", {}), out)


def license_of(folder: Path) -> str:
    """The license in the head of a folder's README.md, as model hubs write it."""
    try:
        lines: Sequence[str] = read_bounded(folder / "README.md", MAX_KEPT).decode(errors="replace").splitlines()
    except OSError:
        return "not known"
    if not lines or lines[0].strip() != "---":
        return "not known"
    found = [line[len(LICENSE) :].strip() for line in lines[1:100] if line.startswith(LICENSE)]
    return found[0][:100] if found and found[0] else "not known"
