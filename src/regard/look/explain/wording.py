"""Sentences of explanations: what a number is, by the name of its tensor, and how it is computed, by the operation."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from regard.look.explain.expressions import Expression, Place

ROLES = {
    "embedding": "The vector of the token, looked up in a table or computed from its letters.",
    "scaled_embedding": "The vector of the token times the square root of its width, which keeps it from being small.",
    "position": "What tells the model where a token stands.",
    "segment": "What tells the model which of two texts a token belongs to.",
    "residual": "The residual stream: what this layer hands to the next one.",
    "residual_sum": "The residual connection: the output of a sublayer is added to its input.",
    "attention_residual": "The residual connection: the output of attention is added to its input.",
    "ffn_residual": "The residual connection: the output of the feed-forward network is added to its input.",
    "normalized": "A vector that was normalized, then scaled and shifted by learned numbers.",
    "queries": "A query: what this position looks for.",
    "keys": "A key: what this position is found by.",
    "values": "A value: what this position hands over when it is attended to.",
    "products": "The query of this row times the key of this column.",
    "scores": "An attention score: how well the query of this row matches the key of this column.",
    "context": "The values of all positions, weighted by attention and summed.",
    "attended": "Luong's attentional vector: context and state of the decoder, joined.",
    "preactivations": "The first layer of the feed-forward network, before its activation function.",
    "activations": "The first layer of the feed-forward network, after its activation function.",
    "linear": "The second branch of the gated feed-forward network.",
    "gates": "A gate: 0 lets nothing through, 1 everything (a candidate lies between −1 and 1).",
    "candidate": "The candidate: the new content of the state.",
    "cell": "The cell state: what the LSTM keeps, plus what it adds.",
    "hidden": "The hidden state: what the layer puts out at this step.",
    "features": "The features that the output layer reads.",
    "logits": "A logit: features times the vector of the word or label. Softmax turns logits into probabilities.",
    "pooled": "The vector that stands for the whole input.",
    "convolution": "A filter at one place of the input.",
    "norm": "Batch normalization with the statistics of training.",
    "feature_map": "A feature map: where on the image a filter responds.",
    "image": "A pixel, standardized with mean and deviation of the training images.",
    "patches": "A pixel of a patch.",
    "filters": "A filter of the first layer.",
    "forecast": "The forecast in the scale of the model; units are restored afterwards.",
    "numbers": "An output in the scale of the model.",
    "answer": "The number of the chosen word in the vocabulary: the search chose it by the logits.",
    "ids": "The number of a word in the vocabulary.",
    "pixels": "A pixel from 0 to 255, from the standardized number that the model read.",
    "position_similarity": "Cosine of two position embeddings: 1 if they point the same way.",
    "prediction": "The output in the units of the data.",
    "rollout": "Attention rollout: the share of this input that weights and residual sums carry through all layers.",
}
"""by the last part of a tensor's name"""
ATTENTION_WEIGHTS = "An attention weight: the share of this position in the sum of values."
LENS = {
    "lens.probabilities": "The logit lens: the probability of a word or label if the model ended after this layer.",
    "lens.ids": "The logit lens: the number of a word in the vocabulary, or of a label; the most probable comes first.",
}
OPERATIONS = {
    "linear": "Computed as the input times a row of the weight matrix, plus a bias where there is one.",
    "matmul": "Computed as a sum of products.",
    "conv1d": "Computed as a window of the input times a filter, plus a bias where there is one.",
    "layer_norm": "The mean of the vector is subtracted, the rest divided by the standard deviation.",
    "rms_norm": "Divided by the root mean square of the vector.",
    "batch_norm": "The running mean is subtracted, the rest divided by the running deviation.",
    "softmax": "Softmax: the share of this score among all scores of the row.",
    "max_pool2d": "The largest number of a window.",
    "amax": "The largest number along the sequence.",
    "topk": "The place of a number among those that were compared; the largest comes first.",
    "copy": "The same number as one that was recorded before.",
    "weight": "A weight: training set it, the pass only reads it.",
    "input": "An input of the model: nothing before it was computed.",
    "constant": "A constant: it does not depend on the input, or a mask put it here.",
}
"""by operation, or by what a number is that no operation computed"""
ALIASES = {"_linear_pointwise": "linear", "conv2d": "conv1d", "bmm": "matmul", "mm": "matmul", "rmatmul": "matmul"}
TITLES = {
    "linear": "projection", "_linear_pointwise": "projection", "matmul": "product", "mul": "product", "add": "sum",
    "sub": "difference", "conv1d": "convolution", "conv2d": "convolution", "layer_norm": "norm", "div": "quotient",
    "arange": "position", "new_zeros": "zero", "zeros_like": "zero", "zeros": "zero", "lerp": "mixture",
}  # fmt: skip


def describe(place: Place, expression: Expression | None, operation: str) -> str:
    """One or two sentences about a number."""
    operation = ALIASES.get(operation, operation)
    how = OPERATIONS.get(operation, "")
    if expression is None and not how:
        how = OPERATIONS["constant"]
    return " ".join(part for part in (_role(place), how) if part) or "Computed from the numbers below."


def _role(place: Place) -> str:
    if place.kind not in ("tensor", "recorded"):
        return ""
    last = place.name.rpartition(".")[2]
    if place.name in LENS:
        return LENS[place.name]
    if last == "weights":
        return ATTENTION_WEIGHTS if "key" in place.index else "The weight of a layer in the mix of all layers."
    if last == "output":
        return "The output of the sublayer, before it is added to the residual stream."
    if re.fullmatch(r"layer\d+", last):
        return "One layer of ELMo: both directions side by side."
    if last.startswith(("start_", "initial")):
        return "The initial state of the decoder."
    return ROLES.get(last, "")


def operation_title(operation: str, weight: str) -> str:
    """Name of a number that was computed and not recorded, such as "projection by decoder.query".

    >>> operation_title("linear", "decoder.query.weight")
    'projection by decoder.query'
    """
    title = TITLES.get(operation, operation.strip("_").replace("_", " "))
    return f"{title} by {weight.rpartition('.')[0]}" if weight and "." in weight else title
