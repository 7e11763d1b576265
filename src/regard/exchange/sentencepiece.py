"""SentencePiece models (source.spm, target.spm of Marian): Unigram tokenizers with the ids of vocab.json, and back.

Only the fields that cut a text are read from the protobuf, so the library is not needed. A vocabulary has tokens that
are not pieces of this side's model: those of the other language, and special tokens. They have scores so low that no
text is cut into them; a single character among them is read where the model has no piece for it, as Marian does. As in
SentencePiece, several characters in a row that the model does not know are one unknown token.
"""

from __future__ import annotations

import base64
import json
import re
import struct
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import tokenizers
from tokenizers import AddedToken, Regex, decoders, models, normalizers, pre_tokenizers

from regard.errors import InputError, ModelError
from regard.files import parse_json, read_bounded
from regard.text import Tokenizer
from regard.text.tokenizer import MAX_SIZE

UNIGRAM = 1
NORMAL, UNKNOWN, CONTROL, UNUSED = 1, 2, 3, 5
"""kinds of pieces; others are those that a user defines (4) and bytes (6)"""
UNKNOWN_PENALTY = 10.0
"""SentencePiece's: a character without a piece scores as much below the lowest piece"""
ABSENT_PENALTY = 1000.0
"""how much lower are tokens that no text is cut into"""
LANGUAGE_CODE = re.compile(r">>.+<<")
SPACE = "▁"
UNKNOWN_SIGN = "\uffff"
"""stands for several unknown characters in a row; it is no character of Unicode"""


@dataclass(frozen=True)
class SentencePieceModel:
    """What a SentencePiece model says about cutting a text."""

    path: Path
    pieces: Sequence[tuple[str, float, int]]
    """text, score and kind"""
    kind: int = UNIGRAM
    charsmap: bytes = b""
    """compiled rules of the normalization"""

    @classmethod
    def read(cls, path: Path) -> SentencePieceModel:
        """Read a .spm file; one that is not a Unigram model, or has other kinds of pieces, is refused."""
        try:
            found = parse_model(path, read_bounded(path, MAX_SIZE))
        except OSError as error:
            raise InputError(f"{path}: cannot be read ({error.strerror or error})") from error
        except (ValueError, IndexError, struct.error, TypeError, AttributeError) as error:
            raise ModelError(
                f"{path}: expected a SentencePiece model ({error}); it is damaged or was cut off"
            ) from None
        if not found.pieces:
            raise ModelError(f"{path}: expected a SentencePiece model, found no pieces in it")
        others = [text for text, _, kind in found.pieces if kind not in (NORMAL, UNKNOWN, CONTROL, UNUSED)]
        if found.kind != UNIGRAM or others:
            what = f"has pieces that a user defined or bytes ({others[0]!r})" if others else "is not a Unigram model"
            raise ModelError(f"{path}: this SentencePiece model {what}; only Unigram models without them can be read")
        return found

    def tokenizer(self, vocabulary: Sequence[str], unknown: str, special: Sequence[str]) -> tokenizers.Tokenizer:
        """The model as a tokenizer with these tokens in the order of their ids."""
        scores = {text: score for text, score, kind in self.pieces if kind == NORMAL}
        lowest = min(scores.values(), default=0.0) - UNKNOWN_PENALTY

        def score(token: str) -> float:
            if token in scores and token not in special:
                return scores[token]
            return lowest if len(token) == 1 else lowest - ABSENT_PENALTY

        table = [(token, score(token)) for token in vocabulary]
        inner = tokenizers.Tokenizer(models.Unigram(table, vocabulary.index(unknown), byte_fallback=False))
        rules = [normalizers.Precompiled(self.charsmap)] if self.charsmap else []
        unknown_run = normalizers.Replace(Regex(f"[^{character_class(self.characters)}]{{2,}}"), UNKNOWN_SIGN)
        inner.normalizer = normalizers.Sequence(
            [*rules, normalizers.Replace(Regex(" {2,}"), " "), normalizers.Strip(), unknown_run]
        )
        # the first sign of a special token's name stands alone, so that no text is cut into a special token
        names = "|".join(f"{re.escape(name[0])}(?={re.escape(name[1:])})" for name in special if len(name) > 1)
        inner.pre_tokenizer = pre_tokenizers.Sequence(
            [pre_tokenizers.Metaspace(SPACE, "always"), pre_tokenizers.Split(Regex(names), "isolated")]
        )
        inner.decoder = decoders.Metaspace(SPACE, "always")
        inner.add_special_tokens([AddedToken(name, special=True, normalized=False) for name in special])
        codes = [token for token in vocabulary if LANGUAGE_CODE.fullmatch(token)]
        inner.add_tokens([AddedToken(code, special=False, normalized=False) for code in codes])
        return inner

    @property
    def characters(self) -> set[str]:
        """All characters of the pieces, and the space."""
        return {" ", SPACE}.union(*(text for text, _, kind in self.pieces if kind == NORMAL))

    def missing_pieces(self, vocabulary: Sequence[str]) -> int:
        """How many pieces are not in a vocabulary."""
        known = set(vocabulary)
        return sum(kind == NORMAL and text not in known for text, _, kind in self.pieces)


