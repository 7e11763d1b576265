"""A Transformer of the task translate as MarianMTModel; what Marian does not have is refused by name."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from regard.decode import DecodeConfig
from regard.errors import ModelError
from regard.exchange.exported_model import ExportedModel, fast_tokenizer_files, render_json
from regard.exchange.marian import SPM_FILES, MarianFamily, halves_first, reorder_width
from regard.exchange.sentencepiece import render_vocabulary
from regard.exchange.sentencepiece_tokenizer import to_sentencepiece
from regard.models.transformer import TransformerConfig
from regard.tasks.translate.prepare import Vocabularies
from regard.tasks.translate.recipe import TranslationModel

ALTERNATIVE = "or write it with --to ctranslate2"


def describe_translator(model: TranslationModel, shape: TransformerConfig, path: Path) -> ExportedModel:
    """The model for transformers."""
    check_marian(shape, path)
    words, family = model.vocabularies, MarianFamily()
    source, target = words.source, words.target
    ids = {"decoder_start_token_id": target.sos, "eos_token_id": target.eos, "pad_token_id": target.pad}
    config = family.write_config(shape, source.size, target.size) | ids | {"forced_eos_token_id": target.eos}
    search, notes = generation_config(model.recipe.decode, words, shape.max_positions)
    files = {**tokenizer_files(words, shape.max_positions, path), "generation_config.json": render_json(search | ids)}
    rows = [*family.embedding_rows(shape, target.size), *family.rows(shape)]
    reorder = partial(reorder_width, order=halves_first(shape.width))
    return ExportedModel(config, rows, files, reorder if shape.positions == "sinusoidal" else dict, notes)


def check_marian(shape: TransformerConfig, path: Path) -> None:
    """Refuse what a MarianMTModel does not have."""
    if shape.norm != "post":
        raise ModelError(
            f'{path}: model.norm = "{shape.norm}", and MarianMTModel is post-norm; train with model.norm = "post", '
            f"{ALTERNATIVE}"
        )
    if shape.positions == "learned":
        raise ModelError(
            f'{path}: model.positions = "learned", and those of MarianMTModel are sinusoidal; train with '
            f'model.positions = "sinusoidal", {ALTERNATIVE}'
        )
    if shape.tie == "none":
        raise ModelError(
            f'{path}: model.tie = "none", and the output projection of MarianMTModel is its embedding; train with '
            f'model.tie = "all" or "target", {ALTERNATIVE}'
        )


def tokenizer_files(words: Vocabularies, limit: int, path: Path) -> dict[str, bytes]:
    """One tokenizer.json for both languages; the two SentencePiece models that an imported Marian came with."""
    source, target = words.source, words.target
    if source == target:
        names = {"eos": source.eos, "pad": source.pad} | ({"unk": source.unk} if source.unk >= 0 else {})
        return fast_tokenizer_files(source, f"$A {source.token(source.eos)}", names, limit)
    pieces = [to_sentencepiece(side) for side in (source, target)]
    if None in pieces:
        raise ModelError(
            f"{path}: source and target have two tokenizers, and transformers has one for both, or two of "
            f"SentencePiece; train with task.share_vocab = true, {ALTERNATIVE}"
        )
    settings: dict[str, Any] = {
        "tokenizer_class": "MarianTokenizer", "separate_vocabs": not words.is_shared, "model_max_length": limit,
        "eos_token": source.token(source.eos), "unk_token": source.token(source.unk),
        "pad_token": source.token(source.pad),
    }  # fmt: skip
    vocabularies = {"vocab.json": render_vocabulary(source)}
    if not words.is_shared:
        vocabularies["target_vocab.json"] = render_vocabulary(target)
    both = {name: data for name, data in zip(SPM_FILES, pieces, strict=True) if data is not None}
    return {**both, **vocabularies, "tokenizer_config.json": render_json(settings)}


def generation_config(search: DecodeConfig, words: Vocabularies, limit: int) -> tuple[dict[str, Any], list[str]]:
    """The search as transformers' generation_config.json, and notes on what it does not have."""
    found: dict[str, Any] = {"num_beams": search.beam, "max_length": limit, "forced_eos_token_id": words.target.eos}
    notes = []
    if search.beam > 1:  # early stopping: a search ends, as here, when as many outputs have ended as the beam is wide
        found |= {"length_penalty": search.alpha, "early_stopping": True}
        if search.length_penalty == "wu" and search.alpha:
            notes.append(
                'decode.length_penalty = "wu" is not in transformers: generation_config.json has length ** alpha with '
                f"the same alpha = {search.alpha:g}, and long outputs may be ranked otherwise"
            )
    if words.target.sos == words.target.pad:
        found["bad_words_ids"] = [[words.target.pad]]
    return found, notes
