"""Settings that were renamed before the first release: an error about an old name gives the present one."""

from __future__ import annotations

RENAMED = {
    "train.tokens": "train.batch_tokens",
    "train.every": "train.validate_every",
    "train.save": "train.save_every",
    "train.keep": "train.keep_checkpoints",
    "train.select": "train.best_metric",
    "train.smoothing": "train.label_smoothing",
    "train.clip": "train.clip_norm",
    "train.on_nan": "train.on_divergence",
    "train.optimizer.decay": "train.optimizer.weight_decay",
    "model.inner": "model.ffn_width",
    "model.longest": "model.max_positions",
    "task.joint": "task.share_vocab",
    "task.scored": "task.bleu_sentences",
    "task.tried": "task.sample_inputs",
    "task.least": "task.min_count",
    "task.letters": "task.char_encoder",
    "task.unknown": "task.word_dropout",
    "task.longest": "task.max_length",
    "task.tokens": "task.max_length",
    "task.around": "task.center",
    "task.unit": "task.scale_by",
    "task.columns": "task.channels",
    "task.line": "task.linear_skip",
    "task.common": "task.subsample",
    "task.shared": "task.shared_negatives",
    "text.normal": "text.normalization",
    "text.longest": "text.max_pretoken",
    "text.size": "text.vocab_size",
    "filter.characters": "filter.max_characters",
    "filter.tokens": "filter.max_tokens",
    "filter.ratio": "filter.max_length_ratio",
    "decode.penalty": "decode.length_penalty",
    "decode.extra": "decode.max_extra_tokens",
    "decode.minimum": "decode.min_length",
    "decode.repetition": "decode.repetition_penalty",
    "decode.no_repeat": "decode.no_repeat_ngram",
    "decode.coverage": "decode.coverage_penalty",
    "task.held_out": "data.valid_share",
    "data.held_out": "data.valid_share",
    "data.watched": "data.valid_share",
    "data.tested": "data.test_share",
    "data.known": "data.future_covariates",
    "data.calendar": "data.time_features",
    "data.gaps": "data.missing",
    "data.longest_words": "data.max_words",
    "data.shortest": "data.min_length",
    "data.longest": "data.max_length",
    "data.answer": "data.label_type",
}
"""old key -> present key"""

RENAMED_OF_KIND = {
    ("task.scored", "caption"): "task.bleu_images",
    ("data.held_out", "movie-reviews"): "data.test_share",
}
"""(old key, kind of its table) -> present key, where it differs from that of other kinds"""

RENAMED_VALUES = {
    ("model.kind", "mixed"): "encoder-decoder",
    ("task.center", "nothing"): "none",
    ("task.channels", "together"): "joint",
    ("task.channels", "apart"): "independent",
    ("task.linear_skip", "beside"): "shared",
    ("task.linear_skip", "each"): "per-column",
    ("data.missing", "carry"): "ffill",
    ("data.missing", "refuse"): "error",
}
"""(present key, old value) -> present value"""


def renamed_key(key: str, kind: object = None) -> str | None:
    """Present name of a renamed setting of a table of this kind, or None.

    An encoder and a decoder have the settings of a model.

    >>> renamed_key("train.every"), renamed_key("model.encoder.inner"), renamed_key("train.steps")
    ('train.validate_every', 'model.encoder.ffn_width', None)
    >>> renamed_key("task.scored"), renamed_key("task.scored", "caption")
    ('task.bleu_sentences', 'task.bleu_images')
    """
    if isinstance(kind, str) and (key, kind) in RENAMED_OF_KIND:
        return RENAMED_OF_KIND[key, kind]
    for half in ("model.encoder.", "model.decoder."):
        if key.startswith(half):
            found = RENAMED.get(f"model.{key.removeprefix(half)}")
            return found and half + found.removeprefix("model.")
    return RENAMED.get(key)
