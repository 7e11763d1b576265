"""Reading text, cleaning pairs, storing ids, making batches; it knows nothing of tokenizers and tensors."""

from regard.data.batches import Batches, Order, Position, RowLengths, share
from regard.data.filters import REASONS, Filter, clean, encode, summary
from regard.data.lines import read_lines
from regard.data.pairs import Files, Jsonl, Pair, PairSource, Tsv, read_jsonl, read_pairs, read_tsv
from regard.data.shards import Lengths, Shards, ShardWriter

__all__ = [
    "REASONS",
    "Batches",
    "Files",
    "Filter",
    "Jsonl",
    "Lengths",
    "Order",
    "Pair",
    "PairSource",
    "Position",
    "RowLengths",
    "ShardWriter",
    "Shards",
    "Tsv",
    "clean",
    "encode",
    "read_jsonl",
    "read_lines",
    "read_pairs",
    "read_tsv",
    "share",
    "summary",
]
