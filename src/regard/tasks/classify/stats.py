"""What labelled examples are made of, texts or rows of numbers: where classifying differs between them."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from regard.data.labelled import LabelledCsv, LabelledJsonl, LabelledLines, LabelledTsv, MovieReviews
from regard.data.tabular import LabelledTable
from regard.models.base import Classifier
from regard.tasks.base import Preparation
from regard.tasks.classify.inputs import COLUMN, Matter, Measures, Prose
from regard.tasks.classify.labels import LABELS, Labels
from regard.tasks.classify.prepare import (
    VECTORS,
    ClassFeed,
    ClassifyConfig,
    TablePreparation,
    TextPreparation,
    spelled,
    started,
)
from regard.tasks.generate.numbers import FILE as SCALE
from regard.tasks.generate.numbers import Scale
from regard.tasks.translate.stats import lengths
from regard.text import Tokenizer, TokenizerConfig
from regard.text.word_vectors import VectorsConfig, WordVectors

TextData = LabelledTsv | LabelledCsv | LabelledJsonl | LabelledLines | MovieReviews
DataConfig = TextData | LabelledTable


@dataclass(frozen=True)
class Questions:
    """What a model is scored on, line by line.

    >>> Questions("dev.tsv", ["so great"], ["positive"], [7]).where(0)
    'dev.tsv, line 7'
    """

    file: str
    given: Sequence[str]
    labels: Sequence[str]
    lines: Sequence[int]

    def where(self, i: int) -> str:
        """Where one of them stands."""
        return f"{self.file}, line {self.lines[i]}"


class Material(ABC):
    """What examples are made of.

    >>> Tabled(LabelledTable(train="a.csv"), ClassifyConfig()).kept()
    ('labels.json', 'scale.json')
    """

    unit: str
    """what an example is, in a word"""

    @abstractmethod
    def kept(self) -> tuple[str, ...]:
        """Of what preparation writes, the files that a model needs for ever."""

    @abstractmethod
    def preparation(self) -> Preparation:
        """How raw data becomes what training reads."""

    @abstractmethod
    def matter(self, run: Path) -> Matter:
        """What stands in an example, as preparation found it."""

    @abstractmethod
    def asked(self, matter: Matter, split: str, file: Path | None) -> Questions:
        """What a model is scored on: a split of the recipe's data, or a file of the same kind."""

    @abstractmethod
    def counted(self, run: Path, feed: ClassFeed) -> dict[str, Any]:
        """What there is to tell about what is read, as plain JSON."""

    @abstractmethod
    def told(self, found: Mapping[str, Any]) -> list[str]:
        """The same for people."""

    @abstractmethod
    def size(self, matter: Matter) -> str:
        """The tokens or columns, in a word or two."""

    def start(self, module: Classifier, run: Path) -> None:
        """Put into a fresh model what it starts from."""
        return


@dataclass(frozen=True)
class Written(Material):
    """Texts, cut into tokens.

    >>> Written(MovieReviews(), ClassifyConfig(), TokenizerConfig(kind="word"), VectorsConfig()).kept()
    ('labels.json', 'tokenizer.json')
    """

    data: TextData
    task: ClassifyConfig
    text: TokenizerConfig
    vectors: VectorsConfig
    unit = "texts"

    def kept(self) -> tuple[str, ...]:
        return (LABELS, "tokenizer.json") + ((VECTORS,) if self.vectors.path else ())

    def preparation(self) -> TextPreparation:
        return TextPreparation(self.data, self.text, self.task, self.vectors)

    def matter(self, run: Path) -> Prose:
        width = self._vectors(run)["width"] if self.vectors.path else 0
        tokenizer = Tokenizer.load(run / "tokenizer.json")
        return Prose(tokenizer, self.task.tokens, self.task.keep, self.task.pool == "first", width)

    def asked(self, matter: Matter, split: str, file: Path | None) -> Questions:
        data = self.data if file is None else self.data.scored_on(file)
        examples = list(TextPreparation(data, self.text, self.task).examples(split if file is None else "test"))
        lent = file is None and split == "valid" and split not in data.splits()
        name = data.file("train" if lent else split if file is None else "test")
        return Questions(name, [e.text for e in examples], [e.label for e in examples], [e.line for e in examples])

    def counted(self, run: Path, feed: ClassFeed) -> dict[str, Any]:
        found: dict[str, Any] = {"vocabulary": {"kind": self.text.kind, "size": feed.matter.vocabulary()}}
        if self.vectors.path:
            found["vectors"] = self._vectors(run)
        for split, shards in (("train", feed.train), ("valid", feed.held_out)):
            batches = list(feed.plan(shards).epoch(0))
            places = sum(len(rows) * int(feed.matter.lengths(shards)[rows].max()) for rows in batches)
            read = sum(int(feed.matter.lengths(shards)[rows].sum()) for rows in batches)
            found[split] = {**lengths(shards, COLUMN), "batches": len(batches), "padding": round(1 - read / places, 4)}
        return found

    def told(self, found: Mapping[str, Any]) -> list[str]:
        words, start = found["vocabulary"], found.get("vectors")
        lines = [f"vocabulary  {words['kind']} {words['size']:,}"]
        if start:
            share = 100 * start["found"] / start["words"]
            lines.append(f"vectors     of {start['width']} numbers, for {start['found']:,} words ({share:.1f} %)")
        for split in ("train", "valid"):
            row = found[split]
            dropped = [f"{row[why]:,} {why}" for why in ("empty",) if row[why]]
            cut = f", {row['cut']:,} cut to {self.task.tokens} tokens" if row["cut"] else ""
            lines.append(
                f"{split:<10}  {row['kept']:,} of {row['read']:,} texts; dropped: {', '.join(dropped) or 'none'}{cut}"
            )
            lines.append(
                f"  tokens    {row['tokens']:,}, {row['mean']} a text, 99 % have at most {row['p99']}, the longest "
                f"{row['most']}; padding {100 * row['padding']:.1f} % of {row['batches']:,} batches"
            )
        return lines

    def size(self, matter: Matter) -> str:
        return f"tokens  {self.text.kind} {matter.vocabulary():,}"

    def start(self, module: Classifier, run: Path) -> None:
        if self.vectors.path:
            embed: Any = module.encoder.embed
            table = embed if isinstance(embed, torch.nn.Embedding) else embed[0]
            found = WordVectors.load(run / "data")
            table.weight.data.copy_(started(table.weight.data, found, self.vectors.scale))

    def _vectors(self, run: Path) -> dict[str, int]:
        found: dict[str, int] = json.loads((run / VECTORS).read_text(encoding="utf-8"))
        return found


