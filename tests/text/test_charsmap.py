"""Normalization rules of damaged and hostile files: refused when they are read, in bounded memory."""

from __future__ import annotations

import re
import tracemalloc
from collections.abc import Mapping

import pytest
from tokenizers import Regex, normalizers

from regard.text.charsmap import Charsmap, character_class


def unit(byte: int, at: int, block: int, is_rule: bool = False) -> int:
    """A unit at a place, whose children stand in a block of 256."""
    return byte | is_rule << 8 | (at ^ 256 * block) << 10


def pack(units: Mapping[int, int], size: int, texts: bytes = b"x\0") -> bytes:
    data = b"".join(units.get(at, 0).to_bytes(4, "little") for at in range(size))
    return len(data).to_bytes(4, "little") + data + texts


def compile_rules(rules: Mapping[bytes, bytes]) -> bytes:
    """The `precompiled_charsmap` of rules, each node with a block of its own."""
    units, places, texts = dict[int, int](), {b"": 0}, b""
    keys = sorted({key[:i] for key in rules for i in range(1, len(key) + 1)}, key=len)
    blocks = {key: number for number, key in enumerate([b"", *keys], 1)}
    for key in [b"", *keys]:
        at = places[key] = 256 * blocks[key[:-1]] ^ key[-1] if key else 0
        units[at] = unit(key[-1] if key else 0, at, blocks[key], key in rules)
        if key in rules:
            units[256 * blocks[key]] = 1 << 31 | len(texts)
            texts += rules[key] + b"\0"
    return pack(units, 256 * (len(blocks) + 1), texts)


def test_the_longest_rule_applies() -> None:
    rules = Charsmap(compile_rules({b"a": b"1", "aé€".encode(): b"2", "😀".encode(): b""}))
    assert rules.normalize("aa aé aé€ 😀b") == "11 1é 2 b"
    assert rules.align("aé€b") == ("2b", [(0, 3), (3, 4)])


@pytest.mark.parametrize("character", ["é", "€", "😀"])
@pytest.mark.parametrize("before", ["", "a", "abc€"])
def test_a_rule_that_ends_within_a_character_is_refused(before: str, character: str) -> None:
    for length in range(1, len(character.encode())):
        data = compile_rules({before.encode() + character.encode()[:length]: b"x", b"b": b"y"})
        with pytest.raises(ValueError, match="a normalization rule ends within a character of UTF-8"):
            Charsmap(data)


def test_a_small_trie_with_any_number_of_rules_is_refused_in_bounded_memory() -> None:
    units = {0: unit(0, 0, 1), 256 + 0xF1: unit(0xF1, 256 + 0xF1, 2)}
    for block in (2, 3, 4):  # 262,144 characters lead to one block, in which each begins again
        for byte in range(0x80, 0xC0):
            units[256 * block + byte] = unit(byte, 256 * block + byte, block + 1)
    for byte in [*range(0x20, 0x7F), *range(0xC2, 0xF5)]:
        units[256 * 5 + byte] = unit(byte, 256 * 5 + byte, 6)
    data = pack(units, 300_000)
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match="more than 1,048,576 normalization rules, or a trie that leads"):
            Charsmap(data)
        assert tracemalloc.get_traced_memory()[1] < 200e6
    finally:
        tracemalloc.stop()


def test_a_trie_that_leads_into_itself_ends() -> None:
    a, b = 256 + ord("a"), 512 + ord("a")
    circle = {0: unit(0, 0, 1), a: unit(ord("a"), a, 2), b: unit(ord("a"), b, 2), 512: 1 << 31}
    rules = Charsmap(pack(circle, 1024))
    assert rules.normalize("aaa") == "aaa"


def test_a_larger_trie_than_any_model_has_is_refused() -> None:
    with pytest.raises(ValueError, match="a trie of 4,194,308 bytes; at most 4,194,304 are read"):
        Charsmap(pack({}, (1 << 20) + 1))


def test_a_class_of_characters_is_read_alike_by_both_regular_expressions() -> None:
    every = [chr(i) for i in (*range(0x250), 0x2581, 0xD7FF, 0xE000, 0xFFFF, 0x1F600)]
    for characters in [*([c] for c in every), every[::3], sorted("]^-\\[&~"), sorted("\t\n\v\f\r \0")]:
        inside = character_class(characters)
        assert [c for c in every if re.fullmatch(f"[{inside}]", c)] == characters
        others = normalizers.Replace(Regex(f"[^{inside}]"), "")
        assert others.normalize_str("".join(every)) == "".join(characters)
