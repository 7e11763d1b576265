"""Files of numbers to continue: splits and errors."""

from __future__ import annotations

from pathlib import Path

import pytest

from regard.data.tables import NumericTable
from regard.errors import ConfigError, InputError
from regard.tasks.generate.sources import NumberFiles


def test_the_end_is_held_out_unless_there_is_a_validation_file(tmp_path: Path) -> None:
    path = tmp_path / "series.csv"
    path.write_text("\n".join(map(str, range(20))), encoding="utf-8")
    data = NumberFiles(train=str(path), valid_share=0.25)
    assert [len(data.table(split).values) for split in data.splits()] == [15, 5]
    assert data.table("valid").values[0] == 15
    own = NumberFiles(train=str(path), valid=str(path), test=str(path))
    assert [len(own.table(split).values) for split in own.splits()] == [20, 20, 20]
    assert isinstance(data.scored_on(path).table("test"), NumericTable)
    with pytest.raises(
        ConfigError, match=r'there is no split "test" \(splits: train, valid\); name its file in the recipe'
    ):
        data.table("test")
    with pytest.raises(InputError, match=r"none\.csv: there is no such file"):
        NumberFiles(train="none.csv").table("train")