@dataclass(frozen=True)
class Tabled(Material):
    """Rows of numbers.

    >>> Tabled(LabelledTable(train="a.csv"), ClassifyConfig()).unit
    'rows'
    """

    data: LabelledTable
    task: ClassifyConfig
    unit = "rows"

    def kept(self) -> tuple[str, ...]:
        return LABELS, SCALE

    def preparation(self) -> TablePreparation:
        return TablePreparation(self.data, self.task)

    def matter(self, run: Path) -> Measures:
        return Measures(Scale.load(run / SCALE))

    def asked(self, matter: Matter, split: str, file: Path | None) -> Questions:
        assert isinstance(matter, Measures)
        data = replace(self.data if file is None else self.data.scored_on(file), columns=matter.scale.names)
        rows = TablePreparation(data, self.task).rows(split if file is None else "test")
        lent = file is None and split not in data.splits()
        name = data.file("train" if lent else split if file is None else "test")
        return Questions(name, [spelled(values) for values in rows.table.values], rows.labels, rows.lines)

    def counted(self, run: Path, feed: ClassFeed) -> dict[str, Any]:
        assert isinstance(feed.matter, Measures)
        scale = feed.matter.scale
        columns = zip(scale.names, scale.mean, scale.deviation, strict=True)
        found: dict[str, Any] = {"columns": {name: {"mean": mean, "deviation": dev} for name, mean, dev in columns}}
        for split, shards in (("train", feed.train), ("valid", feed.held_out)):
            found[split] = {"batches": len(list(feed.plan(shards).epoch(0)))}
        return found

    def told(self, found: Mapping[str, Any]) -> list[str]:
        lines = [
            f"column      {name}: mean {column['mean']:.4g}, deviation {column['deviation']:.4g}"
            for name, column in found["columns"].items()
        ]
        lines += [
            f"{split:<10}  {found[split]['kept']:,} rows in {found[split]['batches']:,} batches"
            for split in ("train", "valid")
        ]
        return lines

    def size(self, matter: Matter) -> str:
        assert isinstance(matter, Measures)
        names = matter.scale.names
        return f"columns  {', '.join(names[:6])}{', ...' if len(names) > 6 else ''}"


def statistics(run: Path, material: Material, feed: ClassFeed) -> dict[str, Any]:
    """What preparation found, as plain data.

    >>> import tempfile
    >>> from regard.data import Shards
    >>> from regard.objective import silent
    >>> with tempfile.TemporaryDirectory() as home:
    ...     run, file = Path(home), Path(home, "flowers.csv")
    ...     _ = file.write_text("width,kind\\n" + "".join(f"{i},{'rose' if i % 3 else 'lily'}\\n" for i in range(60)))
    ...     material = Tabled(LabelledTable(train=str(file), label="kind"), ClassifyConfig(held_out=0.2))
    ...     counts = material.preparation().run(run / "data", silent)
    ...     _ = (run / "data" / "counts.json").write_text(json.dumps(counts))
    ...     for name in material.kept():
    ...         _ = (run / "data" / name).rename(run / name)
    ...     shards = (Shards.open(run / "data" / split) for split in ("train", "valid"))
    ...     found = statistics(run, material, ClassFeed(*shards, material.matter(run)))
    >>> found["train"]["kept"] + found["valid"]["kept"], list(found["columns"]), sorted(found["train"]["labels"])
    (60, ['width'], ['lily', 'rose'])
    """
    labels = Labels.load(run)
    counts = json.loads((run / "data" / "counts.json").read_text(encoding="utf-8"))
    found = material.counted(run, feed)
    for split, shards in (("train", feed.train), ("valid", feed.held_out)):
        numbers = np.bincount(shards.flat("label"), minlength=len(labels.names)).tolist()
        shares = dict(zip(labels.names, numbers, strict=True))
        found[split] = {**counts[split], "kept": len(shards), **found[split], "labels": shares}
    return found


def told(material: Material, found: Mapping[str, Any]) -> list[str]:
    """The same for people.

    >>> split = {"kept": 30, "batches": 1, "labels": {"bad": 10, "good": 20}}
    >>> found = {"columns": {"width": {"mean": 1.0, "deviation": 0.5}}, "train": split, "valid": split}
    >>> told(Tabled(LabelledTable(train="a.csv"), ClassifyConfig()), found)[-1]
    'labels      2; of 30 rows to learn from good 66.7 %, bad 33.3 %'
    """
    shares = found["train"]["labels"]
    most = sorted(shares.items(), key=lambda item: -item[1])[:10]
    each = ", ".join(f"{name} {100 * count / found['train']['kept']:.1f} %" for name, count in most)
    rest = ", ..." if len(shares) > len(most) else ""
    line = f"labels      {len(shares)}; of {found['train']['kept']:,} {material.unit} to learn from {each}{rest}"
    return [*material.told(found), line]
