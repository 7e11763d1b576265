"""Regression: an image or a clip in, one or more real numbers out."""
