"""Chains that fold, made by a rule of our own: a letter a link, and the angle by which the chain turns at each.

How far a chain turns at a link depends on the link and on its two neighbours; to which side, on how many hinges (P)
there were since its beginning. So a window of three links tells how far, and only what remembers tells to which side.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from regard.data.splits import SPLITS
from regard.errors import ConfigError
from regard.tasks.label.sources import Columns, Sentence

LINKS = "AEGHKLPS"
HINGE = "P"
OWN = {"A": 20.0, "E": 65.0, "G": 100.0, "H": 140.0, "K": 35.0, "L": 85.0, "P": 160.0, "S": 120.0}
"""degrees by which a chain turns at a link that has no neighbours"""
PUSH = {"A": -15.0, "E": 10.0, "G": 0.0, "H": 20.0, "K": -5.0, "L": 15.0, "P": -20.0, "S": 5.0}
"""and by how much more beside each of these"""


@dataclass(frozen=True, kw_only=True)
class Chains:
    """Chains of links with the angle at each link, made on the spot.

    >>> one = next(Chains(count=1).sentences("train"))
    >>> "".join(one.words[:6]), one.tags[:3]
    ('PEGAPS', ('172.9', '-57.0', '-97.7'))
    """

    kind: Literal["chains"] = "chains"
    """chains that fold, made by a rule"""
    count: int = 4000
    """chains to learn from; a tenth as many more to validate on, and again to score on"""
    shortest: int = 8
    """links of the shortest chain"""
    longest: int = 40
    """links of the longest chain"""
    noise: float = 3.0
    """standard deviation of what no rule tells, in degrees"""
    seed: int = 1
    """another seed, other chains"""

    def __post_init__(self) -> None:
        if self.count < 1 or not 1 <= self.shortest <= self.longest:
            raise ConfigError(
                f"count = {self.count} and shortest = {self.shortest} must be at least 1, and longest = {self.longest} "
                "no less than shortest"
            )
        if not self.noise >= 0:
            raise ConfigError(f"noise = {self.noise} must be at least 0")

    @property
    def unit(self) -> Literal["character"]:
        return "character"

    @property
    def answer(self) -> Literal["angles"]:
        return "angles"

    def splits(self) -> tuple[str, ...]:
        """train, valid and test."""
        return SPLITS

    def sentences(self, split: str) -> Iterator[Sentence]:
        """The chains of a split, each a pure function of seed, split and number."""
        if split not in SPLITS:
            raise ConfigError(f'there is no split "{split}" (splits: {", ".join(SPLITS)})')
        for number in range(self.count if split == "train" else max(1, self.count // 10)):
            draw = random.Random(f"{self.seed} {split} {number}")
            links = "".join(draw.choices(LINKS, k=draw.randint(self.shortest, self.longest)))
            turned = [wrapped(angle + draw.gauss(0, self.noise)) for angle in angles(links)]
            tags = tuple(f"{angle:.1f}" for angle in turned)
            yield Sentence(tuple(links), tags, f"{split} chains", (number + 1,) * len(links))

    def scored_on(self, path: Path) -> Columns:
        """Chains of one's own, a link a line with its angle beside it."""
        return Columns(train=str(path), test=str(path), unit="character", answer="angles")

    def attribution(self) -> str:
        """Nobody's."""
        return "made by a rule of regard's own; no licence is needed"


def angles(links: str) -> list[float]:
    """The angle at each link, without noise.

    >>> angles("AGA"), angles("PAG")
    ([20.0, 85.0, 20.0], [152.5, -10.0, -92.5])
    """
    found, side = [], 1.0
    for i, link in enumerate(links):
        before, after = (PUSH[links[j]] if 0 <= j < len(links) else 0.0 for j in (i - 1, i + 1))
        found.append(side * (OWN[link] + before / 2 + after / 2))
        side = -side if link == HINGE else side
    return found


def wrapped(angle: float) -> float:
    """An angle in degrees from -180 to below 180.

    >>> wrapped(190.0), wrapped(-10.0)
    (-170.0, -10.0)
    """
    return (angle + 180) % 360 - 180
