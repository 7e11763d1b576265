"""Ids of texts that are normalized by a charsmap: added tokens are cut out of the text before.

The tokenizers library looks for added tokens in the text as it was written, or normalizes them too, as each of them
says. It does not know the rules of charsmap.py, so a text is cut here, and only the stretches between are normalized.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Sequence
from typing import final

import tokenizers
from tokenizers import AddedToken, models

from regard.errors import ModelError
from regard.text.charsmap import Charsmap

FIRST, NEVER = '"prepend_scheme": "first"', '"prepend_scheme": "never"'
Part = tuple[int, int, int | None]
"""where a part of a text begins and ends, and the id of its added token; None: a stretch to be normalized"""


@final
class CharsmapEncoder:
    """A tokenizer of the library with rules of normalization that it does not have; special tokens are text."""

    def __init__(self, inner: tokenizers.Tokenizer, rules: Charsmap) -> None:
        self._rules = rules
        added = inner.get_added_tokens_decoder().values()
        for token in added:
            if token.normalized and not token.special and (new := rules.normalize(token.content)) != token.content:
                raise ModelError(
                    f"The added token {token.content!r} is looked for in normalized texts, and normalization makes it "
                    f'{new!r}; write it with "normalized": false'
                )
        verbatim = [token for token in added if not token.normalized]
        self._cutter: tokenizers.Tokenizer | None = None
        self._first = self._later = inner
        if not all(token.special for token in verbatim):
            self._cutter = make_cutter(verbatim)
            self._first, self._later = hide_tokens(inner, {token.content for token in verbatim})
            self._ids = {
                i: inner.token_to_id(token.content) for i, token in self._cutter.get_added_tokens_decoder().items()
            }

    def encode(self, text: str) -> tuple[list[int], list[tuple[int, int]]]:
        """Ids of a text, and the characters that each comes from."""
        ids, offsets = list[int](), list[tuple[int, int]]()
        for start, end, id in self._cut([text])[0]:
            if id is not None:
                ids.append(id)
                offsets.append((start, end))
                continue
            normalized, spans = self._rules.align(text[start:end])
            found = (self._later if start else self._first).encode(normalized, add_special_tokens=False)
            spans.append((end - start, end - start))
            ids += found.ids
            offsets += [
                (start + spans[a][0], start + (spans[b - 1][1] if b > a else spans[a][0])) for a, b in found.offsets
            ]
        return ids, offsets

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """Ids of many texts, on all cores."""
        cut, found = self._cut(texts), dict[tuple[int, int], list[int]]()
        for inner, is_first in ((self._first, True), (self._later, False)):
            places = [
                (row, start, end)
                for row, parts in enumerate(cut)
                for start, end, id in parts
                if id is None and (start == 0) == is_first
            ]
            stretches = [self._rules.normalize(texts[row][start:end]) for row, start, end in places]
            encoded = inner.encode_batch_fast(stretches, add_special_tokens=False)
            found |= {(row, start): one.ids for (row, start, _), one in zip(places, encoded, strict=True)}
        return [
            [i for start, _, id in parts for i in (found[row, start] if id is None else [id])]
            for row, parts in enumerate(cut)
        ]

    def _cut(self, texts: Sequence[str]) -> list[list[Part]]:
        """The parts of each text."""
        if self._cutter is None:
            return [[(0, len(text), None)] for text in texts]
        return [
            [(start, end, self._ids.get(id)) for id, (start, end) in zip(found.ids, found.offsets, strict=True)]
            for found in self._cutter.encode_batch(list(texts), add_special_tokens=False)
        ]


def make_cutter(tokens: Iterable[AddedToken]) -> tokenizers.Tokenizer:
    """A tokenizer that cuts a text at these added tokens and nowhere else.

    >>> found = make_cutter([AddedToken(">>fr<<", normalized=False)]).encode("a cat>>fr<<")
    >>> found.ids, found.offsets
    ([0, 1], [(0, 5), (5, 11)])
    """
    cutter = tokenizers.Tokenizer(models.WordLevel({"": 0}, unk_token=""))
    for token in tokens:
        (cutter.add_special_tokens if token.special else cutter.add_tokens)([token])
    cutter.encode_special_tokens = True
    return cutter


def hide_tokens(
    inner: tokenizers.Tokenizer, names: Collection[str]
) -> tuple[tokenizers.Tokenizer, tokenizers.Tokenizer]:
    """The tokenizer for stretches without these added tokens: of the one that begins a text, and of later ones."""
    content = json.loads(inner.to_str())
    for token in content["added_tokens"]:
        token["special"] = token["special"] or token["content"] in names  # what is special is not looked for
    first = tokenizers.Tokenizer.from_str(json.dumps(content))
    first.encode_special_tokens = True
    step = json.dumps(content["pre_tokenizer"])
    if FIRST not in step:
        return first, first
    content["pre_tokenizer"] = json.loads(step.replace(FIRST, NEVER))
    later = tokenizers.Tokenizer.from_str(json.dumps(content))
    later.encode_special_tokens = True
    return first, later
