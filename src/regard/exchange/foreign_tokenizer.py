"""Tokenizers of other models: tokenizer.json, GPT-2's two files, BERT's vocab.txt or Llama's tokenizer.model.

A run keeps the tokenizer in one tokenizer.json, as it is; only its post-processor is set, which names the tokens that
begin and end a text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tokenizers
from tokenizers import AddedToken, processors

from regard.errors import InputError, ModelError
from regard.exchange.added_tokens import add_tokens, read_added_tokens
from regard.exchange.sentencepiece import SentencePieceModel
from regard.exchange.sentencepiece_tokenizer import own_tokenizer
from regard.exchange.settings import ForeignSettings, read_optional
from regard.files import read_bounded
from regard.text import Tokenizer
from regard.text.byte_bpe import find_byte_bpe
from regard.text.tokenizer import MAX_SIZE, template_tokens
from regard.text.tokenizer_training import EOS, SOS, TokenizerKind

CHAT_START = "<|im_start|>"
SYSTEM = re.compile(r"<\|im_start\|>system(?:\\n|\n)([^<{]*)<\|im_end\|>")
"""a system message that a chat template writes where the conversation has none"""
SENTENCEPIECE = "tokenizer.model"
"""SentencePiece model whose pieces have the ids of the vocabulary, as Llama's; others, of another name, may not"""
MAX_FILLED = 1024
"""rows of an embedding beyond the vocabulary: some models round its size up"""


@dataclass(frozen=True)
class ForeignTokenizer:
    """A tokenizer of another model, and its special tokens by name."""

    path: Path
    inner: tokenizers.Tokenizer
    begin: str | None = None
    """begins texts"""
    end: str | None = None
    """ends texts"""
    begins: bool = False
    """whether `begin` is put before every text"""
    system: str | None = None
    """default system message of its chat template, if that is ChatML; None: it has no such template"""
    remarks: tuple[str, ...] = ()
    """what the user should know about it"""

    @classmethod
    def read(cls, folder: Path, config: ForeignSettings) -> ForeignTokenizer:
        """The tokenizer of a Hugging Face folder."""
        settings = read_optional(folder / "tokenizer_config.json")
        path = find_file(folder)
        inner = read_tokenizer(path, bool(settings.get("do_lower_case", True)))
        if path.name != "tokenizer.json":  # that has them itself
            add_tokens(inner, read_added_tokens(folder, settings), path)
        named = {name: token_name(settings.get(f"{name}_token")) for name in ("bos", "eos")}
        ids = {name: config.get(f"{name}_token_id") for name in named}
        begin, end = (named[name] or token_of_id(inner, ids[name]) for name in ("bos", "eos"))
        first = template_tokens(inner.to_str())[0]
        begins = first is not None or settings.get("add_bos_token", path.name == SENTENCEPIECE) is True
        template = settings.get("chat_template") or _read_template(folder)
        begins = begins and (first or begin) is not None
        return cls(path, inner, first or begin, end, begins, chatml_system(template))

    @property
    def kind(self) -> TokenizerKind:
        """The kind of tokenizer here that comes closest."""
        content = json.loads(self.inner.to_str())
        by_bytes = "ByteLevel" in json.dumps([content["pre_tokenizer"], content["decoder"]])
        kinds: Mapping[str, TokenizerKind] = {"Unigram": "unigram", "WordPiece": "wordpiece", "WordLevel": "word"}
        return kinds.get(content["model"]["type"], "byte-bpe" if by_bytes else "bpe")

    @property
    def size(self) -> int:
        """Size of the vocabulary; ids with gaps are refused."""
        ids = self.inner.get_vocab(with_added_tokens=True).values()
        if sorted(ids) != list(range(len(ids))):
            raise ModelError(f"{self.path}: its {len(ids):,} tokens have ids with gaps or repetitions")
        return len(ids)

    def fill(self, rows: int) -> Tokenizer:
        """The tokenizer with as many tokens as the embedding has rows; those beyond the vocabulary are unused."""
        size = self.size
        if size > rows or rows - size > MAX_FILLED:
            raise ModelError(
                f"{self.path}: the tokenizer has {size:,} tokens, and the embedding {rows:,} rows; they are not of one "
                "model"
            )
        inner = tokenizers.Tokenizer.from_str(self.inner.to_str())
        unused = [AddedToken(f"<|unused-{i}|>", special=True, normalized=False) for i in range(size, rows)]
        inner.add_special_tokens(unused)
        if all(inner.token_to_id(name) is not None for _, name in (SOS, EOS)):  # BERT's: its own template fits
            return self._finish(inner)
        end = self.end or self.begin or str(inner.id_to_token(0))  # the first GPT has neither, and its texts never end
        begin = self.begin or end
        names = {name: inner.token_to_id(name) for name in (begin, end)}
        for name, id in names.items():
            if id is None:
                raise ModelError(f"{self.path}: the special token {name!r} of its config is not in the vocabulary")
        inner.post_processor = processors.TemplateProcessing(f"{begin} $A {end}", None, list(names.items()))
        return self._finish(inner)

    def _finish(self, inner: tokenizers.Tokenizer) -> Tokenizer:
        try:
            return Tokenizer(inner.to_str())
        except ModelError as error:
            raise ModelError(f"{self.path}: {error}") from None

    def notes(self, rows: int) -> list[str]:
        """What the user should know about the vocabulary."""
        unused = rows - self.size
        rows_left = [f"{unused:,} rows of the embedding have no token; they are kept as unused tokens"]
        return [*self.remarks, *(rows_left if unused else [])]


