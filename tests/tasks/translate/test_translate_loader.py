"""Batches of sentence pairs, with new subword segmentations in each epoch."""

from __future__ import annotations

from collections import Counter
from itertools import islice
from pathlib import Path

import pytest

from regard.data import Shards
from regard.distributed import ProcessGroup
from regard.objective import Batch
from regard.tasks.translate import loader as loader_module
from regard.tasks.translate.loader import PairLoader
from regard.tasks.translate.prepare import TranslatePreparation, Vocabularies
from regard.tasks.translate.sources import PairTsv
from regard.text import TokenizerConfig

BUDGET = 200


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("prepared")
    pairs = [
        (f"le chat numéro {i}" + " dort bien" * (i % 9), f"cat {i}" + " sleeps well" * (i % 9)) for i in range(400)
    ]
    (folder / "pairs.tsv").write_text("".join(f"{a}\t{b}\n" for a, b in pairs), encoding="utf-8")
    data = PairTsv(train=str(folder / "pairs.tsv"), valid_share=0.1)
    TranslatePreparation(data, text=TokenizerConfig(vocab_size=150)).run(folder)
    return folder


def loader(folder: Path, dropout: float, group: ProcessGroup = ProcessGroup()) -> PairLoader:  # noqa: B008
    shards = Shards.open(folder / "train"), Shards.open(folder / "valid")
    return PairLoader(*shards, Vocabularies.load(folder), BUDGET, 1, dropout, group)


def epoch(made: PairLoader, number: int) -> list[Batch]:
    found = []
    for batch, after in made.train_batches({"epoch": number, "pool": 0, "batch": 0}):
        found.append(batch)
        if after["epoch"] != number:
            return found
    raise AssertionError


def texts(made: PairLoader, batches: list[Batch]) -> Counter[str]:
    tokenizer = made.vocabularies.source
    return Counter(tokenizer.decode(ids[:length]) for b in batches for ids, length in zip(*_rows(b), strict=True))


def _rows(batch: Batch) -> tuple[list[list[int]], list[int]]:
    return batch.source.data.tolist(), batch.source.lengths.tolist()


@pytest.mark.parametrize("dropout", [0.0, 0.1, 0.5, 1.0])
@pytest.mark.parametrize("pool", [64, 1 << 14])
def test_a_batch_keeps_its_budget_and_an_epoch_its_rows(
    prepared: Path, dropout: float, pool: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loader_module, "POOL", pool)
    made, whole = loader(prepared, dropout), loader(prepared, 0.0)
    for number in (0, 3):
        batches = epoch(made, number)
        for batch in batches:
            # only the target has <SOS>, and the budget does not count it
            positions = max(batch.source.data.numel(), batch.target.data.numel() - len(batch))
            assert positions <= BUDGET or len(batch) == 1
        assert texts(made, batches) == texts(whole, epoch(whole, 0))


def test_pieces_and_batches_are_others_in_another_epoch(prepared: Path) -> None:
    made = loader(prepared, 0.5)
    one, two = (sum(int(b.source.lengths.sum()) for b in epoch(made, number)) for number in (0, 1))
    assert one != two


@pytest.mark.parametrize("dropout", [0.0, 0.3])
def test_a_stream_goes_on_from_anywhere_as_if_it_had_never_stopped(
    prepared: Path, dropout: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loader_module, "POOL", 100)
    made = loader(prepared, dropout)
    batches = list(islice(made.train_batches(None), 2 * made.batches_per_epoch() + 3))
    for i in range(0, len(batches) - 3, 7):
        rest = list(islice(loader(prepared, dropout).train_batches(batches[i][1]), 2))
        for (batch, after), (expected, position) in zip(rest, batches[i + 1 :], strict=False):
            assert after == position and batch.source.data.tolist() == expected.source.data.tolist()


@pytest.mark.parametrize("dropout", [0.0, 0.3])
def test_the_batches_of_an_epoch_are_known_beforehand(prepared: Path, dropout: float) -> None:
    made = loader(prepared, dropout)
    assert made.batches_per_epoch() == len(epoch(made, 0))


def test_processes_share_each_batch(prepared: Path) -> None:
    whole = loader(prepared, 0.3)
    parts = [loader(prepared, 0.3, ProcessGroup(rank=rank, size=2)) for rank in range(2)]
    batches = epoch(whole, 0)
    shares = [epoch(part, 0) for part in parts]
    assert len(shares[0]) == len(shares[1]) == len(batches)
    for batch, one, two in zip(batches, *shares, strict=True):
        assert sorted(_sentences(batch)) == sorted([*_sentences(one), *_sentences(two)])


def _sentences(batch: Batch) -> list[list[int]]:
    return [ids[:length] for ids, length in zip(*_rows(batch), strict=True)]