def character_class(characters: Collection[str]) -> str:
    """The inside of a class of a regular expression that has these characters, as ranges.

    >>> character_class("abcx")
    '\\\\x{61}-\\\\x{63}\\\\x{78}-\\\\x{78}'
    """
    numbers = sorted(map(ord, characters))
    starts = [number for i, number in enumerate(numbers) if not i or numbers[i - 1] != number - 1]
    ends = [number for i, number in enumerate(numbers) if numbers[i + 1 : i + 2] != [number + 1]]
    return "".join(f"\\x{{{start:x}}}-\\x{{{end:x}}}" for start, end in zip(starts, ends, strict=True))


def read_vocabulary(path: Path) -> list[str]:
    """The tokens of a vocab.json in the order of their ids."""
    try:
        found = parse_json(read_bounded(path, MAX_SIZE))
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror or error})") from error
    except ValueError as error:
        raise ModelError(f"{path}: expected the id of each token as JSON ({error})") from None
    if not isinstance(found, dict) or sorted(map(str, found.values())) != sorted(map(str, range(len(found)))):
        raise ModelError(f"{path}: expected the id of each token, from 0 on without gaps")
    return sorted(found, key=lambda token: int(found[token]))


def to_sentencepiece(words: Tokenizer) -> bytes | None:
    """The SentencePiece model of a tokenizer that was read from one; None for any other."""
    content = json.loads(words.json)
    steps = (content.get("pre_tokenizer") or {}).get("pretokenizers", [])
    if content["model"]["type"] != "Unigram" or [step["type"] for step in steps] != ["Metaspace", "Split"]:
        return None
    table: list[tuple[str, float]] = content["model"]["vocab"]
    limit = min(score for _, score in table) + ABSENT_PENALTY + UNKNOWN_PENALTY / 2
    rules = [step for step in content["normalizer"]["normalizers"] if step["type"] == "Precompiled"]
    charsmap = base64.b64decode(rules[0]["precompiled_charsmap"]) if rules else b""
    unknown, end = (table[id][0] for id in (content["model"]["unk_id"], words.eos))
    pieces = [(unknown, 0.0, UNKNOWN), (end, 0.0, CONTROL)]
    pieces += [(token, score, NORMAL) for token, score in table if score > limit]
    return render_model(pieces, charsmap)


def parse_model(path: Path, data: bytes) -> SentencePieceModel:
    """The model of a protobuf message: pieces are field 1, the trainer's settings 2, the normalizer's 3."""
    pieces: list[tuple[str, float, int]] = []
    kind, charsmap = UNIGRAM, b""
    for number, value in read_fields(data):
        if number == 1:
            part = dict(read_fields(as_bytes(value)))
            score = struct.unpack("<f", as_bytes(part.get(2, bytes(4))))[0]
            pieces.append((as_bytes(part[1]).decode(), score, int(part.get(3, NORMAL))))
        elif number == 2:
            kind = int(dict(read_fields(as_bytes(value))).get(3, UNIGRAM))
        elif number == 3:
            charsmap = as_bytes(dict(read_fields(as_bytes(value))).get(2, b""))
    return SentencePieceModel(path, pieces, kind, charsmap)


def render_model(pieces: Sequence[tuple[str, float, int]], charsmap: bytes) -> bytes:
    """The protobuf message of a Unigram model."""
    found = b"".join(
        field(1, field(1, text.encode()) + b"\x15" + struct.pack("<f", score) + field(3, kind))
        for text, score, kind in pieces
    )
    trainer = field(2, field(3, UNIGRAM) + field(4, len(pieces)))
    return found + trainer + field(3, field(1, b"custom") + field(2, charsmap))


def read_fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Number and value of each field of a protobuf message.

    >>> list(read_fields(field(1, b"ab") + field(2, 300)))
    [(1, b'ab'), (2, 300)]
    """
    at = 0
    while at < len(data):
        tag, at = read_varint(data, at)
        value: int | bytes
        if tag & 7 == 0:
            value, at = read_varint(data, at)
        else:
            size = {1: 8, 5: 4}.get(tag & 7)
            if size is None:
                if tag & 7 != 2:
                    raise ValueError(f"field of type {tag & 7}")
                size, at = read_varint(data, at)
            value, at = data[at : at + size], at + size
            if len(value) < size:
                raise ValueError("a field ends too early")
        yield tag >> 3, value


def read_varint(data: bytes, at: int) -> tuple[int, int]:
    """A whole number of variable length, and where it ends."""
    found = 0
    for shift in range(0, 70, 7):
        found |= (data[at + shift // 7] & 127) << shift
        if data[at + shift // 7] < 128:
            return found, at + shift // 7 + 1
    raise ValueError("a number has too many bytes")


def field(number: int, value: int | bytes) -> bytes:
    """A field of a protobuf message: a whole number, or bytes with their length."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def varint(number: int) -> bytes:
    """A whole number in seven bits per byte, the lowest first."""
    return bytes([number & 127 | 128]) + varint(number >> 7) if number > 127 else bytes([number])


def as_bytes(value: int | bytes) -> bytes:
    """The value of a field that has bytes."""
    if isinstance(value, int):
        raise ValueError("a field holds a number where bytes are expected")
    return value


def render_vocabulary(words: Tokenizer) -> bytes:
    """vocab.json: the id of each token."""
    table: Mapping[str, int] = {token: id for id, token in enumerate(words.vocabulary)}
    return (json.dumps(table, ensure_ascii=False, indent=1) + "\n").encode()
