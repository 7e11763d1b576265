"""Settings of the generate task."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from regard.config import check_at_least
from regard.decode import DecodeConfig


@dataclass(frozen=True)
class GenerateConfig:
    """Language modeling: predict the next token, and generate by sampling."""

    kind: Literal["generate"] = "generate"
    """continue a prompt"""
    window: int = 64
    """tokens per update of truncated backpropagation through time. A batch is train.batch_tokens / window streams; each
    continues where its previous window ended, from the model's hidden state if it has one"""
    order: Literal["stream", "shuffled"] = "stream"
    """order of the training windows: streams that run through the text, or all windows shuffled, each read from a fresh
    state: better for models without a hidden state (gpt, llama)"""
    packing: Literal["blocks", "documents"] = "blocks"
    """how texts that end fill the windows: blocks of the running text, where a token also attends to earlier texts; or
    packed documents, where it attends to its own text only, with positions from 0 (gpt, llama)"""
    prompt: str = ""
    """prompt of the samples at validation; empty: the beginning of the validation text"""
    samples: int = 1
    """samples generated at each validation, written to samples.jsonl; 0: none"""
    length: int = 200
    """tokens per sample, and per generated text if no length is given"""

    def __post_init__(self) -> None:
        check_at_least(self, 1, "window", "length")
        check_at_least(self, 0, "samples")


@dataclass(frozen=True)
class GenerateOptions:
    """What one call of generate asks for: the decoding settings, and what else decides its texts."""

    decode: DecodeConfig = DecodeConfig(sample=True, beam=1)
    stop: tuple[str, ...] = ()
    """stop strings: a text ends before the first of them"""
    sliding_window: bool = False
    """read the last positions of a prompt that is longer than the context, instead of refusing it"""
    condition: Any = None
    """the condition of the text: the name of a class, or numbers; None: there is none"""
    chat: bool = False
    """the prompt is a message, to be answered in the chat format of the model"""
