"""Tokens that were added to a tokenizer of several files: added_tokens.json, and those of tokenizer_config.json."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import tokenizers
from tokenizers import AddedToken

from regard.errors import ModelError
from regard.exchange.settings import ForeignSettings, read_optional

SPECIAL_LISTS = ("additional_special_tokens", "extra_special_tokens")
SHOWN = 3


def read_added_tokens(folder: Path, settings: ForeignSettings) -> dict[int, AddedToken]:
    """The added tokens of a folder by their ids; of two at one id that of tokenizer_config.json counts."""
    legacy = read_optional(folder / "added_tokens.json")
    special = special_names(settings.values) | special_names(read_optional(folder / "special_tokens_map.json").values)
    found = dict[int, AddedToken]()
    for name, id in legacy.values.items():
        if type(id) is not int or id < 0 or not name:
            raise ModelError(f"{legacy.path}: expected the id of each added token, found {id!r} for {name!r}")
        found[id] = AddedToken(name, special=name in special, normalized=False)
    table = settings.get("added_tokens_decoder", {})
    for id, token in table.items() if isinstance(table, dict) else [("", table)]:
        content = token.get("content") if isinstance(token, dict) else None
        if not (id.isascii() and id.isdecimal() and isinstance(content, str) and content):
            raise ModelError(f"{settings.path}: expected an added token with its id in 'added_tokens_decoder': {id!r}")
        flags = {name: token.get(name) is True for name in ("special", "lstrip", "rstrip", "single_word")}
        found[int(id)] = AddedToken(content, normalized=False, **flags)
    return found


def special_names(values: Mapping[str, Any]) -> set[str]:
    """The special tokens that a configuration names: `bos_token` and its like, and lists of others.

    >>> sorted(special_names({"bos_token": {"content": "<s>"}, "extra_special_tokens": ["<sep>"], "legacy": 0}))
    ['<s>', '<sep>']
    """
    named = [value for name, value in values.items() if name.endswith("_token")]
    for name in SPECIAL_LISTS:
        more = values.get(name)
        named += more.values() if isinstance(more, dict) else more if isinstance(more, list) else []
    contents = [value.get("content") if isinstance(value, dict) else value for value in named]
    return {content for content in contents if isinstance(content, str)}


def add_tokens(inner: tokenizers.Tokenizer, tokens: Mapping[int, AddedToken], path: Path) -> None:
    """Add tokens to a tokenizer at their ids; those that it cannot have there are named.

    Tokens that it has already stay as they are, and so does the unknown token, which decoding shows.
    """
    known = {token.content for token in inner.get_added_tokens_decoder().values()}
    known.add(getattr(inner.model, "unk_token", None) or "")
    for _, token in sorted(tokens.items()):
        if token.content not in known:
            (inner.add_special_tokens if token.special else inner.add_tokens)([token])
    wrong = [(id, token.content) for id, token in sorted(tokens.items()) if inner.token_to_id(token.content) != id]
    if wrong:
        shown = ", ".join(f"{name!r} (id {id})" for id, name in wrong[:SHOWN])
        more = f" and {len(wrong) - SHOWN:,} more" if len(wrong) > SHOWN else ""
        raise ModelError(
            f"{path}: the added tokens {shown}{more} cannot have these ids: others have them, or ids before them are "
            "free; write the tokenizer as a tokenizer.json"
        )
