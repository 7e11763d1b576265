"""Settings of the vectors task."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from regard.config import check_at_least
from regard.errors import ConfigError

SEGMENT = 128
"""consecutive words that context windows are cut from; the segments of a batch come from all parts of the text"""


@dataclass(frozen=True)
class VectorsConfig:
    """Word vectors by word2vec: skip-gram or CBOW with negative sampling."""

    kind: Literal["vectors"] = "vectors"
    """word vectors"""
    method: Literal["skipgram", "cbow"] = "skipgram"
    """skipgram: predict the context words from a word; cbow: predict a word from the mean of its context words"""
    window: int = 5
    """largest context window: words on either side"""
    negatives: int = 5
    """weight of the negative samples of each prediction, in words"""
    shared_negatives: int = 256
    """negative samples drawn per batch; all predictions share them, each with weight negatives / shared_negatives"""
    subsample: float = 1e-4
    """subsampling threshold: words with a larger share of the text are randomly left out; 0: none are"""
    sample_inputs: tuple[str, ...] = ()
    """words whose neighbors are shown at each validation; none: some frequent ones"""

    def __post_init__(self) -> None:
        check_at_least(self, 1, "window", "negatives", "shared_negatives")
        check_at_least(self, 0, "subsample")
        if self.window >= SEGMENT:
            raise ConfigError(
                f"window = {self.window} must be below {SEGMENT}, the number of words in a segment of the text"
            )
