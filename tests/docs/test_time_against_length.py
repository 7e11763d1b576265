"""The picture of time against the length of a sentence can be drawn by whoever doubts it."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_models_of_one_size_are_timed_and_long_sentences_take_longer_to_write(tmp_path):
    sizes = ["--length", "2", "40", "--rounds", "1", "--clock", "cpu"]
    files = ["--out", str(tmp_path / "a.svg"), "--json", str(tmp_path / "a.json")]
    made = subprocess.run(
        [sys.executable, str(ROOT / "benchmarks" / "lengths.py"), *sizes, *files],
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    counts = [int(count.replace(",", "")) for count in re.findall(r": ([\d,]+) parameters", made.stdout)]
    assert len(counts) == 3 and max(counts) < 1.05 * min(counts)
    found = json.loads((tmp_path / "a.json").read_text(encoding="utf-8"))
    assert set(found) == {"lstm", "rnnsearch", "transformer"}
    for (few, _, short), (many, _, long) in found.values():
        assert (few, many) == (2, 40) and 2 * short < long
    drawn = (tmp_path / "a.svg").read_text(encoding="utf-8")
    assert drawn.startswith("<svg") and all(name in drawn for name in found)
