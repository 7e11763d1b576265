"""Byte-level BPE written out for comparison: tiktoken's algorithm with GPT-2's pattern, from ranks alone."""

from __future__ import annotations

import random
import unicodedata
from collections.abc import Iterator, Mapping
from itertools import pairwise

WHITE_SPACE = {*range(9, 14), 32, 0x85, 0xA0, 0x1680, *range(0x2000, 0x200B), 0x2028, 0x2029, 0x202F, 0x205F, 0x3000}
CONTRACTIONS = ("'s", "'t", "'re", "'ve", "'m", "'ll", "'d")


def kind(character: str) -> str:
    """letter, number, space or other."""
    if ord(character) in WHITE_SPACE:
        return "space"
    return {"L": "letter", "N": "number"}.get(unicodedata.category(character)[0], "other")


def split(text: str) -> list[str]:
    """GPT-2's pre-tokens: contractions, runs of one kind after at most one blank, white space."""
    found, at = [], 0
    while at < len(text):
        end = _end(text, at)
        found.append(text[at:end])
        at = end
    return found


def _end(text: str, at: int) -> int:
    for contraction in CONTRACTIONS:
        if text.startswith(contraction, at):
            return at + len(contraction)
    first = at + (text[at] == " " and at + 1 < len(text) and kind(text[at + 1]) != "space")
    run = kind(text[first])
    end = first
    while end < len(text) and kind(text[end]) == run:
        end += 1
    if run == "space" and end < len(text) and end - at > 1:
        return end - 1  # the last one belongs to what follows
    return end


def encode(text: str, ranks: Mapping[bytes, int]) -> list[int]:
    """Merge the adjacent pair of the lowest rank again and again; a token's rank is its id."""
    ids = []
    for word in split(text):
        parts = [bytes([byte]) for byte in word.encode()]
        while True:
            pairs = [(ranks[a + b], i) for i, (a, b) in enumerate(pairwise(parts)) if a + b in ranks]
            if not pairs:
                break
            _, i = min(pairs)
            parts[i : i + 2] = [parts[i] + parts[i + 1]]
        ids += [ranks[part] for part in parts]
    return ids


def byte_alphabet() -> dict[str, int]:
    """The character by which GPT-2's files write each byte."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in printable]
    return {chr(byte): byte for byte in printable} | {chr(256 + i): byte for i, byte in enumerate(others)}


def byte_ranks(vocabulary: Mapping[str, int]) -> dict[bytes, int]:
    """A vocabulary of GPT-2's form without its special token: bytes and their rank."""
    alphabet = byte_alphabet()
    return {
        bytes(alphabet[character] for character in token): id
        for token, id in vocabulary.items()
        if token != "<|endoftext|>"
    }


def random_strings(count: int, seed: int = 1) -> Iterator[str]:
    """Text-like strings, code points of all planes, words with contractions, and white space of every kind."""
    draw = random.Random(seed)
    words = ["The", "it's", "we'll", "DON'T", "123", "4567", "été", "日本", "🙂", "👍🏽", "Ναι", "<|endoftext|>"]
    spaces = [" ", "  ", "\n", "\t", "'", ""]
    signs = [32, 32, 10, 9, 0x3000, 0xA0, 0x1C, 0x85, 97, 98, 49, 39, 115, 33]
    for _ in range(count):
        length, how = draw.randrange(1, 40), draw.randrange(4)
        if how == 0:
            codes = [draw.choice([draw.randrange(32, 127), draw.randrange(0x20, 0x3000)]) for _ in range(length)]
        elif how == 1:
            codes = [code for code in (draw.randrange(0x110000) for _ in range(length)) if not 0xD800 <= code < 0xE000]
        elif how == 2:
            codes = [ord(c) for _ in range(length) for c in draw.choice(spaces) + draw.choice(words)]
        else:
            codes = [draw.choice(signs) for _ in range(length)]
        yield "".join(map(chr, codes))
