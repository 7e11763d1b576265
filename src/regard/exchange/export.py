"""Export of runs as Hugging Face folders: config.json, safetensors, tokenizer and model card."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tokenizers
from tokenizers import processors

import regard
from regard.data.texts import ImportedText
from regard.errors import ModelError
from regard.exchange.bert import NEXT_SENTENCE, POOLER, READOUT, BertFamily
from regard.exchange.classifiers import describe_classifier, special_names
from regard.exchange.gpt import GPT2Family, OpenAIGPTFamily
from regard.exchange.llama import LlamaFamily
from regard.exchange.pack import write_beside
from regard.exchange.vision import describe_image_classifier
from regard.exchange.weight_table import WEIGHTS, WeightRow, to_theirs
from regard.files import cannot_write, read_bounded, write_bytes_atomically
from regard.manifest import MAX_KEPT
from regard.model_card import CARD_FILE, render_model_card
from regard.models.bert import BertConfig
from regard.models.gpt import GPTConfig
from regard.models.llama import LlamaConfig
from regard.tasks import Model
from regard.tasks.classify.images import ImageInput
from regard.tasks.classify.recipe import ClassificationModel
from regard.tasks.fill.model import FillModel
from regard.tasks.generate.model import GenerationModel
from regard.tasks.label.recipe import LabelModel
from regard.text import Tokenizer
from regard.train.checkpoint_store import run_folder
from regard.train.state import TrainReport
from regard.train.weights import weights, write_tensors

KINDS = "gpt and llama of the task generate, bert of the tasks fill, classify and label, resnet and vit of classify"


@dataclass(frozen=True)
class Export:
    """A model as another library describes it."""

    config: dict[str, Any]
    """config.json"""
    rows: Iterable[WeightRow]
    """the weight table"""
    tokenizer: Tokenizer
    template: str | None
    """what stands around a text ($A)"""
    names: Mapping[str, int]
    """special tokens of tokenizer_config.json, by their names there"""
    pair: str | None = None
    """what stands around a pair of texts ($A and $B)"""


def export_run(path: Path, out: Path) -> None:
    """Write the model of a run as a new Hugging Face folder, which appears when it is complete."""
    model = regard.load(path, "cpu")
    if isinstance(model, ClassificationModel) and isinstance(model.input_encoder, ImageInput):
        image = describe_image_classifier(model, path)
        files = {name: render(content) for name, content in image.files.items()}
        write_folder(out, path, model, image.config, image.rows, files)
        return
    found = describe(model, path)
    words = found.tokenizer
    names = {f"{name}_token": words.tokens([id])[0] for name, id in found.names.items()}
    limit = {"model_max_length": model.recipe.model.position_limit}
    settings = {"tokenizer_class": "PreTrainedTokenizerFast", "clean_up_tokenization_spaces": False, **names, **limit}
    if found.pair is not None:
        settings["model_input_names"] = ["input_ids", "token_type_ids", "attention_mask"]
    ids = {f"{name}_token_id": found.names[name] for name in ("bos", "eos", "pad") if name in found.names}
    files = {
        "tokenizer.json": with_template(words, found.template, found.pair).encode(),
        "tokenizer_config.json": render(settings),
    }
    write_folder(out, path, model, found.config | ids, found.rows, files)


def write_folder(
    out: Path, path: Path, model: Model, config: dict[str, Any], rows: Iterable[WeightRow], files: Mapping[str, bytes]
) -> None:
    """Write config.json, the weights, the model card and these files as a new folder."""
    tensors = to_theirs(rows, weights(model.module))
    own = {"config.json": render(config | {"dtype": "float32"}), "README.md": model_card(path, model)}
    with write_beside(out) as folder:
        folder.mkdir()
        for name, data in {**files, **own}.items():
            write_bytes_atomically(folder / name, data)
        try:
            write_tensors(folder / WEIGHTS, tensors)
        except OSError as error:
            raise cannot_write(out, sum(tensor.nbytes for tensor in tensors.values()), error) from error


def describe(model: Model, path: Path) -> Export:
    """The model for transformers; one that it does not have is refused by name."""
    shape = model.recipe.model
    if isinstance(model, GenerationModel) and isinstance(shape, GPTConfig | LlamaConfig):
        return describe_decoder(model, shape, path)
    if isinstance(model, FillModel) and isinstance(shape, BertConfig):
        return describe_encoder(model, shape)
    if isinstance(model, ClassificationModel | LabelModel) and isinstance(shape, BertConfig):
        own = describe_classifier(model, path)
        names = dict(special_names(own.tokenizer))
        return Export(own.config, own.rows, own.tokenizer, own.template, names, own.pair)
    raise ModelError(
        f'{path}: model.kind = "{shape.kind}" of the task {model.recipe.kind()} cannot be written as a Hugging Face '
        f"folder; there are {KINDS}"
    )


def describe_decoder(model: GenerationModel, shape: GPTConfig | LlamaConfig, path: Path) -> Export:
    """A language model: OpenAI GPT, GPT-2, Llama or Qwen2."""
    words: Tokenizer = model.modality.tokenizer  # type: ignore[attr-defined]
    begin: int | None = model.modality.begin  # type: ignore[attr-defined]
    names = {"bos": words.sos, "eos": words.eos, "pad": words.pad} | ({"unk": words.unk} if words.unk >= 0 else {})
    template = None if begin is None else f"{words.tokens([begin])[0]} $A"
    if isinstance(shape, LlamaConfig):
        llama = LlamaFamily()
        return Export(llama.write_config(shape, words.size), llama.rows(shape), words, template, names)
    if shape.head_size * shape.heads != shape.width:
        raise ModelError(f"{path}: model.head_width = {shape.head_width}; heads of GPT-2 there share the model width")
    if shape.norm == "post" and shape.ffn_size != 4 * shape.width:
        raise ModelError(f"{path}: model.ffn_width = {shape.ffn_width}; that of OpenAI GPT there is {4 * shape.width}")
    gpt = OpenAIGPTFamily() if shape.norm == "post" else GPT2Family()
    config = gpt.write_config(shape, words.size) | {"architectures": [gpt.architecture]}
    return Export(config, gpt.rows(shape), words, template, names)


def describe_encoder(model: FillModel, shape: BertConfig) -> Export:
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
    names = {"pad": words.pad, "unk": words.unk, "cls": words.sos, "sep": words.eos}
    if words.mask is not None:
        names["mask"] = words.mask
    return Export(config, rows, words, f"{begin} $A {end}", {name: id for name, id in names.items() if id >= 0})


def with_template(words: Tokenizer, template: str | None, pair: str | None = None) -> str:
    """The tokenizer.json that puts these special tokens around a text."""
    inner = tokenizers.Tokenizer.from_str(words.json)
    special = dict(zip(words.tokens([words.sos, words.eos]), (words.sos, words.eos), strict=True))
    if template is None:
        content = json.loads(inner.to_str()) | {"post_processor": None}
        return json.dumps(content, ensure_ascii=False)
    used = [(name, id) for name, id in special.items() if name in template.split() or pair]
    inner.post_processor = processors.TemplateProcessing(template, pair, used)
    return inner.to_str()


def model_card(path: Path, model: Model) -> bytes:
    """README.md: the model card of the run."""
    run = run_folder(path)
    if (run / CARD_FILE).is_file():
        return read_bounded(run / CARD_FILE, MAX_KEPT)
    return render_model_card(run, model.recipe, TrainReport(model.step, "done", {})).encode()


def render(content: Mapping[str, Any]) -> bytes:
    """A JSON file."""
    kept = {name: value for name, value in content.items() if value is not None}
    return (json.dumps(kept, ensure_ascii=False, indent=2, sort_keys=True) + "\n").encode()
