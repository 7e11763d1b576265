"""Sources of your own files: splits, the file of each split, and the license line."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import ClassVar, Literal

import pytest

from regard.config import field_docs
from regard.data.movie_reviews import MovieReviews
from regard.data.sources import FileSource
from regard.errors import ConfigError, DataError


@dataclass(frozen=True, kw_only=True)
class Lines(FileSource):
    kind: Literal["lines"] = "lines"
    """one text per line"""


@dataclass(frozen=True, kw_only=True)
class Running(Lines):
    holds_out: ClassVar[bool] = True


def test_splits_are_those_with_a_file() -> None:
    assert Lines(train="a").splits() == ("train",)
    assert Lines(train="a", valid="b").splits() == ("train", "valid")
    assert Lines(train="a").scored_on(Path("c")).splits() == ("train", "test")


def test_a_source_that_holds_out_reads_validation_from_train() -> None:
    assert Running(train="a").splits() == ("train", "valid")
    assert Running(train="a").file("valid") == "a" and Running(train="a", valid="b").file("valid") == "b"


def test_a_split_without_a_file_is_refused() -> None:
    with pytest.raises(ConfigError) as caught:
        Lines(train="a").file("valid")
    assert str(caught.value) == 'there is no split "valid" (splits: train); name its file in the recipe'


def test_the_license_of_your_own_file_is_not_known() -> None:
    assert Lines(train="a.txt").credit() == "lines: a.txt; license: not known (your own file)"


def test_inherited_settings_keep_their_order_and_documentation() -> None:
    assert [field.name for field in fields(Lines)] == ["kind", "train", "valid", "test"]
    assert field_docs(Lines)["kind"] == "one text per line" and field_docs(Lines)["train"] == "the file to train on"


def test_a_part_of_the_movie_reviews_is_chosen_by_their_origin(tmp_path):
    path = tmp_path / "reviews.csv"
    rows = "".join(f"whole {i},1,imdb\nsentence {i},0,rotten_tomatoes\n" for i in range(40))
    path.write_text("text,label,source\n" + rows, encoding="utf-8")

    def texts(part):
        source = MovieReviews(path=str(path), part=part)
        return [example.text for split in source.splits() for example in source.examples(split)]

    whole, sentences = texts("imdb"), texts("rotten-tomatoes")
    assert len(whole) == len(sentences) == 40 and sorted(whole + sentences) == sorted(texts("all"))
    assert all(text.startswith("whole") for text in whole)
    path.write_text("text,label\ngood,1\n", encoding="utf-8")
    with pytest.raises(DataError, match="source"):
        texts("imdb")
