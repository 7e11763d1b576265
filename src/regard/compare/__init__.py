"""Comparing models: train several on the same data and budget, and compare runs in a table or side by side."""

from regard.compare.recipe import Comparison, FamilyMember
from regard.compare.side_by_side import ModelAnswer, side_by_side
from regard.compare.table import ComparisonRow, ComparisonTable, compare_runs
from regard.compare.train import train_family

__all__ = [
    "Comparison", "ComparisonRow", "ComparisonTable", "FamilyMember", "ModelAnswer", "compare_runs", "side_by_side",
    "train_family",
]  # fmt: skip
