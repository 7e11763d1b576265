"""Layers: tensor in, tensor out, no state kept on the module.

Shape suffixes (x_BLD):
B sources, W beam width, N = B x W hypotheses, S source length, T target length, L any length, R capacity of a KV cache,
D width, H heads, K width of a head, F feed-forward width or values, V vocabulary, C channels or classes, Y rows,
X columns.
"""
