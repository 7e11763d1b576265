"""Text and ids: tokenizers trained and loaded, one JSON file each, and BPE-dropout that obeys a seed."""

from __future__ import annotations

from regard.text.bpe_dropout import Dropout
from regard.text.kinds import TokenizerConfig
from regard.text.tokenizer import Encoded, Tokenizer

__all__ = ["Dropout", "Encoded", "Tokenizer", "TokenizerConfig"]
