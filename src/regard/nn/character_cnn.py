"""Character CNN: Kim et al. 2016, "Character-Aware Neural Language Models"; Jozefowicz et al. 2016.

Convolutions of several widths over the characters of a word, max over time, highway layers, and a projection.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.nn.highway import Highway
from regard.nn.spelling import CHARACTERS, PAD


class CharacterCNN(nn.Module):
    """Word vectors from characters. Reads word ids (B, L), whose spellings it knows, or spellings (B, L, C).

    Each distinct word of a batch is computed once.

    >>> from regard.nn.spelling import spell, spelling_table
    >>> words = CharacterCNN(spelling_table(["<PAD>", "bank", "banks"], 3), 4, (3, 5), 1, 6)
    >>> torch.allclose(words(torch.tensor([[1]])), words(torch.tensor([[spell("bank")]])), atol=1e-6)
    True
    """

    def __init__(
        self, spellings_VC: Tensor, characters: int, filters: Sequence[int], highways: int, width: int
    ) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.rand(CHARACTERS, characters) * 2 - 1)
        self.kernels = [kernel for kernel, count in enumerate(filters, 1) if count]
        self.convolutions = nn.ModuleList(nn.Conv1d(characters, filters[k - 1], k) for k in self.kernels)
        self.highways = nn.Sequential(*(Highway(sum(filters)) for _ in range(highways)))
        self.project, self.size, self.width = nn.Linear(sum(filters), width), len(spellings_VC), width
        self.register_buffer("spellings", spellings_VC, persistent=False)

    def forward(self, ids: Tensor) -> Tensor:
        if ids.is_meta:
            return self.table.new_empty(*ids.shape[:2], self.project.out_features)
        if not ids.numel():
            return self.table.new_zeros(*ids.shape[:2], self.project.out_features)
        if ids.ndim == 3:
            words_UC, at_N = ids.flatten(0, 1).unique(dim=0, return_inverse=True)
        else:
            words_U, at_N = ids.flatten().unique(return_inverse=True)
            words_UC = self.get_buffer("spellings")[words_U]
        return self.read(words_UC.long())[at_N].unflatten(0, ids.shape[:2])

    def read(self, characters_NC: Tensor) -> Tensor:
        """(N, width) from the spellings of N words, padded on the right."""
        longest = int((characters_NC != PAD).sum(1).max().clamp(min=1))
        characters_NC = characters_NC[:, :longest]
        real_NC = characters_NC != PAD
        x_NDC = (F.embedding(characters_NC, self.table) * real_NC[..., None]).transpose(1, 2)
        found = []
        for kernel, convolution in zip(self.kernels, self.convolutions, strict=True):
            # a window may extend past the last character, but not begin there: padding changes nothing
            out_NFC = convolution(F.pad(x_NDC, (0, kernel - 1))).relu()
            found.append(out_NFC.masked_fill(~real_NC[:, None], 0.0).amax(2))
        return self.project(self.highways(torch.cat(found, -1)))
