"""Filling of masks: the most probable tokens at each [MASK] of a text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import torch

from regard.device import module_device
from regard.errors import LineError
from regard.plurals import count_noun
from regard.sequence import Tokens
from regard.tasks.base import check_lines, length_batches
from regard.tasks.fill.masking import word_starts
from regard.text import Tokenizer
from regard.text.token_rows import NOT_TEXT, tokenizer_strings
from regard.text.tokenizer_training import MASK as MASKS
from regard.text.tokenizer_training import SPECIAL
from regard.trace import tap, trace_context, tracing

MASK, SEP = "[MASK]", "[SEP]"
SIGN = re.compile(r"\[(?:MASK|SEP)\]")
LIKE_MASK = re.compile(r"(?i:\[\s*mask\s*\]|<\s*mask\s*>)|\bMASK\b|_{2,}")
"""what looks like a mask and is none"""
MAX_ROWS = 64
"""texts per batch, at most"""
AXES = "batch mask:masks vocabulary"


@dataclass(frozen=True)
class Candidate:
    """A token for a mask and its probability; "##" before a token that continues the word before it."""

    token: str
    probability: float


@dataclass(frozen=True)
class FilledText:
    """A text whose masks are filled."""

    text: str
    """the text with the most probable token at each mask"""
    masks: list[list[Candidate]] = field(default_factory=list)
    """candidates of each mask, the most probable first"""
    unknown: int = 0
    """tokens of the text that are not in the vocabulary, and were read as [UNK]"""


@dataclass(frozen=True)
class MaskedText:
    """A text with masks, as ids."""

    parts: list[str]
    """what stands around the masks and [SEP], in order"""
    signs: list[str]
    """the masks and [SEP] between the parts"""
    ids: list[int]
    segments: list[int]
    masks: list[int]
    """positions of the masks in `ids`"""


@dataclass(frozen=True)
class MaskFiller:
    """A masked language model with its tokenizer."""

    model: Any
    """a BertPretraining"""
    tokenizer: Tokenizer
    limit: int | None = None
    """most tokens of a text, special ones included; None: any number"""
    reads_segments: bool = False
    tokens: int = 4096
    """positions per batch, padding included"""

    @cached_property
    def token_texts(self) -> list[str]:
        """Each token as it is shown: without the space that begins a word, "##" before one that continues a word."""
        strings, starts = tokenizer_strings(self.tokenizer).strings, word_starts(self.tokenizer)
        has_words = any(string.startswith(" ") and len(string) > 1 for string in strings)
        if not has_words:  # characters
            return list(self.tokenizer.vocabulary)
        special = [
            self.tokenizer.vocabulary[i] if string in (*SPECIAL, *MASKS) else "" for i, string in enumerate(strings)
        ]
        pairs = zip(special, strings, starts, strict=True)
        return [
            name or (text[1:] or text if first else f"##{text.removeprefix(NOT_TEXT)}") for name, text, first in pairs
        ]

    def encode(self, line: str, number: int = 1) -> MaskedText:
        """A text with masks as [CLS] first [SEP] second [SEP]; an empty line has no ids.

        Raises LineError if there is no mask, if a segment is empty, or if the text is too long.
        """
        parts = [" ".join(part.split()) for part in SIGN.split(line)]
        signs: list[str] = SIGN.findall(line)
        if not any(parts) and not signs:
            return MaskedText(parts, signs, [], [], [])
        self.check_signs(signs, line, number)
        rows = self.tokenizer.encode_batch(parts)
        ids, segments, masks = [self.tokenizer.sos], [0], list[int]()
        for row, sign in zip(rows, [*signs, SEP], strict=True):
            segment = segments[-1] + (ids[-1] == self.tokenizer.eos and len(ids) > 1)
            ids += row
            if sign == MASK:
                masks.append(len(ids))
            ids.append(self.tokenizer.eos if sign == SEP else self.tokenizer.mask or 0)
            segments += [segment] * (len(ids) - len(segments))
        if self.limit is not None and len(ids) > self.limit:
            raise LineError(
                f"line {number}: the text has {len(ids)} tokens, [CLS] and [SEP] included, and this model reads at "
                f"most {self.limit} (task.length); shorten it around its masks",
                number,
            )
        return MaskedText(parts, signs, ids, segments, masks)

    def check_signs(self, signs: Sequence[str], line: str, number: int) -> None:
        """Refuse a text without a mask, or with more segments than two."""
        if MASK not in signs:
            found = LIKE_MASK.search(line)
            instead = f', found "{found[0]}"' if found else ""
            raise LineError(f"line {number}: there is no {MASK} to fill{instead}; write {MASK} for each word", number)
        if signs.count(SEP) > 1:
            found_text = count_noun(signs.count(SEP) + 1, "segment")
            raise LineError(
                f"line {number}: expected one text, or two with {SEP} between them, found {found_text}", number
            )

    def fill(self, lines: Sequence[str], first_line: int = 1, k: int = 5) -> list[FilledText]:
        """The texts with their masks filled, in order; an empty line stays empty."""
        check_lines(lines, first_line)
        texts = [self.encode(line, number) for number, line in enumerate(lines, first_line)]
        return self.fill_ids(texts, first_line, k)

    @torch.no_grad()
    def fill_ids(self, texts: Sequence[MaskedText], first_line: int = 1, k: int = 5) -> list[FilledText]:
        """Texts as ids with their masks filled, in order; one without ids stays empty."""
        found = [FilledText("") for _ in texts]
        for rows in length_batches([len(text.ids) for text in texts], self.tokens, MAX_ROWS):
            for i, probs_MV in zip(rows, self.probabilities([texts[i] for i in rows]), strict=True):
                if not bool(probs_MV.isfinite().all()):
                    number = first_line + i
                    raise LineError(f"line {number}: the model's output is not a number", number)
                best = probs_MV.topk(min(k, probs_MV.shape[1]))
                found[i] = self.filled_text(texts[i], best.indices.tolist(), best.values.tolist())
        return found

    def probabilities(self, texts: Sequence[MaskedText]) -> list[torch.Tensor]:
        """Probabilities over the vocabulary at the masks of each text, (M, V)."""
        batch = Tokens.pad([text.ids for text in texts])
        segments = Tokens.pad([text.segments for text in texts]).data if self.reads_segments else None
        source = Tokens(batch.data, batch.lengths, batch.ragged, segments).to(module_device(self.model))
        words = [self.tokenizer.tokens(text.ids) for text in texts] if tracing() else []
        with trace_context(source=words):
            states_BLD = self.model.encoder(source).states.data
            places = [torch.tensor(text.masks, device=states_BLD.device) for text in texts]
            outs = [self.model.readout(x_LD.index_select(0, at)) for x_LD, at in zip(states_BLD, places, strict=True)]
        masks = tuple(f"{MASK} {number}" for number in range(1, len(texts[0].masks) + 1))
        with trace_context(source=words, masks=masks, candidates="mask", vocabulary="source"):
            outs[0] = tap(self.model, "logits", outs[0][None], AXES)[0]
        return [out_MV.cpu().double().softmax(-1) for out_MV in outs]

    def filled_text(self, text: MaskedText, ids: list[list[int]], probabilities: list[list[float]]) -> FilledText:
        """The text with the best token at each mask, and all candidates."""
        masks = [
            [Candidate(self.token_texts[i], p) for i, p in zip(*pair, strict=True)]
            for pair in zip(ids, probabilities, strict=True)
        ]
        best, filled = iter(row[0].token for row in masks), text.parts[0]
        for sign, part in zip(text.signs, text.parts[1:], strict=True):
            token = next(best) if sign == MASK else sign
            filled = join_words(join_words(filled, token), part)
        return FilledText(filled, masks, text.ids.count(self.tokenizer.unk))


def join_words(before: str, after: str) -> str:
    """Two parts of a text with a space between them, unless the second continues a word or begins with a sign.

    >>> join_words("Let's", "make"), join_words("make", "##s"), join_words("chicken", "! [SEP]")
    ("Let's make", 'makes', 'chicken! [SEP]')
    """
    if after.startswith("##") and len(after) > 2:
        return before + after[2:]
    return (
        before + after if not (before and after) or re.match(r"[,.;:!?…)\]}’'”](?!SEP)", after) else f"{before} {after}"
    )
