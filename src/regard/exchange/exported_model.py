"""A model as a Hugging Face folder describes it: config, weight table, and the files of its tokenizer."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import tokenizers
from tokenizers import processors
from torch import Tensor

from regard.exchange.weight_table import WeightRow
from regard.text import Tokenizer


@dataclass(frozen=True)
class ExportedModel:
    """A model as another library describes it."""

    config: Mapping[str, Any]
    """config.json"""
    rows: Iterable[WeightRow]
    """the weight table"""
    files: Mapping[str, bytes]
    """the tokenizer, and other files beside config and weights"""
    arrange: Callable[[Mapping[str, Tensor]], Mapping[str, Tensor]] = dict
    """what is done with the weights before the table is applied"""
    notes: Sequence[str] = ()
    """what the user should know"""


def fast_tokenizer_files(
    words: Tokenizer, template: str | None, names: Mapping[str, int], limit: int | None, pair: str | None = None
) -> dict[str, bytes]:
    """tokenizer.json and tokenizer_config.json.

    `template` is what stands around a text ($A), `pair` what stands around two ($A and $B); `names` are special tokens.
    """
    special = {f"{name}_token": words.tokens([id])[0] for name, id in names.items()}
    settings: dict[str, Any] = {
        "tokenizer_class": "PreTrainedTokenizerFast", "clean_up_tokenization_spaces": False,
        "model_max_length": limit, **special,
    }  # fmt: skip
    if pair is not None:
        settings["model_input_names"] = ["input_ids", "token_type_ids", "attention_mask"]
    return {
        "tokenizer.json": with_template(words, template, pair).encode(),
        "tokenizer_config.json": render_json(settings),
    }


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


def special_ids(names: Mapping[str, int]) -> dict[str, int]:
    """Ids of special tokens as config.json names them."""
    return {f"{name}_token_id": names[name] for name in ("bos", "eos", "pad") if name in names}


def render_json(content: Mapping[str, Any]) -> bytes:
    """A JSON file; settings that are None are left out."""
    kept = {name: value for name, value in content.items() if value is not None}
    return (json.dumps(kept, ensure_ascii=False, indent=2, sort_keys=True) + "\n").encode()
