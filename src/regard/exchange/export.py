"""Export of runs as folders of Hugging Face and of CTranslate2: config, weights, tokenizer and model card."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import regard
from regard.data.texts import ImportedText
from regard.engines.ctranslate2_folder import check_precision, import_ctranslate2
from regard.engines.ctranslate2_models import find_writer
from regard.errors import ModelError
from regard.exchange.bert import NEXT_SENTENCE, POOLER, READOUT, BertFamily
from regard.exchange.classifiers import describe_classifier, special_names
from regard.exchange.exported_model import ExportedModel, fast_tokenizer_files, render_json, special_ids
from regard.exchange.gpt import GPT2Family, OpenAIGPTFamily
from regard.exchange.llama import LlamaFamily
from regard.exchange.marian_export import describe_translator
from regard.exchange.pack import write_beside
from regard.exchange.vision import describe_image_classifier
from regard.exchange.weight_table import WEIGHTS, to_theirs
from regard.files import cannot_write, read_bounded, write_bytes_atomically
from regard.manifest import MAX_KEPT
from regard.model_card import CARD_FILE, render_model_card
from regard.models.bert import BertConfig
from regard.models.gpt import GPTConfig
from regard.models.llama import LlamaConfig
from regard.models.transformer import TransformerConfig
from regard.progress import Progress, no_progress
from regard.tasks import Model
from regard.tasks.classify.images import ImageInput
from regard.tasks.classify.recipe import ClassificationModel
from regard.tasks.fill.model import FillModel
from regard.tasks.generate.model import GenerationModel
from regard.tasks.label.recipe import LabelModel
from regard.tasks.translate.recipe import TranslationModel
from regard.text import Tokenizer
from regard.train.checkpoint_store import run_folder
from regard.train.state import TrainReport
from regard.train.weights import weights, write_tensors

KINDS = (
    "gpt and llama of the task generate, bert of the tasks fill, classify and label, resnet and vit of classify, "
    "and transformer of the task translate"
)


def export_run(path: Path, out: Path) -> list[str]:
    """Write the model of a run as a new Hugging Face folder, which appears when it is complete; returns notes."""
    model = regard.load(path, "cpu")
    found = describe(model, path)
    tensors = to_theirs(found.rows, found.arrange(weights(model.module)))
    files = {
        "config.json": render_json({**found.config, "dtype": "float32"}),
        "README.md": model_card(path, model),
        **found.files,
    }
    with write_beside(out) as folder:
        folder.mkdir()
        for name, data in files.items():
            write_bytes_atomically(folder / name, data)
        try:
            write_tensors(folder / WEIGHTS, tensors)
        except OSError as error:
            raise cannot_write(out, sum(tensor.nbytes for tensor in tensors.values()), error) from error
    return list(found.notes)


def export_ctranslate2(path: Path, out: Path, precision: str, progress: Progress = no_progress) -> list[str]:
    """Write the model of a run as a new CTranslate2 folder, with its tokenizer and model card; returns notes."""
    chosen = check_precision(precision)
    import_ctranslate2()
    model: Any = regard.load(path, "cpu")
    write = find_writer(model, path, chosen, progress)
    with write_beside(out) as folder:
        folder.mkdir()
        write(folder)
        if isinstance(model, TranslationModel):
            model.vocabularies.save(folder)
        else:
            model.modality.tokenizer.save(folder / "tokenizer.json")
        write_bytes_atomically(folder / "README.md", model_card(path, model))
    return []


def describe(model: Model, path: Path) -> ExportedModel:
    """The model for transformers; one that it does not have is refused by name."""
    shape = model.recipe.model
    if isinstance(model, ClassificationModel) and isinstance(model.input_encoder, ImageInput):
        return describe_image_classifier(model, path)
    if isinstance(model, ClassificationModel | LabelModel) and isinstance(shape, BertConfig):
        return describe_classifier(model, path)
    if isinstance(model, GenerationModel) and isinstance(shape, GPTConfig | LlamaConfig):
        return describe_decoder(model, shape, path)
    if isinstance(model, FillModel) and isinstance(shape, BertConfig):
        return describe_encoder(model, shape)
    if isinstance(model, TranslationModel) and isinstance(shape, TransformerConfig):
        return describe_translator(model, shape, path)
    raise ModelError(
        f'{path}: model.kind = "{shape.kind}" of the task {model.recipe.kind()} cannot be written as a Hugging Face '
        f"folder; there are {KINDS}"
    )


def describe_decoder(model: GenerationModel, shape: GPTConfig | LlamaConfig, path: Path) -> ExportedModel:
    """A language model: OpenAI GPT, GPT-2, Llama or Qwen2."""
    words: Tokenizer = model.modality.tokenizer  # type: ignore[attr-defined]
    begin: int | None = model.modality.begin  # type: ignore[attr-defined]
    names = {"bos": words.sos, "eos": words.eos, "pad": words.pad} | ({"unk": words.unk} if words.unk >= 0 else {})
    template = None if begin is None else f"{words.tokens([begin])[0]} $A"
    files, ids = fast_tokenizer_files(words, template, names, shape.max_positions), special_ids(names)
    if isinstance(shape, LlamaConfig):
        llama = LlamaFamily()
        return ExportedModel(llama.write_config(shape, words.size) | ids, llama.rows(shape), files)
    check_gpt(shape, path)
    gpt = OpenAIGPTFamily() if shape.norm == "post" else GPT2Family()
    config = gpt.write_config(shape, words.size) | {"architectures": [gpt.architecture]}
    return ExportedModel(config | ids, gpt.rows(shape), files)


def check_gpt(shape: GPTConfig, path: Path) -> None:
    """Refuse a layout that neither OpenAI GPT nor GPT-2 has."""
    if shape.head_size * shape.heads != shape.width:
        raise ModelError(f"{path}: model.head_width = {shape.head_width}; heads of GPT-2 there share the model width")
    if shape.norm == "post" and shape.ffn_size != 4 * shape.width:
        raise ModelError(f"{path}: model.ffn_width = {shape.ffn_width}; that of OpenAI GPT there is {4 * shape.width}")
    if not shape.bias:
        raise ModelError(f"{path}: model.bias = false; the layers of {shape.norm}-norm GPTs there have biases")
    if shape.norm == "post" and shape.activation != "gelu-tanh":
        raise ModelError(f'{path}: model.activation = "{shape.activation}"; OpenAI GPT there has "gelu-tanh"')


def describe_encoder(model: FillModel, shape: BertConfig) -> ExportedModel:
    """A BERT: with both heads of pre-training, with the masked-LM head, or the encoder with its pooler alone."""
    words, family, data = model.tokenizer, BertFamily(), model.recipe.data
    untrained = data.untrained if isinstance(data, ImportedText) else ()
    parts = [READOUT, POOLER, NEXT_SENTENCE] if model.recipe.task.next_sentence else [READOUT]
    parts = [part for part in parts if part not in untrained]
    architecture = "BertForPreTraining" if NEXT_SENTENCE in parts else "BertForMaskedLM"
    config = family.write_config(shape, words.size)
    config["architectures"] = [architecture if READOUT in parts else "BertModel"]
    rows = [*family.rows(shape), *(row for part in parts for row in family.head_rows(part))]
    begin, end = words.tokens([words.sos, words.eos])
    names = special_names(words)
    files = fast_tokenizer_files(words, f"{begin} $A {end}", names, shape.max_positions)
    return ExportedModel(config | special_ids(names), rows, files)


def model_card(path: Path, model: Model) -> bytes:
    """README.md: the model card of the run."""
    run = run_folder(path)
    if (run / CARD_FILE).is_file():
        return read_bounded(run / CARD_FILE, MAX_KEPT)
    return render_model_card(run, model.recipe, TrainReport(model.step, "done", {})).encode()
