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
from typing import TypeVar, final

import numpy as np
import tokenizers

LABEL = 0x800000FF
"""bits of a unit that tell whose child it is"""
VALUE = 0x7FFFFFFF
MAX_BYTES = 256
"""of a rule; a damaged trie could have a circle"""
MAX_UNITS = 1 << 20
"""of a trie, and rules that are followed at once: a small file could stand for any number. SentencePiece has 46,080"""
FOLLOWING = np.array([0] * 0xC2 + [1] * 30 + [2] * 16 + [3] * 5 + [0] * 11)
"""how many bytes of a character follow a first byte in UTF-8"""
IntOrArray = TypeVar("IntOrArray", int, np.ndarray)


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
        if size > 4 * MAX_UNITS:
            raise ValueError(f"normalization rules with a trie of {size:,} bytes; at most {4 * MAX_UNITS:,} are read")
        units = np.frombuffer(data, "<u4", size // 4, 4)
        self._units: list[int] = units.tolist()
        self._texts = data[4 + size :]
        trie = Trie(units)
        trie.check_ends()
        self._candidate = trie.find_candidates()
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


def base(unit: IntOrArray, at: IntOrArray) -> IntOrArray:
    """What is added to a byte, bit by bit, for the child of the unit at a place.

    >>> base(5 << 10, 3), base(5 << 10 | 512, 3)
    (6, 1283)
    """
    return at ^ (unit >> 10 << (unit >> 6 & 8))


@final
class Trie:
    """All rules of a trie at once, followed byte by byte. Rules that end alike share their units."""

    def __init__(self, units: np.ndarray) -> None:
        self._units = units.astype(np.int64)
        labels = self._units & LABEL
        places = np.flatnonzero((labels > 0) & (labels < 256))
        parents = places ^ labels[places]
        order = np.argsort(parents, kind="stable")
        self._places, self._parents = places[order], parents[order]
        self._root = np.array([base(int(units[0]), 0)])

    def check_ends(self) -> None:
        """Refuse a rule that ends within a character: a text is cut between characters only."""
        states = 4 * self._root  # a node, and in the last two bits how many bytes of a character are missing
        seen = np.zeros(4 * (len(self._units) + 256), dtype=bool)
        while len(states):
            seen[states] = True
            rows, bytes_, ends, nodes = self._follow(states >> 2)
            missing = (states & 3)[rows]
            missing = np.where(missing > 0, missing - 1, FOLLOWING[bytes_])
            if (ends & (missing > 0)).any():
                raise ValueError("a normalization rule ends within a character of UTF-8")
            states = np.unique(4 * nodes + missing)
            states = states[states < len(seen)]
            states = states[~seen[states]]

    def find_candidates(self) -> re.Pattern[str]:
        """Where a rule may begin: at a character with a rule, or at two that begin one."""
        nodes, keys, single, several = self._root, [b""], list[str](), list[str]()
        while keys:
            rows, bytes_, ends, nodes = self._follow(nodes)
            grown = [keys[row] + bytes((byte,)) for row, byte in zip(rows.tolist(), bytes_.tolist(), strict=True)]
            texts = [decode_whole(key) for key in grown]
            single += [text for text, is_rule in zip(texts, ends.tolist(), strict=True) if is_rule and len(text) == 1]
            several += [text for text in texts if len(text) == 2]
            rest = [i for i, text in enumerate(texts) if len(text) < 2]
            nodes, keys = nodes[rest], [grown[i] for i in rest]
        parts = [f"[{character_class(single)}]"] if single else []
        first, second = ({text[i] for text in several} for i in (0, 1))
        parts += [f"[{character_class(first)}](?=[{character_class(second)}])"] if several else []
        return re.compile("|".join(parts) or "(?!)")

    def _follow(self, nodes: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """All ways on from some nodes: the row of the node, the byte, whether a rule ends there, and the next node."""
        first, last = (np.searchsorted(self._parents, nodes, side) for side in ("left", "right"))
        counts = last - first
        if counts.sum() > MAX_UNITS:
            raise ValueError(f"more than {MAX_UNITS:,} normalization rules, or a trie that leads into itself")
        rows = np.repeat(np.arange(len(nodes)), counts)
        within = np.arange(len(rows)) - np.repeat(counts.cumsum() - counts, counts)
        at = self._places[first[rows] + within]
        units = self._units[at]
        return rows, units & LABEL, (units >> 8 & 1).astype(bool), base(units, at)


def decode_whole(key: bytes) -> str:
    """The characters of a key; none if it ends within a character."""
    try:
        return key.decode()
    except UnicodeDecodeError as error:
        if error.end < len(key) or error.reason != "unexpected end of data":
            raise ValueError(f"a normalization rule for {key!r}, which is not UTF-8") from None
        return ""


def character_class(characters: Collection[str]) -> str:
    """The inside of a class of a regular expression that has these characters; Oniguruma's reads it as well.

    >>> character_class("abcx-")
    '\\\\--\\\\-a-cx-x'
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
