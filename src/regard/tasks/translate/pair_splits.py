"""Training, validation and test pairs of one corpus or of a mix: no sentence is trained on that is held out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from regard.data.splits import is_held_out, overlap
from regard.errors import DataError, InputError
from regard.tasks.translate.filters import drop_known
from regard.tasks.translate.mix import MixedPairs
from regard.tasks.translate.sources import VALID_SHARE, FilePairs, Pair, PairSource
from regard.tasks.translate.tags import SourceTags

MAX_SHARED = 20
"""Training pairs that are dropped for a sentence they share with validation; a more frequent one, such as "Yes.",
is dropped from validation instead"""


class PairSplits(ABC):
    """Sentence pairs of one or several parts, in splits."""

    @property
    @abstractmethod
    def parts(self) -> int:
        """Number of parts."""

    @property
    @abstractmethod
    def tags(self) -> SourceTags:
        """The tags of all parts."""

    @abstractmethod
    def part_pairs(self, part: int, split: str, counts: Counter[str] | None = None) -> Iterator[Pair]:
        """The pairs of a part, without tags; none if it has no such split. `counts` is updated with what is dropped."""

    @abstractmethod
    def tag(self, part: int) -> str | None:
        """The tag of a part."""

    @abstractmethod
    def has(self, part: int, split: str) -> bool:
        """Whether a part has a split."""

    @contextmanager
    def naming(self, part: int) -> Iterator[None]:
        """Errors about data inside the block name the part."""
        yield

    def pairs(self, split: str, counts: Counter[str] | None = None) -> Iterator[Pair]:
        """The pairs of all parts, without tags."""
        for part in range(self.parts):
            if self.has(part, split):
                with self.naming(part):
                    yield from self.part_pairs(part, split, counts)


@dataclass(frozen=True)
class CorpusSplits(PairSplits):
    """Splits of one corpus; without a valid split, a share of train is held out."""

    data: PairSource

    @property
    def parts(self) -> int:
        return 1

    @property
    def tags(self) -> SourceTags:
        return SourceTags()

    def tag(self, part: int) -> None:
        return None

    def has(self, part: int, split: str) -> bool:
        return split == "valid" or split in self.data.splits()

    def part_pairs(self, part: int, split: str, counts: Counter[str] | None = None) -> Iterator[Pair]:
        """A split of the corpus.

        The share is chosen by a hash of the source. A target that is in both parts is dropped from train, or from valid
        if it is too frequent for that (MAX_SHARED): so no sentence of either side is in both, up to case and final
        punctuation. The split depends on the pairs alone, not on their order.
        """
        if "valid" in self.data.splits() or split not in ("train", "valid"):
            yield from self.data.pairs(split)
            return
        counts, kept = Counter() if counts is None else counts, False
        known, reason = self._overlap[split], {"train": "also in validation", "valid": "also in training"}[split]
        for pair in drop_known(self.candidates(split), known, (1,), reason, counts):
            kept = True
            yield pair
        if not kept:
            raise DataError(
                f"each of the {counts[reason]:,} pairs of {split} has a target that is {reason}; name files for "
                "data.valid"
            )

    @cached_property
    def _overlap(self) -> Mapping[str, np.ndarray]:
        """Hashes of the targets that are in both parts: those to drop from train, and those to drop from valid."""
        targets = ((pair[1] for pair in self.candidates(split)) for split in ("valid", "train"))
        found, times = overlap(*targets)
        return {"train": found[times <= MAX_SHARED], "valid": found[times > MAX_SHARED]}

    def candidates(self, split: str) -> Iterator[Pair]:
        """The pairs whose source belongs to train, or to valid, before targets are compared."""
        read = kept = 0
        share = self.data.valid_share if isinstance(self.data, FilePairs) else VALID_SHARE
        for pair in self.data.pairs("train"):
            read += 1
            if is_held_out(pair[0], share) == (split == "valid"):
                kept += 1
                yield pair
        if not kept:
            raise DataError(
                f"none of the {read:,} pairs belongs to {split} if a share of {share} is held out for validation; "
                "name files for data.valid, or change data.valid_share"
            )


@dataclass(frozen=True)
class MixSplits(PairSplits):
    """Splits of a mix: no sentence of either side that a part holds out is trained on in any part.

    Training pairs with a sentence of a test split, on whichever side, are dropped; so are those with a sentence of a
    valid split, unless it is in more than MAX_SHARED training pairs: then it is dropped from validation instead.
    """

    mix: MixedPairs

    @property
    def parts(self) -> int:
        return len(self.mix.parts)

    @property
    def tags(self) -> SourceTags:
        return self.mix.tags

    def tag(self, part: int) -> str | None:
        return self.mix.parts[part].tag

    def has(self, part: int, split: str) -> bool:
        return split in self.mix.parts[part].splits()

    @contextmanager
    def naming(self, part: int) -> Iterator[None]:
        try:
            yield
        except (DataError, InputError) as error:
            if str(error).startswith("data.parts["):  # the part that was read is another one
                raise
            kind = InputError if isinstance(error, InputError) else DataError
            raise kind(f"data.parts[{part}]: {error}") from None

    def part_pairs(self, part: int, split: str, counts: Counter[str] | None = None) -> Iterator[Pair]:
        counts, kept = Counter() if counts is None else counts, False
        pairs = self._own_pairs(part, split, counts)
        reason = {"train": "also held out", "valid": "also in training"}.get(split)
        for pair in pairs if reason is None else drop_known(pairs, self._shared_hashes[split], (0, 1), reason, counts):
            kept = True
            yield pair
        if not kept and split == "train":
            raise DataError("each of its training pairs has a sentence that some part holds out; leave this part out")

    def _own_pairs(self, number: int, split: str, counts: Counter[str] | None = None) -> Iterator[Pair]:
        """The pairs of a part by itself, in the direction that it is used in."""
        part = self.mix.parts[number]
        if not self.has(number, split):
            return
        with self.naming(number):
            pairs = part.corpus.pairs(split) if part.train_only else self._corpora[number].part_pairs(0, split, counts)
            for source, target in pairs:
                yield (target, source) if part.reverse else (source, target)

    @cached_property
    def _corpora(self) -> Sequence[CorpusSplits]:
        return [CorpusSplits(part.corpus) for part in self.mix.parts]

    def _sentences(self, split: str) -> Iterator[str]:
        """The sentences of both sides of all parts."""
        for part in range(self.parts):
            for pair in self._own_pairs(part, split):
                yield from pair

    @cached_property
    def _shared_hashes(self) -> Mapping[str, np.ndarray]:
        """Hashes of the sentences that are trained on and held out: those to drop from train, and from valid."""
        tested, _ = overlap(self._sentences("test"), self._sentences("train"))
        found, times = overlap(self._sentences("valid"), self._sentences("train"))
        rare, frequent = found[times <= MAX_SHARED], found[times > MAX_SHARED]
        return {"train": np.union1d(tested, rare), "valid": np.setdiff1d(frequent, tested)}


def open_splits(data: PairSource | MixedPairs) -> CorpusSplits | MixSplits:
    """The splits of a recipe's data."""
    return MixSplits(data) if isinstance(data, MixedPairs) else CorpusSplits(data)