def find_file(folder: Path) -> Path:
    """The file of a folder's tokenizer."""
    for name in ("tokenizer.json", "vocab.txt"):
        if (folder / name).is_file():
            return folder / name
    if pair := find_byte_bpe(folder):
        return pair[0]
    if (folder / SENTENCEPIECE).is_file():
        return folder / SENTENCEPIECE
    others = sorted(file.name for file in folder.glob("*") if file.suffix == ".model")
    if others:
        raise InputError(
            f"{folder}: the ids of {others[0]} may not be those of the model; write it as a tokenizer.json beside it: "
            "AutoTokenizer.from_pretrained(FOLDER).save_pretrained(FOLDER) in transformers"
        )
    raise InputError(
        f"{folder}: expected a tokenizer.json, vocab.json and merges.txt, vocab.txt or {SENTENCEPIECE}; found none"
    )


def read_tokenizer(path: Path, lowercase: bool) -> tokenizers.Tokenizer:
    """The tokenizer of a file."""
    if path.name == SENTENCEPIECE:
        return own_tokenizer(SentencePieceModel.read(path))
    if path.name != "tokenizer.json":
        pair = find_byte_bpe(path.parent)
        own = Tokenizer.from_byte_bpe(*pair) if pair else Tokenizer.from_wordpiece(path, lowercase)
        return tokenizers.Tokenizer.from_str(own.json)
    try:
        return tokenizers.Tokenizer.from_str(read_bounded(path, MAX_SIZE).decode())
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror or error})") from error
    except Exception as error:  # the library raises nothing narrower
        raise ModelError(f"{path}: expected the JSON of a tokenizer: {error}") from None


def token_name(found: Any) -> str | None:
    """The name of a special token, which stands alone or as the content of an object.

    >>> token_name({"content": "<s>"}), token_name("</s>"), token_name(None)
    ('<s>', '</s>', None)
    """
    name = found.get("content") if isinstance(found, dict) else found
    return name if isinstance(name, str) and name else None


def chatml_system(template: Any) -> str | None:
    """The default system message of a chat template in ChatML, which is recognized and not run; None for other formats.

    >>> chatml_system("{{ '<|im_start|>system\\nBe kind.<|im_end|>\\n' }}{{ '<|im_start|>' + message['role'] }}")
    'Be kind.'
    """
    if not isinstance(template, str) or CHAT_START not in template or "message['role']" not in template:
        return None
    found = SYSTEM.search(template)
    return found[1] if found else ""


def _read_template(folder: Path) -> str | None:
    try:
        return read_bounded(folder / "chat_template.jinja", MAX_SIZE).decode(errors="replace")
    except OSError:
        return None


def token_of_id(inner: tokenizers.Tokenizer, id: Any) -> str | None:
    """The token of an id in a config, or of the first of several."""
    first = id[0] if isinstance(id, list) and id else id
    return inner.id_to_token(first) if type(first) is int and first >= 0 else None
