"""Layers: tensor in, tensor out, nothing left on self.

Axes, written as suffixes (x_BLD):
B sources, W beam width, N = B x W hypotheses, S source length, T target length, L any length, R room of a cache,
D width, H heads, K width of a head, F inner width or values, V vocabulary, C channels or classes, Y X rows, columns.
"""
