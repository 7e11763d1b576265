"""Sequence models, from the RNN to the Transformer: trained, used and looked into."""

__version__ = "0.1.0"
