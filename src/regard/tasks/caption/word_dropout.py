"""Word dropout of a decoder: Bowman et al. 2016, "Generating Sentences from a Continuous Space".

A decoder that sees its last word learns which words never follow it, and then trusts that more than an image with a
combination that it never saw. With some words hidden in training it must look.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from regard.objective import Batch, NextToken
from regard.sequence import UNK, Tokens


@dataclass(frozen=True)
class HiddenWords(NextToken):
    """Next-token prediction in which a share of the words that the decoder reads is <UNK>, in training only."""

    share: float = 0.0
    unk: int = UNK

    def features(self, model: Any, batch: Batch, hidden_state: Any) -> tuple[Mapping[str, Tensor], Any]:
        read: Tokens = batch.target.shift()[0]
        if self.share and model.training:
            hidden_BT = torch.rand(read.data.shape, device=read.data.device) < self.share
            hidden_BT[:, 0] = False  # <SOS>
            read = replace(read, data=read.data.masked_fill(hidden_BT, self.unk))
        return {"next": model(batch.source, read)}, None
