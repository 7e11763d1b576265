"""Explanations of recorded numbers: a tape of the pass, the rules of its operations, and expressions as plain data."""

from regard.look.explain.explainer import WEIGHT_AXES, Explainer, Explanation, begin_tape
from regard.look.explain.tape import OperationTape, named_weights

__all__ = ["WEIGHT_AXES", "Explainer", "Explanation", "OperationTape", "begin_tape", "named_weights"]
