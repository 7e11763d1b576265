"""Sequence labeling: one tag, number or angle per token."""
