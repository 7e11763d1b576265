"""Data: text readers, tables, time series, splits, shards, batches and loaders; no tokenizers and no tensors."""

from regard.data.batches import Batches, BatchPosition, Permutation, RowLengths, padding_share, rank_share
from regard.data.lines import read_lines
from regard.data.shards import ColumnKind, ColumnLengths, Shards, ShardWriter

__all__ = [
    "BatchPosition", "Batches", "ColumnKind", "ColumnLengths", "Permutation", "RowLengths", "ShardWriter", "Shards",
    "padding_share", "rank_share", "read_lines",
]  # fmt: skip
