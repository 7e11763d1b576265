"""CTranslate2 folders: the Transformer of a translation model by CTranslate2's specification, in float32 or int8."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from regard.errors import ConfigError, ModelError
from regard.models.transformer import TransformerConfig
from regard.progress import Progress, no_progress
from regard.tasks.translate.predict import MAX_TOKENS
from regard.tasks.translate.recipe import TranslationModel
from regard.text import Tokenizer
from regard.train.weights import weights

Precision = Literal["float32", "int8"]
ACTIVATIONS = {"relu": "RELU", "swish": "SWISH", "gelu": "GELU", "gelu-tanh": "GELUTanh"}
"""activations by their names there"""
STEPS = 3
"""of writing a folder: the weights are checked, converted and written"""
INSTALL = (
    'this needs the package ctranslate2; install it with: pip install "regard[ctranslate2]", or pip install ctranslate2'
)


def import_ctranslate2() -> Any:
    """The package ctranslate2; the error says how to install it."""
    try:
        import ctranslate2
        import ctranslate2.specs
    except ImportError:
        raise ConfigError(INSTALL) from None
    return ctranslate2


def load_folder(kind: str, folder: Path, precision: Precision) -> Any:
    """CTranslate2's "Translator" or "Generator" of a folder, with as many threads as torch has now."""
    try:
        return getattr(import_ctranslate2(), kind)(
            str(folder), device="cpu", compute_type=precision, inter_threads=1, intra_threads=torch.get_num_threads()
        )
    except (RuntimeError, ValueError) as error:
        raise ModelError(f"{folder}: CTranslate2 cannot load it ({error})") from error


def check_precision(precision: str) -> Precision:
    """Refuse a precision that there is not."""
    for known in get_args(Precision):
        if precision == known:
            return known
    raise ConfigError(f"precision: expected one of {', '.join(get_args(Precision))}, got {precision!r}")


def write_translator(
    model: TranslationModel,
    shape: TransformerConfig,
    folder: Path,
    precision: Precision,
    progress: Progress = no_progress,
) -> None:
    """Write a translation model as a CTranslate2 folder, which exists and is empty."""
    library = import_ctranslate2()
    specs = library.specs
    spec = specs.TransformerSpec.from_config(
        (shape.layers, shape.decoder_depth), shape.heads, pre_norm=shape.norm == "pre",
        activation=getattr(specs.Activation, ACTIVATIONS[shape.activation]),
    )  # fmt: skip
    tensors = {name: as_array(tensor) for name, tensor in weights(model.module).items()}
    words = model.vocabularies
    set_half(spec.encoder, spec.encoder.embeddings[0], "encoder", tensors, shape)
    set_half(spec.decoder, spec.decoder.embeddings, "decoder", tensors, shape)
    for half, part in ((spec.encoder, model.module.encoder), (spec.decoder, model.module.decoder)):
        half.position_encodings.encodings = position_table(part, shape, model.recipe.decode.max_extra_tokens)
    set_linear(spec.decoder.projection, "decoder.readout", tensors)
    spec.register_source_vocabulary(list(words.source.vocabulary))
    spec.register_target_vocabulary(list(words.target.vocabulary))
    set_special(spec.config, words.target)
    save_spec(spec, folder, precision, progress)


def save_spec(spec: Any, folder: Path, precision: Precision, progress: Progress) -> None:
    """Check a specification that has its weights, convert them and write the folder."""
    for done, step in enumerate(
        (spec.validate, partial(spec.optimize, quantization=precision), partial(spec.save, str(folder)))
    ):
        progress("converting for ctranslate2", done, STEPS)
        step()
    progress("converting for ctranslate2", STEPS, STEPS)


def set_half(
    spec: Any, embeddings: Any, half: str, tensors: Mapping[str, NDArray[Any]], shape: TransformerConfig
) -> None:
    """The layers of the encoder or the decoder."""
    embeddings.weight = tensors[f"{half}.embed.weight"]
    spec.scale_embeddings = shape.scale_embedding
    if shape.norm == "pre":
        set_norm(spec.layer_norm, f"{half}.norm", tensors)
    for number, layer in enumerate(spec.layer):
        name = f"{half}.layers.{number}"
        attention = layer.self_attention
        set_norm(attention.layer_norm, f"{name}.attention_norm.norm", tensors)
        set_linear(attention.linear[0], f"{name}.attention.qkv", tensors)
        set_linear(attention.linear[1], f"{name}.attention.out", tensors)
        if half == "decoder":
            set_norm(layer.attention.layer_norm, f"{name}.cross_norm.norm", tensors)
            for own, part in zip(layer.attention.linear, ("query", "kv", "out"), strict=True):
                set_linear(own, f"{name}.cross.{part}", tensors)
        set_norm(layer.ffn.layer_norm, f"{name}.ffn_norm.norm", tensors)
        set_linear(layer.ffn.linear_0, f"{name}.ffn.up", tensors)
        set_linear(layer.ffn.linear_1, f"{name}.ffn.down", tensors)


def set_linear(spec: Any, name: str, tensors: Mapping[str, NDArray[Any]]) -> None:
    """Weight and bias of a linear layer."""
    spec.weight = tensors[f"{name}.weight"]
    if f"{name}.bias" in tensors:
        spec.bias = tensors[f"{name}.bias"]


def set_norm(spec: Any, name: str, tensors: Mapping[str, NDArray[Any]]) -> None:
    """Scale and shift of a layer normalization."""
    spec.gamma, spec.beta = tensors[f"{name}.weight"], tensors[f"{name}.bias"]


def set_special(config: Any, target: Tokenizer) -> None:
    """The special tokens of a folder; sources are given with <EOS> at their end."""
    start, end = target.vocabulary[target.sos], target.vocabulary[target.eos]
    config.bos_token = config.decoder_start_token = start
    config.eos_token = end
    config.unk_token = target.vocabulary[target.unk] if target.unk >= 0 else end
    config.add_source_bos = config.add_source_eos = False


def position_table(half: Any, shape: TransformerConfig, extra: int) -> NDArray[Any]:
    """Positional encodings: all that were learned, or as many sinusoids as the longest text needs."""
    count = shape.max_positions if shape.positions == "learned" else MAX_TOKENS + 1 + extra
    return as_array(half.input_embedding.positions(torch.arange(count)))


def as_array(tensor: Tensor) -> NDArray[Any]:
    """A tensor in float32 as an array."""
    return np.ascontiguousarray(tensor.detach().to("cpu", torch.float32).numpy())
