"""Comparing models: a family trained on the same data with the same budget, one table, one picture, one sentence."""

from regard.compare.recipe import Comparison, Member
from regard.compare.side_by_side import Beside, side_by_side
from regard.compare.table import Row, Table, lined_up

__all__ = ["Beside", "Comparison", "Member", "Row", "Table", "lined_up", "side_by_side"]
