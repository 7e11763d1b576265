"""Settings of the fill task."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from regard.config import check_at_least, check_share
from regard.errors import ConfigError

SPECIAL = 2
"""special tokens around a text, [CLS] and [SEP]; a second segment has one more [SEP]"""


@dataclass(frozen=True)
class FillConfig:
    """Masked language modeling (Devlin et al. 2019): some tokens are hidden, and predicted from those around them."""

    kind: Literal["fill"] = "fill"
    """fill the masks of a text"""
    length: int = 128
    """most tokens of a sequence, [CLS] and [SEP] included; it is filled with consecutive sentences of a text"""
    mask_share: float = 0.15
    """share of the tokens that are predicted, at least one of each sequence; drawn anew in each epoch"""
    mask_token_share: float = 0.8
    """share of the predicted tokens that are replaced by [MASK]"""
    random_token_share: float = 0.1
    """share of the predicted tokens that are replaced by a random token; the rest stay as they are"""
    whole_words: bool = False
    """whole-word masking: all pieces of a word are predicted, or none"""
    next_sentence: bool = False
    """next-sentence prediction: sequences of two segments; in half of them the second is taken from elsewhere"""
    samples: int = 4
    """validation sequences that are written with the filled masks to samples.jsonl"""

    def __post_init__(self) -> None:
        check_at_least(self, 8, "length")
        check_at_least(self, 0, "samples")
        check_share(self, "mask_share")
        if not self.mask_share:
            raise ConfigError("mask_share = 0.0: nothing would be predicted; the paper's is 0.15")
        shares = self.mask_token_share, self.random_token_share
        if min(shares) < 0 or not sum(shares) <= 1:
            raise ConfigError(
                f"mask_token_share = {self.mask_token_share} and random_token_share = {self.random_token_share} are "
                "shares of the predicted tokens: at least 0, and together at most 1"
            )

    @property
    def room(self) -> int:
        """Most tokens of the text in a sequence."""
        return self.length - SPECIAL - self.next_sentence


def check_encoder(model: Any, task: FillConfig) -> None:
    """Refuse encoders that cannot see what is around a mask, that have too few positions, or no segments.

    >>> from regard.models.recurrent import RecurrentConfig
    >>> check_encoder(RecurrentConfig(bidirectional=False), FillConfig())
    Traceback (most recent call last):
    regard.errors.ConfigError: model.kind = "recurrent" reads one side of a mask only, and fill needs both; use ...
    """
    if model.bidirectional_lm:
        raise ConfigError(
            f'model.kind = "{model.kind}" predicts each word from one side of it, and fill needs both; use bert'
        )
    if model.receptive_field == "left":
        raise ConfigError(
            f'model.kind = "{model.kind}" reads one side of a mask only, and fill needs both; use '
            "model.bidirectional=true, or bert"
        )
    if model.receptive_field == "position":
        raise ConfigError(
            f'model.kind = "{model.kind}" reads each token alone, and a mask says nothing about its word; use bert'
        )
    if model.position_limit is not None and model.position_limit < task.length:
        raise ConfigError(
            f"task.length = {task.length} is more than model.max_positions = {model.position_limit}; make them equal"
        )
    if task.next_sentence and getattr(model, "segments", 1) < 2:
        raise ConfigError(
            f'task.next_sentence = true needs two segments, and model.kind = "{model.kind}" does not tell them apart; '
            "use bert with model.segments = 2"
        )
