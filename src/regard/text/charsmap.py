"""Compiled normalization rules of a SentencePiece model (`precompiled_charsmap`): a double-array trie and its texts.

At each place SentencePiece replaces the longest rule. The step `Precompiled` of the tokenizers library cuts a text into
graphemes first, and replaces the shortest rule of one, so a letter with several accents, or Hangul in parts, becomes
something else there.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Collection, Iterator
from functools import lru_cache
from typing import final

import numpy as np
import tokenizers

LABEL = 0x800000FF
"""bits of a unit that tell whose child it is"""
VALUE = 0x7FFFFFFF
MAX_BYTES = 256
"""of a rule; a damaged trie could have a circle"""


@final
class Charsmap:
    """Rules of replacement, looked up in their trie: the longest that begins at a place applies.

    The trie is a double array (Aoe 1989) in the layout of darts-clone: a unit is a node, and holds the byte that leads
    to it and what is added to a byte, bit by bit, for the unit of the next node.
    """

    def __init__(self, data: bytes) -> None:
        size = int.from_bytes(data[:4], "little")
        if len(data) <= 4 + size or size % 4 or not size:
            raise ValueError(f"normalization rules of {len(data):,} bytes with a trie of {size:,}")
        units = np.frombuffer(data, "<u4", size // 4, 4)
        self._units: list[int] = units.tolist()
        self._texts = data[4 + size :]
        self._candidate = find_candidates(units)
        """where a rule may begin"""

    def normalize(self, text: str) -> str:
        """The text after all replacements."""
        done, parts = 0, list[str]()
        for start, end, new in self._matches(text):
            parts += (text[done:start], new)
            done = end
        return "".join([*parts, text[done:]])

    def align(self, text: str) -> tuple[str, list[tuple[int, int]]]:
        """The normalized text, and for each of its characters the characters of `text` that it comes from."""
        done, parts, spans = 0, list[str](), list[tuple[int, int]]()
        for start, end, new in self._matches(text):
            parts += (text[done:start], new)
            spans += [*((i, i + 1) for i in range(done, start)), *[(start, end)] * len(new)]
            done = end
        spans += [(i, i + 1) for i in range(done, len(text))]
        return "".join([*parts, text[done:]]), spans

    def _matches(self, text: str) -> Iterator[tuple[int, int, str]]:
        """The rules that apply, in order: where they begin and end, and their texts."""
        found = self._candidate.search(text)
        while found:
            start, end = found.start(), found.start() + 1
            rule = self._longest_rule(text[start : start + MAX_BYTES].encode())
            if rule is not None:
                end = start + rule[0]
                yield start, end, rule[1]
            found = self._candidate.search(text, end)

    def _longest_rule(self, text: bytes) -> tuple[int, str] | None:
        """How many characters the longest rule at the beginning of a text replaces, and by what."""
        units, node, found = self._units, base(self._units[0], 0), None
        for count, byte in enumerate(text, 1):
            node ^= byte
            if node >= len(units) or units[node] & LABEL != byte:
                break
            has_value, node = units[node] >> 8 & 1, base(units[node], node)
            if has_value and node < len(units):
                found = count, units[node] & VALUE
        if found is None:
            return None
        count, at = found
        end = self._texts.find(b"\0", at)
        return len(text[:count].decode()), self._texts[at : end if end >= 0 else None].decode(errors="replace")


def base(unit: int, at: int) -> int:
    """What is added to a byte, bit by bit, for the child of the unit at a place.

    >>> base(5 << 10, 3), base(5 << 10 | 512, 3)
    (6, 1283)
    """
    return at ^ (unit >> 10 << (unit >> 6 & 8))


def find_candidates(units: np.ndarray) -> re.Pattern[str]:
    """Where a rule of a trie may begin: at a character with a rule, or at two that begin one."""
    bytes_ = np.arange(1, 256, dtype=np.int64)
    units = units.astype(np.int64)
    nodes, keys, single, several = np.array([base(int(units[0]), 0)]), [b""], list[str](), list[str]()
    while keys:
        children = nodes[:, None] ^ bytes_
        known = np.minimum(children, len(units) - 1)
        rows, columns = np.nonzero((children < len(units)) & (units[known] & LABEL == bytes_))
        grown = [keys[row] + bytes((column + 1,)) for row, column in zip(rows.tolist(), columns.tolist())]
        if len(grown) > len(units):
            raise ValueError("the trie of the normalization rules leads into itself")
        at = children[rows, columns]
        has_value = (units[at] >> 8 & 1).tolist()
        after = at ^ (units[at] >> 10 << (units[at] >> 6 & 8))
        texts = [decode_whole(key) for key in grown]
        single += [text for text, ends in zip(texts, has_value, strict=True) if ends and len(text) == 1]
        several += [text for text in texts if len(text) == 2]
        rest = [i for i, text in enumerate(texts) if len(text) < 2]
        nodes, keys = after[rest], [grown[i] for i in rest]
    parts = [f"[{ranges(single)}]"] if single else []
    first, second = ({text[i] for text in several} for i in (0, 1))
    parts += [f"[{ranges(first)}](?=[{ranges(second)}])"] if several else []
    return re.compile("|".join(parts) or "(?!)")


def decode_whole(key: bytes) -> str:
    """The characters of a key; none if it ends within a character."""
    try:
        return key.decode()
    except UnicodeDecodeError as error:
        if error.end < len(key) or error.reason != "unexpected end of data":
            raise ValueError(f"a normalization rule for {key!r}, which is not UTF-8") from None
        return ""


def ranges(characters: Collection[str]) -> str:
    """The inside of a class of a regular expression that has these characters.

    >>> ranges("abcx")
    'a-cx-x'
    """
    numbers = sorted(map(ord, characters))
    starts = [number for i, number in enumerate(numbers) if not i or numbers[i - 1] != number - 1]
    ends = [number for i, number in enumerate(numbers) if numbers[i + 1 : i + 2] != [number + 1]]
    return "".join(f"{re.escape(chr(start))}-{re.escape(chr(end))}" for start, end in zip(starts, ends, strict=True))


def split_charsmap(inner: tokenizers.Tokenizer) -> tuple[tokenizers.Tokenizer, Charsmap | None]:
    """A tokenizer without its first step `Precompiled`, and the rules of that step; None where it has no such step."""
    if inner.normalizer is None or '"Precompiled"' not in inner.normalizer.__getstate__().decode():
        return inner, None
    content = json.loads(inner.to_str())
    steps = content["normalizer"].get("normalizers", [content["normalizer"]])
    if steps[0]["type"] != "Precompiled" or not steps[0]["precompiled_charsmap"]:
        return inner, None
    content["normalizer"] = {"type": "Sequence", "normalizers": steps[1:]} if steps[1:] else None
    rules = read_charsmap(base64.b64decode(steps[0]["precompiled_charsmap"]))
    return tokenizers.Tokenizer.from_str(json.dumps(content)), rules


@lru_cache(maxsize=4)
def read_charsmap(data: bytes) -> Charsmap:
    """The rules of a `precompiled_charsmap`: the size of the trie, its units, and texts that end with 0."""
    return Charsmap(data)
