"""A mix of corpora, `data.kind = "mix"`: parts with weights, tags and directions for one translation model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from regard.data.phrases.corpus import Phrases
from regard.data.splits import SPLITS
from regard.data.tatoeba import Tatoeba
from regard.errors import ConfigError
from regard.progress import DownloadProgress
from regard.tasks.translate.sources import Corpus, ImportedPairs, PairFiles, PairJsonl, PairTsv, describe_corpus
from regard.tasks.translate.synthetic_record import SyntheticRecord
from regard.tasks.translate.tags import SourceTags, check_tag

MAX_WEIGHT = 1000.0


@dataclass(frozen=True, kw_only=True)
class MixPart:
    """A corpus in a mix."""

    corpus: PairFiles | PairTsv | PairJsonl | Tatoeba | Phrases
    """the sentence pairs: kind and settings as of [data] for one corpus alone"""
    weight: float = 1.0
    """how often an epoch has each of its pairs: 2 is twice, 0.5 is half of the pairs, the others in the next epoch"""
    tag: str | None = None
    """token that is put before each source, in angle brackets: "<2de>" for a language, "<news>" for a kind of text"""
    share_tag: bool = False
    """the tag may be that of another part too, as of two corpora of one direction"""
    reverse: bool = False
    """translate from the corpus's target to its source"""
    train_only: bool = False
    """nothing of it is held out for validation, and its valid and test splits are not used: for back-translated text"""

    def __post_init__(self) -> None:
        if not 0 < self.weight <= MAX_WEIGHT:
            raise ConfigError(
                f"weight = {self.weight} must be above 0 and at most {MAX_WEIGHT:.0f}; leave out a part instead"
            )
        if self.tag is not None:
            check_tag(self.tag)
        elif self.share_tag:
            raise ConfigError("share_tag = true needs a tag to share")

    def splits(self) -> tuple[str, ...]:
        """Names of the splits that are used; valid is held out if the corpus has none."""
        used = {"train"} if self.train_only else {"train", "valid", *self.corpus.splits()}
        return tuple(split for split in SPLITS if split in used)

    def credit(self) -> str:
        """Origin and license, how it is used, and by which model it was back-translated."""
        uses = [f"weight {self.weight:g}", f"tag {self.tag}" if self.tag else "no tag"]
        uses += ["reversed"] if self.reverse else []
        uses += ["for training only"] if self.train_only else []
        made = SyntheticRecord.find(self.corpus.train) if isinstance(self.corpus, PairTsv) else None
        return f"{describe_corpus(self.corpus)} ({', '.join(uses)}{'; ' + made.credit() if made else ''})"


@dataclass(frozen=True, kw_only=True)
class MixedPairs:
    """Several corpora for one model; no sentence that is held out in one part is trained on in any."""

    kind: Literal["mix"] = "mix"
    """several corpora with weights, tags and directions"""
    parts: tuple[MixPart, ...]
    """the corpora, as [[data.parts]]: corpus, weight, tag, share_tag, reverse and train_only"""

    def __post_init__(self) -> None:
        if not self.parts:
            raise ConfigError("parts: expected at least one [[data.parts]] with a corpus, found none")
        if all(part.train_only for part in self.parts):
            raise ConfigError("parts: every part is train_only, so that there is nothing to validate on")
        shared = {part.tag for part in self.parts if part.share_tag}
        seen: dict[str, int] = {}
        for number, part in enumerate(self.parts):
            if part.tag in seen and part.tag not in shared:
                raise ConfigError(
                    f'parts[{number}].tag: "{part.tag}" is the tag of parts[{seen[part.tag]}] already; choose another, '
                    "or set share_tag = true if nothing is to distinguish them"
                )
            if part.tag is not None:
                seen.setdefault(part.tag, number)

    @property
    def tags(self) -> SourceTags:
        """The tags of all parts."""
        names = dict.fromkeys(part.tag for part in self.parts if part.tag is not None)
        return SourceTags(tuple(names), any(part.tag is None for part in self.parts))

    @property
    def weights(self) -> tuple[float, ...]:
        """The weights of the parts."""
        return tuple(part.weight for part in self.parts)

    def splits(self) -> tuple[str, ...]:
        """Names of the splits that some part has."""
        return tuple(split for split in SPLITS if any(split in part.splits() for part in self.parts))

    def fetch(self, progress: DownloadProgress | None = None) -> None:
        """Download what is downloaded."""
        for part in self.parts:
            part.corpus.fetch(progress)

    def credit(self) -> str:
        """The parts with origin and license, for the model card."""
        parts = "".join(f"\n  {number}. {part.credit()}" for number, part in enumerate(self.parts, 1))
        return f"a mix of {len(self.parts)} corpora:{parts}" if len(self.parts) > 1 else self.parts[0].credit()


TranslateData = Corpus | MixedPairs | ImportedPairs
"""Choices of data.kind"""
