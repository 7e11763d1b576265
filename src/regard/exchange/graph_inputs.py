"""Inputs of exported graphs: token ids with an attention mask, pixels, or table rows; ports and random examples."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from regard.exchange.graph import Port
from regard.sequence import Clips, Images, Rows, Tokens


class GraphInput(ABC):
    """What a model reads, as plain tensors."""

    @property
    @abstractmethod
    def ports(self) -> tuple[Port, ...]:
        """The inputs of a graph."""

    @abstractmethod
    def draw(self, lengths: Sequence[int], seed: int = 0) -> tuple[Tensor, ...]:
        """Random inputs, one row for each length; where inputs have no length, so many rows."""

    @abstractmethod
    def read(self, *tensors: Tensor) -> Rows:
        """A batch of the model, from the inputs of a graph."""

    @abstractmethod
    def read_row(self, tensors: Sequence[Tensor], row: int) -> Rows:
        """One row of the inputs as a batch of its own, without padding."""


@dataclass(frozen=True)
class TokenInput(GraphInput):
    """Token ids, padded on the right, and the mask of the padding."""

    vocabulary: int
    axis: str = "length"
    """name of the axis of positions"""
    segments: int = 0
    """segments that are told apart by token_type_ids; 0: the model reads none"""
    characters: int = 0
    """number of character ids, if the ids of a word's characters follow the word's own; 0: words or tokens alone"""

    @property
    def ports(self) -> tuple[Port, ...]:
        axes: tuple[str, ...] = ("batch", self.axis)
        meaning = "ids of tokens, padded on the right with any id"
        if self.characters:
            meaning = "id of each word, then of its characters, padded with 0 to the longest word (see vocab.json)"
        found = [
            Port("input_ids", (*axes, "1 + characters") if self.characters else axes, torch.long, meaning),
            Port("attention_mask", axes, torch.long, "1 at tokens, 0 at padding; at least one token per row"),
        ]
        if self.segments:
            found.append(Port("token_type_ids", axes, torch.long, "segment of each token, from 0"))
        return tuple(found)

    def draw(self, lengths: Sequence[int], seed: int = 0) -> tuple[Tensor, ...]:
        generator, shape = torch.Generator().manual_seed(seed), (len(lengths), max(lengths))

        def integers(size: int, *more: int) -> Tensor:
            return torch.randint(size, (*shape, *more), generator=generator)

        ids = integers(self.vocabulary)
        if self.characters:
            ids = torch.cat([ids[..., None], integers(self.characters, 6)], -1)
        mask = (torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]).long()
        return (ids, mask, integers(self.segments)) if self.segments else (ids, mask)

    def read(self, *tensors: Tensor) -> Tokens:
        ids, mask, *segments = tensors
        for one in tensors[1:]:
            torch._check(one.shape[0] == ids.shape[0])
            torch._check(one.shape[1] == ids.shape[1])
        return Tokens(ids, mask.sum(1), segments=segments[0] if segments else None)

    def read_row(self, tensors: Sequence[Tensor], row: int) -> Tokens:
        length = int(tensors[1][row].sum())
        ids, _, *segments = (tensor[row : row + 1, :length] for tensor in tensors)
        return replace(Tokens.full(ids), segments=segments[0] if segments else None)


@dataclass(frozen=True)
class PixelInput(GraphInput):
    """Normalized pixels of images, or of clips."""

    channels: int
    height: int
    width: int
    frames: int = 0
    """frames of a clip; 0: single images"""

    @property
    def size(self) -> tuple[int, ...]:
        """Sizes of the axes of one image or clip."""
        return (*((self.frames,) if self.frames else ()), self.channels, self.height, self.width)

    @property
    def ports(self) -> tuple[Port, ...]:
        meaning = "(pixel x rescale_factor - image_mean) / image_std of each channel (preprocessor_config.json)"
        return (Port("pixel_values", ("batch", *self.size), torch.float32, meaning),)

    def draw(self, lengths: Sequence[int], seed: int = 0) -> tuple[Tensor, ...]:
        return (torch.randn(len(lengths), *self.size, generator=torch.Generator().manual_seed(seed)),)

    def read(self, *tensors: Tensor) -> Rows:
        return (Clips if self.frames else Images)(*tensors)

    def read_row(self, tensors: Sequence[Tensor], row: int) -> Rows:
        return self.read(tensors[0][row : row + 1])


@dataclass(frozen=True)
class RowInput(GraphInput):
    """Rows of a table: standardized numbers."""

    columns: int

    @property
    def ports(self) -> tuple[Port, ...]:
        meaning = "(value - mean) / scale of each column (see columns)"
        return (Port("features", ("batch", self.columns), torch.float32, meaning),)

    def draw(self, lengths: Sequence[int], seed: int = 0) -> tuple[Tensor, ...]:
        return (torch.randn(len(lengths), self.columns, generator=torch.Generator().manual_seed(seed)),)

    def read(self, *tensors: Tensor) -> Tokens:
        return Tokens.full(tensors[0][:, None])

    def read_row(self, tensors: Sequence[Tensor], row: int) -> Tokens:
        return self.read(tensors[0][row : row + 1])
