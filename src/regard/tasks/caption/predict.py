"""Captions by a trained model: images in, captions out, in the same order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import torch

from regard.decode import DecodeConfig, Hypothesis, search
from regard.look.image_overlay import cell_grid
from regard.models.base import EncoderDecoder
from regard.sequence import Images, Tokens
from regard.tasks.base import tap_output
from regard.tasks.classify.images import ImageInput
from regard.tasks.decoded_text import DecodedText, different_texts
from regard.text import Tokenizer
from regard.trace import trace_context, tracing, without_recording

ROWS = 64
"""images decoded at once"""


class Caption(DecodedText):
    """One hypothesis of a search as a caption."""


EMPTY = Caption("", 0.0, 0.0, (), True)
"""caption of an empty line"""


@dataclass(frozen=True)
class Captioner:
    """A model with its image encoder, its vocabulary and the settings of the search."""

    model: EncoderDecoder
    image_input: ImageInput
    tokenizer: Tokenizer
    config: DecodeConfig
    max_positions: int | None = None
    """the model's position limit, if it has one: captions are cut there"""

    def caption(self, images: Sequence[str], first_line: int = 1) -> tuple[list[list[Caption]], list[str]]:
        """The n best captions of each image, in order, and a warning for each; an empty name has an empty caption."""
        encoded = self.image_input.encode(images, first_line)
        found = [[EMPTY] for _ in images]
        named = [i for i, one in enumerate(encoded) if len(one.row)]
        lines = [f"line {first_line + i}" for i in named]
        for i, captions in zip(named, self.caption_pixels([encoded[i].row for i in named], lines), strict=True):
            found[i] = captions
        return found, [one.warning for one in encoded]

    def caption_pixels(self, rows: Sequence[object], where: Sequence[str] = ()) -> list[list[Caption]]:
        """The n best captions of images whose pixels were read already; `where`: their places, for errors."""
        found: list[list[Caption]] = []
        for start in range(0, len(rows), ROWS):
            for hypotheses in self.decode(rows[start : start + ROWS]):
                place = where[len(found)] if where else f"image {len(found) + 1}"
                found.append(different_texts(hypotheses, self._to_caption, place))
        return found

    def decode(self, rows: Sequence[object]) -> list[list[Hypothesis]]:
        """The search over a batch of images."""
        source = self.image_input.collate(rows)
        prompt = Tokens.full(torch.full((len(rows), 1), self.tokenizer.sos))
        limits = self.config.limits(source)
        limits = limits if self.max_positions is None else limits.clamp(max=self.max_positions)
        words = [self.cell_names] * len(rows) if tracing() else []
        with trace_context(source=words, **(self.image_input.trace_facts() if tracing() else {})):
            found = search(
                self.model, source, prompt, self.config.strategy(self.tokenizer.eos), limits, self.config.exact
            )
        if tracing():
            tap_output(self.model, self.tokenizer, [hypotheses[0].tokens for hypotheses in found])
        return found

    @cached_property
    def cell_names(self) -> list[str]:
        """Row and column of each position of the encoder's memory, from 1; [CLS] before them."""
        shape = self.image_input.shape
        device = next(self.model.parameters()).device
        image = Images(torch.zeros(1, shape.channels, shape.height, shape.width, device=device))
        with torch.inference_mode(), without_recording():
            positions = self.model.encoder(image).states.data.shape[1]
        grid = cell_grid(positions, shape.height, shape.width)
        if grid is None:
            return [str(i + 1) for i in range(positions)]
        before, rows, columns = grid
        return ["[CLS]"] * before + [f"{r + 1},{c + 1}" for r in range(rows) for c in range(columns)]

    def greedy(self) -> Captioner:
        """The same with greedy search: fast enough for validation."""
        return replace(self, config=DecodeConfig(beam=1, max_extra_tokens=self.config.max_extra_tokens))

    def _to_caption(self, hypothesis: Hypothesis) -> Caption:
        return Caption.from_hypothesis(hypothesis, self.tokenizer)
