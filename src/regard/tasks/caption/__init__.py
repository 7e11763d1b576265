"""Captioning of images."""
