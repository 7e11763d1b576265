"""Reading text, cleaning pairs, storing ids, making batches; it knows nothing of tokenizers and tensors."""

from regard.data.batches import Batches, Order, Position, RowLengths, share
from regard.data.lines import read_lines
from regard.data.shards import Lengths, Shards, ShardWriter

__all__ = [
    "Batches",
    "Lengths",
    "Order",
    "Position",
    "RowLengths",
    "ShardWriter",
    "Shards",
    "read_lines",
    "share",
]
