"""GPT-2's byte-level BPE: its vocabulary and its merges, from the two files in which they are published.

Radford et al. 2019, 2.2: merges of bytes, so that every text has an encoding; a pattern keeps letters, digits and other
signs apart. The ids are those of the file: GPT-2's 50,257 stay as they are, and <|endoftext|> begins and ends texts.
"""

from __future__ import annotations

import codecs
import json
from functools import cache
from pathlib import Path

import tokenizers
from tokenizers import decoders, models, pre_tokenizers

from regard.errors import InputError, ModelError
from regard.manifest import read_kept
from regard.text.tokenizer_training import END_OF_TEXT, add_special

FILE_PAIRS = {"encoder.json": "vocab.bpe", "vocab.json": "merges.txt"}
"""file of the vocabulary -> file of the merges: as OpenAI names them, as transformers does"""
MAX_SIZE = 64 << 20
"""bytes of the largest file that is read"""


def find_byte_bpe(path: Path) -> tuple[Path, Path] | None:
    """The files of vocabulary and merges in a folder, or beside each other; None if `path` names no such pair."""
    for vocabulary, merges in FILE_PAIRS.items():
        folder = path.parent if path.name in (vocabulary, merges) else path
        if (folder / vocabulary).is_file() and (folder / merges).is_file():
            return folder / vocabulary, folder / merges
    return None


def read_byte_bpe(vocabulary: Path, merges: Path) -> tokenizers.Tokenizer:
    """The tokenizer of the two files, with GPT-2's pattern; <|endoftext|> must be in the vocabulary."""
    ids = _read_vocabulary(vocabulary)
    ranks = _read_merges(merges, ids)
    inner = tokenizers.Tokenizer(models.BPE(ids, ranks))
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    inner.decoder = decoders.ByteLevel()
    return add_special(inner, [END_OF_TEXT])


def token_text(token: str) -> str:
    """The text of a token of byte-level BPE; bytes that are no whole character are written as <0xE2>.

    >>> token_text("Ġsea"), token_text("Ċ"), token_text("cafÃ©"), token_text("â")
    (' sea', '\\n', 'café', '<0xE2>')
    """
    bytes_of = _byte_of()
    if not all(char in bytes_of for char in token):
        return token  # a special token
    return bytes(bytes_of[char] for char in token).decode("utf-8", "byte_names")


@cache
def _byte_of() -> dict[str, int]:
    """The byte that each character of the alphabet stands for: printable ones themselves, the others from U+0100 on."""
    themselves = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in set(themselves)]
    return {chr(byte): byte for byte in themselves} | {chr(0x100 + i): byte for i, byte in enumerate(others)}


def _byte_names(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeDecodeError):
        raise error
    return "".join(f"<0x{byte:02X}>" for byte in error.object[error.start : error.end]), error.end


codecs.register_error("byte_names", _byte_names)


def _read_vocabulary(path: Path) -> dict[str, int]:
    expected = f"{path}: expected a JSON object of tokens and their ids from 0 on"
    try:
        found = json.loads(_read(path))
    except ValueError as error:
        raise ModelError(f"{expected}, found no JSON ({error})") from None
    if not isinstance(found, dict) or not all(type(id) is int for id in found.values()):
        raise ModelError(f"{expected}, found something else")
    if sorted(found.values()) != list(range(len(found))):
        raise ModelError(f"{expected}, found {len(found):,} tokens whose ids have gaps or repetitions")
    missing = sorted({*pre_tokenizers.ByteLevel.alphabet(), END_OF_TEXT} - found.keys())
    if missing:
        raise ModelError(f"{path}: {missing[0]!r} is not in it; byte-level BPE needs every byte and {END_OF_TEXT}")
    return found


def _read_merges(path: Path, ids: dict[str, int]) -> list[tuple[str, str]]:
    found = []
    for number, line in enumerate(_read(path).split("\n"), 1):
        if not line.strip() or (number == 1 and line.startswith("#version")):
            continue
        left, space, right = line.rstrip("\r").partition(" ")
        if not space or any(token not in ids for token in (left, right, left + right)):
            raise ModelError(f"{path}, line {number}: expected two tokens of the vocabulary that merge, found {line!r}")
        found.append((left, right))
    return found


def _read(path: Path) -> str:
    try:
        return read_kept(path, MAX_SIZE).decode()
    except OSError as error:
        raise InputError(f"{path}: the tokenizer cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise ModelError(f"{path}: expected a tokenizer in UTF-8, byte {error.start + 1} is not") from None
