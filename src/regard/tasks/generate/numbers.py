"""Series of real numbers: scaled by what training has seen, kept as bits, drawn one place after the other."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from regard.config import plain
from regard.data import Shards, ShardWriter
from regard.data.series import Numbers, Table, parse_numbers
from regard.decode import DecodeConfig, Rollout, decode
from regard.errors import ConfigError, DataError, ModelError
from regard.metrics import Score
from regard.models.base import EncoderDecoder
from regard.objective import Tell
from regard.sequence import Tokens
from regard.spaces import Gaussian
from regard.tasks.generate.modality import OPENING, Script
from regard.tasks.generate.predict import LONGEST, Writer
from regard.tasks.generate.prepare import COLUMN, nothing

FILE = "scale.json"


@dataclass(frozen=True)
class Scale:
    """What makes numbers like those of training have mean 0 and deviation 1, and back.

    >>> scale = Scale.of(Table(("load",), np.array([[1.0], [3.0]])))
    >>> scale.apply(np.array([[5.0]])), scale.undo(np.array([[3.0]]))
    (array([[3.]], dtype=float32), array([[5.]]))
    """

    names: tuple[str, ...]
    mean: tuple[float, ...]
    deviation: tuple[float, ...]

    @classmethod
    def of(cls, table: Table) -> Scale:
        """The scale of a table; a column that never changes keeps its size."""
        deviation = table.values.std(0)
        deviation[deviation == 0] = 1.0
        return cls(table.names, tuple(table.values.mean(0).tolist()), tuple(deviation.tolist()))

    def apply(self, values: np.ndarray) -> np.ndarray:
        return ((values - np.array(self.mean)) / np.array(self.deviation)).astype(np.float32)

    def undo(self, values: np.ndarray) -> np.ndarray:
        return values * np.array(self.deviation) + np.array(self.mean)

    def save(self, path: Path) -> None:
        """Write a JSON file."""
        path.write_text(json.dumps(plain(self), indent=1) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, path: Path) -> Scale:
        """What `save` wrote."""
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
            return cls(*(tuple(found[key]) for key in ("names", "mean", "deviation")))
        except (OSError, ValueError, KeyError, TypeError):
            raise ModelError(f"{path} cannot be read: expected names, mean and deviation of each column") from None


@dataclass(frozen=True)
class NumberPreparation:
    """Files of numbers in; their scale, and the scaled numbers of each split, out.

    >>> NumberPreparation(Numbers(train="a.csv")).identity()["data"]["train"]
    'a.csv'
    """

    data: Numbers

    def identity(self) -> dict[str, Any]:
        """The settings that what is prepared depends on."""
        return {"data": plain(self.data)}

    def run(self, folder: Path, tell: Tell) -> Mapping[str, Mapping[str, int]]:
        """Write scale.json, and the numbers of train and valid, into `folder`; how many places each has."""
        counts, scale = {}, None
        for split in ("train", "valid"):
            tell(f"reading {split}", 0, total=0)
            table = self.data.table(split)
            scale = scale or Scale.of(table)
            if table.names != scale.names:
                raise DataError(
                    f"{split} has the columns {', '.join(table.names)}, train has {', '.join(scale.names)}; "
                    "name those that both have in data.columns"
                )
            with ShardWriter(folder / split, {COLUMN: 1 << 32}) as writer:
                writer.append([(scale.apply(table.values).astype("<f4").reshape(-1).view("<u4").tolist(),)])
            counts[split] = {"places": len(table.values)}
        assert scale is not None
        scale.save(folder / FILE)
        return counts


@dataclass(frozen=True)
class Figures(Script):
    """Real numbers, one or several a place, each with its own doubt.

    >>> Figures(Scale(("load",), (2.0,), (1.0,))).space().features
    1
    """

    scale: Scale

    @classmethod
    def load(cls, folder: Path) -> Figures:
        """What preparation wrote."""
        return cls(Scale.load(folder / FILE))

    @property
    def size(self) -> str:
        return ", ".join(self.scale.names)

    def space(self, smoothing: float = 0.0) -> Gaussian:
        return Gaussian(len(self.scale.names))

    def sequence(self, shards: Shards) -> np.ndarray:
        return shards.flat(COLUMN).view("<f4").reshape(-1, len(self.scale.names))

    def read(self, data: Any, split: str) -> tuple[np.ndarray, Mapping[str, int]]:
        table = data.table(split)
        return self.scale.apply(table.values), {"places": len(table.values)}

    def metrics(self, found: Mapping[str, float], counts: Mapping[str, int]) -> Mapping[str, float]:
        return {"loss": found["loss"]}  # of a density there is no perplexity

    def scores(self, found: Score, counts: Mapping[str, int]) -> list[Score]:
        value, low, high = (math.log(number) for number in (found.value, found.low, found.high))
        return [Score("loss", value, low, high, found.signature.replace("unit:token", "unit:place"), found.n)]

    def writer(self, model: Any, config: DecodeConfig, reach: int | None) -> NumberWriter:
        return NumberWriter(model, self.scale, config, reach)

    def opening(self, sequence: np.ndarray) -> str:
        return spelled(self.scale.undo(sequence[:OPENING]))

    def spell(self) -> Mapping[str, Callable[[int], str]]:
        return {}

    @staticmethod
    def told(split: str, counts: Mapping[str, int]) -> str:
        return f"{split:<10}  {counts['places']:,} places"


@dataclass(frozen=True)
class Series:
    """Numbers that go on from others.

    >>> Series(((1.0, 2.5), (3.0, 4.0))).text
    '1,2.5\\n3,4\\n'
    """

    values: tuple[tuple[float, ...], ...]

    @property
    def text(self) -> str:
        return spelled(np.array(self.values))


@dataclass(frozen=True)
class NumberWriter(Writer):
    """A model of real numbers, with their scale and how they are drawn.

    >>> NumberWriter.__dataclass_fields__["reach"].default is None
    True
    """

    model: EncoderDecoder
    scale: Scale
    config: DecodeConfig
    reach: int | None = None
    """places that are read at once, half of them what was written before; None: it goes on for ever"""

    @property
    def lines(self) -> bool:
        return False

    def check(self, prompt: str) -> None:
        self.prompt_values(prompt)

    def read(self, prompt: str) -> tuple[Tokens, list[str]]:
        values = self.prompt_values(prompt)
        words = [spelled(row[None]).rstrip("\n") for row in self.scale.undo(values)]
        return Tokens.full(torch.from_numpy(values)[None]), words

    def shown(self, prompt: str) -> str:
        return f"{prompt.rstrip()}\n" if prompt.strip() else ""

    def generate(self, prompt: str, length: int, n: int = 1) -> list[Series]:
        """`n` series that go on from numbers, one place a line; from the mean of what was learnt if there are none."""
        places = list(self.drawn(self.prompt_values(prompt), length, n))
        return [Series(tuple(tuple(place[i].tolist()) for place in places)) for i in range(n)]

    def stream(self, prompt: str, length: int) -> Iterator[str]:
        """One series, a line a place."""
        for values in self.drawn(self.prompt_values(prompt), length, 1):
            yield spelled(values)

    def prompt_values(self, prompt: str) -> np.ndarray:
        """A prompt as scaled numbers."""
        if not prompt.strip():
            return np.zeros((1, len(self.scale.names)), np.float32)
        table = parse_numbers(prompt.splitlines(), "the prompt")
        if len(table.names) != len(self.scale.names):
            raise DataError(
                f"the prompt has {len(table.names)} numbers a line, this model has learnt {len(self.scale.names)}: "
                f"{', '.join(self.scale.names)}"
            )
        return self.scale.apply(table.values)[-LONGEST:]

    def drawn(self, before: np.ndarray, length: int, n: int) -> Iterator[np.ndarray]:
        """The next place of all samples, (n, F), again and again."""
        if length < 1 or n < 1:
            raise ConfigError(f"length = {length} and n = {n} must be at least 1")
        step = self.step(n)
        read_NTF = torch.from_numpy(before)[None].repeat(n, 1, 1)
        kept = LONGEST if self.reach is None else max(1, self.reach // 2)
        while length:
            read_NTF = read_NTF[:, -kept:]
            room = length if self.reach is None else min(length, max(1, self.reach - read_NTF.shape[1]))
            prompt = Tokens.full(read_NTF)
            for choice in decode(self.model, nothing(n), prompt, Rollout(step), torch.full((n,), room)):
                read_NTF = torch.cat([read_NTF, choice.tokens[:, None]], 1)
                yield self.scale.undo(choice.tokens.numpy())
            length -= room

    def step(self, n: int) -> Callable[[Tensor], Tensor]:
        """How a prediction becomes the next place: drawn, each sample by numbers of its own, or the likeliest."""
        space = Gaussian(len(self.scale.names))
        if not self.config.sample:
            return space.next
        draws = [torch.Generator().manual_seed(self.config.seed * 1_000_003 + i) for i in range(n)]

        def next_place(out_NC: Tensor) -> Tensor:
            drawn_NF = torch.cat([space.draw(out_NC[i : i + 1], draw) for i, draw in enumerate(draws)])
            mean_NF = space.next(out_NC)
            return mean_NF + self.config.temperature * (drawn_NF - mean_NF)

        return next_place


def spelled(values: np.ndarray | Sequence[Sequence[float]]) -> str:
    """Numbers for people, one place a line.

    >>> spelled([[1.0, 0.123456789]])
    '1,0.123457\\n'
    """
    return "".join(",".join(f"{number:.6g}" for number in place) + "\n" for place in values)
