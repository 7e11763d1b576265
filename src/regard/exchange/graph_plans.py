"""Plans of export: which graphs the model of a run becomes, by its task; what cannot be exported is refused by name."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from regard.data.texts import ImportedText
from regard.errors import ModelError
from regard.exchange.decoder_graphs import DecoderPlan, decoder_graphs
from regard.exchange.exported_model import fast_tokenizer_files, render_json, with_template
from regard.exchange.graph import GraphPlan, Port
from regard.exchange.graph_inputs import GraphInput, PixelInput, RowInput, TokenInput
from regard.exchange.image_preprocessing import PREPROCESSOR, describe_preprocessing
from regard.exchange.reader_graphs import (
    Answer,
    ReaderPlan,
    encoder_states,
    pooled_logits,
    position_logits,
    pretraining_logits,
    reader_graph,
)
from regard.models.bert import BertConfig
from regard.models.crf_tagger import CRFTagger
from regard.tasks import Model
from regard.tasks.caption.recipe import CaptionModel
from regard.tasks.classify.images import ImageInput
from regard.tasks.classify.inputs import PairInput, TableInput, TextInput
from regard.tasks.classify.recipe import ClassificationModel
from regard.tasks.fill.model import FillModel
from regard.tasks.generate.modality import TextModality
from regard.tasks.generate.model import GenerationModel
from regard.tasks.label.recipe import LabelModel
from regard.tasks.label.targets import TagTarget
from regard.tasks.label.vocab import FILE as WORDS_FILE
from regard.tasks.translate.recipe import TranslationModel
from regard.text import Tokenizer

TASKS = "translate, caption, generate (texts without a condition), classify, label (tags) and fill"
CRF_FILE = "crf.json"


def plan_graphs(model: Model, path: Path) -> GraphPlan:
    """The graphs of the model of a run."""
    if isinstance(model, TranslationModel):
        return plan_translation(model)
    if isinstance(model, CaptionModel):
        return plan_captions(model)
    if isinstance(model, GenerationModel) and isinstance(model.modality, TextModality):
        return plan_language_model(model, path)
    if isinstance(model, ClassificationModel):
        return plan_classifier(model, path)
    if isinstance(model, LabelModel):
        return plan_tagger(model, path)
    if isinstance(model, FillModel):
        return plan_masked_lm(model)
    raise ModelError(
        f'{path}: a model of the task {model.recipe.kind()} with data.kind = "{model.recipe.data.kind}" cannot be '
        f"written as graphs; there are the tasks {TASKS}"
    )


def plan_translation(model: TranslationModel) -> DecoderPlan:
    """An encoder of source texts and a decoding step."""
    words = model.vocabularies
    inputs = TokenInput(words.source.size, "source")
    files = tokenizer_files(words.source, f"$A {words.source.tokens([words.source.eos])[0]}", limit(model))
    if not words.is_shared:
        files = {
            "tokenizer.source.json": files["tokenizer.json"],
            "tokenizer.target.json": with_template(words.target, None).encode(),
        }
    facts = decoding_facts(words.target, model) | {"source_end_id": words.source.eos}
    graphs = decoder_graphs(model.module, inputs, words.target.size)
    return DecoderPlan(graphs, facts, files, inputs, words.target.size)


def plan_captions(model: CaptionModel) -> DecoderPlan:
    """An encoder of images and a decoding step."""
    inputs = pixel_input(model.image_input())
    files = tokenizer_files(model.tokenizer, None, limit(model)) | preprocessing_file(model.image_input())
    graphs = decoder_graphs(model.module, inputs, model.tokenizer.size)
    return DecoderPlan(graphs, decoding_facts(model.tokenizer, model), files, inputs, model.tokenizer.size)


def plan_language_model(model: GenerationModel, path: Path) -> DecoderPlan:
    """A decoding step without a source."""
    if getattr(model.recipe.model, "condition", "none") != "none":
        raise ModelError(
            f"{path}: model.condition = {model.recipe.model.condition!r}: a conditioned language model cannot be "
            "written as graphs; train one without a condition, or the task translate"
        )
    if model.recipe.model.bidirectional_lm:
        raise refuse_spellings(path, model.recipe.model.kind)
    modality: Any = model.modality
    words, begin = modality.tokenizer, modality.begin
    template = None if begin is None else f"{words.tokens([begin])[0]} $A"
    facts = decoding_facts(words, model) | {"start_id": begin, "excluded_ids": sorted(modality.excluded_ids)}
    graphs = decoder_graphs(model.module, None, words.size)
    return DecoderPlan(graphs, facts, tokenizer_files(words, template, limit(model)), None, words.size)


def plan_classifier(model: ClassificationModel, path: Path) -> ReaderPlan:
    """A classifier of texts, pairs of texts, images, clips or table rows."""
    encoder, recipe = model.input_encoder, model.recipe
    facts: dict[str, Any] = {"labels": list(model.labels.names), "max_positions": limit(model)}
    files: Mapping[str, bytes] = {}
    inputs: GraphInput
    if recipe.model.reads_spellings:
        raise refuse_spellings(path, recipe.model.kind)
    if isinstance(encoder, TextInput):
        is_pair = isinstance(encoder, PairInput)
        segments = recipe.model.segments if is_pair and isinstance(recipe.model, BertConfig) else 0
        inputs = TokenInput(encoder.tokenizer.size, segments=segments)
        around = [" ".join(encoder.tokenizer.tokens(ids)) for ids in (encoder.prefix, encoder.suffix)]
        files = tokenizer_files(encoder.tokenizer, " ".join(filter(None, (around[0], "$A", around[1]))), limit(model))
        facts |= {"max_tokens": encoder.max_tokens, "keep": encoder.keep}
        facts |= {"separator_id": encoder.tokenizer.eos} if is_pair else {}
    elif isinstance(encoder, ImageInput):
        inputs, files = pixel_input(encoder), preprocessing_file(encoder)
    elif isinstance(encoder, TableInput):
        inputs = RowInput(len(encoder.scaler.names))
        facts["columns"] = asdict(encoder.scaler)
    else:
        raise ModelError(f"{path}: the inputs of this classifier cannot be written as graphs; there are {TASKS}")
    logits = Port("logits", ("batch", len(model.labels.names)), torch.float32, "of each label; softmax: probabilities")
    return ReaderPlan((reader_graph(model.module, inputs, pooled_logits, (logits,)),), facts, files)


def plan_tagger(model: LabelModel, path: Path) -> ReaderPlan:
    """A tagger of words or of subwords; with a CRF the graph gives emissions, and its transitions are a file."""
    found, target, recipe = model.artifacts, model.target, model.recipe
    if not isinstance(target, TagTarget):
        raise ModelError(f"{path}: the labels are {recipe.data.label_type}, and graphs hold taggers of tags only")
    if recipe.model.reads_spellings:
        raise refuse_spellings(path, recipe.model.kind)
    facts: dict[str, Any] = {"labels": list(target.names), "max_positions": limit(model)}
    if found.subwords is not None:
        words = found.subwords.tokenizer
        inputs = TokenInput(words.size)
        before, after = (" ".join(words.tokens(ids)) for ids in found.subwords.special_ids)
        files = tokenizer_files(words, " ".join(filter(None, (before, "$A", after))), limit(model))
        facts["reads"] = "pieces of words: the label of a word is that of its first piece"
    else:
        inputs = TokenInput(found.vocab.size, characters=found.vocab.char_size if found.vocab.chars else 0)
        files = {WORDS_FILE: (json.dumps(asdict(found.vocab), ensure_ascii=False) + "\n").encode()}
        facts["reads"] = "words: 0 is padding, 1 an unknown word or character, 2 the first of vocab.json"
    name, meaning = "logits", "of each label; softmax: probabilities"
    if isinstance(model.module, CRFTagger):
        name, meaning = (
            "emissions",
            f"of each label; the best sequence is found by the Viterbi algorithm, see {CRF_FILE}",
        )
        files = {**files, CRF_FILE: crf_file(model.module)}
        facts["decoding"] = (
            f"Viterbi over emissions and {CRF_FILE}, which is no part of the graph: a sequence scores start[first] + "
            "the sum of its emissions + the sum of transitions[previous][next] + end[last]"
        )
    output = Port(name, ("batch", "length", len(target.names)), torch.float32, meaning)
    return ReaderPlan((reader_graph(model.module, inputs, position_logits, (output,)),), facts, files)


def plan_masked_lm(model: FillModel) -> ReaderPlan:
    """A BERT: logits of each position, with the next-sentence head if it has one; its states if it has no head."""
    words, recipe, data = model.tokenizer, model.recipe, model.recipe.data
    untrained = data.untrained if isinstance(data, ImportedText) else ()
    has_pair = recipe.task.next_sentence and "next_sentence" not in untrained and "pooler" not in untrained
    segments = recipe.model.segments if recipe.task.next_sentence and isinstance(recipe.model, BertConfig) else 0
    inputs = TokenInput(words.size, segments=segments)
    logits = Port("logits", ("batch", "length", words.size), torch.float32, "of the token at each position")
    answer: Answer = position_logits
    outputs: tuple[Port, ...] = (logits,)
    if "readout" in untrained:
        answer = encoder_states
        states = ("batch", "length", model.module.encoder.width)
        outputs = (Port("last_hidden_state", states, torch.float32, "of the last layer; the model has no head"),)
    elif has_pair:
        meaning = "0: the second segment follows the first, 1: it does not"
        outputs, answer = (logits, Port("next_sentence", ("batch", 2), torch.float32, meaning)), pretraining_logits
    begin, end = words.tokens([words.sos, words.eos])
    facts = {"mask_id": words.mask, "start_id": words.sos, "end_id": words.eos, "max_positions": recipe.task.length}
    files = tokenizer_files(words, f"{begin} $A {end}", recipe.task.length)
    return ReaderPlan((reader_graph(model.module, inputs, answer, outputs),), facts, files)


def decoding_facts(words: Tokenizer, model: Model) -> dict[str, Any]:
    """Special tokens and limits of a decoder."""
    return {"start_id": words.sos, "end_id": words.eos, "pad_id": words.pad, "max_positions": limit(model)}


def limit(model: Model) -> int | None:
    """Longest sequence that a model reads; None: any."""
    found: int | None = model.recipe.model.position_limit
    return found


def tokenizer_files(words: Tokenizer, template: str | None, most: int | None) -> dict[str, bytes]:
    """tokenizer.json with the special tokens around a text, and the settings with which transformers loads it."""
    special = {"pad": words.pad, "unk": words.unk, "bos": words.sos, "eos": words.eos, "mask": words.mask}
    names = {name: id for name, id in special.items() if id is not None and id >= 0}
    return fast_tokenizer_files(words, template, names, most)


def pixel_input(encoder: ImageInput) -> PixelInput:
    """The pixels that a model reads."""
    shape = encoder.shape
    return PixelInput(shape.channels, shape.height, shape.width, shape.frames)


def preprocessing_file(encoder: ImageInput) -> dict[str, bytes]:
    """How the pixels are made from an image."""
    return {PREPROCESSOR: render_json(describe_preprocessing(encoder))}


def crf_file(module: CRFTagger) -> bytes:
    """The scores of a CRF as JSON."""
    crf = module.crf
    return render_json({name: getattr(crf, name).tolist() for name in ("start", "transitions", "end")})


def refuse_spellings(path: Path, kind: str) -> ModelError:
    """The error about a model that reads words by their characters."""
    return ModelError(
        f'{path}: model.kind = "{kind}" reads the characters of words, which no tokenizer file gives; use a run with '
        "recurrent, transformer, convolution or bert"
    )
