"""Tokenizers, BPE-dropout, word vocabularies and word vectors."""

from __future__ import annotations

from regard.text.bpe_dropout import BPEDropout
from regard.text.tokenizer import Encoded, Tokenizer
from regard.text.tokenizer_training import TokenizerConfig

__all__ = ["BPEDropout", "Encoded", "Tokenizer", "TokenizerConfig"]
