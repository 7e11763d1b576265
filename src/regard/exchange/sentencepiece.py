"""SentencePiece models (.spm of Marian, tokenizer.model of Llama): their protobuf, read and written, and vocab.json.

Only the fields that cut a text are read, so the library is not needed. sentencepiece_tokenizer.py makes tokenizers of
them.
"""

from __future__ import annotations

import json
import math
import struct
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from regard.errors import InputError, ModelError
from regard.files import parse_json, read_bounded
from regard.text import Tokenizer
from regard.text.charsmap import read_charsmap
from regard.text.tokenizer import MAX_SIZE

UNIGRAM, BPE = 1, 2
NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = range(1, 7)
"""kinds of pieces"""
SPACE = "▁"
BYTES = [f"<0x{i:02X}>" for i in range(256)]
"""the pieces that stand for bytes"""
FLAGS: Mapping[str, bool] = {
    "byte_fallback": False, "treat_whitespace_as_suffix": False, "add_dummy_prefix": True,
    "remove_extra_whitespaces": True, "escape_whitespaces": True,
}  # fmt: skip
"""settings and their defaults: bytes in place of unknown characters; a word ends, not begins, with its space; a space
before the text; single spaces; spaces become signs"""
FLAG_FIELDS = dict(zip(((2, 35), (2, 24), (3, 3), (3, 4), (3, 5)), FLAGS, strict=True))
"""the settings by the numbers of their fields, within those of the trainer (2) and of the normalizer (3)"""


@dataclass(frozen=True)
class SentencePieceModel:
    """What a SentencePiece model says about cutting a text."""

    path: Path
    pieces: Sequence[tuple[str, float, int]]
    """text, score and kind"""
    kind: int = UNIGRAM
    charsmap: bytes = b""
    """compiled rules of the normalization"""
    flags: Mapping[str, bool] = field(default_factory=lambda: FLAGS)
    """settings by their names in the protobuf"""

    @classmethod
    def read(cls, path: Path) -> SentencePieceModel:
        """Read a file; a model that could not be cut with exactly is refused, with the reason."""
        try:
            found = parse_model(path, read_bounded(path, MAX_SIZE))
            found.check_pieces()
            if found.charsmap:
                read_charsmap(found.charsmap)
        except OSError as error:
            raise InputError(f"{path}: cannot be read ({error.strerror or error})") from error
        except (ValueError, IndexError, struct.error, TypeError, AttributeError) as error:
            raise ModelError(
                f"{path}: expected a SentencePiece model ({error}); it is damaged or was cut off"
            ) from None
        reason = found.obstacle()
        if reason:
            raise ModelError(f"{path}: this SentencePiece model {reason}, which cannot be read exactly")
        return found

    def check_pieces(self) -> None:
        """Raise ValueError for pieces that SentencePiece itself refuses."""
        if not self.pieces:
            raise ValueError("it has no pieces")
        counts = Counter(text for text, _, _ in self.pieces)
        for number, (text, score, _) in enumerate(self.pieces):
            if not text:
                raise ValueError(f"piece {number} is empty")
            if not math.isfinite(score):
                raise ValueError(f"the score of piece {number}, {text!r}, is {score}")
            if counts[text] > 1:
                raise ValueError(f"{counts[text]} pieces are {text!r}")
        unknown = sum(kind == UNKNOWN for _, _, kind in self.pieces)
        if unknown != 1:
            raise ValueError(f"{unknown} pieces are the unknown one, expected 1")
        expected = BYTES if self.flags["byte_fallback"] else ()
        wrong = {text for text, _, kind in self.pieces if kind == BYTE} ^ {*expected}
        if wrong:
            raise ValueError(f"expected {len(expected)} pieces for bytes, {min(wrong)!r} is missing or one too many")

    def obstacle(self) -> str | None:
        """What the tokenizers library has no equal for; None: nothing."""
        if self.kind not in (UNIGRAM, BPE):
            return "is neither Unigram nor BPE"
        if symbols := [text for text, _, kind in self.pieces if kind == USER_DEFINED]:
            return f"has symbols that its user defined ({symbols[0]!r}), cut out before anything else"
        if self.kind == BPE and any(kind == UNUSED for _, _, kind in self.pieces):
            return "has pieces that are merged and cut again (unused ones)"
        if self.flags["treat_whitespace_as_suffix"] or not self.flags["escape_whitespaces"]:
            return f"does not mark the beginnings of words with {SPACE!r}"
        return None

    @cached_property
    def scores(self) -> dict[str, float]:
        """The pieces that a text is cut into, bytes left out, with their scores."""
        return {text: score for text, score, kind in self.pieces if kind == NORMAL}

    @property
    def characters(self) -> set[str]:
        """All characters of the pieces, and the space."""
        return {" ", SPACE}.union(*self.scores)

    def missing_pieces(self, vocabulary: Sequence[str]) -> int:
        """How many pieces are not in a vocabulary."""
        known = set(vocabulary)
        return sum(text not in known for text in self.scores)


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


def parse_model(path: Path, data: bytes) -> SentencePieceModel:
    """The model of a protobuf message: pieces are field 1, the trainer's settings 2, the normalizer's 3."""
    pieces: list[tuple[str, float, int]] = []
    kind, charsmap, flags = UNIGRAM, b"", dict(FLAGS)
    for number, value in read_fields(data):
        if number not in (1, 2, 3):
            continue
        part = dict(read_fields(as_bytes(value)))
        if number == 1:
            score = struct.unpack("<f", as_bytes(part.get(2, bytes(4))))[0]
            pieces.append((as_bytes(part[1]).decode(), score, int(part.get(3, NORMAL))))
        elif number == 2:
            kind = int(part.get(3, UNIGRAM))
        else:
            charsmap = as_bytes(part.get(2, b""))
        flags |= {name: bool(part[at]) for (where, at), name in FLAG_FIELDS.items() if where == number and at in part}
    return SentencePieceModel(path, pieces, kind, charsmap, flags)


def render_model(model: SentencePieceModel) -> bytes:
    """The protobuf message of a model."""
    found = b"".join(
        render_field(1, render_field(1, text.encode()) + b"\x15" + struct.pack("<f", score) + render_field(3, kind))
        for text, score, kind in model.pieces
    )
    parts = {
        2: render_field(3, model.kind) + render_field(4, len(model.pieces)),
        3: render_field(1, b"custom") + render_field(2, model.charsmap),
    }
    for (part, number), name in FLAG_FIELDS.items():
        if model.flags[name] != FLAGS[name]:
            parts[part] += render_field(number, int(model.flags[name]))
    return found + b"".join(render_field(number, part) for number, part in parts.items())


def read_fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Number and value of each field of a protobuf message.

    >>> list(read_fields(render_field(1, b"ab") + render_field(2, 300)))
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


def render_field(number: int, value: int | bytes) -> bytes:
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
